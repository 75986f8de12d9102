// SPDX-License-Identifier: BSD-3-Clause
//! An endpoint that only counts: for jobs whose messages are too many to be kept.
//!
//! Ranks run one after the other; every post is done at once, and no memory is touched. So it serves only
//! algorithms that do not look at what they receive: all but those that are told lengths.

use super::Traffic;
use crate::endpoint::{Endpoint, Error, Rank, Result, Span, Tag, TempBuffer};
use std::future::{Ready, ready};
use std::pin::pin;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// One rank of a job whose messages are counted.
pub struct CountEndpoint<'a, K> {
    rank: Rank,
    size: u32,
    kind: &'a K,
    counts: &'a [[AtomicU64; 2]],
    /// Where the next buffer would begin.
    next: AtomicUsize,
}

/// A buffer without memory.
pub struct CountTemp(Span);

impl TempBuffer for CountTemp {
    fn span(&self) -> Span {
        self.0
    }
}

impl<K> CountEndpoint<'_, K> {
    /// A run of `units` units, `extent` bytes each, at an address of its own, that is not memory.
    pub fn nowhere(&self, units: usize, extent: isize) -> Span {
        let bytes = units * extent.unsigned_abs().max(1) + 64;
        // SAFETY: nobody accesses what it says: operations are counted only.
        unsafe { Span::new(without_provenance_mut(self.next.fetch_add(bytes, Ordering::Relaxed)), units, extent) }
    }
}

impl<K: Fn(Rank, Rank) -> usize + Sync> Endpoint for CountEndpoint<'_, K> {
    type Post<'a>
        = Ready<Result<()>>
    where
        Self: 'a;
    type Temp<'a>
        = CountTemp
    where
        Self: 'a;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: Rank, _: Tag, data: Span) -> Ready<Result<()>> {
        let [messages, units] = &self.counts[(self.kind)(self.rank, to)];
        messages.fetch_add(1, Ordering::Relaxed);
        units.fetch_add(data.len() as u64, Ordering::Relaxed);
        ready(Ok(()))
    }

    fn recv(&self, _: Rank, _: Tag, _: Span) -> Ready<Result<()>> {
        ready(Ok(()))
    }

    fn reduce_units(&self, _: Span, _: Span) {}

    fn copy_units(&self, _: Span, _: Span) {}

    /// # Panics
    /// Always: an error of the algorithm.
    fn note(&self, error: Error) {
        panic!("{error:?}");
    }

    fn noted(&self) -> Result<()> {
        Ok(())
    }

    fn temp(&self, units: usize) -> Result<CountTemp> {
        Ok(CountTemp(self.nowhere(units, 1)))
    }
}

/// Runs `rank` for each of `size` ranks, and counts its messages by kind: `kind` says which of `kinds` a
/// message from a rank to another is.
///
/// # Panics
/// When a rank waits for something that is no message, or returns an error.
pub fn count<K, F>(size: u32, kinds: usize, kind: K, rank: F) -> Vec<Traffic>
where
    K: Fn(Rank, Rank) -> usize + Sync,
    F: AsyncFn(&CountEndpoint<'_, K>) -> Result<()>,
{
    let counts: Vec<[AtomicU64; 2]> = (0..kinds).map(|_| Default::default()).collect();
    for number in 0..size {
        let (kind, counts) = (&kind, &counts[..]);
        let ep = CountEndpoint { rank: number, size, kind, counts, next: AtomicUsize::new(1 << 20) };
        let mut future = pin!(rank(&ep));
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(()))), "rank {number}: {polled:?}");
    }
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    counts.iter().map(|[messages, units]| Traffic { messages: read(messages), units: read(units) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does something with three units and two, by what all endpoints but the simulator's inherit.
    fn unlike(work: impl Fn(&CountEndpoint<'_, fn(Rank, Rank) -> usize>, Span, Span) + Sync) {
        count(1, 1, (|_, _| 0) as fn(Rank, Rank) -> usize, async |ep: &CountEndpoint<'_, _>| {
            let temp = ep.temp(3)?;
            work(ep, temp.span(), temp.span().slice(0..2));
            Ok(())
        });
    }

    #[test]
    #[should_panic = "Lengths"]
    fn spans_of_unlike_lengths_are_not_copied() {
        unlike(|ep, three, two| ep.copy(three, two));
    }

    #[test]
    #[should_panic = "Lengths"]
    fn spans_of_unlike_lengths_are_not_reduced() {
        unlike(|ep, three, two| ep.reduce(two, three));
    }
}
