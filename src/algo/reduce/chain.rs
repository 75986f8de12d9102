// SPDX-License-Identifier: BSD-3-Clause
//! Reduction, chain: values run along the members to the root, which combines what comes from either side.
//!
//! For a stream of segments it is the best tree: every member sends and receives each segment once (the root
//! receives twice when it is not at an end).
//!
//! Cost: up to p − 1 steps · n units and n combinations each, p − 1 messages. Requirements: none; order is
//! kept.

use super::{Value, Work};
use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result};
use crate::pattern::Member;

/// Combines all members' `mine` at `root`; the result is `Some` there.
pub async fn chain<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    root: Member,
    mine: Value,
    work: &mut Work<'a, E>,
) -> Result<Option<Value>> {
    let (me, size) = (stage.me(), stage.size());
    // Below the root, partial results come from below; above it, from above.
    let below = me > 0 && me <= root;
    let above = me + 1 < size && me >= root;
    let mut value = mine;
    let lower = match below {
        true => Some((work.take(!above)?, me - 1)),
        false => None,
    };
    let lower = lower.map(|(span, from)| (span, stage.recv(from, span)));
    let upper = match above {
        true => Some((work.take(true)?, me + 1)),
        false => None,
    };
    let upper = upper.map(|(span, from)| (span, stage.recv(from, span)));
    if let Some((span, post)) = lower {
        post.await?;
        value = work.combine(Value::owned(span), value)?;
    }
    if let Some((span, post)) = upper {
        post.await?;
        value = work.combine(value, Value::owned(span))?;
    }
    if me == root {
        return Ok(Some(value));
    }
    stage.send(if me < root { me + 1 } else { me - 1 }, value.span).await?;
    work.give(value);
    Ok(None)
}
