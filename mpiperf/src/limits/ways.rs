// SPDX-License-Identifier: BSD-3-Clause
//! The ways to move data, as cases for the engine of scheduled starts.

use std::rc::Rc;

use serde::Serialize;

use super::direct::Move;
use super::ground::Ground;
use super::lines;
use super::queue::{Pieces, copy};
use crate::error::{Error, Result};
use crate::op::{Call, Case};

/// A way to move data between two processes, or to do less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Nothing: what is left is the measurement's own time.
    Empty,
    /// One line to and fro, [`lines::ROUND_TRIPS`] times.
    PingPong,
    /// One line one way, which the writer's core has taken back before.
    Owned,
    /// Each copies within its own memory.
    Copy,
    /// Rank 0 copies in, rank 1 out.
    OneQueue,
    /// The same, by slots that the writer's core has taken back before.
    OneOwned,
    /// Rank 1 reads rank 0's memory.
    OneRead,
    /// Rank 1 reads one half, rank 0 writes the other.
    OneDivided,
    /// Both copy in and out.
    BothQueue,
    /// The same, by slots that their writers' cores have taken back before.
    BothOwned,
    /// Both read from each other's memory.
    BothRead,
    /// Both copy in and add all that the other one copied in.
    CombineAll,
    /// The same, by slots that their writers' cores have taken back before.
    CombineOwned,
    /// Both add one half and copy the other.
    CombineShared,
    /// Both read and add one half, and write the sums to the other one's memory.
    CombineDirect,
}

/// How a message is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Not at all.
    Whole,
    /// Into lines that carry their own number.
    Lines,
    /// Into pieces of so many bytes.
    Pieces(usize),
}

/// Lengths of the pieces that are tried.
const PIECES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

impl Way {
    /// The ways that are measured at each size, in the order of the table.
    pub const SIZED: [Way; 12] = [
        Way::Copy,
        Way::OneQueue,
        Way::OneOwned,
        Way::OneRead,
        Way::OneDivided,
        Way::BothQueue,
        Way::BothOwned,
        Way::BothRead,
        Way::CombineAll,
        Way::CombineOwned,
        Way::CombineShared,
        Way::CombineDirect,
    ];

    /// Whether it needs a process to have the other one's memory.
    pub fn direct(self) -> bool {
        matches!(self, Way::OneRead | Way::OneDivided | Way::BothRead | Way::CombineDirect)
    }

    /// Whether a rank takes its slots back before a call. Lines always are.
    fn takes_back(self, rank: usize) -> bool {
        match self {
            Way::OneOwned => rank == 0,
            Way::BothOwned | Way::CombineOwned => true,
            _ => false,
        }
    }

    /// The ways to cut a message of `bytes` that are tried.
    pub fn cuts(self, bytes: usize) -> Vec<Cut> {
        let mut cuts = Vec::new();
        match self {
            Way::OneQueue | Way::BothQueue | Way::CombineAll if bytes <= lines::LONGEST => cuts.push(Cut::Lines),
            Way::OneQueue | Way::BothQueue | Way::CombineAll | Way::CombineShared | Way::CombineDirect => {}
            Way::OneOwned | Way::BothOwned | Way::CombineOwned => {}
            _ => return vec![Cut::Whole],
        }
        let fitting = PIECES.iter().filter(|piece| **piece <= bytes).copied();
        cuts.extend(fitting.map(Cut::Pieces));
        if bytes < PIECES[0] {
            cuts.push(Cut::Pieces(bytes));
        }
        cuts
    }
}

/// One way at one size.
pub struct Trial {
    ground: Rc<Ground>,
    way: Way,
    bytes: usize,
    cut: Cut,
    number: u64,
}

impl Trial {
    /// On the ground of both processes, whose buffers have room for `bytes`.
    pub fn new(ground: &Rc<Ground>, way: Way, bytes: usize, cut: Cut) -> Trial {
        Trial { ground: Rc::clone(ground), way, bytes, cut, number: 0 }
    }

    /// What a result must be made of: own contents, the other one's.
    fn result(&self) -> (bool, bool) {
        let reader = self.ground.me == 1;
        match self.way {
            Way::Empty | Way::PingPong => (false, false),
            Way::Copy => (true, false),
            Way::Owned | Way::OneQueue | Way::OneOwned | Way::OneRead | Way::OneDivided => (false, reader),
            Way::BothQueue | Way::BothOwned | Way::BothRead => (false, true),
            Way::CombineAll | Way::CombineOwned | Way::CombineShared | Way::CombineDirect => (true, true),
        }
    }

    fn floats(&self) -> usize {
        self.bytes / size_of::<f32>()
    }
}

impl Case for Trial {
    fn prepare(&mut self, call: Call) -> Result<()> {
        self.number = call.number;
        let ground = &self.ground;
        // As in the calls of `run`, whose receive buffers are marked anew before each: lines that the reader
        // holds cost the peer that writes there.
        // SAFETY: the receive buffer is as long, and the peer writes to it only between the flags of a call.
        unsafe { std::slice::from_raw_parts_mut(ground.recv().cast::<f32>(), self.floats()) }.fill(MARK);
        // SAFETY: the send buffer is as long, and the peer reads it only between the flags of a call.
        let send = unsafe { std::slice::from_raw_parts_mut(ground.send().cast::<f32>(), self.floats()) };
        for (i, place) in send.iter_mut().enumerate() {
            *place = content(i, ground.me, call.number);
        }
        match self.cut {
            Cut::Lines => ground.own_lines(self.bytes),
            Cut::Pieces(piece) if self.way.takes_back(ground.me) => {
                ground.own_slots(Pieces { bytes: self.bytes, piece });
            }
            Cut::Pieces(_) => ground.emptied(),
            Cut::Whole => {}
        }
        Ok(())
    }

    #[inline(never)]
    fn run(&mut self) -> Result<()> {
        let (ground, bytes) = (&*self.ground, self.bytes);
        match (self.way, self.cut) {
            (Way::Empty, _) => {}
            (Way::PingPong, _) => ground.ping_pong(),
            // SAFETY: both buffers are as long, and are two.
            (Way::Copy, _) => unsafe { copy(ground.recv(), ground.send(), bytes) },
            (Way::OneRead, _) => ground.direct(bytes, Move::Read)?,
            (Way::OneDivided, _) => ground.direct(bytes, Move::Divided)?,
            (Way::BothRead, _) => ground.direct(bytes, Move::Exchange)?,
            (Way::Owned | Way::OneQueue, Cut::Lines) => ground.lines_one_way(bytes),
            (Way::BothQueue, Cut::Lines) => ground.lines_exchange(bytes, false),
            (Way::CombineAll, Cut::Lines) => ground.lines_exchange(bytes, true),
            (Way::OneQueue | Way::OneOwned, Cut::Pieces(piece)) => ground.one_way(Pieces { bytes, piece }),
            (Way::BothQueue | Way::BothOwned, Cut::Pieces(piece)) => ground.exchange(Pieces { bytes, piece }),
            (Way::CombineAll | Way::CombineOwned, Cut::Pieces(piece)) => ground.combine_all(Pieces { bytes, piece }),
            (Way::CombineShared, Cut::Pieces(piece)) => ground.combine_shared(Pieces { bytes, piece }),
            (Way::CombineDirect, Cut::Pieces(piece)) => ground.combine_direct(Pieces { bytes, piece })?,
            (way, cut) => return Err(Error::Measure(format!("{way:?} is not done by {cut:?}"))),
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        let (own, other) = self.result();
        if !own && !other {
            return Ok(());
        }
        let (me, you, number) = (self.ground.me, self.ground.you, self.number);
        // SAFETY: the receive buffer is as long, and the peer writes to it only between the flags of a call.
        let recv = unsafe { std::slice::from_raw_parts(self.ground.recv().cast::<f32>(), self.floats()) };
        let part = |wanted: bool, i: usize, rank: usize| if wanted { content(i, rank, number) } else { 0.0 };
        let expected = |i: usize| part(own, i, me) + part(other, i, you);
        // All at once first: that takes wide instructions.
        let wrong: usize = recv.iter().enumerate().map(|(i, value)| usize::from(*value != expected(i))).sum();
        if wrong == 0 {
            return Ok(());
        }
        let first = recv.iter().enumerate().position(|(i, value)| *value != expected(i)).unwrap_or(0);
        Err(Error::Wrong(format!(
            "{:?} of {} bytes ({:?}), call {number}: {wrong} numbers differ, number {first} is {} instead of {}",
            self.way,
            self.bytes,
            self.cut,
            recv[first],
            expected(first)
        )))
    }

    fn memory(&self) -> usize {
        self.ground.memory()
    }
}

/// What no result is made of.
const MARK: f32 = -1.0;

/// Number `i` of rank `rank` in a call: small and whole, so that sums are exact.
#[inline(always)]
fn content(i: usize, rank: usize, call: u64) -> f32 {
    let mixed = (i as u32).wrapping_add((call as u32).wrapping_mul(31)).wrapping_add(rank as u32 * 7);
    (mixed & 0xff) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_cut_and_no_piece_is_longer_than_it() {
        for way in Way::SIZED {
            for bytes in [4, 8, 56, 2048, 4096, 5000, 65536, 1 << 20] {
                let cuts = way.cuts(bytes);
                assert!(!cuts.is_empty(), "{way:?} {bytes}");
                assert!(cuts.iter().all(|cut| !matches!(cut, Cut::Pieces(piece) if *piece > bytes)), "{way:?} {bytes}");
            }
        }
    }

    #[test]
    fn cuts() {
        assert_eq!(Way::OneQueue.cuts(8), [Cut::Lines, Cut::Pieces(8)]);
        assert_eq!(Way::CombineShared.cuts(8), [Cut::Pieces(8)]);
        for (owned, queue) in
            [(Way::OneOwned, Way::OneQueue), (Way::BothOwned, Way::BothQueue), (Way::CombineOwned, Way::CombineAll)]
        {
            let pieces =
                |way: Way, bytes| way.cuts(bytes).into_iter().filter(|cut| *cut != Cut::Lines).collect::<Vec<_>>();
            for bytes in [8, 4096, 16384, 1 << 20] {
                assert_eq!(owned.cuts(bytes), pieces(queue, bytes));
            }
        }
        assert_eq!(Way::BothQueue.cuts(16384), [4096, 8192, 16384].map(Cut::Pieces));
        assert_eq!(Way::CombineAll.cuts(1 << 20).len(), PIECES.len());
        assert_eq!((Way::Copy.cuts(1 << 20), Way::OneDivided.cuts(8)), (vec![Cut::Whole], vec![Cut::Whole]));
    }

    #[test]
    fn who_writes_takes_back() {
        let who = |way: Way| [0, 1].map(|rank| way.takes_back(rank));
        assert_eq!(who(Way::OneOwned), [true, false]);
        assert!([Way::BothOwned, Way::CombineOwned].iter().all(|way| who(*way) == [true, true]));
        let others = Way::SIZED.iter().filter(|way| who(**way) == [false, false]);
        assert_eq!(others.count(), Way::SIZED.len() - 3);
    }

    #[test]
    fn contents_change_with_call_and_rank_and_have_exact_sums() {
        assert_ne!(content(5, 0, 1), content(5, 0, 2));
        assert_ne!(content(5, 0, 1), content(5, 1, 1));
        assert!((0..1000).all(|i| (0.0..256.0).contains(&content(i, 1, 77)) && content(i, 1, 77).fract() == 0.0));
    }
}
