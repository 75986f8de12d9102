// SPDX-License-Identifier: BSD-3-Clause
//! Ways by which a process reads or writes the other one's memory: Linux's `process_vm_readv` and
//! `process_vm_writev`.

use super::ground::{Flag, Ground};
use super::queue::{Pieces, add, half_of};
use crate::error::Result;
use crate::node::{Transfer, transfer};

/// Who moves what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Move {
    /// Rank 1 reads from rank 0.
    Read,
    /// Rank 1 reads the second half, rank 0 writes the first.
    Divided,
    /// Both read from each other.
    Exchange,
}

impl Ground {
    /// Moves a message of `bytes`. Nobody leaves before its buffers are its own again.
    pub fn direct(&self, bytes: usize, kind: Move) -> Result<()> {
        self.raise(Flag::Ready);
        let call = self.count(Flag::Ready);
        // Reading alone, rank 0 only waits for the end.
        if self.me == 1 || kind != Move::Read {
            self.await_flag(Flag::Ready, call);
        }
        // Whole lines.
        let half = bytes / 128 * 64;
        let moved = match kind {
            Move::Read if self.me == 0 => Ok(()),
            Move::Read | Move::Exchange => self.read(self.recv(), 0, bytes),
            Move::Divided if self.me == 0 => self.write(0, half),
            // SAFETY: within the receive buffer.
            Move::Divided => self.read(unsafe { self.recv().add(half) }, half, bytes - half),
        };
        self.leave();
        moved
    }

    /// Each reads one half of the other one's message piece by piece, adds its own, and writes the sums to
    /// the other one.
    pub fn combine_direct(&self, pieces: Pieces) -> Result<()> {
        self.raise(Flag::Ready);
        self.await_flag(Flag::Ready, self.count(Flag::Ready));
        let (from, length) = half_of(self.me, pieces.bytes);
        let half = Pieces { bytes: length, ..pieces };
        let combined = (0..half.count()).try_for_each(|i| {
            let (at, bytes) = half.part(i);
            let at = from + at;
            // Nobody uses the ring meanwhile, and a piece fits into it.
            let theirs = self.ring(self.me, 0);
            self.read(theirs, at, bytes)?;
            // SAFETY: the part lies in the message; the peer writes to the other half of the receive buffer.
            unsafe { add(self.recv().add(at), self.send().add(at), theirs, bytes) };
            // SAFETY: as above.
            transfer(self.peer.process, Transfer::Write, unsafe { self.recv().add(at) }, self.peer.recv + at, bytes)
        });
        self.leave();
        combined
    }

    /// Both meet at the end, also after a failure: the other one waits.
    fn leave(&self) {
        self.raise(Flag::Done);
        self.await_flag(Flag::Done, self.count(Flag::Done));
    }

    /// Whether this rank may read and write the other one's memory; why not. Waits for nobody.
    pub fn permitted(&self) -> Result<()> {
        self.read(self.recv(), 0, 8)?;
        self.write(0, 8)
    }

    /// Reads from the peer's send buffer to a place that has room.
    fn read(&self, to: *mut u8, at: usize, bytes: usize) -> Result<()> {
        transfer(self.peer.process, Transfer::Read, to, self.peer.send + at, bytes)
    }

    /// Writes into the peer's receive buffer.
    fn write(&self, at: usize, bytes: usize) -> Result<()> {
        // SAFETY: within the send buffer.
        let local = unsafe { self.send().add(at) };
        transfer(self.peer.process, Transfer::Write, local, self.peer.recv + at, bytes)
    }

    /// Lets the peer look into this process where the system allows that only to those who are named.
    pub fn admit(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: a number of a process; kernels without such a rule refuse the call, and it is not needed.
        unsafe {
            libc::prctl(libc::PR_SET_PTRACER, self.peer.process as libc::c_ulong, 0, 0, 0)
        };
    }
}
