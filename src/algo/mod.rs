// SPDX-License-Identifier: BSD-3-Clause
//! The algorithms of one level: a folder per collective, a file per algorithm.
//!
//! An algorithm is an `async fn` over a [`Stage`]: the members of one group, numbered from 0, and the
//! operation's messages. It neither knows nor asks what carries the messages, who polls it, or at which level
//! it runs. What it may assume: every member of the group calls it with the same arguments (root, number of
//! units, radix) and one `Stage` of the same tag.
#![forbid(unsafe_code)]

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod data;
pub mod gather;
pub mod neighbor;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;

use crate::endpoint::{Endpoint, Rank, Result, Span, Tag};
use crate::pattern::Member;
use smallvec::SmallVec;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// One group at work in one operation: members are numbered by their place in the group.
pub struct Stage<'a, E> {
    ep: &'a E,
    members: &'a [Rank],
    me: Member,
    tag: Tag,
    /// The level of the messages to each member; empty: that of the tag.
    levels: &'a [u8],
    /// Whether what is sent is [told](Endpoint::tell).
    tells: bool,
}

impl<E> Clone for Stage<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Stage<'_, E> {}

/// Posts that are waited for together; more than a handful spill to the heap.
pub type Posts<'a, E> = SmallVec<[<E as Endpoint>::Post<'a>; 4]>;

/// The receive and the send of one exchange; none where nothing is to be moved.
type Pair<'a, E> = [Option<<E as Endpoint>::Post<'a>>; 2];

impl<'a, E: Endpoint> Stage<'a, E> {
    /// The stage of the group `members`, in which the caller is number `me`. The algorithm may use `tag` and
    /// the phase after it.
    pub fn new(ep: &'a E, members: &'a [Rank], me: Member, tag: Tag) -> Stage<'a, E> {
        Stage { ep, members, me, tag, levels: &[], tells: false }
    }

    /// The same stage, where the messages to each member are counted at a level of their own.
    pub fn counted(self, levels: &'a [u8]) -> Stage<'a, E> {
        Stage { levels, ..self }
    }

    /// The endpoint below.
    pub fn ep(&self) -> &'a E {
        self.ep
    }

    /// The caller's number in the group.
    pub fn me(&self) -> Member {
        self.me
    }

    /// Number of members.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The same group with the tag of the next phase, for an algorithm of two phases.
    pub fn second(&self) -> Stage<'a, E> {
        self.phase(1)
    }

    /// The same group with the tag so many phases later.
    pub fn phase(&self, later: u8) -> Stage<'a, E> {
        Stage { tag: Tag { phase: self.tag.phase + later, ..self.tag }, ..*self }
    }

    /// Posts a send to a member.
    pub fn send(&self, to: Member, data: Span) -> E::Post<'a> {
        let level = self.levels.get(to).copied().unwrap_or(self.tag.level);
        let (to, tag) = (self.members[to], Tag { level, ..self.tag });
        if self.tells { self.ep.tell(to, tag, data) } else { self.ep.send(to, tag, data) }
    }

    /// [Tells](Endpoint::tell) a member numbers.
    pub fn tell(&self, to: Member, numbers: Span) -> E::Post<'a> {
        self.telling(true).send(to, numbers)
    }

    /// The same stage; whether what is sent is [told](Endpoint::tell).
    pub fn telling(self, tells: bool) -> Stage<'a, E> {
        Stage { tells, ..self }
    }

    /// Posts a receive from a member.
    pub fn recv(&self, from: Member, data: Span) -> E::Post<'a> {
        self.ep.recv(self.members[from], self.tag, data)
    }

    /// Posts a send to a member, if there is anything to send. To be used where both sides know the length.
    pub fn send_some(&self, to: Member, data: Span) -> Option<E::Post<'a>> {
        (!data.is_empty()).then(|| self.send(to, data))
    }

    /// Posts a receive from a member, if there is anything to receive: the other side of
    /// [`Stage::send_some`].
    pub fn recv_some(&self, from: Member, data: Span) -> Option<E::Post<'a>> {
        (!data.is_empty()).then(|| self.recv(from, data))
    }

    /// Sends and receives at once, each only if there is anything.
    pub async fn exchange_some(&self, to: Member, out: Span, from: Member, into: Span) -> Result<()> {
        let receive = self.recv_some(from, into);
        let send = self.send_some(to, out);
        let received = join(receive).await;
        join(send).await?;
        received
    }

    /// Sends and receives at once.
    pub async fn exchange(&self, to: Member, out: Span, from: Member, into: Span) -> Result<()> {
        let receive = self.recv(from, into);
        let send = self.send(to, out);
        let received = receive.await;
        send.await?;
        received
    }
}

/// Waits for all posts, then tells the first error.
pub async fn join<P: Future<Output = Result<()>>>(posts: impl IntoIterator<Item = P>) -> Result<()> {
    let mut result = Ok(());
    for post in posts {
        result = result.and(post.await);
    }
    result
}

/// Runs two futures side by side. Ends with the first error.
pub(crate) async fn both(
    mut first: Pin<&mut impl Future<Output = Result<()>>>,
    mut second: Pin<&mut impl Future<Output = Result<()>>>,
) -> Result<()> {
    let mut done = [false; 2];
    poll_fn(|context| {
        if !done[0]
            && let Poll::Ready(result) = first.as_mut().poll(context)
        {
            done[0] = true;
            if result.is_err() {
                return Poll::Ready(result);
            }
        }
        if !done[1]
            && let Poll::Ready(result) = second.as_mut().poll(context)
        {
            done[1] = true;
            if result.is_err() {
                return Poll::Ready(result);
            }
        }
        if done == [true; 2] { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}
