// SPDX-License-Identifier: BSD-3-Clause
//! The groups within a node as a tree of its team.

use crate::endpoint::Rank;
use crate::shm::op::tree::{Rung, Tree};
use crate::topo::{Group, Level};

/// The tree that the caller's groups up to its node make: `groups`, led by `root` where that is on the node,
/// among the ranks `local` of the node, ascending. `None`: the groups are not of these ranks.
pub fn tree(groups: &[Group], local: &[Rank], root: Option<Rank>) -> Option<Tree> {
    let member = |rank: &Rank| local.binary_search(rank).ok();
    let within = groups.iter().take_while(|group| group.level <= Level::Node);
    let rung = |group: &Group| {
        let members: Option<Vec<_>> = group.members.iter().map(member).collect();
        Some(Rung { members: members?, me: group.me, leader: group.leader })
    };
    let rungs: Option<Vec<Rung>> = within.map(rung).collect();
    let root = root.as_ref().and_then(member).unwrap_or(0);
    Some(Tree::new(root, rungs?))
}
