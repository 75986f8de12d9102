// SPDX-License-Identifier: BSD-3-Clause
//! Where the two processes meet: a window of shared memory, buffers of their own, and what each knows of the
//! other.
//!
//! The window holds, for each of the two ranks: flags, lines that carry their own number, and a ring of
//! slots. A rank writes its own half only, and the other one reads it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::node::{PAGE, Window};

/// Bytes between two flags: two cache lines, since processors fetch them in pairs.
const APART: usize = 128;
/// Bytes of contents of a line: the rest is its number.
pub const CONTENTS: usize = 56;
/// Lines of a message at most.
pub const LINES: usize = 160;
/// Bytes of a rank's ring of slots.
pub const RING: usize = 512 << 10;
/// Readings after which a wait gives the core away now and then.
const PATIENCE: u32 = 1 << 16;

/// A rank's flags: counts that only grow.
#[derive(Debug, Clone, Copy)]
pub enum Flag {
    /// Pieces that are in the ring.
    Wrote,
    /// Combined pieces that are in the ring.
    Made,
    /// Pieces of the other one's ring that were taken out.
    Took,
    /// Calls whose buffers may be used by the other one.
    Ready,
    /// Calls in which this rank has done what it does to the other one's buffers.
    Done,
}
const FLAGS: usize = 5;
const LINES_AT: usize = FLAGS * APART;
const RING_AT: usize = (LINES_AT + LINES * 64).next_multiple_of(PAGE);
const HALF: usize = RING_AT + RING;

/// A line of contents and its number.
pub type Line = [AtomicU64; 8];

/// Memory of this process in ordinary pages, written once.
struct Pages {
    start: *mut u8,
    bytes: usize,
}

impl Pages {
    fn new(bytes: usize) -> Result<Pages> {
        let bytes = bytes.next_multiple_of(PAGE);
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, at an address of the system's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::usage(format!("cannot allocate {bytes} bytes: ask for smaller messages (--sizes)")));
        }
        // SAFETY: the memory just mapped. A kernel without huge pages refuses, and has none.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        let start = start.cast::<u8>();
        // SAFETY: as long as mapped.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Pages { start, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Where the other process is, and its buffers in its own memory.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its number.
    pub process: libc::pid_t,
    /// Where its send buffer begins.
    pub send: usize,
    /// Where its receive buffer begins.
    pub recv: usize,
}

/// Everything that the ways to move data work on.
pub struct Ground {
    /// This rank.
    pub me: usize,
    /// The other one.
    pub you: usize,
    /// The other process.
    pub peer: Peer,
    window: Window,
    send: Pages,
    recv: Pages,
    /// What this rank's flags say.
    mine: [Cell<u64>; FLAGS],
    /// How many pieces the other one had taken out when this rank last looked.
    pub freed: Cell<u64>,
    /// The number of the last lines.
    pub number: Cell<u64>,
}

impl Ground {
    /// For messages of up to `most` bytes, between the two processes of `comm`. Collective.
    pub fn new(comm: &Comm, most: usize) -> Result<Ground> {
        let window = Window::new(comm, 2 * HALF)?;
        // Whole lines are copied also where the last one is not full.
        let (send, recv) = comm.agree((|| Ok((Pages::new(most + CONTENTS)?, Pages::new(most + CONTENTS)?)))())?;
        let me = comm.rank();
        let own = [std::process::id().into(), send.start as u64, recv.start as u64];
        let all = comm.allgather(&own)?;
        let other = &all[(1 - me) * own.len()..][..own.len()];
        let peer = Peer { process: other[0] as libc::pid_t, send: other[1] as usize, recv: other[2] as usize };
        let mine = [const { Cell::new(0) }; FLAGS];
        let (freed, number) = (Cell::new(0), Cell::new(0));
        Ok(Ground { me, you: 1 - me, peer, window, send, recv, mine, freed, number })
    }

    /// This rank's send buffer.
    pub fn send(&self) -> *mut u8 {
        self.send.start
    }

    /// This rank's receive buffer.
    pub fn recv(&self) -> *mut u8 {
        self.recv.start
    }

    /// Bytes of this rank's buffers.
    pub fn memory(&self) -> usize {
        self.send.bytes + self.recv.bytes
    }

    /// Byte `at` of a rank's ring.
    #[inline]
    pub fn ring(&self, rank: usize, at: usize) -> *mut u8 {
        debug_assert!(at < RING);
        self.at(rank, RING_AT + at)
    }

    /// Line `i` of a rank.
    #[inline]
    pub fn line(&self, rank: usize, i: usize) -> &Line {
        assert!(i < LINES);
        // SAFETY: within the window, at a multiple of 64, and used as atomic numbers only.
        unsafe { &*self.at(rank, LINES_AT + i * 64).cast() }
    }

    /// Byte `at` of a rank's half of the window.
    #[inline]
    fn at(&self, rank: usize, at: usize) -> *mut u8 {
        debug_assert!(rank < 2 && at < HALF);
        self.window.at(rank * HALF + at)
    }

    fn flag(&self, rank: usize, flag: Flag) -> &AtomicU64 {
        // SAFETY: within the window, at a multiple of 128, and used as an atomic number only.
        unsafe { &*self.at(rank, flag as usize * APART).cast() }
    }

    /// What this rank's flag says.
    #[inline]
    pub fn count(&self, flag: Flag) -> u64 {
        self.mine[flag as usize].get()
    }

    /// Raises this rank's flag by one.
    #[inline]
    pub fn raise(&self, flag: Flag) {
        let next = self.count(flag) + 1;
        self.mine[flag as usize].set(next);
        // SYNC(what the flag counts is visible to the other rank): pairs with the Acquire in `await_flag`.
        self.flag(self.me, flag).store(next, Ordering::Release);
    }

    /// Waits until the other rank's flag says `count` or more; what it says.
    #[inline]
    pub fn await_flag(&self, flag: Flag, count: u64) -> u64 {
        let flag = self.flag(self.you, flag);
        let mut seen = 0;
        wait(|| {
            // SYNC(what the flag counts is visible to the other rank): pairs with the Release in `raise`.
            seen = flag.load(Ordering::Acquire);
            seen >= count
        });
        seen
    }
}

/// Waits without `pause`, which on some processors takes as long as a line needs from core to core.
#[inline]
pub fn wait(mut over: impl FnMut() -> bool) {
    let mut readings = 0u32;
    while !over() {
        readings = readings.wrapping_add(1);
        if readings >= PATIENCE && readings.is_multiple_of(64) {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_ordinary_and_zero() {
        let pages = Pages::new(3 * PAGE + 1).unwrap();
        assert_eq!((pages.bytes, pages.start as usize % PAGE), (4 * PAGE, 0));
        // SAFETY: as long as this.
        let bytes = unsafe { std::slice::from_raw_parts_mut(pages.start, pages.bytes) };
        assert!(bytes.iter().all(|b| *b == 0));
        let error = Pages::new(1 << 60).err().unwrap();
        assert_eq!(error.status(), 2);
    }

    #[test]
    fn parts_of_the_window_do_not_overlap() {
        assert!(LINES_AT.is_multiple_of(64) && RING_AT >= LINES_AT + LINES * size_of::<Line>());
        assert_eq!((size_of::<Line>(), CONTENTS), (64, 64 - size_of::<u64>()));
    }

    #[test]
    fn a_wait_gives_the_core_away_and_ends() {
        let mut readings = 0;
        wait(|| {
            readings += 1;
            readings > PATIENCE + 200
        });
        assert_eq!(readings, PATIENCE + 201);
    }
}
