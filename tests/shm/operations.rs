// SPDX-License-Identifier: BSD-3-Clause
//! One call of each operation, with its oracle. What all members must agree upon comes from a generator that
//! all of them seed alike.

use super::data::{Affine, Late, bytes, elements, stream};
use super::waits::{Suspends, Waits};
use coll_rust::endpoint::Span;
use coll_rust::pattern::neighborhood::Neighbors;
use coll_rust::shm::memory::layout::LINE;
use coll_rust::shm::op;
use coll_rust::shm::op::neighbor::Edges;
use coll_rust::shm::op::peers::Everybody;
use coll_rust::shm::op::short::exchange::Allgather;
use coll_rust::shm::op::short::reductions::{AtRoot, Prefix, Reduction, Scattered, ToAll, ToRoot};
use coll_rust::shm::op::short::rooted::{Barrier, Bcast, Collect, Deal, Give, Take};
use coll_rust::shm::policy::TABLE;
use coll_rust::shm::protocol::team::Team;
use coll_rust::shm::protocol::turn::Turn;
use coll_rust::shm::thresholds::Reads;
use coll_rust::sim::{Rng, SimBlocks};

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    ReduceScatter,
    Scan,
    Neighbor,
}

pub const KINDS: [Kind; 11] = [
    Kind::Barrier,
    Kind::Bcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Gather,
    Kind::Scatter,
    Kind::Allgather,
    Kind::Alltoall,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Neighbor,
];

/// One call: which, and the number that all its arguments depend on.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub id: usize,
}

/// Under Miri a byte costs about as much as elsewhere a kilobyte.
const LONG: usize = if cfg!(miri) { 300 } else { 1500 };

/// Bytes, of which there are often few.
fn length(rng: &mut Rng) -> usize {
    match rng.below(7) {
        0 => rng.below(3),
        1 => 50 + rng.below(14),
        2 => rng.below(200),
        3 => 64 * rng.below(LONG / 75),
        4 => rng.below(LONG),
        5 => rng.below(3 * LONG),
        _ => 8,
    }
}

/// Runs `call` on the next turn of a stream, suspended where it waits, and checks what it gives.
pub async fn run(team: &Team, slot: usize, lane: usize, call: Call) {
    run_with(team, slot, lane, call, Suspends).await;
}

/// The same, waiting in this way.
pub async fn run_with(team: &Team, slot: usize, lane: usize, call: Call, waits: impl Waits) {
    // At times a parameter names a way, whether it is possible or not.
    let mut ways = Rng::new(call.id as u64 ^ 0x3333);
    let named = ways.chance(96).then(|| TABLE[ways.below(TABLE.len())].way);
    let turn = team.open(slot, lane, true).await.unwrap().expect("memory").by_way(named);
    let mut common = Rng::new(call.id as u64);
    let mut own = Rng::new((call.id * 64 + team.me()) as u64 ^ 0x5555);
    match call.kind {
        Kind::Barrier => waits.does(turn, Barrier).await.unwrap(),
        Kind::Bcast => bcast(turn, waits, call.id, &mut common, &mut own).await,
        Kind::Reduce => reduce(turn, waits, call.id, &mut common, &mut own, true).await,
        Kind::Allreduce => reduce(turn, waits, call.id, &mut common, &mut own, false).await,
        Kind::Gather => gather(turn, waits, call.id, &mut common, &mut own).await,
        Kind::Scatter => scatter(turn, waits, call.id, &mut common, &mut own).await,
        Kind::Allgather => allgather(turn, waits, call.id, &mut common, &mut own).await,
        Kind::Alltoall => alltoall(turn, waits, call.id, &mut common, &mut own).await,
        Kind::ReduceScatter => reduce_scatter(turn, waits, call.id, &mut common, &mut own).await,
        Kind::Scan => scan(turn, waits, call.id, &mut common, &mut own).await,
        Kind::Neighbor => neighbor(turn, waits, call.id, &mut common, &mut own).await,
    }
}

/// Lengths of blocks: all equal, or not.
fn lengths(rng: &mut Rng, count: usize) -> Vec<usize> {
    let equal = length(rng);
    let same = rng.chance(128);
    (0..count).map(|_| if same { equal } else { length(rng) }).collect()
}

fn blocks(content: &[Vec<u8>], rng: &mut Rng) -> SimBlocks {
    if rng.chance(128) { SimBlocks::run(content) } else { SimBlocks::scattered(rng, content) }
}

fn zeros(like: &[Vec<u8>]) -> Vec<Vec<u8>> {
    like.iter().map(|block| vec![0; block.len()]).collect()
}

fn check(id: usize, me: usize, blocks: &SimBlocks, expected: &[Vec<u8>]) {
    for (member, block) in expected.iter().enumerate() {
        assert!(blocks.contents(member) == *block, "call {id}: block {member} of member {me}");
    }
    assert!(blocks.gaps_intact(), "call {id}: member {me}");
}

fn threshold(rng: &mut Rng) -> usize {
    [usize::MAX, 0, 100][rng.below(3)]
}

/// Whether a member takes it into account that what it sends and gets [lies still](Team::lies_still), as some
/// ways to an operation do and others do not. `shares`: where each member has its share of a room.
fn knows_still(
    team: &Team,
    own: &mut Rng,
    shares: bool,
    zero_copy: usize,
    lens: impl IntoIterator<Item = usize>,
) -> bool {
    let line = if shares { team.short_shares()[0] } else { LINE };
    let still = |len| if shares { team.share_lies_still(len) } else { team.lies_still(len) };
    own.chance(128) && lens.into_iter().all(|len| len <= line || (still(len) && zero_copy == usize::MAX))
}

async fn bcast(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, root) = (turn.me(), common.below(turn.size()));
    let expected = bytes(&[id], length(common));
    let zero_copy = threshold(common);
    let data = if me == root { stream(&expected, own) } else { stream(&vec![0; expected.len()], own) };
    let still = knows_still(turn.team(), own, false, zero_copy, [expected.len()]);
    let turn = if still { turn.of_what_lies_still() } else { turn };
    waits.does(turn, Bcast { root, data: &data, zero_copy, divide: true }).await.unwrap();
    assert!(data.contents() == expected && data.gaps_intact(), "call {id}: member {me}");
}

async fn reduce(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng, rooted: bool) {
    let (me, size) = (turn.me(), turn.size());
    let root = common.below(size);
    let op = Affine { size: [2, 8, 24, 56, 64][common.below(5)] };
    let count = length(common) / op.size;
    let zero_copy = threshold(common);
    let operands: Vec<_> = (0..size).map(|m| op.operand(&[id, m], count)).collect();
    let mut input = operands[me].clone();
    let mut output = vec![0x77; input.len()];
    let from = elements(&mut input, op.size);
    let to = if own.chance(128) { from } else { elements(&mut output, op.size) };
    let in_place = to.ptr() == from.ptr();
    // (Nothing is read in a reduction to one.)
    let still =
        knows_still(turn.team(), own, false, if rooted { usize::MAX } else { zero_copy }, [from.len() * op.size]);
    let turn = if still { turn.of_what_lies_still() } else { turn };
    let late = late(&turn, Affine { size: op.size }, from, to, own);
    let done = match rooted {
        true if me == root => waits.does(turn, reduction(AtRoot, &late, from, to)).await,
        true => waits.does(turn, reduction(ToRoot(root), &late, from, to)).await,
        false => waits.does(turn, reduction(ToAll { zero_copy }, &late, from, to)).await,
    };
    done.unwrap();
    let gets = !rooted || me == root;
    let result = if in_place { &input } else { &output };
    assert!([0, result.len()].contains(&late.check(result)), "a part of the result was never final");
    let expected = match (gets, in_place) {
        (true, _) => op.oracle(&operands),
        (false, true) => operands[me].clone(),
        (false, false) => vec![0x77; output.len()],
    };
    assert!(*result == expected, "call {id}: member {me} of {size}");
    assert!(in_place || input == operands[me], "call {id}: the input of member {me} has changed");
}

fn reduction<C, R>(role: R, op: C, input: Span, output: Span) -> Reduction<C, R> {
    Reduction { role, op, input, output }
}

/// The operation on operands that come late; but not where it may go in a single step.
fn late(turn: &Turn<'_>, op: Affine, from: Span, to: Span, own: &mut Rng) -> Late {
    let one_step = from.len() * op.size <= LINE.max(turn.team().config().whole as usize);
    Late::new(op, from, to, [40, 200, 1000][own.below(3)], one_step || turn.is_still() || own.chance(128))
}

async fn gather(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, size) = (turn.me(), turn.size());
    let root = common.below(size);
    let expected: Vec<_> = lengths(common, size).iter().enumerate().map(|(m, &n)| bytes(&[id, m], n)).collect();
    let zero_copy = threshold(common);
    let mine = stream(&expected[me], own);
    let others = expected.iter().enumerate().filter(|&(m, _)| if me == root { m != me } else { m == me });
    let still = knows_still(turn.team(), own, false, zero_copy, others.map(|(_, block)| block.len()));
    let turn = if still { turn.of_what_lies_still() } else { turn };
    if me != root {
        return waits.does(turn, Give { root, own: &mine, zero_copy }).await.unwrap();
    }
    let in_place = own.chance(128);
    let mut before = zeros(&expected);
    if in_place {
        before[me].clone_from(&expected[me]);
    }
    let all = blocks(&before, own);
    let kept = (!in_place).then_some(&mine);
    waits.does(turn, Collect { own: kept, all: &all, zero_copy }).await.unwrap();
    check(id, me, &all, &expected);
}

async fn scatter(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, size) = (turn.me(), turn.size());
    let root = common.below(size);
    let expected: Vec<_> = lengths(common, size).iter().enumerate().map(|(m, &n)| bytes(&[id, m], n)).collect();
    let zero_copy = threshold(common);
    let mine = stream(&vec![0; expected[me].len()], own);
    let others = expected.iter().enumerate().filter(|&(m, _)| if me == root { m != me } else { m == me });
    let still = knows_still(turn.team(), own, true, zero_copy, others.map(|(_, block)| block.len()));
    let turn = if still { turn.of_what_lies_still() } else { turn };
    if me != root {
        waits.does(turn, Take { root, own: &mine, zero_copy }).await.unwrap();
    } else {
        let all = blocks(&expected, own);
        let in_place = own.chance(128);
        let kept = (!in_place).then_some(&mine);
        waits.does(turn, Deal { all: &all, own: kept, zero_copy }).await.unwrap();
        check(id, me, &all, &expected);
        if in_place {
            return;
        }
    }
    assert!(mine.contents() == expected[me] && mine.gaps_intact(), "call {id}: member {me}");
}

async fn allgather(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, size) = (turn.me(), turn.size());
    let expected: Vec<_> = lengths(common, size).iter().enumerate().map(|(m, &n)| bytes(&[id, m], n)).collect();
    let zero_copy = threshold(common);
    let mine = stream(&expected[me], own);
    let in_place = own.chance(128);
    let mut before = zeros(&expected);
    if in_place {
        before[me].clone_from(&expected[me]);
    }
    let all = blocks(&before, own);
    let still = knows_still(turn.team(), own, false, zero_copy, expected.iter().map(Vec::len));
    let turn = if still { turn.of_what_lies_still() } else { turn };
    let (kept, peers) = ((!in_place).then_some(&mine), Everybody::of(turn.team()));
    waits.does(turn, Allgather { own: kept, all: &all, peers, zero_copy }).await.unwrap();
    check(id, me, &all, &expected);
}

async fn alltoall(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, size) = (turn.me(), turn.size());
    let in_place = common.chance(64);
    let table: Vec<Vec<usize>> = (0..size).map(|_| lengths(common, size)).collect();
    // In place, what a member sends to another is as long as what it gets from there.
    let len = |from: usize, to: usize| if in_place { table[from.min(to)][from.max(to)] } else { table[from][to] };
    let block = |from: usize, to: usize| bytes(&[id, from, to], len(from, to));
    let sent: Vec<_> = (0..size).map(|to| block(me, to)).collect();
    let expected: Vec<_> = (0..size).map(|from| block(from, me)).collect();
    if in_place {
        let into = blocks(&sent, own);
        let peers = Everybody::of(turn.team());
        waits.does(turn, op::alltoall::among(peers, None::<&SimBlocks>, &into, 0.into())).await.unwrap();
        return check(id, me, &into, &expected);
    }
    let (out, into) = (blocks(&sent, own), blocks(&zeros(&expected), own));
    let zero_copy = threshold(common);
    // Longer ones through the queue again, as far as each member is concerned.
    let reads = Reads { from: zero_copy, end: [usize::MAX, 150, 600][own.below(3)] };
    let still = knows_still(turn.team(), own, true, zero_copy, sent.iter().chain(&expected).map(Vec::len));
    let turn = if still { turn.of_what_lies_still() } else { turn };
    let peers = Everybody::of(turn.team());
    waits.does(turn, op::alltoall::among(peers, Some(&out), &into, reads)).await.unwrap();
    check(id, me, &out, &sent);
    check(id, me, &into, &expected);
}

async fn reduce_scatter(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, size) = (turn.me(), turn.size());
    let op = Affine { size: [2, 8, 24, 64][common.below(4)] };
    let counts: Vec<_> = lengths(common, size).iter().map(|n| n / op.size).collect();
    let total = counts.iter().sum();
    let operands: Vec<_> = (0..size).map(|m| op.operand(&[id, m], total)).collect();
    let start = counts[..me].iter().sum::<usize>() * op.size;
    let mine = start..start + counts[me] * op.size;
    let expected = op.oracle(&operands)[mine.clone()].to_vec();
    let mut input = operands[me].clone();
    let mut output = vec![0x77; mine.len()];
    let from = elements(&mut input, op.size);
    let in_place = own.chance(128);
    let to = if in_place { from } else { elements(&mut output, op.size) };
    let late = late(&turn, Affine { size: op.size }, from, to, own);
    let operation = reduction(Scattered(|m| counts[m]), &late, from, to);
    waits.does(turn, operation).await.unwrap();
    let result = if in_place { &input[..mine.len()] } else { &output };
    assert!([0, mine.len()].contains(&late.check(result)), "a part of the result was never final");
    assert!(*result == expected, "call {id}: member {me} of {size}");
    assert!(in_place || input == operands[me], "call {id}: the input of member {me} has changed");
}

async fn scan(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let me = turn.me();
    let op = Affine { size: [2, 8, 24, 64][common.below(4)] };
    let exclusive = common.chance(128);
    let count = length(common) / op.size;
    let operands: Vec<_> = (0..=me).map(|m| op.operand(&[id, m], count)).collect();
    let mut input = operands[me].clone();
    let mut output = vec![0x77; input.len()];
    let from = elements(&mut input, op.size);
    let in_place = own.chance(128);
    let to = if in_place { from } else { elements(&mut output, op.size) };
    let late = match exclusive && me + 1 == turn.size() {
        // Nobody asks for it.
        true => Late::new(Affine { size: op.size }, from, to, 1000, true),
        false => late(&turn, Affine { size: op.size }, from, to, own),
    };
    let operation = reduction(Prefix { exclusive }, &late, from, to);
    waits.does(turn, operation).await.unwrap();
    let result = if in_place { &input } else { &output };
    assert!([0, result.len()].contains(&late.check(result)), "a part of the result was never final");
    let expected = match (exclusive, me, in_place) {
        (true, 0, true) => operands[0].clone(),
        (true, 0, false) => vec![0x77; output.len()],
        (true, ..) => op.oracle(&operands[..me]),
        (false, ..) => op.oracle(&operands),
    };
    assert!(*result == expected, "call {id}: member {me}");
    assert!(in_place || input == operands[me], "call {id}: the input of member {me} has changed");
}

/// On a random graph, with several edges between the same two members, edges to oneself, and members without
/// any.
async fn neighbor(turn: Turn<'_>, waits: impl Waits, id: usize, common: &mut Rng, own: &mut Rng) {
    let (me, size) = (turn.me(), turn.size());
    let (mut destinations, mut sources) = (vec![Vec::new(); size], vec![Vec::new(); size]);
    for _ in 0..common.below(3 * size + 1) {
        let (from, to) = (common.below(size), common.below(size));
        for _ in 0..=common.below(4) / 3 {
            let at = common.below(sources[to].len() + 1);
            destinations[from].push(to);
            sources[to].insert(at, from);
        }
    }
    let lens: Vec<Vec<usize>> = destinations.iter().map(|list| lengths(common, list.len())).collect();
    let lens_of_all = lengths(common, size);
    let (same, zero_copy) = (common.chance(128), threshold(common));
    let len = |from: usize, slot: usize| if same { lens_of_all[from] } else { lens[from][slot] };
    let block = |from: usize, slot: usize| bytes(&[id, from, if same { 0 } else { slot }], len(from, slot));
    // The k-th edge to a member is the k-th from there.
    let received = |slot: usize| {
        let from = sources[me][slot];
        let earlier = sources[me][..slot].iter().filter(|&&other| other == from).count();
        let slots = (0..destinations[from].len()).filter(|&s| destinations[from][s] == me);
        block(from, slots.clone().nth(earlier).expect("an edge has two ends"))
    };
    let edges = Edges::new(me, size, &Neighbors::listed(me, size, &destinations[me], &sources[me]));
    let expected: Vec<_> = (0..sources[me].len()).map(received).collect();
    let into = blocks(&zeros(&expected), own);
    if same {
        let mine = bytes(&[id, me, 0], lens_of_all[me]);
        let data = stream(&mine, own);
        waits.does(turn, op::neighbor::spreading(me, &edges, &data, &into, zero_copy)).await.unwrap();
        op::neighbor::fill(me, &edges, &data, &into).unwrap();
        assert!(data.contents() == mine, "call {id}: the data of member {me} have changed");
    } else {
        let sent: Vec<_> = (0..destinations[me].len()).map(|slot| block(me, slot)).collect();
        let out = blocks(&sent, own);
        waits.does(turn, op::neighbor::exchanging(&edges, &out, &into, zero_copy)).await.unwrap();
        check(id, me, &out, &sent);
    }
    check(id, me, &into, &expected);
}
