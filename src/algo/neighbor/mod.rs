// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood operations: every member sends a block to each of its destinations and receives one from
//! each of its sources ([`Neighbors`](crate::pattern::neighborhood::Neighbors)). Block i of `out` goes to
//! destination i, block i of `into` comes from source i.

pub mod aggregated;
pub mod agreement;
pub mod direct;

use crate::algo::data::{place, read};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream};
use std::ops::Range;

/// The same bytes, in one run, for every neighbour.
pub struct Same(pub Span);

impl Blocks for Same {
    #[inline(always)]
    fn len(&self, _: usize) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn direct(&self, neighbors: Range<usize>) -> Option<Span> {
        (neighbors.len() == 1).then_some(self.0)
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called: `direct` says so
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// Runs `work` with `own` as the block for every neighbour; it is packed once, if it has to be.
pub async fn with_same<E: Endpoint, S: Stream>(
    ep: &E,
    own: &S,
    work: impl AsyncFnOnce(&Same) -> Result<()>,
) -> Result<()> {
    let (span, temp) = place(ep, own)?;
    if temp.is_some() {
        read(ep, own, 0, span)?;
    }
    work(&Same(span)).await
}
