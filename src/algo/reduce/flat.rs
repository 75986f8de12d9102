// SPDX-License-Identifier: BSD-3-Clause
//! Reduction, flat tree: every member sends its value to the root, which folds them from left to right.
//!
//! The root keeps two receives posted, so memory does not grow with the group.
//!
//! Cost: p − 1 messages · n units, and (p − 1) · n combinations, all at the root. Requirements: none; order
//! is kept.

use super::{Value, Work};
use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result};
use crate::pattern::Member;
use std::collections::VecDeque;

/// How many values the root awaits at a time.
const AHEAD: usize = 2;

/// Combines all members' `mine` at `root`; the result is `Some` there.
pub async fn flat<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    root: Member,
    mine: Value,
    work: &mut Work<'a, E>,
) -> Result<Option<Value>> {
    if stage.me() != root {
        stage.send(root, mine.span).await?;
        work.give(mine);
        return Ok(None);
    }
    let size = stage.size();
    let mut posted = VecDeque::with_capacity(AHEAD);
    let mut others = (0..size).filter(|&m| m != root);
    let mut sum: Option<Value> = None;
    for member in 0..size {
        while posted.len() < AHEAD
            && let Some(other) = others.next()
        {
            let span = work.take(other + 1 >= size || (other + 2 == size && root + 1 == size))?;
            posted.push_back((span, stage.recv(other, span)));
        }
        let value = if member == root {
            mine
        } else if let Some((span, post)) = posted.pop_front() {
            post.await?;
            Value::owned(span)
        } else {
            continue;
        };
        sum = Some(match sum {
            None => value,
            Some(left) => work.combine(left, value)?,
        });
    }
    Ok(sum)
}
