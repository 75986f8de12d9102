// SPDX-License-Identifier: BSD-3-Clause
//! Reduction to all, in the order of the members, so that all have bitwise the same result.
//!
//! Up to 56 bytes travel in the lines, up to 4 KiB in short slots, and everybody combines everything; so it
//! is with fragments in slots while latency counts more than work. Otherwise each member combines a part of
//! every fragment, and all collect the parts: less to combine even for two members, and no more to copy
//! between caches. Of long operands they may [read](super::fetched) their parts where those lie.

use super::combine::Combine;
use super::pipeline::{self, Cut, Pieces, Plan, To};
use super::short::reductions::{Reduction, ToAll};
use super::{fetched, short, tally};
use crate::endpoint::{Result, Span};
use crate::shm::policy::{Operation, Way};
use crate::shm::protocol::turn::Turn;
use smallvec::smallvec;

/// Combines `input` of all members, `input.len()` contiguous elements each, in `output` of all, which may be
/// the input. From `zero_copy` bytes on, members may read each other's memory.
pub fn allreduce<C: Combine>(
    turn: Turn<'_>,
    op: &C,
    input: Span,
    output: Span,
    zero_copy: usize,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Reduction { role: ToAll { zero_copy }, op, input, output })
}

/// The operands are not short.
pub(super) async fn long(turn: Turn<'_>, op: &dyn Combine, input: Span, output: Span, zero_copy: usize) -> Result<()> {
    let way = turn.way(Operation::Allreduce, input.len() * op.size(), op.size(), zero_copy);
    tally::count(Operation::Allreduce, way);
    if way == Way::SingleCopy {
        return fetched::allreduce(turn.saying(input.len() * op.size()), &op, input, output).await;
    }
    let turn = match way {
        Way::Split => turn.widened_for_parts(),
        Way::ReduceBcast => turn.widened(),
        _ => turn,
    };
    let pieces = Pieces::new(&turn, op, input.len())?;
    let plan = match way {
        Way::ReduceBcast => through_one(&turn, pieces),
        Way::Split => Plan::shared(&turn, None, pieces),
        _ => Plan::by_all(&turn, Cut::Whole(pieces)),
    };
    pipeline::run(turn, plan, op, input, output).await
}

/// Member 0 combines everything. Where members take turns on the cores, shared work is done no sooner, and
/// needs more turns.
fn through_one(turn: &Turn<'_>, pieces: Pieces) -> Plan<'static> {
    let plan = Plan::new(Cut::Whole(pieces));
    if turn.me() == 0 {
        let combines = Some((smallvec![(0..turn.size()).collect()], To::Both));
        return Plan { combines, readers: turn.others().collect(), ..plan };
    }
    // Results are read so much later than operands are written: in between the others do their part. Member 0
    // never waits for a result to be read whose operand has not been followed by `depth` others.
    let lag = (turn.depth() / 2).min(pieces.steps);
    Plan { writes: Some(0), collects: smallvec![0], lag, readers: smallvec![0], ..plan }
}

/// From how many bytes on there are other ways than that everybody combines everything out of rooms.
#[inline(always)]
pub(super) fn other_ways(turn: &Turn<'_>, element: usize, zero_copy: usize) -> usize {
    turn.team().config().shared_work_min.min(zero_copy.max(element * turn.size()))
}
