// SPDX-License-Identifier: BSD-3-Clause
//! Whose data the members of a group stand for: what compositions need that move a block for each process.
//!
//! A member of a group of leaders stands for all ranks below it. What it holds of them is kept by ascending
//! rank, whatever the placement: that order is known to those who do not see how another node is divided.

use super::Job;
use crate::endpoint::Rank;
use crate::topo::{Group, Hierarchy};
use std::ops::Range;

/// The members of one group, and the ranks that each stands for, ascending.
#[derive(Debug)]
struct Of {
    ranks: Vec<Vec<usize>>,
    /// The same as places among the ranks that the caller stands for; empty where it does not lead the group.
    places: Vec<Vec<usize>>,
}

/// The ranks below the members of the caller's groups. Made once for a communicator and a root.
#[derive(Debug)]
pub struct Parts {
    groups: Vec<Of>,
    own: Vec<usize>,
    top: Vec<Vec<usize>>,
    order: Vec<usize>,
    across: Vec<[usize; 1]>,
    leaders: Vec<Rank>,
}

impl Parts {
    /// For operations with a root: of all groups. `groups`: those of the caller with that root.
    pub fn rooted(hierarchy: &Hierarchy, groups: &[Group], me: Rank, root: Rank) -> Parts {
        Parts::new(hierarchy, groups, me, Some(root))
    }

    /// For operations in which the members of the topmost group exchange data: of the groups below that, and
    /// of the topmost one apart.
    pub fn joined(hierarchy: &Hierarchy, groups: &[Group], me: Rank) -> Parts {
        let below = groups.iter().position(|group| group.top).unwrap_or(groups.len());
        let mut parts = Parts::new(hierarchy, &groups[..below], me, None);
        let top = hierarchy.levels().last().map_or_else(Vec::new, |&level| hierarchy.parts(level, None));
        parts.top = top.iter().map(|part| numbers(part)).collect();
        parts.order = parts.top.concat();
        parts.across = hierarchy.across().into_iter().map(|rank| [rank as usize]).collect();
        parts.leaders = hierarchy.leaders_across();
        parts
    }

    fn new(hierarchy: &Hierarchy, groups: &[Group], me: Rank, root: Option<Rank>) -> Parts {
        let mut found = Vec::with_capacity(groups.len());
        let mut own = vec![me as usize];
        for group in groups {
            let ranks: Vec<Vec<usize>> = hierarchy.parts(group.level, root).iter().map(|part| numbers(part)).collect();
            if group.me == group.leader {
                own = ranks.concat();
                own.sort_unstable();
            }
            found.push(Of { ranks, places: Vec::new() });
        }
        for (of, _) in found.iter_mut().zip(groups).filter(|(_, group)| group.me == group.leader) {
            let place = |rank: &usize| own.partition_point(|other| other < rank);
            of.places = of.ranks.iter().map(|part| part.iter().map(place).collect()).collect();
        }
        Parts { groups: found, own, top: Vec::new(), order: Vec::new(), across: Vec::new(), leaders: Vec::new() }
    }

    /// The ranks that the caller stands for, ascending: those below the groups that it leads, or itself.
    pub fn own(&self) -> &[usize] {
        &self.own
    }

    /// The ranks below each member of the topmost group; every process knows them.
    pub fn top(&self) -> &[Vec<usize>] {
        &self.top
    }

    /// All ranks, member after member of the topmost group.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// All ranks, in the order of [`Hierarchy::across`]; empty where there is none.
    pub fn across(&self) -> &[[usize; 1]] {
        &self.across
    }

    /// The lowest ranks of all nodes, in the order of [`Hierarchy::leaders_across`]; empty where there is
    /// none.
    pub fn leaders(&self) -> &[Rank] {
        &self.leaders
    }

    /// Of a group's members the ranks within `range`.
    pub(super) fn ranks(&self, group: usize, range: &Range<usize>) -> Vec<&[usize]> {
        self.groups[group].ranks.iter().map(|part| &part[within(part, range)]).collect()
    }

    /// The same as places among the caller's own.
    pub(super) fn places(&self, group: usize, range: &Range<usize>) -> Vec<&[usize]> {
        let of = &self.groups[group];
        of.places.iter().zip(&of.ranks).map(|(places, ranks)| &places[within(ranks, range)]).collect()
    }
}

/// Which ones of an ascending list lie in `range`.
pub(super) fn within(ranks: &[usize], range: &Range<usize>) -> Range<usize> {
    ranks.partition_point(|&rank| rank < range.start)..ranks.partition_point(|&rank| rank < range.end)
}

fn numbers(ranks: &[Rank]) -> Vec<usize> {
    ranks.iter().map(|&rank| rank as usize).collect()
}

/// How many of the groups, bottom to top, the caller leads: all, or all but the last.
pub(super) fn led(groups: &[Group]) -> usize {
    groups.iter().position(|group| group.me != group.leader).unwrap_or(groups.len())
}

/// The caller's groups below the topmost one, and the topmost one if it is in it.
pub(super) fn split<'a, E>(job: &Job<'a, E>) -> (&'a [Group], Option<&'a Group>) {
    match job.groups.split_last() {
        Some((last, below)) if last.top => (below, Some(last)),
        _ => (job.groups, None),
    }
}
