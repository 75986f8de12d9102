// SPDX-License-Identifier: BSD-3-Clause
//! Very many processes, all of whose data go by messages.
//!
//! A process is its future, a clock and what it has posted: some hundred bytes and the state of the
//! algorithm. Futures lie one after the other, each is gone when it ends, and buffers need not be memory.

use super::super::spent::{Cause, Path};
use super::super::{Time, caches::LINE};
use super::endpoint::{Carried, Carrier, ClockEndpoint, Looks, look};
use super::events::{Events, What};
use super::fabric::Fabric;
use super::network::{LEVELS, Places};
use crate::endpoint::{Rank, Result, Span, Tag};
use crate::sim::Traffic;
use std::cell::RefCell;
use std::pin::Pin;
use std::ptr::without_provenance_mut;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Where addresses that are no memory begin.
const NOWHERE: usize = 1 << 32;

/// What a run took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Took {
    /// Until the last process was through.
    pub time: Time,
    /// The critical path.
    pub path: Path,
    /// Messages and bytes by [level](Places::level).
    pub traffic: [Traffic; LEVELS],
}

/// A clock, and how it came to show what it shows.
#[derive(Clone, Copy, Default)]
struct Clocked {
    now: Time,
    path: Path,
}

impl Clocked {
    fn spend(&mut self, cause: Cause, time: Time) {
        self.now += time;
        self.path.add(cause, time);
    }
}

struct State {
    fabric: Fabric<'static>,
    events: Events,
    clocks: Vec<Clocked>,
    /// The next address that is no memory.
    next: usize,
    carries: bool,
}

impl State {
    /// Copying so many bytes that the process has just got.
    fn copies(&self, bytes: usize) -> Time {
        let machine = self.fabric.places.machine;
        let own = machine.caches[0] + machine.caches[1];
        let each = if bytes > own { machine.memory[1].max(machine.stream[0]) } else { machine.stream[0] };
        bytes.div_ceil(LINE) as Time * each
    }

    fn handle(&mut self, rank: Rank, peer: Rank, bytes: usize, sends: bool) {
        let handling = self.fabric.handling(rank, peer, bytes, sends);
        let clock = &mut self.clocks[rank as usize];
        clock.spend(Cause::Overhead, handling.overhead);
        clock.spend(Cause::Copies, handling.copies);
    }
}

struct Shared(RefCell<State>);

impl Carrier for Shared {
    fn post(&self, (rank, peer, sends): (Rank, Rank, bool), tag: Tag, data: Span) -> u32 {
        let state = &mut *self.0.borrow_mut();
        if sends {
            state.handle(rank, peer, data.bytes().len(), true);
        }
        let Clocked { now, path } = state.clocks[rank as usize];
        state.fabric.post(&mut state.events, (rank, peer, sends), tag, data, (now, &path))
    }

    fn poll(&self, rank: Rank, id: u32) -> bool {
        let state = &mut *self.0.borrow_mut();
        let now = state.clocks[rank as usize].now;
        let received = state.fabric.received(id);
        let done = state.fabric.poll(&mut state.events, id, now);
        if let Some((peer, span)) = received.filter(|_| done) {
            state.handle(rank, peer, span.bytes().len(), false);
        }
        done
    }

    fn abandon(&self, id: u32) {
        self.0.borrow_mut().fabric.abandon(id);
    }

    fn reduce(&self, rank: Rank, left: Span, right: Span) {
        let (left, right) = (left.bytes(), right.bytes());
        let state = &mut *self.0.borrow_mut();
        let takes = left.len().div_ceil(LINE) as Time * state.fabric.places.machine.combine;
        state.clocks[rank as usize].spend(Cause::Combining, takes);
        if state.carries {
            // SAFETY: who made the spans promised valid memory that no message uses now.
            unsafe { sum(left, right) };
        }
    }

    fn copy(&self, rank: Rank, from: Span, to: Span) {
        let (from, to) = (from.bytes(), to.bytes());
        let state = &mut *self.0.borrow_mut();
        let takes = state.copies(from.len());
        state.clocks[rank as usize].spend(Cause::Copies, takes);
        if state.carries {
            // SAFETY: who made the spans promised valid memory, of the same length, that do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(from.ptr(), to.ptr(), from.len()) };
        }
    }

    fn lend(&self, _: Rank, bytes: usize) -> *mut u8 {
        let mut state = self.0.borrow_mut();
        if state.carries {
            return Box::into_raw(vec![0_u64; bytes.div_ceil(8)].into_boxed_slice()).cast();
        }
        state.next += bytes + LINE;
        without_provenance_mut(state.next - bytes)
    }

    fn give_back(&self, _: Rank, at: *mut u8, bytes: usize) {
        if self.0.borrow().carries {
            let words = std::ptr::slice_from_raw_parts_mut(at.cast::<u64>(), bytes.div_ceil(8));
            // SAFETY: `lend` made it so, and it is given back once.
            drop(unsafe { Box::from_raw(words) });
        }
    }
}

/// Adds numbers of eight bytes to others.
///
/// # Safety
/// Both are valid memory, of the same length, that nobody else uses.
pub(super) unsafe fn sum(left: Span, right: Span) {
    for i in 0..left.len() / 8 {
        // SAFETY: by the caller's promise.
        unsafe {
            let more = left.ptr().cast::<u64>().add(i).read_unaligned();
            let at = right.ptr().cast::<u64>().add(i);
            at.write_unaligned(at.read_unaligned().wrapping_add(more));
        }
    }
}

/// A run of so many units, of `unit` bytes each, that is no memory: for messages without contents. Every
/// process may have the same one.
pub fn nowhere(units: usize, unit: usize) -> Span {
    // SAFETY: nobody touches what it says.
    unsafe { Span::new(without_provenance_mut(NOWHERE / 2), units, unit as isize) }
}

/// Runs `rank` for each process of a job, all from the same moment on. `carries`: whether messages have
/// contents; else spans need not be memory, and nothing may look at what it receives. `unit`: bytes of a
/// unit. `due` is told before a process goes on which lane it has something in, where only one has; `tick`,
/// how many processes are through.
///
/// # Errors
/// What a process returns.
///
/// # Panics
/// When nobody can go on.
pub fn run<F: Future<Output = Result<()>>>(
    places: Places<'static>,
    carries: bool,
    unit: usize,
    rank: impl Fn(ClockEndpoint) -> F,
    due: impl Fn(Option<u8>),
    mut tick: impl FnMut(u32),
) -> Result<Took> {
    let size = places.size();
    let (call, poll) = (places.machine.call, places.machine.poll);
    let fabric = Fabric::new(places, carries);
    let clocks = vec![Clocked::default(); size as usize];
    let state = State { fabric, events: Events::default(), clocks, next: NOWHERE, carries };
    let shared = Rc::new(Shared(RefCell::new(state)));
    let _carried = Carried::by(Rc::<Shared>::clone(&shared));
    // Never moved from now on: futures are polled where they lie.
    let mut futures: Vec<Option<F>> = (0..size).map(|me| Some(rank(ClockEndpoint { rank: me, size, unit }))).collect();
    for me in 0..size {
        let state = &mut *shared.0.borrow_mut();
        state.clocks[me as usize].spend(Cause::Work, call);
        state.events.push(call, What::GoesOn(me));
    }
    let mut left = size;
    while left > 0 {
        let next = {
            let state = &mut *shared.0.borrow_mut();
            let Some((at, what)) = state.events.pop() else { panic!("nobody can go on; {left} processes wait") };
            let next = match what {
                What::Leaves(id) => {
                    state.fabric.leave(&mut state.events, id, at);
                    None
                }
                What::Done(id) => state.fabric.done(id).map(|(rank, time, path)| {
                    look(Looks::At(id));
                    due(Some(state.fabric.lane(id)));
                    let clock = &mut state.clocks[rank as usize];
                    if clock.now < time {
                        *clock = Clocked { now: time, path };
                    }
                    rank
                }),
                What::GoesOn(rank) => {
                    look(Looks::AtAll);
                    due(None);
                    Some(rank)
                }
            };
            if let Some(rank) = next {
                state.clocks[rank as usize].spend(Cause::Work, poll);
            }
            next
        };
        let Some(me) = next else { continue };
        let slot = &mut futures[me as usize];
        let Some(future) = slot else { continue };
        // SAFETY: it lies in a vector that is not touched otherwise, until it is dropped there.
        let polled = unsafe { Pin::new_unchecked(future) }.poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(result) = polled {
            *slot = None;
            left -= 1;
            if result.is_err() || left == 0 {
                due(None);
            }
            result?;
            if left.is_multiple_of(4096) {
                tick(size - left);
            }
        }
    }
    let state = shared.0.borrow();
    let last = state.clocks.iter().max_by_key(|clock| clock.now).copied().unwrap_or_default();
    Ok(Took { time: last.now, path: last.path, traffic: state.fabric.traffic })
}
