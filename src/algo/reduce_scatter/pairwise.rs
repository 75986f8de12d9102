// SPDX-License-Identifier: BSD-3-Clause
//! Reduce-scatter, pairwise exchange, in rank order: in step i a member gets its block from the member i
//! further, and sends the member i before that one's.
//!
//! What comes from the members above is appended to the own value; what comes from those below is combined on
//! its own, in their order, and put before it at the end. So each block is combined at its owner, and no
//! operands are exchanged.
//!
//! Cost: p − 1 steps and messages per member; every member sends all blocks but its own, and combines its own
//! p − 1 times.
//! Memory: up to five times the own block. Requirements: none; order is kept.
//! Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005; the two sides are ours.

use super::settle;
use crate::algo::reduce::{Value, Work};
use crate::algo::{Pair, Stage, join};
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::Member;
use crate::pattern::lengths::Lengths;
use std::collections::VecDeque;

/// How many steps are under way at a time: while one value is combined, the next arrives.
const AHEAD: usize = 2;

/// Combines all members' `mine`, and leaves the own block of the result in `target`.
pub async fn pairwise<E: Endpoint>(stage: &Stage<'_, E>, mine: Span, lengths: &Lengths, target: Span) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    let mut work = Work::new(stage.ep(), target.len(), false, None);
    let mut own = Value::borrowed(mine.slice(lengths.get(me)));
    let mut below: Option<Value> = None;
    let mut open: VecDeque<(Member, Span, Pair<'_, E>)> = VecDeque::with_capacity(AHEAD);
    let mut steps = 1..size;
    loop {
        while open.len() < AHEAD
            && let Some(step) = steps.next()
        {
            let (from, to) = ((me + step) % size, (me + size - step) % size);
            let span = if target.is_empty() { target } else { work.take(false)? };
            let posts = [stage.recv_some(from, span), stage.send_some(to, mine.slice(lengths.get(to)))];
            open.push_back((from, span, posts));
        }
        let Some((from, span, posts)) = open.pop_front() else { break };
        join(posts.into_iter().flatten()).await?;
        let value = Value::owned(span);
        if target.is_empty() {
            continue;
        }
        if from > me {
            own = work.combine_in_order(own, value)?;
        } else {
            below = Some(match below {
                None => value,
                Some(lower) => work.combine_in_order(lower, value)?,
            });
        }
    }
    if let Some(below) = below {
        own = work.combine_in_order(below, own)?;
    }
    settle(stage.ep(), own.span, target);
    Ok(())
}
