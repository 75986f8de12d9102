//! The processes of one node in an operation of many nodes: what the composition of levels ([`crate::hier`]) asks for at the level of the node.
//!
//! Every lane of the operation has a stream of its own, so lanes need no order among them; within a lane the parts of the operation follow
//! each other on all members alike. A stream is leased when a lane first uses it: whoever has no memory for it says so, and
//! then no member uses it.

use super::layout::LINE;
use super::op::Combine;
use super::rates::Thresholds;
use super::team::Team;
use super::turn::Turn;
use crate::endpoint::Result;

/// One operation's part of a team.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    team: &'a Team,
    slot: usize,
    zero_copy: Thresholds,
    combine: Option<&'a dyn Combine>,
}

impl<'a> Node<'a> {
    /// For an operation that has this slot of the team to itself. From `zero_copy` bytes on, data are read from another process's
    /// memory; `combine` says how elements are combined, where they are. The same on all members.
    pub fn new(team: &'a Team, slot: usize, zero_copy: Thresholds, combine: Option<&'a dyn Combine>) -> Node<'a> {
        Node { team, slot, zero_copy, combine }
    }

    /// Number of members.
    pub fn size(&self) -> usize {
        self.team.size()
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
