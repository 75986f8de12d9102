// SPDX-License-Identifier: BSD-3-Clause
//! The simulated endpoint, its posts and its temporary buffers.

use super::region::PostId;
use super::state::State;
use super::{Access, Failure, Side, UnitBuffer};
use crate::endpoint::{Endpoint, Error, Rank, Result, Span, Tag, TempBuffer, instead_of};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};

/// Combines a unit on the left into one on the right.
pub(super) type Reduce = dyn Fn(&[u8], &mut [u8]) + Send + Sync;

/// What the ranks of a run share. The lock is never contended, a run has one thread: it makes the endpoint
/// `Sync`.
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) reduce: Arc<Reduce>,
}

impl Shared {
    /// A run in this state.
    pub(super) fn new(state: State, reduce: Arc<Reduce>) -> Shared {
        Shared { state: Mutex::new(state), reduce }
    }

    /// The state. No code of a rank runs while it is locked.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a rank.
pub(super) struct RankWaker {
    pub(super) rank: Rank,
    pub(super) shared: Arc<Shared>,
}

impl Wake for RankWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared.lock().wake(self.rank);
    }
}

/// One rank's endpoint in a simulated run.
pub struct SimEndpoint {
    pub(super) rank: Rank,
    pub(super) size: u32,
    pub(super) shared: Arc<Shared>,
}

impl SimEndpoint {
    /// Posts a message.
    fn post(&self, side: Side, peer: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        SimPost { endpoint: self, id: self.shared.lock().post(self.rank, side, peer, tag, data) }
    }

    /// Checks the operands of a local operation; false when they break a rule.
    fn local(&self, left: (Span, Access), right: (Span, Access)) -> bool {
        let mut state = self.shared.lock();
        let (rank, lens) = (self.rank, (left.0.len(), right.0.len()));
        if lens.0 != lens.1 {
            if state.config.lengths_may_differ {
                state.note(rank, Error::Lengths);
                return false;
            }
            state.fail(Failure::LocalLength { rank, left: lens.0, right: lens.1 });
        }
        let (a, b) = (state.unit.hull(left.0), state.unit.hull(right.0));
        if a.0 < b.1 && b.0 < a.1 && a.0 < a.1 && b.0 < b.1 {
            state.fail(Failure::LocalOverlap { rank });
        }
        state.access(rank, left.1, left.0);
        state.access(rank, right.1, right.0);
        state.failure.is_none() && !state.closed
    }
}

impl Endpoint for SimEndpoint {
    type Post<'a> = SimPost<'a>;
    type Temp<'a> = SimTemp<'a>;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        let data = if self.noted().is_err() { instead_of(data) } else { data };
        self.post(Side::Send, to, tag, data)
    }

    fn tell(&self, to: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        self.post(Side::Send, to, tag, data)
    }

    fn recv(&self, from: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        self.post(Side::Recv, from, tag, data)
    }

    /// [`local`](SimEndpoint::local) checks more, and tells the rank.
    fn alike(&self, _: Span, _: Span) -> bool {
        true
    }

    fn note(&self, error: Error) {
        self.shared.lock().note(self.rank, error);
    }

    fn noted(&self) -> Result<()> {
        self.shared.lock().ranks[self.rank as usize].noted.map_or(Ok(()), Err)
    }

    fn reduce_units(&self, left: Span, right: Span) {
        if !self.local((left, Access::ReduceLeft), (right, Access::ReduceRight)) {
            return;
        }
        let unit = self.shared.lock().unit;
        // SAFETY: who made the spans promised valid memory; no post in flight writes it, by the check above.
        let (a, mut b) = unsafe { (unit.gather(left), unit.gather(right)) };
        if unit.size > 0 {
            for (a, b) in a.chunks_exact(unit.size).zip(b.chunks_exact_mut(unit.size)) {
                (self.shared.reduce)(a, b);
            }
        }
        // SAFETY: as above, and no post in flight reads it either.
        unsafe { unit.scatter(&b, right) };
        self.shared.lock().stats.reduced[self.rank as usize] += right.len() as u64;
    }

    fn copy_units(&self, from: Span, to: Span) {
        if self.local((from, Access::CopyFrom), (to, Access::CopyTo)) {
            let unit = self.shared.lock().unit;
            // SAFETY: who made the spans promised valid memory; no post in flight uses it against the check
            // above.
            unsafe { unit.scatter(&unit.gather(from), to) };
        }
    }

    fn temp(&self, units: usize) -> Result<SimTemp<'_>> {
        Ok(SimTemp { endpoint: self, buffer: Some(self.shared.lock().lend(self.rank, units)) })
    }
}

/// Waits for a posted message.
#[must_use = "a post is awaited before its memory is touched"]
pub struct SimPost<'a> {
    endpoint: &'a SimEndpoint,
    /// None when posting broke a rule: then this waits for ever, and the run ends when its rank's poll
    /// returns.
    id: Option<PostId>,
}

impl Future for SimPost<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(id) = self.id else { return Poll::Pending };
        let done = self.endpoint.shared.lock().poll_post(id, cx.waker());
        if done { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Drop for SimPost<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.endpoint.shared.lock().drop_post(id);
        }
    }
}

/// A temporary buffer of a simulated endpoint.
pub struct SimTemp<'a> {
    endpoint: &'a SimEndpoint,
    /// There until it is dropped.
    buffer: Option<UnitBuffer>,
}

impl TempBuffer for SimTemp<'_> {
    fn span(&self) -> Span {
        self.buffer.as_ref().map_or(Span::empty(), UnitBuffer::span)
    }
}

impl Drop for SimTemp<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.endpoint.shared.lock().give_back(self.endpoint.rank, buffer);
        }
    }
}
