//! One call of each operation, with its oracle. What all members must agree upon comes from a generator that all of them seed alike.

use super::data::{Affine, bytes, elements, stream};
use coll_rust::shm::op;
use coll_rust::shm::team::Team;
use coll_rust::shm::turn::Turn;
use coll_rust::sim::Rng;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
}

pub const KINDS: [Kind; 4] = [Kind::Barrier, Kind::Bcast, Kind::Reduce, Kind::Allreduce];

/// One call: which, and the number that all its arguments depend on.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub id: usize,
}

/// Bytes, of which there are often few.
fn length(rng: &mut Rng) -> usize {
    match rng.below(6) {
        0 => rng.below(3),
        1 => 50 + rng.below(14),
        2 => rng.below(200),
        3 => 64 * rng.below(20),
        4 => rng.below(1500),
        _ => 8,
    }
}

/// Runs `call` on the next turn of a stream and checks what it gives.
pub async fn run(team: &Team, slot: usize, lane: usize, call: Call) {
    let turn = team.open(slot, lane, true).await.unwrap().expect("memory");
    let mut common = Rng::new(call.id as u64);
    let mut own = Rng::new((call.id * 64 + team.me()) as u64 ^ 0x5555);
    match call.kind {
        Kind::Barrier => op::barrier::barrier(turn).await.unwrap(),
        Kind::Bcast => bcast(turn, call.id, &mut common, &mut own).await,
        Kind::Reduce => reduce(turn, call.id, &mut common, &mut own, true).await,
        Kind::Allreduce => reduce(turn, call.id, &mut common, &mut own, false).await,
    }
}

fn threshold(rng: &mut Rng) -> usize {
    [usize::MAX, 0, 100][rng.below(3)]
}

async fn bcast(turn: Turn<'_>, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, root) = (turn.me(), common.below(turn.size()));
    let expected = bytes(&[id], length(common));
    let zero_copy = threshold(common);
    let data = if me == root { stream(&expected, own) } else { stream(&vec![0; expected.len()], own) };
    op::bcast::bcast(turn, root, &data, zero_copy).await.unwrap();
    assert!(data.contents() == expected && data.gaps_intact(), "call {id}: member {me}");
}

async fn reduce(turn: Turn<'_>, id: usize, common: &mut Rng, own: &mut Rng, rooted: bool) {
    let (me, size) = (turn.me(), turn.size());
    let root = common.below(size);
    let op = Affine { size: [2, 8, 24, 56, 64][common.below(5)] };
    let count = length(common) / op.size;
    let operands: Vec<_> = (0..size).map(|m| op.operand(&[id, m], count)).collect();
    let mut input = operands[me].clone();
    let mut output = vec![0x77; input.len()];
    let from = elements(&mut input, op.size);
    let to = if own.chance(128) { from } else { elements(&mut output, op.size) };
    let in_place = to.ptr() == from.ptr();
    match rooted {
        true => op::reduce::reduce(turn, root, &op, from, to).await.unwrap(),
        false => op::allreduce::allreduce(turn, &op, from, to).await.unwrap(),
    }
    let gets = !rooted || me == root;
    let result = if in_place { &input } else { &output };
    let expected = match (gets, in_place) {
        (true, _) => op.oracle(&operands),
        (false, true) => operands[me].clone(),
        (false, false) => vec![0x77; output.len()],
    };
    assert!(*result == expected, "call {id}: member {me} of {size}");
    assert!(in_place || input == operands[me], "call {id}: the input of member {me} has changed");
}
