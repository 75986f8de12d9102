// SPDX-License-Identifier: BSD-3-Clause
//! How operations wait.

use coll_rust::endpoint::Result;
use coll_rust::shm::op::short::{self, Short};
use coll_rust::shm::protocol::turn::Turn;
use coll_rust::shm::protocol::turn::waits::Runs;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// How an operation waits.
pub trait Waits: Copy {
    /// Does one.
    fn does(self, turn: Turn<'_>, operation: impl Short) -> impl Future<Output = Result<()>>;
}

/// It is suspended.
#[derive(Clone, Copy)]
pub struct Suspends;

impl Waits for Suspends {
    async fn does(self, turn: Turn<'_>, operation: impl Short) -> Result<()> {
        short::run(turn, operation).await
    }
}

/// It blocks.
#[derive(Clone, Copy)]
pub struct Blocks<R>(pub R);

impl<R: Runs> Waits for Blocks<R> {
    async fn does(self, turn: Turn<'_>, operation: impl Short) -> Result<()> {
        match operation.fits(&turn) {
            true => short::now(turn, self.0, &operation),
            false => self.0.run(|| operation.long(turn)),
        }
    }
}

/// Runs what an operation waits for to its end, which must come.
#[derive(Clone, Copy)]
pub struct Until(pub Instant);

impl Runs for Until {
    fn run<F: Future>(self, late: impl FnOnce() -> F) -> F::Output {
        let mut late = pin!(late());
        loop {
            if let Poll::Ready(output) = late.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return output;
            }
            assert!(Instant::now() < self.0, "it waits for ever");
            std::thread::yield_now();
        }
    }
}
