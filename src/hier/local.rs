// SPDX-License-Identifier: BSD-3-Clause
//! All ranks of an operation in one process: an algorithm that is written for many runs there, on data that
//! have been gathered, and its messages are copies.

use crate::endpoint::{Endpoint, Error, Rank, Result, Span, Tag};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Which stream of messages: sender, receiver, lane, phase.
type Stream = (Rank, Rank, u8, u8);

/// Messages of one stream whose other side has not come: all of one side.
#[derive(Default)]
struct Waiting {
    sends: bool,
    posts: std::collections::VecDeque<(usize, Span)>,
}

#[derive(Default)]
struct Mail {
    streams: HashMap<Stream, Waiting>,
    /// Whether a post is done, by number.
    done: Vec<bool>,
}

/// The ranks of an operation, all here. What they copy and combine, and their memory, is an endpoint's.
pub struct Local<'e, E> {
    ep: &'e E,
    mail: Mutex<Mail>,
}

impl<'e, E: Endpoint> Local<'e, E> {
    /// As many as the endpoint's communicator has.
    pub fn new(ep: &'e E) -> Local<'e, E> {
        Local { ep, mail: Mutex::default() }
    }

    /// One of them.
    pub fn rank(&self, rank: Rank) -> Player<'_, 'e, E> {
        Player { local: self, rank }
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, stream: Stream, is_send: bool, data: Span) -> Post<'_, 'e, E> {
        let mut mail = self.mail();
        let number = mail.done.len();
        mail.done.push(false);
        let waiting = mail.streams.entry(stream).or_default();
        if waiting.sends == is_send || waiting.posts.is_empty() {
            waiting.sends = is_send;
            waiting.posts.push_back((number, data));
        } else if let Some((other, there)) = waiting.posts.pop_front() {
            mail.done[number] = true;
            mail.done[other] = true;
            drop(mail);
            let (from, to) = if is_send { (data, there) } else { (there, data) };
            self.ep.copy(from, to);
        }
        Post { local: self, number }
    }
}

/// What one of them does.
pub type Run<'f> = Pin<Box<dyn Future<Output = Result<()>> + 'f>>;

/// Runs all of them to their ends; an error where they wait for each other for ever.
pub fn run(mut futures: Vec<Run<'_>>) -> Result<()> {
    let mut context = Context::from_waker(Waker::noop());
    // Each time round at least one gets on: a message has two ends.
    let most = futures.len().saturating_mul(futures.len()).saturating_add(64);
    for _ in 0..most {
        let mut result = Ok(());
        futures.retain_mut(|future| match future.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(end) => {
                result = result.and(end);
                false
            }
        });
        result?;
        if futures.is_empty() {
            return Ok(());
        }
    }
    Err(Error::Peer)
}

/// One of the ranks.
pub struct Player<'l, 'e, E> {
    local: &'l Local<'e, E>,
    rank: Rank,
}

/// A message of theirs.
pub struct Post<'l, 'e, E> {
    local: &'l Local<'e, E>,
    number: usize,
}

impl<E: Endpoint> Future for Post<'_, '_, E> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        match self.local.mail().done.get(self.number) {
            Some(true) => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }
}

impl<'e, E: Endpoint> Endpoint for Player<'_, 'e, E> {
    type Post<'a>
        = Post<'a, 'e, E>
    where
        Self: 'a;
    type Temp<'a>
        = E::Temp<'a>
    where
        Self: 'a;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.local.ep.size()
    }

    fn send(&self, to: Rank, tag: Tag, data: Span) -> Post<'_, 'e, E> {
        self.local.post((self.rank, to, tag.lane, tag.phase), true, data)
    }

    fn recv(&self, from: Rank, tag: Tag, data: Span) -> Post<'_, 'e, E> {
        self.local.post((from, self.rank, tag.lane, tag.phase), false, data)
    }

    fn reduce_units(&self, left: Span, right: Span) {
        self.local.ep.reduce_units(left, right);
    }

    fn copy_units(&self, from: Span, to: Span) {
        self.local.ep.copy_units(from, to);
    }

    fn note(&self, error: Error) {
        self.local.ep.note(error);
    }

    fn noted(&self) -> Result<()> {
        self.local.ep.noted()
    }

    fn temp(&self, units: usize) -> Result<E::Temp<'_>> {
        self.local.ep.temp(units)
    }
}
