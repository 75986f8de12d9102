// SPDX-License-Identifier: BSD-3-Clause
//! Which memory a rank may use, and the buffers that it is lent.

#![forbid(unsafe_code)]

use super::super::{Access, Failure, UnitBuffer};
use super::State;
use crate::endpoint::{Rank, Span};

impl State {
    /// Checks that a rank may access the units of `span` now.
    pub(in crate::sim) fn access(&mut self, rank: Rank, access: Access, span: Span) {
        if !span.is_empty() && span.extent() != self.unit.extent {
            self.fail(Failure::Extent { rank, extent: span.extent(), unit: self.unit.extent });
        }
        let (hull, regions) = (self.unit.hull(span), &self.ranks[rank as usize].regions);
        let post = if access.writes() { regions.any_at(hull) } else { regions.recv_at(hull) };
        if let Some(post) = post {
            self.fail(Failure::Race { rank, access, post: self.posts[post].posted });
        }
    }

    /// Lends a buffer of at least `units` units: one that was given back, or a new one.
    pub(in crate::sim) fn lend(&mut self, rank: Rank, units: usize) -> UnitBuffer {
        let (me, peak) = (&mut self.ranks[rank as usize], &mut self.stats.temp_peak[rank as usize]);
        me.temp_units += units;
        *peak = (*peak).max(me.temp_units);
        let old = me.pool.iter().rposition(|buffer| buffer.len() == units).map(|at| me.pool.swap_remove(at));
        let buffer = old.unwrap_or_else(|| UnitBuffer::new(self.unit, units));
        buffer.lend();
        buffer
    }

    /// Takes a buffer back.
    pub(in crate::sim) fn give_back(&mut self, rank: Rank, buffer: UnitBuffer) {
        let me = &mut self.ranks[rank as usize];
        me.temp_units -= buffer.len();
        if let Some(post) = me.regions.any_at(self.unit.hull(buffer.span())) {
            self.drop_in_flight(Failure::TempInFlight { post: self.posts[post].posted });
        }
        if !buffer.gaps_intact() {
            self.fail(Failure::GapWritten { rank });
        }
        self.ranks[rank as usize].pool.push(buffer);
    }
}
