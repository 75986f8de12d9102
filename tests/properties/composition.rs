// SPDX-License-Identifier: BSD-3-Clause
//! What the tests of compositions with a block for each process share: groups with the ranks below their
//! members.

use super::blocks::{digits, filled};
use super::job::Machine;
use super::random::Cut;
use coll_rust::endpoint::{Endpoint, Rank};
use coll_rust::hier::Job;
use coll_rust::hier::gather::Tree;
use coll_rust::hier::parts::Parts;
use coll_rust::select::Facts;
use coll_rust::sim::{Rng, Traffic};
use coll_rust::topo::{Group, Hierarchy, Level, LevelSpec};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The leader of a group's members, and the ranks below each of them.
type Members = (usize, Vec<Vec<usize>>);

/// What every rank finds, with a root or without.
pub struct Found {
    pub groups: Vec<Vec<Group>>,
    pub parts: Vec<Parts>,
    /// Of every group (level and members) its leader, and the ranks below each member.
    pub all: BTreeMap<(Level, Vec<Rank>), Members>,
}

impl Found {
    /// `root`: of a rooted operation; else the parts are those of a joined one.
    pub fn new(machine: &Machine, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> Found {
        let hierarchies = machine.hierarchies(levels, ordered);
        let groups: Vec<Vec<Group>> = hierarchies.iter().map(|hierarchy| hierarchy.groups(root)).collect();
        let mut parts = Vec::new();
        let mut all = BTreeMap::new();
        for (rank, (hierarchy, groups)) in (0..).zip(hierarchies.iter().zip(&groups)) {
            parts.push(match root {
                Some(root) => Parts::rooted(hierarchy, groups, rank, root),
                None => Parts::joined(hierarchy, groups, rank),
            });
            for group in groups {
                let below = below(&hierarchies, group, root);
                all.insert((group.level, group.members.clone()), (group.leader, below));
            }
        }
        Found { groups, parts, all }
    }

    /// A rank's part in an operation.
    pub fn job<'a, E: Endpoint>(&'a self, ep: &'a E, cut: &Cut, commutative: bool) -> Job<'a, E> {
        super::job::part(ep, &self.groups, cut, commutative)
    }

    /// Messages and bytes of each level where every member that is no leader has one message to or from its
    /// leader, with the blocks of the ranks below it, along trees that `choose` says. `within`: the ranks in
    /// question; `top`: whether the topmost group has such messages too.
    pub fn rooted(&self, lens: &[usize], within: &[usize], choose: &Choice, top: bool) -> [Traffic; Level::COUNT] {
        let mut traffic = [Traffic::default(); Level::COUNT];
        for ((level, members), (leader, below)) in &self.all {
            if !top && below.iter().map(Vec::len).sum::<usize>() == lens.len() {
                continue;
            }
            let len = |part: &Vec<usize>| part.iter().filter(|rank| within.contains(rank)).map(|&r| lens[r]).sum();
            let size = members.len();
            // Counted from the leader.
            let of: Vec<usize> = (0..size).map(|m| len(&below[(m + leader) % size])).collect();
            let (messages, units) = match choose.at(*level) {
                Tree::Linear => (filled(of[1..].iter().copied()), of[1..].iter().sum::<usize>()),
                Tree::Knomial(radix) => {
                    let tree = coll_rust::pattern::knomial::Knomial::new(size, radix);
                    let subtree = |m: usize| of[m..tree.subtree_end(m)].iter().sum::<usize>();
                    let units = (1..size).map(|m| of[m] * digits(m, radix as usize)).sum();
                    (filled((1..size).map(subtree)), units)
                }
            };
            let traffic = &mut traffic[usize::from(level.index())];
            traffic.messages += messages as u64;
            traffic.units += units as u64;
        }
        traffic
    }
}

/// The ranks that the members of a group stand for, found from what each member knows alone: those of the
/// groups that it leads below.
fn below(hierarchies: &[Hierarchy], group: &Group, root: Option<Rank>) -> Vec<Vec<usize>> {
    let stands_for = |&member: &Rank| {
        let mut ranks = vec![member as usize];
        let mut open = vec![(member, (group.level, group.members.clone()))];
        while let Some((leader, above)) = open.pop() {
            let groups = hierarchies[leader as usize].groups(root);
            for led in groups.into_iter().take_while(|led| (led.level, &led.members) != (above.0, &above.1)) {
                if led.members[led.leader] == leader {
                    for &other in led.members.iter().filter(|&&other| other != leader) {
                        ranks.push(other as usize);
                        open.push((other, (led.level, led.members.clone())));
                    }
                }
            }
        }
        ranks.sort_unstable();
        ranks
    };
    group.members.iter().map(stands_for).collect()
}

/// A tree for each level.
#[derive(Clone, Debug)]
pub struct Choice(pub Vec<Tree>);

impl Choice {
    pub fn at(&self, level: Level) -> Tree {
        self.0[usize::from(level.index())]
    }

    pub fn choose(&self) -> impl Fn(&Facts) -> Tree + Sync + '_ {
        |facts| self.at(facts.level)
    }
}

/// Linear everywhere.
pub fn linear() -> Choice {
    Choice(vec![Tree::Linear; Level::COUNT])
}

/// Any trees.
pub fn trees() -> impl Strategy<Value = Choice> {
    let tree = prop_oneof![Just(Tree::Linear), (2..6u32).prop_map(Tree::Knomial)];
    proptest::collection::vec(tree, Level::COUNT).prop_map(Choice)
}

/// Lengths of the blocks of `size` ranks: equal ones or not, some of them zero.
pub fn lens(rng: &mut Rng, size: usize, equal: bool) -> Vec<usize> {
    let most = if size > 16 { 8 } else { 40 };
    match equal {
        true => vec![[0, 1, 7, most][rng.below(4)]; size],
        false => (0..size).map(|_| [0, 1, most, rng.below(most)][rng.below(4)]).collect(),
    }
}

#[test]
fn parts_are_what_groups_stand_for() {
    let mut runner = proptest::test_runner::TestRunner::new(super::random::config(100));
    let dimensions = (super::job::machine(), super::job::levels(), any::<prop::sample::Index>(), any::<bool>());
    let result = runner.run(&dimensions, |(machine, levels, root, rooted)| {
        let root = rooted.then(|| root.index(machine.size()) as Rank);
        let found = Found::new(&machine, &levels, false, root);
        let hierarchies = machine.hierarchies(&levels, false);
        for (rank, groups) in found.groups.iter().enumerate() {
            for group in groups {
                let parts = hierarchies[rank].parts(group.level, root);
                let parts: Vec<Vec<usize>> = parts.iter().map(|p| p.iter().map(|&r| r as usize).collect()).collect();
                prop_assert_eq!(&parts, &found.all[&(group.level, group.members.clone())].1);
            }
            let own = found.parts[rank].own();
            prop_assert!(own.is_sorted() && own.contains(&rank));
            if root == Some(rank as Rank) {
                prop_assert_eq!(own.len(), machine.size());
            }
            if root.is_none() && machine.size() > 1 {
                let all: usize = found.parts[rank].top().iter().map(Vec::len).sum();
                prop_assert_eq!(all, machine.size());
                prop_assert_eq!(found.parts[rank].top(), found.parts[0].top());
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|failed| panic!("{failed}"));
}
