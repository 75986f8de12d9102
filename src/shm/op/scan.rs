// SPDX-License-Identifier: BSD-3-Clause
//! Prefix reduction: member i gets the combination of the members up to itself, or before itself.
//!
//! Up to 56 bytes travel in the lines, less than 1 KiB in short slots, and each member combines what it
//! needs. Of more, each member takes fragment by fragment what the one before has combined, adds its own, and
//! leaves that in its slot for the next one: one combination per byte and member, and the fragments follow
//! each other down the line of members.

use super::combine::Combine;
use super::pipeline::{self, Cut, Pieces, Plan, To};
use super::short::reductions::{Prefix, Reduction};
use super::{short, tally};
use crate::endpoint::{Result, Span};
use crate::shm::policy::{Operation, Way};
use crate::shm::protocol::turn::Turn;
use smallvec::smallvec;

/// Combines `input` of the members up to the caller (or before it, if `exclusive`: then member 0's output is
/// not touched) in `output`, which may be the input.
pub fn scan<C: Combine>(
    turn: Turn<'_>,
    exclusive: bool,
    op: &C,
    input: Span,
    output: Span,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Reduction { role: Prefix { exclusive }, op, input, output })
}

/// From member to member.
pub(super) async fn long(turn: Turn<'_>, exclusive: bool, op: &dyn Combine, input: Span, output: Span) -> Result<()> {
    tally::count(Operation::Scan, Way::Chain);
    let (me, last) = (turn.me(), turn.size() - 1);
    let before = me.checked_sub(1);
    let to = match (exclusive, me < last) {
        // The first one's operand is what the next one combines.
        _ if me == 0 => Some(To::Output).filter(|_| !exclusive),
        (true, true) => Some(To::Slot),
        (true, false) => None,
        (false, true) => Some(To::Both),
        (false, false) => Some(To::Output),
    };
    let mut plan = Plan::new(Cut::Whole(Pieces::new(&turn, op, input.len())?));
    plan.writes = (me == 0 && last > 0).then_some(0);
    plan.combines = to.map(|to| (smallvec![before.into_iter().chain([me]).collect()], to));
    plan.collects = before.filter(|_| exclusive).into_iter().collect();
    plan.readers = Some(me + 1).filter(|_| me < last).into_iter().collect();
    pipeline::run(turn, plan, op, input, output).await
}
