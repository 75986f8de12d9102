// SPDX-License-Identifier: BSD-3-Clause
//! A buffer's elements in host memory, segment by segment.

use super::memory::Memory;
use super::stream::Flight;
use super::stream::Stream;
use super::stream::Way;
use crate::endpoint::{Error, Result, Span};
use crate::ffi::base::glue;
use crate::ffi::mpi::data::Datatype;
use std::mem;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a segment, or an element.
const SEGMENT: usize = 512 << 10;

/// Elements in host memory that stand in for those of a buffer in a device's memory.
pub struct Stage {
    /// `None` only when it has been given back.
    memory: Option<Memory>,
    dtype: Datatype,
    there: Span,
    here: Span,
    /// Elements of a segment. One has all where segments could not be copied apart from each other.
    each: usize,
    /// Where copies go on beside the caller.
    streams: Option<[Stream; 2]>,
    /// The elements are read, or stay.
    operand: bool,
    /// The first so many elements are the result, which goes back.
    result: usize,
    state: Mutex<State>,
}

/// What has happened to it.
struct State {
    segments: Vec<Segment>,
    failed: Option<Error>,
}

struct Segment {
    fetched: Copied,
    /// Bytes of the result in it that are final.
    made: usize,
    returned: Copied,
}

impl Segment {
    fn new(operand: bool) -> Segment {
        Segment { fetched: if operand { Copied::Not } else { Copied::Over }, made: 0, returned: Copied::Not }
    }
}

/// A copy of a segment.
enum Copied {
    Not,
    Begun(Flight),
    Over,
}

impl Copied {
    /// Waits for its end, if it has begun.
    fn wait(&mut self) -> Result<()> {
        match mem::replace(self, Copied::Over) {
            Copied::Begun(flight) => flight.wait(),
            other => {
                *self = other;
                Ok(())
            }
        }
    }

    /// Whether it goes on; `Err`: it has just failed.
    fn goes_on(&mut self) -> Result<bool> {
        match mem::replace(self, Copied::Over) {
            Copied::Begun(flight) => match flight.ended() {
                Ok(end) => end.map(|()| false),
                Err(flight) => {
                    *self = Copied::Begun(flight);
                    Ok(true)
                }
            },
            other => {
                *self = other;
                Ok(false)
            }
        }
    }
}

impl Stage {
    /// For the elements of `there`. Those that are read, or stay, have to be fetched (`operand`); the first
    /// `result` elements go back.
    pub fn new(dtype: Datatype, there: Span, operand: bool, result: usize) -> Result<Stage> {
        let count = there.len();
        let bytes = dtype.reach(count).ok_or(Error::NoMemory(usize::MAX))?;
        let memory = Memory::of(bytes)?;
        let origin = memory.start().wrapping_offset(dtype.origin(count));
        let extent = usize::try_from(dtype.info.extent).unwrap_or(0);
        // Elements that overlap are copied in one go.
        let apart = extent > 0 && usize::try_from(dtype.info.true_extent).is_ok_and(|reach| reach <= extent);
        let each = if apart { (SEGMENT / extent).clamp(1, count.max(1)) } else { count.max(1) };
        let segments = count.div_ceil(each);
        let streams = match segments > 1 && dtype.info.tiles != 0 {
            true => Stream::of(there.ptr(), Way::In).zip(Stream::of(there.ptr(), Way::Out)),
            false => None,
        };
        Ok(Stage {
            memory: Some(memory),
            dtype,
            there,
            // SAFETY: the memory holds so many elements, and goes when the stage does.
            here: unsafe { Span::new(origin, count, dtype.info.extent) },
            each,
            streams: streams.map(|(into, out)| [into, out]),
            operand,
            result,
            state: Mutex::new(State { segments: (0..segments).map(|_| Segment::new(operand)).collect(), failed: None }),
        })
    }

    /// The elements.
    pub fn here(&self) -> Span {
        self.here
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The elements of a segment, or how many of them lie before `end`.
    fn elements(&self, segment: usize, end: usize) -> Range<usize> {
        let start = (segment * self.each).min(end);
        start..(start + self.each).min(end)
    }

    /// Copies the elements of a segment; beside the caller, where that can be.
    fn copy(&self, elements: Range<usize>, way: Way) -> Result<Copied> {
        let (there, here) = (self.there.slice(elements.clone()), self.here.slice(elements));
        let (from, to) = if way == Way::In { (there, here) } else { (here, there) };
        if to.is_empty() {
            return Ok(Copied::Over);
        }
        if let Some([into, out]) = &self.streams {
            let run = |span: Span| {
                let bytes = span.bytes();
                // SAFETY: the elements' memory without the gap before the first one.
                unsafe { Span::new(bytes.ptr().wrapping_offset(self.dtype.info.true_lb), bytes.len(), 1) }
            };
            let stream = if way == Way::In { into } else { out };
            // SAFETY: the user's buffer holds the elements, and so does the memory here; both are left alone
            // until the copy is over: see `drop`.
            return unsafe { stream.begin(run(from), run(to)) }.map(Copied::Begun);
        }
        // SAFETY: both hold so many elements of the datatype, which is alive while the operation is, and do
        // not overlap.
        match unsafe { glue::cr_copy(self.dtype.handle, to.len(), to.ptr().cast(), from.ptr().cast()) } {
            0 => Ok(Copied::Over),
            code => Err(Error::Mpi(code)),
        }
    }

    /// Begins what can be fetched beside the caller, and fetches what is not worth that.
    pub fn begin(&self) -> Result<()> {
        let mut state = self.state();
        match state.segments.len() {
            0 => Ok(()),
            1 => self.fetch(&mut state, 0..1),
            _ if self.streams.is_some() => self.start(&mut state, 0),
            _ => Ok(()),
        }
    }

    /// Begins to fetch a segment, if it is missing.
    fn start(&self, state: &mut State, segment: usize) -> Result<()> {
        let place = &mut state.segments[segment].fetched;
        if matches!(place, Copied::Not) {
            *place = self.copy(self.elements(segment, self.here.len()), Way::In)?;
        }
        Ok(())
    }

    /// Waits until segments are here, while the one behind them begins to come.
    fn fetch(&self, state: &mut State, segments: Range<usize>) -> Result<()> {
        for segment in segments.clone() {
            self.start(state, segment)?;
        }
        if self.streams.is_some() && segments.end < state.segments.len() {
            self.start(state, segments.end)?;
        }
        state.segments[segments].iter_mut().try_for_each(|segment| segment.fetched.wait())
    }

    /// The bytes from `at` on, counted from the first element's origin, that lie in it.
    fn bytes(&self, at: *const u8, len: usize) -> Range<usize> {
        let all = self.here.len().saturating_mul(usize::try_from(self.here.extent()).unwrap_or(0));
        let start = at.addr().wrapping_sub(self.here.ptr().addr());
        if start < all { start..all.min(start.saturating_add(len)) } else { 0..0 }
    }

    /// The segments that bytes touch.
    fn touched(&self, bytes: &Range<usize>) -> Range<usize> {
        let each = self.each.saturating_mul(usize::try_from(self.here.extent()).unwrap_or(0)).max(1);
        if bytes.is_empty() { 0..0 } else { bytes.start / each..bytes.end.div_ceil(each) }
    }

    /// Sees to it that `len` bytes from `at` on are here, as far as they lie in it.
    pub fn needs(&self, at: *const u8, len: usize) -> Result<()> {
        let touched = self.touched(&self.bytes(at, len));
        let mut state = self.state();
        if let Some(error) = state.failed {
            return Err(error);
        }
        if touched.is_empty() {
            return Ok(());
        }
        let result = self.fetch(&mut state, touched);
        state.failed = result.err();
        result
    }

    /// Sees to it that all of it is here.
    pub fn needs_all(&self) -> Result<()> {
        self.needs(self.here.ptr(), usize::MAX)
    }

    /// `len` bytes from `at` on of the result are final, as far as they lie in it; of which this has not been
    /// said before. Segments that are go back.
    pub fn made(&self, at: *const u8, len: usize) {
        let extent = usize::try_from(self.here.extent()).unwrap_or(0);
        let bytes = self.bytes(at, len);
        let end = bytes.end.min(self.result * extent);
        let mut state = self.state();
        for segment in self.touched(&(bytes.start..end)) {
            let elements = self.elements(segment, self.result);
            let (first, last) = (elements.start * extent, elements.end * extent);
            let place = &mut state.segments[segment];
            place.made += end.min(last).saturating_sub(bytes.start.max(first));
            if place.made >= last - first && matches!(place.returned, Copied::Not) {
                match self.copy(elements, Way::Out) {
                    Ok(copied) => place.returned = copied,
                    Err(error) => state.failed = Some(error),
                }
            }
        }
    }

    /// Has what is left of the result go back; the operation is over.
    pub fn end(&self) -> Result<()> {
        let mut state = self.state();
        if let Some(error) = state.failed {
            return Err(error);
        }
        for segment in 0..state.segments.len() {
            let place = &mut state.segments[segment];
            // What has not been fetched has not been written either.
            if matches!((&place.fetched, &place.returned), (Copied::Over, Copied::Not)) {
                place.returned = self.copy(self.elements(segment, self.result), Way::Out)?;
            }
        }
        Ok(())
    }

    /// Whether a copy goes on.
    pub fn goes_on(&self) -> Result<bool> {
        let mut state = self.state();
        let mut goes_on = false;
        for segment in &mut state.segments {
            goes_on |= segment.fetched.goes_on()? | segment.returned.goes_on()?;
        }
        Ok(goes_on)
    }

    /// The same operation comes once more. A copy goes on only if the last one has failed.
    pub fn restart(&self) {
        for segment in &mut self.state().segments {
            let _ = (segment.fetched.wait(), segment.returned.wait());
            *segment = Segment::new(self.operand);
        }
    }

    /// Gives the memory back. No copy goes on, and nobody uses it any more.
    pub fn free(mut self) {
        if let Some(memory) = self.memory.take() {
            memory.free();
        }
    }
}

impl Drop for Stage {
    /// After an error, or where the operation is given up: the user may then do with the buffer what he
    /// likes.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for segment in &mut state.segments {
            let _ = (segment.fetched.wait(), segment.returned.wait());
        }
    }
}
