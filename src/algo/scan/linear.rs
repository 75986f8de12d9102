// SPDX-License-Identifier: BSD-3-Clause
//! Scan, linear: every member waits for what the members below have in all, and tells the next one what that
//! and its own value make.
//!
//! For one vector it is slow; for a stream of segments every member sends and receives each only once.
//!
//! Cost: p − 1 steps · n units, p − 1 messages, one combination per member but the first. Memory: one vector.
//! Requirements: none; order is kept.

use super::Scan;
use crate::algo::{Stage, join};
use crate::endpoint::{Endpoint, Result, Span, TempBuffer};

/// Leaves in `target` the combination of the `mine` of this and all lower members, or only of the lower ones.
pub async fn linear<E: Endpoint>(stage: &Stage<'_, E>, kind: Scan, mine: Span, target: Span) -> Result<()> {
    let (ep, me) = (stage.ep(), stage.me());
    let in_place = mine.ptr() == target.ptr();
    let next = (me + 1 < stage.size()).then_some(me + 1);
    if mine.is_empty() {
        return Ok(());
    }
    if me == 0 {
        let send = next.map(|next| stage.send(next, mine));
        if kind == Scan::Inclusive && !in_place {
            ep.copy(mine, target);
        }
        return join(send).await;
    }
    // Who only receives needs no buffer.
    if kind == Scan::Exclusive && next.is_none() {
        return stage.recv(me - 1, target).await;
    }
    let temp = ep.temp(mine.len())?;
    // `sum` begins as the own value, `before` is for what the lower members have.
    let (sum, before) = match (kind, in_place) {
        (Scan::Inclusive, _) | (Scan::Exclusive, true) => (target, temp.span()),
        (Scan::Exclusive, false) => (temp.span(), target),
    };
    let receive = stage.recv(me - 1, before);
    if sum.ptr() != mine.ptr() {
        ep.copy(mine, sum);
    }
    receive.await?;
    ep.reduce(before, sum);
    join(next.map(|next| stage.send(next, sum))).await?;
    if kind == Scan::Exclusive && in_place {
        ep.copy(before, target);
    }
    Ok(())
}
