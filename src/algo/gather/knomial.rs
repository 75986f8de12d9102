// SPDX-License-Identifier: BSD-3-Clause
//! Gather, k-nomial tree (k = 2: binomial).
//!
//! Members are counted from the root, in a circle; a member collects the blocks of its subtree, which is a
//! run of members, and sends them on in one message. Where only the root knows all lengths, a member first
//! tells its parent (unless that is the root) how much will come.
//!
//! Cost: ⌈log_k p⌉ steps, p − 1 messages; the block of member m travels as many times as its number has
//! non-zero digits in base k. With announcements: one more message of 8 bytes for each member below the
//! root's children, and as many steps less one.
//! Memory: inside the tree the blocks of the subtree; at the root those of the subtrees that are not one run
//! in memory. Requirements: none; lengths may differ.
//! Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005.

use crate::algo::data::{Members, Plain, Role, Several, announced, contribute, numbers, place, read, transfer};
use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream, TempBuffer};
use crate::pattern::knomial::Knomial;
use crate::pattern::lengths::Lengths;
use crate::pattern::{Member, absolute, relative};
use smallvec::SmallVec;

/// Gathers everybody's data at `root` along the tree of the given radix. `lengths`: those of all blocks,
/// where all members know them; all or no members give them.
pub async fn knomial<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    root: Member,
    role: Role<'_, S, B>,
    lengths: Option<&Lengths>,
    radix: u32,
) -> Result<()> {
    match role {
        Role::Root { all, own } => collect(stage, root, all, own, radix).await,
        Role::Other { own } => pass(stage, root, own, lengths, radix).await,
    }
}

/// The root's part.
async fn collect<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    root: Member,
    all: &B,
    own: Option<&S>,
    radix: u32,
) -> Result<()> {
    let (ep, size) = (stage.ep(), stage.size());
    let tree = Knomial::new(size, radix);
    let mut parts = SmallVec::<[_; 4]>::new();
    for child in tree.children(0) {
        let first = absolute(child, root, size);
        let members = Members::Circle { first, count: tree.subtree_end(child) - child, size };
        let stream = Several { ep, blocks: all, members };
        let (span, temp) = place(ep, &stream)?;
        parts.push((stream, temp, stage.recv_some(first, span)));
    }
    contribute(ep, own, all, root)?;
    for (stream, temp, post) in parts {
        join(post).await?;
        if let Some(temp) = temp {
            stream.unpack(0, temp.span())?;
        }
    }
    Ok(())
}

/// The part of the others.
async fn pass<E: Endpoint, S: Stream>(
    stage: &Stage<'_, E>,
    root: Member,
    own: &S,
    lengths: Option<&Lengths>,
    radix: u32,
) -> Result<()> {
    let (ep, size) = (stage.ep(), stage.size());
    let me = relative(stage.me(), root, size);
    let tree = Knomial::new(size, radix);
    let mut children: SmallVec<[usize; 8]> = tree.children(me).collect();
    children.sort_unstable();
    let totals: SmallVec<[usize; 8]> = match lengths {
        Some(lengths) => {
            let total = |&c: &usize| lengths.circle(absolute(c, root, size), tree.subtree_end(c) - c);
            children.iter().map(total).collect()
        }
        None => told(stage, root, &children).await?,
    };
    let total = own.len() + totals.iter().sum::<usize>();
    let relative_parent = tree.parent(me).unwrap_or(0);
    let parent = absolute(relative_parent, root, size);
    if lengths.is_none() && relative_parent != 0 {
        let message = numbers(ep, [total])?;
        stage.tell(parent, message.span()).await?;
    }
    if total == own.len() {
        let (span, temp) = place(ep, own)?;
        if temp.is_some() {
            read(ep, own, 0, span)?;
        }
        return join(stage.send_some(parent, span)).await;
    }
    // The own block, then the subtrees: in the order of the members.
    let temp = ep.temp(total)?;
    let mut at = own.len();
    let mut posts: Posts<E> = SmallVec::new();
    for (&child, &len) in children.iter().zip(&totals) {
        posts.extend(stage.recv_some(absolute(child, root, size), temp.span().slice(at..at + len)));
        at += len;
    }
    transfer(ep, own, &Plain { ep, span: temp.span().slice(0..own.len()) })?;
    join(posts).await?;
    join(stage.send_some(parent, temp.span())).await
}

/// Receives what the children tell: the lengths of their subtrees.
async fn told<E: Endpoint>(stage: &Stage<'_, E>, root: Member, children: &[usize]) -> Result<SmallVec<[usize; 8]>> {
    let mut messages = SmallVec::<[_; 8]>::new();
    for &child in children {
        let message = announced(stage.ep(), 1)?;
        let span: Span = message.span();
        messages.push((message, stage.recv(absolute(child, root, stage.size()), span)));
    }
    let mut totals = SmallVec::new();
    for (message, post) in messages {
        post.await?;
        totals.push(message.told().iter().sum());
    }
    Ok(totals)
}
