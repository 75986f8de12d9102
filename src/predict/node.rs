// SPDX-License-Identifier: BSD-3-Clause
//! One node: its members, and operations among them.

use super::data::{Buffer, Rows, Sum, value};
use crate::endpoint::{Error, Rank, Result};
use crate::hier;
use crate::shm::config::{Config, Cores};
use crate::shm::copy;
use crate::shm::memory::heap::Heap;
use crate::shm::memory::layout::LINE;
use crate::shm::op::tree::{self, Tree};
use crate::shm::op::{allgather, allreduce, alltoall, barrier, bcast, choice, gather, reduce, scatter};
use crate::shm::policy::{Groups, Operation, Way};
use crate::shm::protocol::team::Team;
use crate::shm::thresholds::Thresholds;
use crate::sim::clock::{Cause, Clock, Counts, Machine, Record, Time};
use crate::sync::cache::Stores;
use crate::topo::{Hardware, Hierarchy, LevelSpec, Locality, Placement};
use std::pin::Pin;

/// An operation that can be predicted: on numbers of eight bytes, the root being member 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names say it
pub enum Kind {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
}

impl Kind {
    /// Every one.
    pub const ALL: [Kind; 8] = [
        Kind::Barrier,
        Kind::Bcast,
        Kind::Gather,
        Kind::Scatter,
        Kind::Allgather,
        Kind::Alltoall,
        Kind::Reduce,
        Kind::Allreduce,
    ];

    /// The operation in the table of ways.
    pub const fn operation(self) -> Operation {
        match self {
            Kind::Barrier => Operation::Barrier,
            Kind::Bcast => Operation::Bcast,
            Kind::Gather => Operation::Gather,
            Kind::Scatter => Operation::Scatter,
            Kind::Allgather => Operation::Allgather,
            Kind::Alltoall => Operation::Alltoall,
            Kind::Reduce => Operation::Reduce,
            Kind::Allreduce => Operation::Allreduce,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.operation().name()
    }
}

/// An operation on so many bytes: of the data, or of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Which one.
    pub kind: Kind,
    /// Bytes; a multiple of eight. Nothing for a barrier.
    pub bytes: usize,
    /// The way that a parameter would name, if one does.
    pub way: Option<Way>,
}

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// From the common start until the last member is through, in picoseconds.
    pub time: Time,
    /// With what that member spent it, by [`Cause`].
    pub by: [Time; Cause::COUNT],
    /// Lines that moved in a call, of all members.
    pub counts: Counts,
}

/// How members of a node that have a core each work together.
pub(super) fn team_config(members: usize) -> Config {
    // What a processor does about its stores is the model's business.
    copy::set_stores(Stores::Cached);
    let mut config = Config::built_in(members, Cores::Own).rotating_among(members, Cores::Own);
    config.waiting.spin = 1;
    config
}

/// Where each of the ranks of one node sees all of them.
fn places(machine: &Machine, cores: &[u32]) -> Vec<Placement> {
    let locality = |core: u32| {
        let [l2, l3, numa, socket] = machine.shape.places(core).map(Some);
        Locality { l2, l3, numa, socket }
    };
    let local: Vec<(Rank, Locality)> = (0..).zip(cores).map(|(rank, &core)| (rank, locality(core))).collect();
    let place = |me: usize| {
        let seen = cores.iter().map(|&core| (0, locality(core), Some(core)));
        Placement::new(me as Rank, vec![0; cores.len()], Vec::new(), local.clone(), Hardware::seen(seen))
    };
    (0..cores.len()).map(place).collect()
}

/// The tree of each of the ranks of one node for these levels, if they make one; rank 0 leads it.
pub(super) fn trees(machine: &Machine, cores: &[u32], levels: &LevelSpec) -> Option<Vec<Tree>> {
    trees_of(&places(machine, cores), levels)
}

fn trees_of(places: &[Placement], levels: &LevelSpec) -> Option<Vec<Tree>> {
    let ranks: Vec<Rank> = (0..places.len() as Rank).collect();
    let tree = |place: &Placement| {
        let levels = place.tree_levels(levels)?;
        let groups = Hierarchy::build(place, &levels.levels, false).groups(Some(0));
        let tree = hier::tree::tree(&groups, &ranks, Some(0))?;
        Some(if levels.unasked { tree.unasked(ranks.len()) } else { tree })
    };
    places.iter().map(tree).collect()
}

/// What only one member has: lines of its own, as in a process of its own.
#[repr(align(128))]
struct Apart<T>(T);

/// The members of a communicator on one node, each with a core.
pub struct Node {
    clock: Clock,
    teams: Vec<Apart<Team>>,
    places: Vec<Placement>,
    thresholds: Thresholds,
}

impl Node {
    /// Member i is bound to core `cores[i]` of the machine, which is kept for as long as the program runs.
    /// From so many bytes on data are read from another process' memory as `thresholds` say.
    pub fn new(machine: &'static Machine, cores: &[u32], thresholds: Thresholds) -> Node {
        let clock = Clock::new(machine, cores);
        let members = cores.len();
        let config = team_config(members);
        let heap = Heap::new(members, usize::MAX, true);
        let teams = (0..members).map(|me| Apart(clock.apart(me, || Team::new(heap.member(me), config)))).collect();
        let places = places(machine, cores);
        Node { clock, teams, places, thresholds }
    }

    /// Number of members.
    pub fn size(&self) -> usize {
        self.teams.len()
    }

    /// The tree of each member for these levels, if they make one.
    pub fn trees(&self, levels: &LevelSpec) -> Option<Vec<Tree>> {
        trees_of(&self.places, levels)
    }

    /// The tree of each member whose groups are those of these levels; without levels inside the node, one
    /// group of all. `None`: only `auto` stands for what it would be.
    pub fn groups(&self, levels: &LevelSpec) -> Option<Vec<Tree>> {
        let ranks: Vec<Rank> = (0..self.size() as Rank).collect();
        let tree = |place: &Placement| {
            let groups = Hierarchy::build(place, levels, false).groups(Some(0));
            hier::tree::tree(&groups, &ranks, Some(0))
        };
        self.places.iter().map(tree).collect()
    }

    /// The way that an operation goes, along `trees` where the operation and its length suit them.
    pub fn way(&self, case: Case, trees: Option<&[Tree]>) -> Way {
        let Case { kind, bytes, way } = case;
        let reads = &self.thresholds;
        let reads = match kind {
            Kind::Barrier | Kind::Reduce => usize::MAX.into(),
            Kind::Bcast => reads.bcast.into(),
            Kind::Gather => reads.gather.into(),
            Kind::Scatter => reads.scatter.into(),
            Kind::Allgather => reads.allgather.into(),
            Kind::Alltoall => reads.alltoall,
            Kind::Allreduce => reads.allreduce.into(),
        };
        // Other operations have no trees.
        let trees = trees.filter(|_| Way::Tree.serves(kind.operation()));
        let groups = trees.and_then(<[Tree]>::first).map_or(Groups::None, Tree::groups);
        choice(&self.teams[0].0, (false, way), kind.operation(), Some(bytes), reads, (8, groups, false)).way
    }

    /// What an operation takes in the mean of as many calls as `rounds`, after as many before them as `warm`.
    /// Along `trees`, where the operation and its length suit them.
    ///
    /// # Errors
    /// What the operation returns.
    ///
    /// # Panics
    /// When the result is wrong.
    pub fn time(&self, case: Case, trees: Option<&[Tree]>, warm: usize, rounds: usize) -> Result<Prediction> {
        assert!(case.bytes.is_multiple_of(8), "{} bytes are not a number of numbers", case.bytes);
        let size = self.size();
        let all = case.bytes * size;
        let [out, into] = match case.kind {
            Kind::Barrier => [0, 0],
            Kind::Bcast | Kind::Reduce | Kind::Allreduce => [case.bytes; 2],
            Kind::Gather | Kind::Allgather => [case.bytes, all],
            Kind::Scatter => [all, case.bytes],
            Kind::Alltoall => [all, all],
        };
        let buffers: Vec<[Buffer; 2]> = (0..size).map(|_| [out, into].map(Buffer::new)).collect();
        let mut before = Counts::default();
        let mut sum = Prediction { time: 0, by: [0; Cause::COUNT], counts: before };
        for round in 0..warm + rounds {
            for (me, [from, to]) in buffers.iter().enumerate() {
                from.fill((round * size + me) as u64 + 1);
                to.fill(0);
                self.clock.apart(me, || {
                    // The program has just made its data, and looked at the results.
                    crate::sync::shared::will_write(from.span(out).ptr(), out);
                    crate::sync::shared::will_write(to.span(into).ptr(), into);
                });
            }
            let failed = std::cell::Cell::new(None);
            let works = (0..size).map(|me| {
                let (team, buffers, failed) = (&self.teams[me].0, &buffers[me], &failed);
                let tree = trees.map(|trees| &trees[me]);
                let work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
                    if let Err(error) = self.call(case, team, tree, buffers).await {
                        failed.set(Some(error));
                    }
                });
                work
            });
            if round == warm {
                before = self.clock.counts();
            }
            let spent = self.clock.run(works.collect());
            if let Some(error) = failed.get() {
                return Err(error);
            }
            self.check(case, round, &buffers);
            if let Some(last) = spent.iter().max_by_key(|spent| spent.time).filter(|_| round >= warm) {
                sum.time += last.time;
                sum.by.iter_mut().zip(last.by).for_each(|(sum, by)| *sum += by);
            }
        }
        let rounds = rounds.max(1) as u64;
        Ok(Prediction {
            time: sum.time / rounds,
            by: sum.by.map(|by| by / rounds),
            counts: self.clock.counts().since(&before).shared_by(rounds),
        })
    }

    /// What one call takes, and what each member does in it, after as many calls as `warm`.
    ///
    /// # Errors
    /// What the operation returns.
    pub fn timeline(&self, case: Case, trees: Option<&[Tree]>, warm: usize) -> Result<(Prediction, Vec<Record>)> {
        self.time(case, trees, warm, 0)?;
        self.clock.record(true);
        let prediction = self.time(case, trees, 0, 1)?;
        self.clock.record(false);
        Ok((prediction, self.clock.take_records()))
    }

    /// A member's call.
    async fn call(&self, case: Case, team: &Team, tree: Option<&Tree>, [from, to]: &[Buffer; 2]) -> Result<()> {
        let Case { kind, bytes, way } = case;
        let (me, all) = (team.me(), bytes * self.size());
        let line = match kind {
            Kind::Scatter | Kind::Alltoall => team.short_shares()[0],
            _ => LINE,
        };
        let queue = bytes > line;
        let turn = team.open(0, 0, queue).await?.ok_or(Error::NoMemory(bytes))?;
        let turn = turn.by_way(way);
        let reads = &self.thresholds;
        let (own, result) = (from.numbers(bytes), to.numbers(bytes));
        match (kind, tree) {
            (Kind::Barrier, Some(tree)) if tree::suits_barrier(team, tree, way) => tree::barrier(turn, tree).await,
            (Kind::Barrier, _) => barrier::barrier(turn).await,
            (Kind::Bcast, Some(tree)) if tree::suits_bcast(team, tree, bytes, reads.bcast, way) => {
                tree::bcast(turn, tree, &from.span(bytes)).await
            }
            (Kind::Bcast, _) => bcast::bcast(turn, 0, &from.span(bytes), reads.bcast).await,
            (Kind::Reduce, Some(tree)) if tree::suits_reduction(team, tree, Operation::Reduce, bytes, way) => {
                tree::reduce(turn, tree, &Sum, own, result).await
            }
            (Kind::Reduce, _) => reduce::reduce(turn, 0, &Sum, own, result).await,
            (Kind::Allreduce, Some(tree)) if tree::suits_reduction(team, tree, Operation::Allreduce, bytes, way) => {
                tree::reduce(turn, tree, &Sum, own, result).await?;
                let turn = team.open(0, 0, queue).await?.ok_or(Error::Peer)?;
                tree::bcast_result(turn, tree, &result.bytes()).await
            }
            (Kind::Allreduce, _) => allreduce::allreduce(turn, &Sum, own, result, reads.allreduce).await,
            (Kind::Gather, _) if me == 0 => {
                let rows = Rows { all: to.span(all), each: bytes };
                gather::receive(turn, Some(&from.span(bytes)), &rows, reads.gather).await
            }
            (Kind::Gather, _) => gather::send(turn, 0, &from.span(bytes), reads.gather).await,
            (Kind::Scatter, _) if me == 0 => {
                let rows = Rows { all: from.span(all), each: bytes };
                scatter::send(turn, &rows, Some(&to.span(bytes)), reads.scatter).await
            }
            (Kind::Scatter, _) => scatter::receive(turn, 0, &to.span(bytes), reads.scatter).await,
            (Kind::Allgather, _) => {
                let rows = Rows { all: to.span(all), each: bytes };
                allgather::allgather(turn, Some(&from.span(bytes)), &rows, reads.allgather).await
            }
            (Kind::Alltoall, _) => {
                let [out, into] = [from, to].map(|buffer| Rows { all: buffer.span(all), each: bytes });
                alltoall::alltoall(turn, Some(&out), &into, reads.alltoall).await
            }
        }
    }

    /// The results are right.
    fn check(&self, case: Case, round: usize, buffers: &[[Buffer; 2]]) {
        let (size, count) = (self.size(), case.bytes / 8);
        let seed = |member: usize| (round * size + member) as u64 + 1;
        let sum = |i: usize| (0..size).fold(0_u64, |sum, member| sum.wrapping_add(value(seed(member), i)));
        for (me, [from, to]) in buffers.iter().enumerate() {
            // Some places of each: the ends, and one between.
            let places = [0, count / 2, count.saturating_sub(1)].into_iter().filter(|&i| i < count);
            for i in places {
                let block = |member: usize| to.at(member * count + i);
                let right = match case.kind {
                    Kind::Barrier => true,
                    Kind::Bcast => from.at(i) == value(seed(0), i),
                    Kind::Reduce => me > 0 || to.at(i) == sum(i),
                    Kind::Allreduce => to.at(i) == sum(i),
                    Kind::Gather => me > 0 || (0..size).all(|member| block(member) == value(seed(member), i)),
                    Kind::Allgather => (0..size).all(|member| block(member) == value(seed(member), i)),
                    Kind::Scatter => to.at(i) == value(seed(0), me * count + i),
                    Kind::Alltoall => (0..size).all(|member| block(member) == value(seed(member), me * count + i)),
                };
                assert!(right, "{case:?}: member {me} has a wrong result at {i}");
            }
        }
    }
}
