// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall, pairwise exchange: in step i a member sends to the one i further and receives from the one i
//! before; in place, two members exchange.
//!
//! Also for alltoallv and alltoallw: lengths and layouts are those of each block.
//!
//! Cost: p − 1 steps and messages per member (in place, with an odd p, p steps: each member rests once), each
//! block travels once. Memory: one buffer of the longest block that is not direct, on either side; in place a
//! copy of the longest block.
//! Requirements: none.
//! Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005; the order in place is Kirkman's (1847).

use super::exchange::exchange;
use crate::algo::Stage;
use crate::endpoint::{Blocks, Endpoint, Result};

/// Sends block i of `out` to member i, and receives block i of `into` from there.
pub async fn pairwise<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    out: Option<&O>,
    into: &I,
) -> Result<()> {
    exchange(stage, out, into, 1).await
}
