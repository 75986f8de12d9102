// SPDX-License-Identifier: BSD-3-Clause
//! Reduction to a root, in the order of the members.
//!
//! Up to 56 bytes travel in the lines, up to 4 KiB in short slots, and where members take turns on the cores
//! less than 64 KiB as a whole in the sets. Of more, the others copy fragments to their slots and the root
//! combines them directly from there; with more than two members and enough bytes, each member combines a
//! part of every fragment ([`Plan::shared`]) and the root collects the parts, or, where they take turns in a
//! blocking call, one of them combines what half of them have ([`relayed`]).

use super::combine::Combine;
use super::pipeline::{self, Cut, Pieces, Plan, To};
use super::short::reductions::{AtRoot, Reduction, ToRoot};
use super::{short, tally};
use crate::endpoint::{Result, Span};
use crate::shm::memory::Member;
use crate::shm::policy::{Operation, Way};
use crate::shm::protocol::turn::Turn;
use smallvec::smallvec;

/// Combines `input` of all members, `input.len()` contiguous elements each, in `output` of `root`, which may
/// be its input.
pub async fn reduce<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span, output: Span) -> Result<()> {
    match turn.me() == root {
        true => short::run(turn, Reduction { role: AtRoot, op, input, output }).await,
        false => short::run(turn, Reduction { role: ToRoot(root), op, input, output }).await,
    }
}

/// The operands are not short.
pub(super) async fn long(turn: Turn<'_>, root: Member, op: &dyn Combine, input: Span, output: Span) -> Result<()> {
    let way = turn.way(Operation::Reduce, input.len() * op.size(), op.size(), usize::MAX);
    tally::count(Operation::Reduce, way);
    let turn = match way {
        Way::Relay => turn.narrowed(),
        Way::Split => turn.widened_for_parts(),
        _ => turn,
    };
    let pieces = Pieces::new(&turn, op, input.len())?;
    let plan = match way {
        Way::Relay => relayed(&turn, root, Cut::Whole(pieces)),
        Way::Split => Plan::shared(&turn, Some(root), pieces),
        _ => to_root(&turn, root, Cut::Whole(Pieces::one_way(&turn, op, input.len())?)),
    };
    pipeline::run(turn, plan, op, input, output).await
}

/// The root combines everything.
fn to_root(turn: &Turn<'_>, root: Member, cut: Cut) -> Plan<'static> {
    match turn.me() == root {
        true => Plan { combines: Some((smallvec![(0..turn.size()).collect()], To::Output)), ..Plan::new(cut) },
        false => Plan { writes: Some(0), readers: smallvec![root], ..Plan::new(cut) },
    }
}

/// Where three or more members take turns on the cores and are all within the call, one of the upper half of
/// the members, the relay, combines what that half has, and the root the rest. (A relay that computes after a
/// nonblocking call would keep the root waiting.)
///
/// The expression is the same as if the root combined everything: x₀ ⊕ (x₁ ⊕ (… ⊕ s)), s being what the relay
/// makes of the upper half. Nor is more copied, since the relay would have to copy its operand in any case.
/// But two cores work at a time, the relay piece by piece ahead of the root.
fn relayed(turn: &Turn<'_>, root: Member, cut: Cut) -> Plan<'static> {
    let (me, members, half) = (turn.me(), turn.size(), turn.size() / 2);
    let relay = if root == half { half + 1 } else { half };
    let readers = smallvec![if me >= half && me != relay { relay } else { root }];
    let (writes, combines) = match me {
        _ if me == relay => (None, Some((smallvec![(half..members).collect()], To::Slot))),
        _ if me == root => {
            // The relay is through with a piece when the root has what it made of it.
            let ahead = (turn.depth() / 2).max(1) - 1;
            let operands = (0..half).chain([relay]).collect();
            ((me >= half).then_some(ahead), Some((smallvec![operands], To::Output)))
        }
        _ => (Some(0), None),
    };
    Plan { writes, combines, readers, ..Plan::new(cut) }
}

/// From how many bytes on members share the work, which is then not done out of rooms.
#[inline(always)]
pub(super) fn shares_work(turn: &Turn<'_>) -> usize {
    let config = turn.team().config();
    match turn.size() {
        ..=2 => usize::MAX,
        _ if turn.is_crowded() => config.whole as usize,
        _ if turn.shares_cores() => usize::MAX,
        _ => config.shared_work_min,
    }
}

/// Whether the combination of so many operands, of which the caller's is number `me`, would begin to write
/// the output before it has read that.
#[inline(always)]
pub(super) fn must_set_aside(operands: usize, me: usize, input: Span, output: Span) -> bool {
    input.ptr() == output.ptr() && me + 2 < operands
}
