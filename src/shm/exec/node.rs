// SPDX-License-Identifier: BSD-3-Clause
//! The processes of one node in an operation of many nodes: what the composition of levels ([`crate::hier`])
//! asks for at the level of the node.
//!
//! Every lane of the operation has a stream of its own, so lanes need no order among them; within a lane the
//! parts of the operation follow each other on all members alike. A stream is leased when a lane first uses
//! it: whoever has no memory for it says so, and then no member uses it.

use crate::endpoint::Result;
use crate::shm::memory::Member;
use crate::shm::memory::layout::{BLOCKING, LINE};
use crate::shm::op::tree::{self, Tree};
use crate::shm::op::{Combine, choice};
use crate::shm::policy::{Choice, Groups, Operation, Way};
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::{Reads, Thresholds};

/// One operation's part of a team.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    team: &'a Team,
    slot: usize,
    zero_copy: Thresholds,
    combine: Option<&'a dyn Combine>,
    tree: Option<&'a Tree>,
    named: Option<Way>,
}

impl<'a> Node<'a> {
    /// For an operation that has this slot of the team to itself. From `zero_copy` bytes on, data are read
    /// from another process's memory; `combine` says how elements are combined, where they are. The same on
    /// all members.
    pub fn new(team: &'a Team, slot: usize, zero_copy: Thresholds, combine: Option<&'a dyn Combine>) -> Node<'a> {
        Node { team, slot, zero_copy, combine, tree: None, named: None }
    }

    /// The same, which works along a tree; the same one on all members.
    pub fn along(self, tree: Option<&'a Tree>) -> Node<'a> {
        Node { tree, ..self }
    }

    /// The same, for which a parameter names a way.
    pub fn by_way(self, named: Option<Way>) -> Node<'a> {
        Node { named, ..self }
    }

    /// The same; unless it is `alone`, nobody reads another process's memory: where one of several lanes
    /// fails, the others end, and nobody waits for those who read.
    pub fn reading_if(self, alone: bool) -> Node<'a> {
        if alone {
            return self;
        }
        let named = self.named.filter(|way| !way.reads_peers());
        Node { zero_copy: Thresholds::all(usize::MAX), named, ..self }
    }

    /// The tree for a reduction of so many bytes to `leader`, or for a barrier that it leads, if there is
    /// one.
    pub fn tree_of(&self, leader: Member, bytes: usize) -> Option<&'a Tree> {
        self.tree.filter(|tree| {
            tree.root() == leader && tree::suits_reduction(self.team, tree, Operation::Reduce, bytes, self.named)
        })
    }

    /// The tree for a broadcast of so many bytes from `leader`, who lets others read its memory from
    /// `zero_copy` bytes on, if there is one.
    pub fn tree_from(&self, leader: Member, bytes: usize, zero_copy: usize) -> Option<&'a Tree> {
        self.tree
            .filter(|tree| tree.root() == leader && tree::suits_bcast(self.team, tree, bytes, zero_copy, self.named))
    }

    /// The choice for a part of an operation, on so many bytes, for those who want to know. From `reads` on,
    /// data are read from another process's memory.
    pub fn choice(&self, operation: Operation, bytes: Option<usize>, reads: Reads) -> Choice {
        let whole = (self.unit(), self.tree.map_or(Groups::None, Tree::groups), false);
        choice(self.team, (self.slot == BLOCKING, self.named), operation, bytes, reads, whole)
    }

    /// The team has failed: nobody waits for the caller any more.
    pub fn fail(&self) {
        self.team.fail();
    }

    /// Number of members.
    pub fn size(&self) -> usize {
        self.team.size()
    }

    /// Bytes of a unit: of an element, where elements are combined.
    pub fn unit(&self) -> usize {
        self.combine.map_or(1, Combine::size)
    }

    /// From so many bytes on, data are read from another process's memory.
    pub fn zero_copy(&self) -> Thresholds {
        self.zero_copy
    }

    /// The next operation of a lane, on `bytes`. `None`: on no member.
    ///
    /// # Errors
    /// After a failure of the team.
    pub async fn open(&self, lane: u8, bytes: usize) -> Result<Option<Turn<'a>>> {
        let turn = self.team.open(self.slot, lane.into(), bytes > LINE).await?;
        Ok(turn.map(|turn| turn.by_way(self.named)))
    }

    /// The next operation of a lane, which combines `count` elements.
    ///
    /// # Errors
    /// After a failure of the team.
    pub async fn open_reduction(&self, lane: u8, count: usize) -> Result<Option<(Turn<'a>, &'a dyn Combine)>> {
        let Some(combine) = self.combine.filter(|combine| self.team.fits(combine.size())) else { return Ok(None) };
        let turn = self.open(lane, count * combine.size()).await?;
        Ok(turn.map(|turn| (turn, combine)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::memory::heap::Heap;
    use crate::shm::policy::TABLE;
    use crate::shm::protocol::team::Config;

    #[test]
    fn nobody_reads_in_one_of_several_lanes() {
        let team = Team::new(Heap::new(2, usize::MAX, true).member(0), Config::default());
        let mut reads = 0;
        for named in [None].into_iter().chain(TABLE.iter().map(|row| Some(row.way))) {
            let node = Node::new(&team, BLOCKING, Thresholds::all(0), None).by_way(named);
            for operation in Operation::ALL {
                let way = |node: Node<'_>| {
                    let of = |node: &Node<'_>| [node.zero_copy().bcast, node.zero_copy().gather];
                    let from = of(&node).into_iter().max().unwrap();
                    node.choice(operation, Some(1 << 20), from.into()).way
                };
                reads += usize::from(way(node.reading_if(true)).reads_peers());
                assert!(!way(node.reading_if(false)).reads_peers(), "{named:?} {operation:?}");
            }
        }
        assert!(reads > 0, "others do");
    }
}
