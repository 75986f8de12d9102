// SPDX-License-Identifier: BSD-3-Clause
//! Reduce-scatter, ring: the partial result of every block goes once round, from the member after its owner
//! to the owner.
//!
//! In step s a member passes on block me − s − 1 and combines block me − s − 2, which comes from the previous
//! member.
//!
//! Cost: p − 1 steps and messages per member, between neighbours only; every member sends and combines all
//! blocks but one.
//! Memory: two buffers of the longest block. Requirements: a commutative operation.
//! Source: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009.

use super::settle;
use crate::algo::Stage;
use crate::algo::reduce::Work;
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::lengths::Lengths;

/// Combines all members' `mine`, and leaves the own block of the result in `target`.
pub async fn ring<E: Endpoint>(stage: &Stage<'_, E>, mine: Span, lengths: &Lengths, target: Span) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    if lengths.is_empty() {
        return Ok(());
    }
    let (next, previous) = ((me + 1) % size, (me + size - 1) % size);
    let mut work = Work::new(stage.ep(), lengths.largest(), true, None);
    let mut buffers = match size {
        1 => [Span::empty(); 2],
        _ => [work.take(false)?, work.take(false)?],
    };
    let mut partial = mine.slice(lengths.get(previous));
    for step in 0..size - 1 {
        let own = mine.slice(lengths.get((me + 2 * size - step - 2) % size));
        let arriving = buffers[0].slice(0..own.len());
        stage.exchange_some(next, partial, previous, arriving).await?;
        if !own.is_empty() {
            stage.ep().reduce(own, arriving);
        }
        partial = arriving;
        buffers.swap(0, 1);
    }
    settle(stage.ep(), partial, target);
    Ok(())
}
