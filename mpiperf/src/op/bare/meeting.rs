// SPDX-License-Identifier: BSD-3-Clause
//! Where the ranks meet: for each of them lines that carry their own number, and areas for contents that are
//! longer.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Result;
use crate::mpi::Comm;
use crate::node::{PAGE, Window};

use super::super::memory;

/// Bytes from one line to the next: two cache lines, since processors fetch them in pairs.
const APART: usize = 128;
/// Bytes of contents in a line: the rest is its number.
const CONTENTS: usize = 56;
/// Longer contents are announced in pieces of so many bytes, so that readers begin while the writer goes on.
const PIECE: usize = 16 << 10;
/// Looks before the core is given away for the first time where ranks share cores; then there is one after
/// each time.
const LOOKS: u32 = 2;
/// The same where each rank has a core.
const PATIENCE: u32 = 1 << 16;
/// Looks of a wait until the MPI library may do what it has left: no call that takes so long means anything.
const PROGRESS: u32 = 1 << 12;
/// Sleep between two looks before a call where ranks share cores: others are in calls whose time is taken.
const NAP: Duration = Duration::from_micros(50);

/// A line of a rank's. Only that rank writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// That the call before this one is over for the rank.
    Over,
    /// That the rank has arrived, or what it has for all others.
    All,
    /// What it has made of what others had.
    Made,
    /// That it needs nothing of the others' memory any more.
    Read,
    /// What it has for this rank.
    To(usize),
}

/// The meeting place of the ranks of one case.
pub struct Meeting {
    window: Window,
    comm: Comm,
    /// This rank.
    pub me: usize,
    /// The number of ranks.
    pub size: usize,
    /// Bytes of the contents of a line's.
    bytes: usize,
    /// Whether each line to one rank has contents of its own.
    boxes: bool,
    /// Whether waiting ranks give their cores away.
    crowded: bool,
    /// The number of the current call, from 1.
    call: Cell<u64>,
}

impl Meeting {
    /// For messages of `bytes` each; `boxes`: with other contents for each other rank. Collective.
    pub fn new(comm: &Comm, bytes: usize, boxes: bool, crowded: bool) -> Result<Meeting> {
        let (me, size, each) = (comm.rank(), comm.size(), stride(comm.size(), bytes, boxes));
        memory::enough(comm, each, "bare copies want memory for whole messages; take smaller messages or fewer ranks")?;
        let window = Window::new(comm, size * each)?;
        let comm = Comm::from_raw(comm.raw(), false)?;
        Ok(Meeting { window, comm, me, size, bytes, boxes, crowded, call: Cell::new(0) })
    }

    /// Says that the call is over for this rank: as soon as no time is taken any more, so that as a rule
    /// nobody waits in [`next`](Meeting::next), and ranks wait for the next call's moment as they do before
    /// calls of MPI. (Who has just slept is preferred where ranks share cores.)
    pub fn over(&self) {
        self.raise(Line::Over);
    }

    /// Begins the next call, when the one before is over for all ranks, so that nothing is written that
    /// somebody still reads. No time is taken of this: meanwhile MPI goes on, which others may still wait
    /// for, and a core that others may want is not kept busy.
    pub fn next(&self) -> Result<()> {
        let number = self.number(0);
        self.over();
        let mut probed = Ok(());
        for rank in self.others() {
            // SYNC(the other rank's reads are over): pairs with the Release in `publish`.
            while self.flag(rank, Line::Over).load(Ordering::Acquire) < number {
                // No message of the tool's has this tag: the library looks after all others.
                probed = probed.and(self.comm.arrived(rank, 0).map(drop));
                if self.crowded {
                    std::thread::sleep(NAP);
                }
            }
        }
        // In any case: the call is made also after a failure.
        self.call.set(self.call.get() + 1);
        probed
    }

    /// The other ranks, from the next one on.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, size) = (self.me, self.size);
        (1..size).map(move |i| (me + i) % size)
    }

    /// Says what a line is for, without contents.
    pub fn raise(&self, line: Line) {
        self.publish(line, 0);
    }

    /// Waits for another rank's line without contents.
    pub fn await_raised(&self, rank: usize, line: Line) {
        self.wait(rank, line, self.number(0));
    }

    /// Puts a number into a line, and says so.
    pub fn tell(&self, line: Line, number: u64) {
        // SAFETY: the line has room for it; nobody reads it before it is published.
        unsafe { self.line(self.me, line).cast::<u64>().write(number) };
        self.raise(line);
    }

    /// The number that another rank has told.
    pub fn told(&self, rank: usize, line: Line) -> u64 {
        self.await_raised(rank, line);
        // SAFETY: published.
        unsafe { self.line(rank, line).cast::<u64>().read() }
    }

    /// Copies the contents of a line from `from`, which holds as much.
    pub fn write(&self, line: Line, from: *const u8) {
        for step in 0..self.steps() {
            let part = self.part(step);
            // SAFETY: by the caller's promise; the line or area has room, and nobody reads the part before it
            // is published.
            unsafe {
                self.contents(self.me, line).add(part.start).copy_from_nonoverlapping(from.add(part.start), part.len())
            };
            self.publish(line, step);
        }
    }

    /// Copies what a rank has for all, or for this one, to `to`, which holds as much.
    pub fn read(&self, rank: usize, line: Line, to: *mut u8) {
        self.each_part(rank, line, |from, part| {
            // SAFETY: published; by the caller's promise.
            unsafe { to.add(part.start).copy_from_nonoverlapping(from, part.len()) };
        });
    }

    /// Calls `with` for each part of a rank's contents once that is there: its address, and its place in the
    /// whole.
    pub fn each_part(&self, rank: usize, line: Line, mut with: impl FnMut(*const u8, Range<usize>)) {
        for step in 0..self.steps() {
            let part = self.part(step);
            self.wait(rank, line, self.number(step));
            with(self.contents(rank, line).wrapping_add(part.start).cast_const(), part);
        }
    }

    /// Waits for all of a rank's contents; where they begin.
    pub fn whole(&self, rank: usize, line: Line) -> *mut u8 {
        self.wait(rank, line, self.number(self.steps() - 1));
        self.contents(rank, line)
    }

    /// Where the contents of a line are.
    pub fn contents(&self, rank: usize, line: Line) -> *mut u8 {
        if self.bytes <= CONTENTS {
            return self.line(rank, line);
        }
        self.window.at(rank * stride(self.size, self.bytes, self.boxes) + area_at(self.size, self.bytes, line))
    }

    fn line(&self, rank: usize, line: Line) -> *mut u8 {
        self.window.at(rank * stride(self.size, self.bytes, self.boxes) + line_at(line))
    }

    fn flag(&self, rank: usize, line: Line) -> &AtomicU64 {
        // SAFETY: a line begins at a multiple of 128 in the window; behind its contents is an atomic number.
        unsafe { &*self.line(rank, line).add(CONTENTS).cast() }
    }

    /// Steps of the contents of one call.
    fn steps(&self) -> u64 {
        self.bytes.div_ceil(PIECE).max(1) as u64
    }

    fn part(&self, step: u64) -> Range<usize> {
        let at = step as usize * PIECE;
        at..(at + PIECE).min(self.bytes)
    }

    /// The number that says that a step of this call is done.
    fn number(&self, step: u64) -> u64 {
        self.call.get() * self.steps() + step + 1
    }

    fn publish(&self, line: Line, step: u64) {
        // SYNC(what the line announces is visible to its readers): pairs with the Acquire in `wait`.
        self.flag(self.me, line).store(self.number(step), Ordering::Release);
    }

    fn wait(&self, rank: usize, line: Line, number: u64) {
        let flag = self.flag(rank, line);
        let patience = if self.crowded { LOOKS } else { PATIENCE };
        let mut looks = 0u32;
        // SYNC(what the line announces is visible to this rank): pairs with the Release in `publish`.
        while flag.load(Ordering::Acquire) < number {
            looks = looks.wrapping_add(1);
            if looks >= patience {
                std::thread::yield_now();
            }
            // The other rank may still be in a call of MPI's, and wait for this one's library.
            if looks.is_multiple_of(PROGRESS) {
                let _ = self.comm.arrived(rank, 0);
            }
        }
    }
}

/// Where a line is in what a rank has.
fn line_at(line: Line) -> usize {
    APART
        * match line {
            Line::Over => 0,
            Line::All => 1,
            Line::Made => 2,
            Line::Read => 3,
            Line::To(to) => 4 + to,
        }
}

/// Where the contents of a line are, if they are not in it.
fn area_at(size: usize, bytes: usize, line: Line) -> usize {
    let area = match line {
        Line::Made => 1,
        Line::To(to) => 2 + to,
        Line::All | Line::Over | Line::Read => 0,
    };
    header(size) + area * area_of(bytes)
}

/// Bytes of a rank's lines.
fn header(size: usize) -> usize {
    ((4 + size) * APART).next_multiple_of(PAGE)
}

/// Bytes of an area for contents; none where they are in the line.
fn area_of(bytes: usize) -> usize {
    if bytes <= CONTENTS { 0 } else { bytes.next_multiple_of(PAGE) }
}

/// Bytes of a rank.
fn stride(size: usize, bytes: usize, boxes: bool) -> usize {
    header(size) + (2 + if boxes { size } else { 0 }) * area_of(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_areas_of_a_rank_do_not_overlap() {
        for (size, bytes, boxes) in [2, 8, 100].iter().flat_map(|size| {
            [0, 56, 57, 4097, 1 << 20].iter().flat_map(move |bytes| [(*size, *bytes, false), (*size, *bytes, true)])
        }) {
            let to = |rank| Line::To(rank);
            let lines = [Line::Over, Line::All, Line::Made, Line::Read].into_iter().chain((0..size).map(to));
            let mut used: Vec<(usize, usize)> =
                lines.map(|line| (line_at(line), line_at(line) + CONTENTS + size_of::<u64>())).collect();
            if bytes > CONTENTS {
                let boxed = (0..if boxes { size } else { 0 }).map(to);
                let areas = [Line::All, Line::Made].into_iter().chain(boxed).map(|line| area_at(size, bytes, line));
                used.extend(areas.map(|at| (at, at + bytes)));
            }
            used.sort_unstable();
            assert!(used.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{size} ranks, {bytes} bytes");
            assert!(used.iter().all(|(_, end)| *end <= stride(size, bytes, boxes)), "{size} ranks, {bytes} bytes");
        }
    }
}
