//! How an operation waits.
//!
//! Operations are written once, as futures. Nonblocking calls, and calls over several levels, are suspended
//! where they would wait. A blocking call within one node has its thread for itself, and a future that never
//! has to come back to where it was is no more than a function: the compiler keeps nothing between two polls,
//! and provides for no second one.
//!
//! It only does so where nothing that lives across an `await` holds the address of something else that does.
//! So short ways loop over [`others`](super::View::others), which borrows nothing, and not by closures that
//! borrow the turn; and what is passed to [`long`](Waits::long) is moved there.

use crate::endpoint::Result;
use crate::shm::reach::Reach;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How an operation waits for others.
pub trait Waits: Copy {
    /// What of a wait is kept until it is over.
    type Kept<F>;
    /// What is known of its result when it begins.
    type Known<T>;

    /// How [`runs`](Waits::runs) runs it.
    type Runs: Runs;

    /// How to run to its end what is waited for, if the operation is not suspended: then a short way may be a
    /// plain function, which keeps in registers what a future has in memory.
    fn runs(self) -> Option<Self::Runs>;

    /// Begins to wait for what `late` returns, something that was not there yet.
    fn begin<F: Future<Output = T>, T>(self, late: impl FnOnce() -> F) -> (Self::Kept<F>, Self::Known<T>);

    /// Goes on.
    fn poll<F: Future<Output = T>, T>(
        kept: Pin<&mut Self::Kept<F>>,
        known: &mut Self::Known<T>,
        context: &mut Context<'_>,
    ) -> Poll<T>;

    /// Waits for `late`.
    #[inline(always)]
    fn on<F: Future<Output = T>, T>(self, late: F) -> Wait<F, T, Self> {
        self.long(move || late)
    }

    /// Waits for one word, which has been [looked at](Reach::late) in vain: what is waited for most.
    #[inline(always)]
    fn reach<'t>(self, late: Reach<'t>) -> Wait<Reach<'t>, Result<u64>, Self> {
        self.on(late)
    }

    /// Waits for what `late` returns: something long, which need not be kept beside all else.
    #[inline(always)]
    fn long<F: Future<Output = T>, T>(self, late: impl FnOnce() -> F) -> Wait<F, T, Self> {
        let (kept, known) = self.begin(late);
        Wait { kept, known }
    }
}

/// A wait of an operation's. Of a type of its own, instead of one that is known to be a future for each way
/// of waiting: where such futures are sent between threads, the compiler cannot see that they may be.
pub struct Wait<F, T, W: Waits> {
    kept: W::Kept<F>,
    known: W::Known<T>,
}

impl<F: Future<Output = T>, T, W: Waits> Future for Wait<F, T, W> {
    type Output = T;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // SAFETY: `kept` is pinned with the whole, and never moved out; `known` never is pinned.
        let (kept, known) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.kept), &mut this.known)
        };
        W::poll(kept, known, context)
    }
}

/// The operation is suspended.
#[derive(Clone, Copy)]
pub struct Suspends;

impl Waits for Suspends {
    type Kept<F> = F;
    type Known<T> = ();
    type Runs = Infallible;

    #[inline(always)]
    fn runs(self) -> Option<Infallible> {
        None
    }

    #[inline(always)]
    fn begin<F: Future<Output = T>, T>(self, late: impl FnOnce() -> F) -> (F, ()) {
        (late(), ())
    }

    #[inline(always)]
    fn poll<F: Future<Output = T>, T>(late: Pin<&mut F>, (): &mut (), context: &mut Context<'_>) -> Poll<T> {
        late.poll(context)
    }
}

/// Runs futures to their ends.
pub trait Runs: Copy {
    /// Runs what `late` returns to its end.
    fn run<F: Future>(self, late: impl FnOnce() -> F) -> F::Output;

    /// The same of the wait for one word, which has been [looked at](Reach::late) in vain.
    fn reach(self, late: Reach<'_>) -> Result<u64> {
        self.run(move || late)
    }
}

/// Of an operation that is suspended.
impl Runs for Infallible {
    fn run<F: Future>(self, _: impl FnOnce() -> F) -> F::Output {
        match self {}
    }
}

/// The caller's thread waits: nothing is kept. `DOOR`, `STILL`: who calls, and from where there; what is
/// called from one place only becomes a part of it, so each place has an operation of its own.
#[derive(Clone, Copy)]
pub struct Blocks<R, const DOOR: i32, const STILL: bool>(pub R);

impl<R: Runs, const DOOR: i32, const STILL: bool> Waits for Blocks<R, DOOR, STILL> {
    type Kept<F> = ();
    type Known<T> = Option<T>;
    type Runs = R;

    #[inline(always)]
    fn runs(self) -> Option<R> {
        Some(self.0)
    }

    #[inline(always)]
    fn begin<F: Future<Output = T>, T>(self, late: impl FnOnce() -> F) -> ((), Option<T>) {
        ((), Some(self.0.run(late)))
    }

    #[inline(always)]
    fn reach<'t>(self, late: Reach<'t>) -> Wait<Reach<'t>, Result<u64>, Self> {
        Wait { kept: (), known: Some(self.0.reach(late)) }
    }

    #[inline(always)]
    fn poll<F: Future<Output = T>, T>(_: Pin<&mut ()>, known: &mut Option<T>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(known.take().expect("a wait that is over is not polled again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Waker;

    /// Polls until something is there.
    #[derive(Clone, Copy)]
    struct Polls<'c>(&'c Cell<u32>);

    impl Runs for Polls<'_> {
        fn run<F: Future>(self, late: impl FnOnce() -> F) -> F::Output {
            let mut late = pin!(late());
            loop {
                self.0.set(self.0.get() + 1);
                if let Poll::Ready(result) = late.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    return result;
                }
            }
        }
    }

    /// Is there after so many polls.
    fn after(mut polls: u32) -> impl Future<Output = u32> {
        poll_fn(move |_| {
            polls = polls.saturating_sub(1);
            if polls == 0 { Poll::Ready(7) } else { Poll::Pending }
        })
    }

    /// Waits twice.
    async fn operation(waits: impl Waits) -> u32 {
        waits.on(after(3)).await + waits.on(after(1)).await
    }

    #[test]
    fn who_blocks_is_not_suspended() {
        let mut context = Context::from_waker(Waker::noop());
        let polls = Cell::new(0);
        assert_eq!(pin!(operation(Blocks::<_, 0, false>(Polls(&polls)))).poll(&mut context), Poll::Ready(14));
        assert_eq!(polls.get(), 4);
        let mut suspended = pin!(operation(Suspends));
        assert!(suspended.as_mut().poll(&mut context).is_pending());
        assert!(suspended.as_mut().poll(&mut context).is_pending());
        assert_eq!(suspended.poll(&mut context), Poll::Ready(14));
    }
}
