// SPDX-License-Identifier: BSD-3-Clause
//! What goes through the shared memory of the caller's node, beside messages to ranks of other nodes.

use super::Job;
use super::neighbor::side_by_side;
use super::pieces::Pieces;
use crate::algo::Stage;
use crate::algo::data::{Grouped, Role};
use crate::algo::{alltoall, gather, scatter};
use crate::endpoint::{Blocks, Endpoint, Rank, Result, Span, Stream};
use crate::shm::exec::node::Node;
use crate::shm::op as shm;
use crate::shm::protocol::turn::Turn;
use std::ops::Range;
use std::pin::pin;

/// A stream, or blocks, in bytes. Where units are elements, each block lies in one run.
pub(super) struct Bytes<'b, T> {
    pub of: &'b T,
    /// Bytes of a unit.
    pub unit: usize,
}

impl<S: Stream> Stream for Bytes<'_, S> {
    fn len(&self) -> usize {
        self.of.len() * self.unit
    }

    fn direct(&self) -> Option<Span> {
        self.of.direct().map(Span::bytes)
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        self.of.pack(at, to)
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        self.of.unpack(at, from)
    }
}

impl<B: Blocks> Blocks for Bytes<'_, B> {
    fn len(&self, member: usize) -> usize {
        self.of.len(member) * self.unit
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        self.of.direct(members).map(Span::bytes)
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        self.of.pack(member, at, to)
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        self.of.unpack(member, at, from)
    }
}

/// The ranks of one node, in the order of the members of its group.
struct Inside<'a> {
    node: Node<'a>,
    leader: usize,
    ranks: Vec<[usize; 1]>,
}

impl<'a> Inside<'a> {
    /// Those of the caller's, where they share memory.
    fn new<E: Endpoint>(job: &Job<'a, E>) -> Option<Inside<'a>> {
        let group = job.groups.first()?;
        let node = job.shared(group)?;
        Some(Inside { node, leader: group.leader, ranks: group.members.iter().map(|&rank| [rank as usize]).collect() })
    }

    /// Those of the caller's, where `root` leads them.
    fn of_root<E: Endpoint>(job: &Job<'a, E>, root: Rank) -> Option<Inside<'a>> {
        Inside::new(job).filter(|inside| inside.ranks[inside.leader] == [root as usize])
    }

    /// The next operation in the first lane. `lines`: whether all of it fits lines.
    async fn open(&self, lines: bool) -> Result<Option<Turn<'a>>> {
        self.node.open(0, if lines { 0 } else { usize::MAX }).await
    }

    /// Runs `messages` and what the node does beside them. Where that fails, the messages are sent and
    /// received all the same: other nodes wait for them.
    async fn beside<E: Endpoint>(
        &self,
        ep: &E,
        messages: impl Future<Output = Result<()>>,
        shared: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        side_by_side(
            pin!(messages),
            pin!(async {
                let result = shared.await;
                if let Err(error) = result {
                    self.node.fail();
                    ep.note(error);
                }
                result
            }),
        )
        .await
    }

    /// Of the blocks of all ranks those of others: what messages move.
    fn outside(&self, size: usize, len: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
        let mut cuts: Vec<_> = (0..size).map(|rank| 0..len(rank)).collect();
        self.ranks.iter().for_each(|&[rank]| cuts[rank] = 0..0);
        cuts
    }

    fn has(&self, rank: Rank) -> bool {
        self.ranks.binary_search(&[rank as usize]).is_ok()
    }
}

/// Gathers everybody's block at `root`: from the ranks of its node through shared memory, where that has
/// some, from each other one with a message of its own, `posts` of which are under way at a time.
/// `job.groups` are those of the root; `stage`: all ranks; `equal`: the length of all blocks, where they have
/// the same one.
pub async fn gather<E: Endpoint, S: Stream, B: Blocks>(
    job: &Job<'_, E>,
    stage: &Stage<'_, E>,
    root: Rank,
    role: Role<'_, S, B>,
    equal: Option<usize>,
    posts: usize,
) -> Result<()> {
    let lines = equal.is_some_and(|len| len <= crate::shm::memory::layout::LINE);
    let Some((inside, turn)) = opened(job, root, lines).await else {
        return gather::linear::linear(stage, root as usize, role, posts).await;
    };
    let zero_copy = inside.node.zero_copy().gather;
    match role {
        Role::Other { own } => shm::gather::send(turn?, inside.leader, own, zero_copy).await,
        Role::Root { all, own } => {
            let local = Grouped { ep: job.ep, blocks: all, groups: &inside.ranks };
            let shared = async { shm::gather::receive(turn?, own, &local, zero_copy).await };
            let cuts = inside.outside(stage.size(), |rank| all.len(rank));
            let all = &Pieces { blocks: all, cuts: &cuts };
            let role: Role<'_, S, _> = Role::Root { all, own: None };
            inside.beside(job.ep, gather::linear::linear(stage, root as usize, role, posts), shared).await
        }
    }
}

/// Scatters the root's blocks, likewise.
pub async fn scatter<E: Endpoint, S: Stream, B: Blocks>(
    job: &Job<'_, E>,
    stage: &Stage<'_, E>,
    root: Rank,
    role: Role<'_, S, B>,
    equal: Option<usize>,
    posts: usize,
) -> Result<()> {
    let members = job.groups.first().map_or(0, |group| group.members.len());
    let lines = equal.is_some_and(|len| len <= shm::line_share(members));
    let Some((inside, turn)) = opened(job, root, lines).await else {
        return scatter::linear::linear(stage, root as usize, role, posts).await;
    };
    let zero_copy = inside.node.zero_copy().scatter;
    match role {
        Role::Other { own } => shm::scatter::receive(turn?, inside.leader, own, zero_copy).await,
        Role::Root { all, own } => {
            let local = Grouped { ep: job.ep, blocks: all, groups: &inside.ranks };
            let shared = async { shm::scatter::send(turn?, &local, own, zero_copy).await };
            let cuts = inside.outside(stage.size(), |rank| all.len(rank));
            let all = &Pieces { blocks: all, cuts: &cuts };
            let role: Role<'_, S, _> = Role::Root { all, own: None };
            inside.beside(job.ep, scatter::linear::linear(stage, root as usize, role, posts), shared).await
        }
    }
}

/// The root's node and the next operation on it, where the caller is there and it has shared memory.
async fn opened<'a, E: Endpoint>(job: &Job<'a, E>, root: Rank, lines: bool) -> Option<(Inside<'a>, Result<Turn<'a>>)> {
    let inside = Inside::of_root(job, root)?;
    let turn = inside.open(lines).await.transpose()?;
    Some((inside, job.ep.noted().and(turn)))
}

/// Exchanges blocks with all members of `stage`, `ranks` in its order: within the node through shared memory,
/// where it has some, beside messages, `posts` of them at a time each way. `out` is none where the blocks to
/// send lie in `into`; `equal`: the length of all blocks, where they have the same one.
pub(super) async fn exchange<E: Endpoint, O: Blocks, I: Blocks>(
    job: &Job<'_, E>,
    stage: &Stage<'_, E>,
    ranks: &[[usize; 1]],
    (out, into): (Option<&O>, &I),
    equal: Option<usize>,
    posts: usize,
) -> Result<()> {
    let ep = job.ep;
    let inside = Inside::new(job);
    let lines = equal.zip(inside.as_ref()).is_some_and(|(len, inside)| len <= shm::line_share(inside.ranks.len()));
    let turn = match &inside {
        Some(inside) => inside.open(lines).await.transpose(),
        None => None,
    };
    let (Some(inside), Some(turn)) = (inside, turn) else {
        let out = out.map(|blocks| Grouped { ep, blocks, groups: ranks });
        return alltoall::linear::linear(stage, out.as_ref(), &Grouped { ep, blocks: into, groups: ranks }, posts)
            .await;
    };
    debug_assert!(inside.has(ep.rank()));
    let local = out.map(|blocks| Grouped { ep, blocks, groups: &inside.ranks });
    let local_into = Grouped { ep, blocks: into, groups: &inside.ranks };
    let from = inside.node.zero_copy().alltoall.from;
    let turn = ep.noted().and(turn);
    let shared = async { shm::alltoall::alltoall(turn?, local.as_ref(), &local_into, from).await };
    let size = stage.size();
    let (cuts, cuts_into) =
        (out.map(|out| inside.outside(size, |rank| out.len(rank))), inside.outside(size, |rank| into.len(rank)));
    let remote = out.zip(cuts.as_ref()).map(|(blocks, cuts)| Pieces { blocks, cuts });
    let remote = remote.as_ref().map(|blocks| Grouped { ep, blocks, groups: ranks });
    let remote_into = Pieces { blocks: into, cuts: &cuts_into };
    let remote_into = Grouped { ep, blocks: &remote_into, groups: ranks };
    inside.beside(ep, alltoall::linear::linear(stage, remote.as_ref(), &remote_into, posts), shared).await
}
