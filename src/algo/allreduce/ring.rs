// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce, ring: reduce-scatter and allgather around a ring.
//!
//! The vector is cut into p *chunks*. In step s = 0 … p − 2 of the first phase a member sends chunk me − s to
//! the next member and combines chunk me − s − 1, which comes from the previous one; it ends with the whole
//! sum of chunk me + 1. In the second phase the finished chunks go round once.
//!
//! Cost: 2 (p − 1) steps of n/p units, 2 (p − 1)/p · n units and (p − 1)/p · n combinations per member: the
//! least traffic there is. Requirements: a commutative operation,
//! p ≥ 2.
//! Source: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009.

use crate::algo::Stage;
use crate::algo::reduce::{Value, Work};
use crate::endpoint::{Endpoint, Result};
use crate::pattern::chunks::Chunks;

/// Combines all members' `mine` everywhere. Uses two phases.
pub async fn ring<'a, E: Endpoint>(stage: &Stage<'a, E>, mine: Value, work: &mut Work<'a, E>) -> Result<Value> {
    let (me, size) = (stage.me(), stage.size());
    let chunks = Chunks::new(mine.span.len(), size);
    let (next, previous) = ((me + 1) % size, (me + size - 1) % size);
    let sum = if mine.owned { mine.span } else { work.take(true)? };
    // In place, a chunk arrives beside the buffer; else it arrives where its sum will be.
    let spare = if mine.owned { Some(work.take(false)?) } else { None };
    let mut out = mine.span.slice(chunks.get(me));
    for step in 0..size - 1 {
        let range = chunks.get((me + 2 * size - step - 1) % size);
        let own = mine.span.slice(range.clone());
        match spare {
            Some(spare) => {
                let into = spare.slice(0..range.len());
                stage.exchange(next, out, previous, into).await?;
                stage.ep().reduce(into, own);
                out = own;
            }
            None => {
                let into = sum.slice(range);
                stage.exchange(next, out, previous, into).await?;
                stage.ep().reduce(own, into);
                out = into;
            }
        }
    }
    let second = stage.second();
    for step in 0..size - 1 {
        let out = sum.slice(chunks.get((me + 1 + size - step) % size));
        let into = sum.slice(chunks.get((me + size - step) % size));
        second.exchange(next, out, previous, into).await?;
    }
    if let Some(spare) = spare {
        work.give(Value::owned(spare));
    }
    Ok(Value::owned(sum))
}
