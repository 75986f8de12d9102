// SPDX-License-Identifier: BSD-3-Clause
//! Reduction, k-nomial tree in rank order, with any root.
//!
//! Blocks of consecutive members are merged, k at a time ([`crate::pattern::blocks`]): a block's owner
//! receives the values of the other sub-blocks and folds them from left to right. The root owns every block
//! it is in, so it needs no extra hop, and the expression that is computed is a function of p and k only.
//!
//! Cost: ⌈log_k p⌉ steps of up to k − 1 messages · n units and as many combinations. Requirements: none;
//! order is kept. Source: Kurnosov 2023 (coll/tcl) for the k-nomial reduction; moving the owner instead of
//! the result is ours.

use super::{Value, Work};
use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::Member;
use crate::pattern::blocks::{Blocks, Step};
use smallvec::SmallVec;

/// Combines all members' `mine` at `root`; the result is `Some` there.
pub async fn knomial<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    root: Member,
    mine: Value,
    work: &mut Work<'a, E>,
    radix: u32,
) -> Result<Option<Value>> {
    let blocks = Blocks::new(stage.size(), radix, root);
    let mut value = mine;
    let mut steps = blocks.steps(stage.me()).peekable();
    while let Some(step) = steps.next() {
        match step {
            Step::Send(owner) => {
                stage.send(owner, value.span).await?;
                work.give(value);
                return Ok(None);
            }
            Step::Merge { first, width, count, mine: own } => {
                let last = steps.peek().is_none();
                let mut parts: SmallVec<[(Span, E::Post<'a>); 3]> = SmallVec::new();
                for j in (0..count).filter(|&j| j != own) {
                    let span = work.take(last && j + 1 == count)?;
                    parts.push((span, stage.recv(blocks.owner(first + j * width, width), span)));
                }
                let mut parts = parts.into_iter();
                let mut sum: Option<Value> = None;
                for j in 0..count {
                    let part = if j == own {
                        value
                    } else if let Some((span, post)) = parts.next() {
                        post.await?;
                        Value::owned(span)
                    } else {
                        continue;
                    };
                    sum = Some(match sum {
                        None => part,
                        Some(left) => work.combine(left, part)?,
                    });
                }
                value = sum.unwrap_or(value);
            }
        }
    }
    Ok(Some(value))
}
