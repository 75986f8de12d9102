// SPDX-License-Identifier: BSD-3-Clause
//! Operations over several nodes whose ranks share memory: that, and the messages between nodes, under one
//! clock.

use super::Predicted;
use super::call::{Along, Settings, call};
use super::groups::groups;
use super::many::check;
use crate::endpoint::{Rank, Result};
use crate::predict::data::{Buffer, Sum};
use crate::predict::node::{team_config, trees};
use crate::predict::{Case, Kind};
use crate::shm::exec::node::Node;
use crate::shm::memory::heap::Heap;
use crate::shm::op::tree::Tree;
use crate::shm::protocol::team::Team;
use crate::shm::thresholds::Thresholds;
use crate::sim::clock::net::{ClockEndpoint, Places};
use crate::sim::clock::{Clock, Path, Work};
use crate::topo::{Group, LevelSpec, Shape};
use std::cell::Cell;

/// The ranks of a job, each with a core.
pub struct Cluster {
    clock: Clock,
    teams: Vec<Team>,
    /// Of the ranks of a node, which are alike on all.
    trees: Option<Vec<Tree>>,
    groups: Vec<Vec<Group>>,
    shape: Shape,
}

impl Cluster {
    /// A job along these levels, above the node and within it. Nothing that is measured is known.
    pub fn new(places: Places<'static>, levels: &LevelSpec) -> Cluster {
        let (groups, shape) = groups(&places, &levels.from_node_up());
        let members = places.cores.len();
        let trees = trees(places.machine, &places.cores, levels);
        let nodes = places.nodes as usize;
        let clock = Clock::over(places);
        let mut teams = Vec::with_capacity(nodes * members);
        for node in 0..nodes {
            let heap = Heap::new(members, usize::MAX, true);
            let team = |me| clock.apart(node * members + me, || Team::new(heap.member(me), team_config(members)));
            teams.extend((0..members).map(team));
        }
        Cluster { clock, teams, trees, groups, shape }
    }

    /// What an operation takes in the mean of as many calls as `rounds`, after as many before them as `warm`.
    /// `tick` is told how many calls are over.
    ///
    /// # Errors
    /// What the operation returns.
    ///
    /// # Panics
    /// When the result is wrong.
    pub fn time(
        &self,
        case: Case,
        settings: &Settings,
        [warm, rounds]: [usize; 2],
        mut tick: impl FnMut(usize),
    ) -> Result<Predicted> {
        let size = self.teams.len();
        let buffers: Vec<[Buffer; 2]> = (0..size).map(|_| [0; 2].map(|_| Buffer::new(case.bytes))).collect();
        let mut sum = Predicted::default();
        let (mut counts, mut traffic) = (self.clock.counts(), self.clock.traffic());
        for round in 0..warm + rounds {
            if round == warm {
                (counts, traffic) = (self.clock.counts(), self.clock.traffic());
            }
            for (me, [from, to]) in buffers.iter().enumerate() {
                from.fill(me as u64 + 1);
                to.fill(0);
                self.clock.apart(me, || {
                    // The program has just made its data, and looked at the results.
                    for buffer in [from, to] {
                        crate::sync::shared::will_write(buffer.span(case.bytes).ptr(), case.bytes);
                    }
                });
            }
            let failed = Cell::new(None);
            let works = (0..size).map(|me| -> Work<'_> {
                let (failed, buffers) = (&failed, &buffers[me]);
                Box::pin(async move {
                    if let Err(error) = self.call(me, case, settings, buffers).await {
                        failed.set(Some(error));
                    }
                })
            });
            let spent = self.clock.run(works.collect());
            if let Some(error) = failed.get() {
                return Err(error);
            }
            check(case, &buffers);
            if let Some(last) = spent.iter().max_by_key(|spent| spent.time).filter(|_| round >= warm) {
                sum.time += last.time;
                sum.path = sum.path.and(&last.path);
            }
            tick(round + 1);
        }
        let rounds = rounds.max(1) as u64;
        let now = self.clock.traffic();
        let mut mean = traffic;
        for (mean, now) in mean.iter_mut().zip(now) {
            mean.messages = (now.messages - mean.messages) / rounds;
            mean.units = (now.units - mean.units) / rounds;
        }
        Ok(Predicted {
            time: sum.time / rounds,
            path: Path { by: sum.path.by.map(|by| by / rounds) },
            traffic: mean,
            counts: self.clock.counts().since(&counts).shared_by(rounds),
        })
    }

    async fn call(&self, me: usize, case: Case, settings: &Settings, buffers: &[Buffer; 2]) -> Result<()> {
        let members = self.trees.as_ref().map_or(0, Vec::len);
        let combines = matches!(case.kind, Kind::Reduce | Kind::Allreduce);
        let unit = if combines { 8 } else { 1 };
        let ep = ClockEndpoint { rank: me as Rank, size: self.teams.len() as u32, unit };
        let spans = match combines {
            true => buffers.each_ref().map(|buffer| buffer.numbers(case.bytes)),
            false => buffers.each_ref().map(|buffer| buffer.span(case.bytes)),
        };
        let tree = self.trees.as_ref().map(|trees| &trees[me % members]);
        let node = Node::new(&self.teams[me], 0, Thresholds::UNKNOWN, combines.then_some(&Sum));
        let along = Along { groups: &self.groups[me], shape: self.shape };
        call(&ep, along, Some(node.along(tree)), case, settings, spans).await
    }
}
