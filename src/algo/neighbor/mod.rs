//! Neighbourhood operations: every member sends a block to each of its destinations and receives one from each of its sources
//! ([`Neighbors`](crate::pattern::neighborhood::Neighbors)). Block i of `out` goes to destination i, block i of `into` comes from source i.

pub mod aggregated;
pub mod agreement;
pub mod direct;

use crate::algo::data::{place, read};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream};
use std::ops::Range;

/// The same bytes, in one run, for every neighbour.
pub struct Same<'b, E> {
    ep: &'b E,
    span: Span,
}

impl<E: Endpoint> Blocks for Same<'_, E> {
    fn len(&self, _: usize) -> usize {
        self.span.len()
    }

    fn direct(&self, neighbors: Range<usize>) -> Option<Span> {
        (neighbors.len() == 1).then_some(self.span)
    }

    fn pack(&self, _: usize, at: usize, to: Span) -> Result<()> {
        self.ep.copy(self.span.slice(at..at + to.len()), to);
        Ok(())
    }

    fn unpack(&self, _: usize, at: usize, from: Span) -> Result<()> {
        self.ep.copy(from, self.span.slice(at..at + from.len()));
        Ok(())
    }
}

/// Runs `work` with `own` as the block for every neighbour; it is packed once, if it has to be.
pub async fn with_same<E: Endpoint, S: Stream>(
    ep: &E,
    own: &S,
    work: impl AsyncFnOnce(&Same<'_, E>) -> Result<()>,
) -> Result<()> {
    let (span, temp) = place(ep, own)?;
    if temp.is_some() {
        read(ep, own, 0, span)?;
    }
    work(&Same { ep, span }).await
}
