// SPDX-License-Identifier: BSD-3-Clause
//! Scan, up and down a k-nomial tree: on the way up every member learns what its subtree has in all, on the
//! way down what all members before its subtree have.
//!
//! Two functions, since in a composition of levels other groups come between: [`rise`], in which the first
//! member gets the total, and [`sink`], in which it may bring what comes before the whole group.
//!
//! Cost: each way ⌈log_k p⌉ steps · n units, p − 1 messages; p − 1 combinations up, at most as many down.
//! Memory: a vector for each child, and two. Requirements: none; order is kept.
//! Source: Blelloch: Prefix sums and their applications, CMU-CS-90-190; on k-nomial trees: Sanders, Träff:
//! Parallel prefix (scan) algorithms for MPI, EuroPVM/MPI 2006.

use crate::algo::reduce::{Value, Work};
use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::Member;
use crate::pattern::knomial::Knomial;
use smallvec::SmallVec;

/// What a member knows after the way up: its children, with what its subtree has before each of them.
pub struct Risen {
    before: SmallVec<[(Member, Value); 4]>,
}

/// The way up: the first member gets the combination of all members' `mine`. What it gives back is for
/// [`sink`]; it uses memory of `work`.
pub async fn rise<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    mine: Value,
    work: &mut Work<'a, E>,
    radix: u32,
) -> Result<(Option<Value>, Risen)> {
    let tree = Knomial::new(stage.size(), radix);
    let mut children: SmallVec<[Member; 8]> = tree.children(stage.me()).collect();
    children.sort_unstable();
    let mut posts = SmallVec::<[(Member, Span, E::Post<'a>); 4]>::new();
    for child in children {
        let span = work.take(false)?;
        posts.push((child, span, stage.recv(child, span)));
    }
    let mut total = mine;
    let mut before = SmallVec::new();
    for (child, span, post) in posts {
        post.await?;
        stage.ep().reduce(total.span, span);
        before.push((child, total));
        total = Value::owned(span);
    }
    let Some(parent) = tree.parent(stage.me()) else { return Ok((Some(total), Risen { before })) };
    stage.send(parent, total.span).await?;
    work.give(total);
    Ok((None, Risen { before }))
}

/// The way down: gives back what comes before the caller. `first`: of the first member, what comes before the
/// group, if anything. The values that were given to [`rise`] are as they were, where they are not owned.
pub async fn sink<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    risen: Risen,
    first: Option<Value>,
    work: &mut Work<'a, E>,
    radix: u32,
) -> Result<Option<Value>> {
    let prefix = match Knomial::new(stage.size(), radix).parent(stage.me()) {
        None => first,
        Some(parent) => {
            let span = work.take(false)?;
            stage.recv(parent, span).await?;
            Some(Value::owned(span))
        }
    };
    let mut posts: Posts<'a, E> = SmallVec::new();
    // The largest subtree first.
    for (child, before) in risen.before.into_iter().rev() {
        let value = match prefix {
            None => before,
            Some(prefix) => work.combine_in_order(Value::borrowed(prefix.span), before)?,
        };
        posts.push(stage.send(child, value.span));
    }
    join(posts).await?;
    Ok(prefix)
}
