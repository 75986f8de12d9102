// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood operations: the edges within a node through its shared memory, the others by messages, at
//! the same time.

use crate::endpoint::Result;
use crate::shm::exec::node::Node;
use crate::shm::protocol::turn::Turn;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

/// Runs `within`, the edges within the caller's node, where that has shared memory for them, and `messages`
/// for the others; else `messages` for all, which it is told by `false`.
pub async fn neighbor<'n, W, M>(
    node: Option<Node<'n>>,
    within: impl FnOnce(Turn<'n>) -> W,
    messages: impl FnOnce(bool) -> M,
) -> Result<()>
where
    W: Future<Output = Result<()>>,
    M: Future<Output = Result<()>>,
{
    let turn = match node {
        // Nobody knows how long others' blocks are.
        Some(node) => node.open(0, usize::MAX).await.transpose(),
        None => None,
    };
    match turn {
        Some(turn) => side_by_side(pin!(messages(true)), pin!(async { within(turn?).await })).await,
        None => messages(false).await,
    }
}

/// Runs both to their ends: others may be reading the user's memory, or wait for messages.
pub(super) async fn side_by_side(
    mut first: Pin<&mut impl Future<Output = Result<()>>>,
    mut second: Pin<&mut impl Future<Output = Result<()>>>,
) -> Result<()> {
    let mut ends = [None; 2];
    poll_fn(|context| {
        if ends[0].is_none()
            && let Poll::Ready(end) = first.as_mut().poll(context)
        {
            ends[0] = Some(end);
        }
        if ends[1].is_none()
            && let Poll::Ready(end) = second.as_mut().poll(context)
        {
            ends[1] = Some(end);
        }
        match ends {
            [Some(first), Some(second)] => Poll::Ready(first.and(second)),
            _ => Poll::Pending,
        }
    })
    .await
}
