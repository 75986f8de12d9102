// SPDX-License-Identifier: BSD-3-Clause
//! What happens next.

use super::super::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A message leaves its sender, or data that were asked for do.
    Leaves(u32),
    /// What somebody waits for is done.
    Done(u32),
    /// This process goes on.
    GoesOn(u32),
}

/// Everything that is known to happen.
#[derive(Default)]
pub struct Events(BinaryHeap<Reverse<(Time, What)>>);

impl Events {
    /// It happens then.
    pub fn push(&mut self, at: Time, what: What) {
        self.0.push(Reverse((at, what)));
    }

    /// What comes first.
    pub fn pop(&mut self) -> Option<(Time, What)> {
        self.0.pop().map(|Reverse(next)| next)
    }

    /// Whether that comes before everything else.
    pub fn is_first(&self, at: Time, what: What) -> bool {
        self.0.peek().is_none_or(|Reverse(first)| (at, what) <= *first)
    }

    /// Nothing happens any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
