// SPDX-License-Identifier: BSD-3-Clause
//! What waits for messages.

use super::HostEndpoint;
use crate::endpoint::{Error, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

/// How far a message is.
pub enum PostState {
    /// Its place in the endpoint.
    Slot(usize),
    /// It was complete at once.
    Done,
    /// It was not posted.
    Failed(Error),
    /// The messages that one was cut into.
    Several(Vec<PostState>),
}

/// Waits for one posted message.
#[must_use = "a post that is not waited for stays in flight"]
pub struct Post<'a> {
    pub(super) posted: PostState,
    pub(super) ep: &'a HostEndpoint,
}

impl PostState {
    /// Looks at it. A place is free when its message is complete, so nobody looks again; the first error is
    /// kept until all are.
    fn poll(&mut self, ep: &HostEndpoint) -> Poll<Result<()>> {
        match self {
            PostState::Slot(slot) => ep.test(*slot),
            PostState::Done => Poll::Ready(Ok(())),
            PostState::Failed(error) => Poll::Ready(Err(*error)),
            PostState::Several(parts) => {
                for part in parts.iter_mut() {
                    match part.poll(ep) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(())) => *part = PostState::Done,
                        Poll::Ready(Err(error)) => *part = PostState::Failed(error),
                    }
                }
                let first = parts.iter_mut().find(|part| !matches!(part, PostState::Done));
                first.map_or(Poll::Ready(Ok(())), |part| part.poll(ep))
            }
        }
    }
}

impl Future for Post<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let Post { posted, ep } = &mut *self;
        posted.poll(ep)
    }
}
