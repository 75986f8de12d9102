// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall, blocked linear: everybody sends to and receives from everybody, `posts` members at a time.
//!
//! A window slides over the rounds: the next one begins when the oldest is done, so there is no gap between
//! groups. Also for alltoallv and alltoallw: lengths and layouts are those of each block.
//!
//! Cost: p − 1 messages per member, each block travels once; 1 step with p − 1 posts, p − 1 steps with one.
//! Memory: `posts` buffers of the longest block that is not direct, on either side; in place `posts` copies
//! of the longest block. Requirements: none.
//! Source: Pavsky et al. 2021.

use super::exchange::exchange;
use crate::algo::Stage;
use crate::endpoint::{Blocks, Endpoint, Result};

/// Sends block i of `out` to member i, and receives block i of `into` from there.
pub async fn linear<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    out: Option<&O>,
    into: &I,
    posts: usize,
) -> Result<()> {
    exchange(stage, out, into, posts).await
}
