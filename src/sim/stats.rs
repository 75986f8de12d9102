// SPDX-License-Identifier: BSD-3-Clause
//! What a run cost.

#![forbid(unsafe_code)]

use crate::endpoint::Rank;
use std::collections::BTreeMap;

/// Messages and the units in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of messages.
    pub messages: u64,
    /// Units in all of them.
    pub units: u64,
}

impl Traffic {
    /// Counts one more message.
    pub(super) fn add(&mut self, units: usize) {
        self.messages += 1;
        self.units += units as u64;
    }
}

/// What a successful run cost, so that the cost line of an algorithm can be tested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// All messages.
    pub total: Traffic,
    /// Messages without units.
    pub empty: u64,
    /// Messages by [`Tag::level`](crate::endpoint::Tag::level); as long as the highest level used.
    pub levels: Vec<Traffic>,
    /// Messages by (source, destination).
    pub pairs: BTreeMap<(Rank, Rank), Traffic>,
    /// Messages by sender.
    pub sent: Vec<Traffic>,
    /// Messages by receiver.
    pub received: Vec<Traffic>,
    /// Units reduced, by rank.
    pub reduced: Vec<u64>,
    /// Messages on the critical path: the number of a message is 1 + that of the latest message that its
    /// sender had seen arrive when it posted, and this is the highest. Sends of one rank cost nothing against
    /// each other.
    pub rounds: u32,
    /// The same where a rank sends one message per round: the number of a message is also above that of its
    /// sender's message before.
    pub port_rounds: u32,
    /// Most units lent as temporary buffers at one time, by rank.
    pub temp_peak: Vec<usize>,
    /// Steps that the scheduler took.
    pub steps: u64,
    /// Hash of all steps: equal for equal runs.
    pub trace: u64,
}

impl Stats {
    /// Empty counters for `size` ranks.
    pub(super) fn new(size: usize) -> Stats {
        Stats {
            sent: vec![Traffic::default(); size],
            received: vec![Traffic::default(); size],
            reduced: vec![0; size],
            temp_peak: vec![0; size],
            trace: 0xcbf2_9ce4_8422_2325,
            ..Stats::default()
        }
    }

    /// Counts a message that was delivered.
    pub(super) fn message(&mut self, from: Rank, to: Rank, level: u8, units: usize) {
        let level = usize::from(level);
        if self.levels.len() <= level {
            self.levels.resize(level + 1, Traffic::default());
        }
        self.empty += u64::from(units == 0);
        self.total.add(units);
        self.levels[level].add(units);
        self.pairs.entry((from, to)).or_default().add(units);
        self.sent[from as usize].add(units);
        self.received[to as usize].add(units);
    }

    /// Takes one step, of this kind and about this thing, into the count and the hash.
    pub(super) fn step(&mut self, kind: u64, what: u64) {
        self.steps += 1;
        self.trace = (self.trace ^ (kind << 56) ^ what).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }

    /// Messages of this level index; none where no message had it.
    pub fn level(&self, level: u8) -> Traffic {
        self.levels.get(usize::from(level)).copied().unwrap_or_default()
    }
}
