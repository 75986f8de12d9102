// SPDX-License-Identifier: BSD-3-Clause
//! The endpoint of a process whose messages are under the clock.

use crate::endpoint::{Endpoint, Error, Rank, Result, Span, Tag, TempBuffer};
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Who has the messages and clocks of all processes.
pub trait Carrier {
    /// A process posts its side of a message.
    fn post(&self, side: (Rank, Rank, bool), tag: Tag, data: Span) -> u32;
    /// Whether what it has posted is done.
    fn poll(&self, rank: Rank, id: u32) -> bool;
    /// It waits no longer.
    fn abandon(&self, id: u32);
    /// It combines units.
    fn reduce(&self, rank: Rank, left: Span, right: Span);
    /// It copies units.
    fn copy(&self, rank: Rank, from: Span, to: Span);
    /// A buffer of so many bytes.
    fn lend(&self, rank: Rank, bytes: usize) -> *mut u8;
    /// It gives one back.
    fn give_back(&self, rank: Rank, at: *mut u8, bytes: usize);
}

thread_local! {
    /// Of all posts whose owners have been told to wait, those that are looked at.
    static LOOKS: Cell<Looks> = const { Cell::new(Looks::AtAll) };
    static CARRIER: RefCell<Option<Rc<dyn Carrier>>> = const { RefCell::new(None) };
}

/// What a process that goes on looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum Looks {
    /// Everything that it waits for.
    AtAll,
    /// This post, which is done. Of each other one an event of its own will tell.
    At(u32),
}

/// From now on processes look at this.
pub(in crate::sim) fn look(at: Looks) {
    LOOKS.set(at);
}

/// While it lives, the thread's endpoints belong to somebody.
pub struct Carried(());

impl Carried {
    /// To this one.
    ///
    /// # Panics
    /// They belong to somebody already.
    pub fn by(carrier: Rc<dyn Carrier>) -> Carried {
        let before = CARRIER.replace(Some(carrier));
        assert!(before.is_none(), "one clock at a time");
        Carried(())
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        CARRIER.set(None);
        LOOKS.set(Looks::AtAll);
    }
}

/// # Panics
/// Outside of a run.
fn carrier<R>(what: impl FnOnce(&dyn Carrier) -> R) -> R {
    CARRIER.with_borrow(|carrier| what(&**carrier.as_ref().expect("messages under a clock")))
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct ClockEndpoint {
    /// Which one.
    pub rank: Rank,
    /// Of so many.
    pub size: u32,
    /// Bytes of a unit.
    pub unit: usize,
}

impl Endpoint for ClockEndpoint {
    type Post<'a> = ClockPost;
    type Temp<'a> = ClockTemp;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: Rank, tag: Tag, data: Span) -> ClockPost {
        let id = carrier(|carrier| carrier.post((self.rank, to, true), tag, data));
        ClockPost { rank: self.rank, id: Some(id), waits: false }
    }

    fn recv(&self, from: Rank, tag: Tag, data: Span) -> ClockPost {
        let id = carrier(|carrier| carrier.post((self.rank, from, false), tag, data));
        ClockPost { rank: self.rank, id: Some(id), waits: false }
    }

    /// # Panics
    /// Always: nothing fails under a clock.
    fn note(&self, error: Error) {
        panic!("rank {}: {error:?}", self.rank);
    }

    fn noted(&self) -> Result<()> {
        Ok(())
    }

    fn reduce_units(&self, left: Span, right: Span) {
        carrier(|carrier| carrier.reduce(self.rank, left, right));
    }

    fn copy_units(&self, from: Span, to: Span) {
        carrier(|carrier| carrier.copy(self.rank, from, to));
    }

    fn temp(&self, units: usize) -> Result<ClockTemp> {
        let (rank, bytes) = (self.rank, units * self.unit);
        let at = carrier(|carrier| carrier.lend(rank, bytes));
        // SAFETY: it is memory for as long as the run lasts, or nobody touches what it says.
        Ok(ClockTemp { rank, bytes, span: unsafe { Span::new(at, units, self.unit as isize) } })
    }
}

/// Waits for a posted message.
#[must_use = "a post is awaited before its memory is touched"]
pub struct ClockPost {
    rank: Rank,
    /// Until it is done.
    id: Option<u32>,
    /// It was not done yet.
    waits: bool,
}

impl Future for ClockPost {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(id) = self.id else { return Poll::Ready(Ok(())) };
        let is_told = self.waits && matches!(LOOKS.get(), Looks::At(other) if other != id);
        if is_told || !carrier(|carrier| carrier.poll(self.rank, id)) {
            self.waits = true;
            return Poll::Pending;
        }
        self.id = None;
        Poll::Ready(Ok(()))
    }
}

impl Drop for ClockPost {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            carrier(|carrier| carrier.abandon(id));
        }
    }
}

/// A temporary buffer.
pub struct ClockTemp {
    rank: Rank,
    bytes: usize,
    span: Span,
}

impl TempBuffer for ClockTemp {
    fn span(&self) -> Span {
        self.span
    }
}

impl Drop for ClockTemp {
    fn drop(&mut self) {
        carrier(|carrier| carrier.give_back(self.rank, self.span.ptr(), self.bytes));
    }
}
