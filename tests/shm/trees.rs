// SPDX-License-Identifier: BSD-3-Clause
//! Operations along trees, between others: nobody writes what a member may still read, though a writer asks
//! its neighbours only.

use super::data::{Affine, bytes, config, elements, seeds, span};
use super::world::{Work, World};
use coll_rust::shm::op::tree::{self, Rung, Tree};
use coll_rust::shm::op::{barrier, bcast, gather};
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sim::{Rng, SimBlocks};
use coll_rust::sync::wait::Waiting;
use std::sync::Mutex;
use std::task::{Context, Waker};

/// A member's place in a tree of groups of so many consecutive members, led by `root` where that is. Of even
/// numbers groups of more than two are made of groups of two.
fn tree(members: usize, each: usize, root: usize, me: usize) -> Tree {
    let group = |member: usize| {
        let first = member / each * each;
        first..(first + each).min(members)
    };
    let leader = |member: usize| if group(member).contains(&root) { root } else { group(member).start };
    let mut rungs = Vec::new();
    let own: Vec<usize> = group(me).collect();
    let place = |list: &[usize], of: usize| list.iter().position(|&member| member == of).unwrap();
    if own.len() > 1 {
        rungs.push(Rung { me: place(&own, me), leader: place(&own, leader(me)), members: own });
    }
    let mut above: Vec<usize> = (0..members).step_by(each).map(leader).collect();
    above.sort_unstable();
    if leader(me) == me && above.len() > 1 {
        rungs.push(Rung { me: place(&above, me), leader: place(&above, root), members: above });
    }
    let tree = Tree::new(root, rungs);
    if members.is_multiple_of(2) { tree.refined(2, |len| len > 2) } else { tree }
}

/// What all members do next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Barrier,
    Bcast {
        root: usize,
        len: usize,
    },
    Reduce {
        root: usize,
        count: usize,
    },
    Allreduce {
        count: usize,
    },
    /// Not along a tree.
    Flat {
        root: usize,
        len: usize,
    },
    Gather {
        root: usize,
        len: usize,
    },
    FlatBarrier,
}

fn steps(rng: &mut Rng, members: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while steps.len() < 60 {
        // Loops of one operation are where a writer runs ahead.
        let (root, len) =
            (if rng.below(3) == 0 { rng.below(members) } else { 0 }, [1, 8, 56, 57, 300, 5000][rng.below(6)]);
        let step = match rng.below(8) {
            0 => Step::Barrier,
            1 | 2 => Step::Bcast { root, len },
            3 => Step::Reduce { root, count: 1 + len / 2 },
            4 => Step::Allreduce { count: 1 + len / 2 },
            5 => Step::Flat { root, len },
            6 => Step::Gather { root, len },
            _ => Step::FlatBarrier,
        };
        // One long call among short ones finds an old set.
        let times = if rng.below(3) == 0 { 1 } else { 1 + rng.below(14) };
        steps.extend(vec![step; times]);
    }
    steps
}

struct Job {
    members: usize,
    each: usize,
    steps: Vec<Step>,
    /// What went wrong first.
    wrong: Mutex<Option<String>>,
}

impl Job {
    fn expect(&self, fine: bool, me: usize, at: usize) {
        if !fine {
            let text = format!("member {me} of {}: step {at}, {:?}", self.members, self.steps[at]);
            self.wrong.lock().unwrap().get_or_insert(text);
        }
    }

    async fn run(&self, team: &Team, me: usize) {
        let op = Affine { size: 2 };
        for (at, &step) in self.steps.iter().enumerate() {
            let queue = |len: usize| team.open(0, 0, len > 56);
            let operand = |member: usize, count: usize| op.operand(&[at, member], count);
            let all = |count: usize| op.oracle(&(0..self.members).map(|m| operand(m, count)).collect::<Vec<_>>());
            match step {
                Step::Barrier => {
                    let turn = queue(0).await.unwrap().unwrap();
                    tree::barrier(turn, &tree(self.members, self.each, 0, me)).await.unwrap();
                }
                Step::FlatBarrier => barrier::barrier(queue(0).await.unwrap().unwrap()).await.unwrap(),
                Step::Bcast { root, len } | Step::Flat { root, len } => {
                    let right = bytes(&[at, root], len);
                    let mut data = if me == root { right.clone() } else { vec![0; len] };
                    let (turn, data_span) = (queue(len).await.unwrap().unwrap(), span(&mut data));
                    match step {
                        Step::Flat { .. } => bcast::bcast(turn, root, &data_span, usize::MAX).await.unwrap(),
                        _ => tree::bcast(turn, &tree(self.members, self.each, root, me), &data_span).await.unwrap(),
                    }
                    self.expect(data == right, me, at);
                }
                Step::Reduce { root, count } => {
                    let (mut own, mut out) = (operand(me, count), vec![0; count * 2]);
                    let (from, to) = (elements(&mut own, 2), elements(&mut out, 2));
                    let turn = queue(count * 2).await.unwrap().unwrap();
                    tree::reduce(turn, &tree(self.members, self.each, root, me), &op, from, to).await.unwrap();
                    self.expect(me != root || out == all(count), me, at);
                }
                Step::Allreduce { count } => {
                    let (mut own, mut out) = (operand(me, count), vec![0; count * 2]);
                    let (from, to) = (elements(&mut own, 2), elements(&mut out, 2));
                    let tree = tree(self.members, self.each, 0, me);
                    let turn = queue(count * 2).await.unwrap().unwrap();
                    tree::reduce(turn, &tree, &op, from, to).await.unwrap();
                    let turn = queue(count * 2).await.unwrap().unwrap();
                    tree::bcast_result(turn, &tree, &to.bytes()).await.unwrap();
                    self.expect(out == all(count), me, at);
                }
                Step::Gather { root, len } => {
                    let mut own = bytes(&[at, me], len);
                    let own = span(&mut own);
                    let turn = queue(len).await.unwrap().unwrap();
                    if me != root {
                        gather::send(turn, root, &own, usize::MAX).await.unwrap();
                        continue;
                    }
                    let rows = SimBlocks::run(&vec![vec![0; len]; self.members]);
                    gather::receive(turn, Some(&own), &rows, usize::MAX).await.unwrap();
                    let fine = (0..self.members).all(|member| rows.contents(member) == bytes(&[at, member], len));
                    self.expect(fine, me, at);
                }
            }
        }
    }
}

fn check(seed: u64) {
    let mut rng = Rng::new(seed);
    let members = [3, 5, 8, 12][rng.below(4)];
    let random = config(&mut rng);
    // Mostly settings in which neighbours are asked alone.
    let config = match rng.below(4) {
        0 => random,
        1 => Config { rotates: false, ..random },
        _ => Config {
            lines: 8,
            waiting: Waiting { crowded: false, ..random.waiting },
            first_op: random.first_op,
            ..Config::default()
        },
    };
    let job = Job { members, each: 2 + rng.below(3), steps: steps(&mut rng, members), wrong: Mutex::default() };
    let world = World::new(members, config);
    let works = world.teams.iter().enumerate().map(|(me, team)| Box::pin(job.run(team, me)) as Work<'_>);
    world.run(seed, works.collect());
    assert_eq!(*job.wrong.lock().unwrap(), None, "seed {seed}");
}

/// All but `late` go as far as they can, then all; after calls in which all make the memory that they share.
fn with_one_late(members: usize, each: usize, late: usize, config: Config, steps: Vec<Step>) {
    let begin = vec![Step::Flat { root: 0, len: 5000 }, Step::FlatBarrier];
    let jobs = [begin, steps].map(|steps| Job { members, each, steps, wrong: Mutex::default() });
    let world = World::new(members, config);
    for (job, alone) in jobs.iter().zip([0, 300]) {
        let works = world.teams.iter().enumerate().map(|(me, team)| Some(Box::pin(job.run(team, me)) as Work<'_>));
        let mut works: Vec<_> = works.collect();
        let mut poll = |apart: Option<usize>| {
            for (_, work) in works.iter_mut().enumerate().filter(|(member, _)| Some(*member) != apart) {
                let mut context = Context::from_waker(Waker::noop());
                if work.as_mut().is_some_and(|work| work.as_mut().poll(&mut context).is_ready()) {
                    *work = None;
                }
            }
            works.iter().all(Option::is_none)
        };
        assert!(!(0..alone).any(|_| poll(Some(late))), "nobody waits for the late one");
        assert!((0..3000).any(|_| poll(None)), "nothing moves any more");
        assert_eq!(*job.wrong.lock().unwrap(), None);
    }
}

/// What a room holds may be older than the operation before in the same room: that was another member's, or
/// in its line only. Member 2 has not read it yet, and is no neighbour of who writes.
#[test]
fn a_room_may_hold_what_came_before_the_tree() {
    let short = Step::Reduce { root: 0, count: 4 };
    let long = Step::Reduce { root: 0, count: 2500 };
    for sets in [1, 2, 4] {
        let config = Config { sets, ..Config::default() };
        let set = [vec![Step::Flat { root: 4, len: 5000 }], vec![short; 3], vec![long]].concat();
        with_one_late(6, 3, 2, config, set);
        let line = [vec![Step::Flat { root: 4, len: 8 }; 6], vec![short; 2], vec![long]].concat();
        with_one_late(6, 3, 2, config, line);
    }
}

#[test]
fn writers_that_ask_their_neighbours_only_overwrite_nothing() {
    (0..seeds(200)).for_each(check);
}
