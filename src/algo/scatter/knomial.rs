// SPDX-License-Identifier: BSD-3-Clause
//! Scatter, k-nomial tree (k = 2: binomial).
//!
//! Members are counted from the root, in a circle; a member gets the blocks of its subtree, which is a run of
//! members, in one message, keeps the first and sends the others on. Where only the root knows all lengths, a
//! parent first tells each child that has children the lengths of the blocks below it.
//!
//! Cost: ⌈log_k p⌉ steps, p − 1 messages; the block of member m travels as many times as its number has
//! non-zero digits in base k. With announcements: one more message for each member with children but the
//! root, of 8 bytes per member below it.
//! Memory: inside the tree the blocks of the subtree; at the root those of the subtrees that are not one run
//! in memory. Requirements: none; lengths may differ.
//! Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005.

use crate::algo::data::{Block, Members, Plain, Role, Several, announced, numbers, place, transfer, write};
use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result, Stream, TempBuffer};
use crate::pattern::knomial::Knomial;
use crate::pattern::lengths::Lengths;
use crate::pattern::{Member, absolute, relative};
use smallvec::SmallVec;

/// Scatters the blocks of `root` along the tree of the given radix. `lengths`: those of all blocks, where all
/// members know them; all or no members give them.
pub async fn knomial<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    root: Member,
    role: Role<'_, S, B>,
    lengths: Option<&Lengths>,
    radix: u32,
) -> Result<()> {
    match role {
        Role::Root { all, own } => {
            let own = own.map(|own| own as &dyn Stream);
            hand_out(stage, root, &(all as &dyn Blocks), own.as_ref(), lengths.is_none(), radix).await
        }
        Role::Other { own } => pass(stage, root, &(own as &dyn Stream), lengths, radix).await,
    }
}

/// The root's part, once for data of any kind. `tell`: whether the others need to be told lengths.
async fn hand_out<E: Endpoint>(
    stage: &Stage<'_, E>,
    root: Member,
    all: &&dyn Blocks,
    own: Option<&&dyn Stream>,
    tell: bool,
    radix: u32,
) -> Result<()> {
    let (ep, size) = (stage.ep(), stage.size());
    let tree = Knomial::new(size, radix);
    let mut temps = SmallVec::<[E::Temp<'_>; 4]>::new();
    let mut posts: Posts<E> = SmallVec::new();
    for child in tree.children(0) {
        let (first, count) = (absolute(child, root, size), tree.subtree_end(child) - child);
        if tell && count > 1 {
            let below = Members::Circle { first: absolute(child + 1, root, size), count: count - 1, size };
            let message = numbers(ep, below.iter().map(|m| all.len(m)))?;
            posts.push(stage.tell(first, message.span()));
            temps.push(message);
        }
        let stream = Several { ep, blocks: all, members: Members::Circle { first, count, size } };
        let (span, temp) = place(ep, &stream)?;
        if temp.is_some() {
            stream.pack(0, span)?;
        }
        posts.extend(stage.send_some(first, span));
        temps.extend(temp);
    }
    if let Some(own) = own {
        transfer(ep, &Block { blocks: all, member: root }, own)?;
    }
    join(posts).await
}

/// The part of the others.
async fn pass<E: Endpoint>(
    stage: &Stage<'_, E>,
    root: Member,
    own: &&dyn Stream,
    lengths: Option<&Lengths>,
    radix: u32,
) -> Result<()> {
    let (ep, size) = (stage.ep(), stage.size());
    let me = relative(stage.me(), root, size);
    let tree = Knomial::new(size, radix);
    let end = tree.subtree_end(me);
    let parent = absolute(tree.parent(me).unwrap_or(0), root, size);
    if end - me == 1 {
        let (span, temp) = place(ep, own)?;
        join(stage.recv_some(parent, span)).await?;
        return if temp.is_some() { write(ep, own, 0, span) } else { Ok(()) };
    }
    let subtree = match lengths {
        Some(lengths) => Lengths::each((me..end).map(|m| lengths.len(absolute(m, root, size)))),
        None => {
            let message = announced(ep, end - me - 1)?;
            stage.recv(parent, message.span()).await?;
            Lengths::each(std::iter::once(own.len()).chain(message.told()))
        }
    };
    let temp = ep.temp(subtree.total())?;
    join(stage.recv_some(parent, temp.span())).await?;
    let mut told = SmallVec::<[E::Temp<'_>; 4]>::new();
    let mut posts: Posts<E> = SmallVec::new();
    for child in tree.children(me) {
        let (to, last) = (absolute(child, root, size), tree.subtree_end(child));
        if lengths.is_none() && last - child > 1 {
            let message = numbers(ep, (child + 1..last).map(|m| subtree.len(m - me)))?;
            posts.push(stage.tell(to, message.span()));
            told.push(message);
        }
        posts.extend(stage.send_some(to, temp.span().slice(subtree.span(child - me..last - me))));
    }
    transfer(ep, &Plain { ep, span: temp.span().slice(0..own.len()) }, own)?;
    join(posts).await
}
