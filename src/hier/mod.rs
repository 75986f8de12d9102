// SPDX-License-Identifier: BSD-3-Clause
//! Operations on a whole communicator: the level algorithms composed along the hierarchy of groups.
//!
//! A process takes part in the groups of [`Job::groups`], bottom to top: it leads all of them but perhaps the
//! last. On the way up it runs them in that order, on the way down in reverse. Two processes are both members
//! of exactly one group, so a phase needs one tag for all levels.
//!
//! Large messages are cut into segments, and [`lanes`](lanes::lanes) of them run at the same time, each
//! through all levels on its own: while one segment is between the switches, others are inside the nodes.
//!
//! The processes of a node work through shared memory, where they have some ([`Job::node`]) and the
//! parameters do not name another algorithm for them. Each node knows for itself whether it has: segments,
//! lanes and tags are the same on all nodes.
#![forbid(unsafe_code)]

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod central;
pub mod gather;
pub mod inside;
pub mod lanes;
mod local;
pub mod neighbor;
pub mod parts;
pub mod pieces;
pub mod plans;
pub mod reduce;
pub mod reduce_scatter;
mod rooted;
pub mod scan;
pub mod scatter;
pub mod tree;

use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result, Tag};
use crate::select::{Facts, Family, Setting, Spec};
use crate::shm::exec::node::Node;
use crate::shm::op::Combine;
use crate::shm::protocol::turn::Turn;
use crate::topo::{Group, Level};

/// The phases of operations; each has the phase after it too.
pub mod phase {
    /// The way up.
    pub const UP: u8 = 0;
    /// Among the members of the topmost group.
    pub const TOP: u8 = 2;
    /// The way down.
    pub const DOWN: u8 = 4;
    /// Flow control.
    pub const SYNC: u8 = 6;
}

/// One operation on one communicator, as every level sees it.
pub struct Job<'a, E> {
    /// The messages.
    pub ep: &'a E,
    /// The groups that the caller is in, bottom to top.
    pub groups: &'a [Group],
    /// Bytes of the whole operation.
    pub bytes: usize,
    /// Units in a segment, at least 1; all of them in one where it is not cut.
    pub segment: usize,
    /// Segments in flight.
    pub window: u8,
    /// Whether operands may be exchanged (true where nothing is combined).
    pub commutative: bool,
    /// Whether all ranks cut the units alike (false: a user-defined operation, whose elements may differ in
    /// size).
    pub divisible: bool,
    /// Whether the processes take turns on the cores ([`crate::topo::Shape`]).
    pub crowded: bool,
    /// The caller's node, where its processes share memory: all of them or none. The groups then hold all of
    /// its ranks in one, without levels inside the node.
    pub node: Option<Node<'a>>,
}

/// Under the clock there may be a million ranks that share no memory: what they would do there takes no room
/// in their futures.
#[cfg(feature = "clock")]
fn apart<F: Future>(part: F) -> std::pin::Pin<Box<F>> {
    Box::pin(part)
}

/// Elsewhere it is part of them.
#[cfg(not(feature = "clock"))]
fn apart<F: Future>(part: F) -> F {
    part
}

/// What came of a part of an operation inside the node.
enum Within<T> {
    /// It is done, with this result.
    Done(T),
    /// It goes by messages.
    Messages,
    /// The operation has failed, which is noted.
    Failed,
}

impl<'a, E: Endpoint> Job<'a, E> {
    /// The shared memory of a group, if it is that of all processes of a node, and they have some. All
    /// members of the group find the same.
    fn shared(&self, group: &Group) -> Option<Node<'a>> {
        self.node.filter(|node| group.level == Level::Node && group.members.len() == node.size())
    }

    /// The next part of the operation inside the node; `None`: on no member. All of them find out together,
    /// so that comes before an error that the operation has met.
    async fn open<'n>(&self, node: &Node<'n>, lane: u8, bytes: usize) -> Result<Option<Turn<'n>>> {
        match node.open(lane, bytes).await? {
            None => Ok(None),
            Some(turn) => self.ep.noted().map(|()| Some(turn)),
        }
    }

    /// The same, which combines `count` elements.
    async fn open_reduction<'n>(
        &self,
        node: &Node<'n>,
        lane: u8,
        count: usize,
    ) -> Result<Option<(Turn<'n>, &'n dyn Combine)>> {
        match node.open_reduction(lane, count).await? {
            None => Ok(None),
            Some(opened) => self.ep.noted().map(|()| Some(opened)),
        }
    }

    /// Runs a part of the operation inside the node, which [opens](Job::open) it. Where that fails, the
    /// others of the node learn it at once, and the caller's messages to other nodes go on, which wait for
    /// them.
    async fn within<T>(&self, node: &Node<'_>, part: impl Future<Output = Result<Option<T>>>) -> Within<T> {
        match part.await {
            Ok(Some(result)) => Within::Done(result),
            Ok(None) => Within::Messages,
            Err(error) => {
                node.fail();
                self.ep.note(error);
                Within::Failed
            }
        }
    }

    /// The stage of a group in a phase.
    fn stage(&self, group: &'a Group, lane: u8, phase: u8) -> Stage<'a, E> {
        Stage::new(self.ep, &group.members, group.me, Tag { lane, phase, level: group.level.index() })
    }

    /// What the caller's groups do on so many units, from the lowest level on: the algorithm's name, or
    /// `None` for shared memory. For those who want to know.
    pub fn algorithms<A: Family<Facts = Facts>>(
        &self,
        spec: &Spec<A>,
        units: usize,
    ) -> Vec<(Level, Option<&'static str>)> {
        let of = |group: &'a Group| match self.shared(group).filter(|_| spec.is_shared_within_node()) {
            Some(_) => None,
            None => spec.choose(&self.facts(group, units)).row().map(|row| row.name),
        };
        self.groups.iter().map(|group| (group.level, of(group))).collect()
    }

    /// What the choice of the group's algorithm depends on. `units`: of the whole operation.
    fn facts(&self, group: &Group, units: usize) -> Facts {
        Facts {
            level: group.level,
            members: group.members.len(),
            bytes: self.bytes,
            segments: lanes::segments(units, self.segment),
            commutative: self.commutative,
            divisible: self.divisible,
            crowded: self.crowded,
        }
    }
}
