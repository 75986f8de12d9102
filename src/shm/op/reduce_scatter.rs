// SPDX-License-Identifier: BSD-3-Clause
//! Reduction whose result is scattered: each member combines its part, directly from where the others have
//! put theirs.
//!
//! Up to 56 bytes in all travel in the lines, up to 4 KiB in short slots, and where members take turns on the
//! cores up to 64 KiB as a whole in the sets. Of more, round k brings, for every member in its share of the
//! slot, the k-th part of that member's elements.

use super::block::Shares;
use super::combine::Combine;
use super::pipeline::{self, Cut, Plan};
use super::short::reductions::{Reduction, Scattered};
use super::{short, tally};
use crate::endpoint::{Result, Span};
use crate::shm::memory::Member;
use crate::shm::policy::{Operation, Way};
use crate::shm::protocol::turn::Turn;

/// Combines `input` of all members; `counts(i)` elements of the result go to `output` of member i. The output
/// may begin where the input does, but not overlap it otherwise.
pub fn reduce_scatter<C: Combine>(
    turn: Turn<'_>,
    op: &C,
    input: Span,
    counts: impl Fn(Member) -> usize + Send + Sync,
    output: Span,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Reduction { role: Scattered(counts), op, input, output })
}

/// The input is not short.
pub(super) async fn long(
    turn: Turn<'_>,
    op: &dyn Combine,
    input: Span,
    counts: impl Fn(Member) -> usize,
    output: Span,
) -> Result<()> {
    tally::count(Operation::ReduceScatter, Way::Split);
    let (turn, size) = (turn.widened_for_parts(), op.size());
    assert!(turn.team().fits(size), "an element of {size} bytes does not fit a share of a fragment");
    let each = Shares::new(turn.fragment(), turn.size(), 0, 64).each / size;
    let mut end = 0;
    let next = |member| {
        let start = end;
        end += counts(member);
        start..end
    };
    let parts = (0..turn.size()).map(next).collect();
    let plan = Plan::by_all(&turn, Cut::Scattered { parts, each });
    pipeline::run(turn, plan, op, input, output).await
}
