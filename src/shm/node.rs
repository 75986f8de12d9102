//! The processes of one node in an operation of many nodes: what the composition of levels ([`crate::hier`])
//! asks for at the level of the node.
//!
//! Every lane of the operation has a stream of its own, so lanes need no order among them; within a lane the
//! parts of the operation follow each other on all members alike. A stream is leased when a lane first uses
//! it: whoever has no memory for it says so, and then no member uses it.

use super::layout::LINE;
use super::memory::Member;
use super::op::Combine;
use super::op::tree::{self, Tree};
use super::team::Team;
use super::thresholds::Thresholds;
use super::turn::Turn;
use crate::endpoint::Result;

/// One operation's part of a team.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    team: &'a Team,
    slot: usize,
    zero_copy: Thresholds,
    combine: Option<&'a dyn Combine>,
    tree: Option<&'a Tree>,
}

impl<'a> Node<'a> {
    /// For an operation that has this slot of the team to itself. From `zero_copy` bytes on, data are read
    /// from another process's memory; `combine` says how elements are combined, where they are. The same on
    /// all members.
    pub fn new(team: &'a Team, slot: usize, zero_copy: Thresholds, combine: Option<&'a dyn Combine>) -> Node<'a> {
        Node { team, slot, zero_copy, combine, tree: None }
    }

    /// The same, which works along a tree; the same one on all members.
    pub fn along(self, tree: Option<&'a Tree>) -> Node<'a> {
        Node { tree, ..self }
    }

    /// The tree for a reduction of so many bytes to `leader`, or for a barrier that it leads, if there is
    /// one.
    pub fn tree_of(&self, leader: Member, bytes: usize) -> Option<&'a Tree> {
        self.tree.filter(|tree| tree.root() == leader && tree::suits_reduction(self.team, bytes))
    }

    /// The tree for a broadcast of so many bytes from `leader`, who lets others read its memory from
    /// `zero_copy` bytes on, if there is one.
    pub fn tree_from(&self, leader: Member, bytes: usize, zero_copy: usize) -> Option<&'a Tree> {
        self.tree.filter(|tree| tree.root() == leader && tree::suits_bcast(self.team, bytes, zero_copy))
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
        self.team.open(self.slot, lane.into(), bytes > LINE).await
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
