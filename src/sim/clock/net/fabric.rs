// SPDX-License-Identifier: BSD-3-Clause
//! Messages on their way: matching, eager and rendezvous, and when each is there.
//!
//! A short message leaves when it is sent. Of a long one a request leaves; once that is there and a receive
//! is posted, the receiver fetches the data: over the network by its adapter, within a node by a system call.
//! The k-th send of a pair of ranks with a tag meets the k-th receive.

use super::super::spent::{Cause, Path};
use super::super::{Time, caches::LINE};
use super::events::{Events, What};
use super::links::Links;
use super::network::{LEVELS, Places};
use crate::endpoint::{Rank, Span, Tag};
use crate::sim::Traffic;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// No post.
const NONE: u32 = u32::MAX;
const PAGE: usize = 4096;

/// One side of a message: from, to, lane and phase.
type Channel = (Rank, Rank, u16);

/// A send or receive that was posted.
struct Post {
    channel: Channel,
    sends: bool,
    /// It is a send that never waits.
    eager: bool,
    level: u8,
    span: Span,
    /// Of a send, when the message or its request is there; of a receive, when it was posted. Of what is
    /// done, when that was.
    time: Time,
    /// How it came to that.
    path: Path,
    /// Of an eager message, where data are carried.
    data: Option<Box<[u8]>>,
    partner: u32,
    /// The next one that waits for its partner.
    next: u32,
    /// `time` is known.
    there: bool,
    done: bool,
    /// Its owner waits for it.
    waited: bool,
    /// Its owner has seen it done, or has gone.
    left: bool,
    /// It is still on its way, or an event names it.
    held: u8,
}

/// What a process spends on its side of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handling {
    /// By itself.
    pub overhead: Time,
    /// Into a buffer, or out of it.
    pub copies: Time,
}

/// All messages of a job.
pub struct Fabric<'m> {
    /// Where its ranks are.
    pub places: Places<'m>,
    links: Links,
    posts: Vec<Post>,
    free: Vec<u32>,
    /// The first and the last post that waits for its partner.
    unmatched: FxHashMap<Channel, (u32, u32)>,
    /// Until when each rank fetches data from others of its node.
    fetching: Vec<Time>,
    /// Whether messages have contents.
    carries: bool,
    /// Messages and bytes by [level](Places::level).
    pub traffic: [Traffic; LEVELS],
}

impl<'m> Fabric<'m> {
    /// Nothing is under way.
    pub fn new(places: Places<'m>, carries: bool) -> Fabric<'m> {
        let (links, fetching) = (Links::new(&places), vec![0; places.size() as usize]);
        let (posts, free, unmatched) = Default::default();
        Fabric { places, links, posts, free, unmatched, fetching, carries, traffic: Default::default() }
    }

    /// Whether a message of so many bytes leaves at once.
    fn is_eager(&self, level: usize, bytes: usize) -> bool {
        let network = self.places.network;
        bytes <= self.layer(level).map_or(network.inside.eager, |layer| network.layers[layer].messages.eager)
    }

    /// The layer of switches that a level is; `None`: it is within a node.
    fn layer(&self, level: usize) -> Option<usize> {
        level.checked_sub(LEVELS - 4)
    }

    /// What it takes to send so much, or to take it once it is there.
    pub fn handling(&self, rank: Rank, peer: Rank, bytes: usize, sends: bool) -> Handling {
        let (level, network) = (self.places.level(rank, peer), self.places.network);
        let stream = &self.places.machine.stream;
        let lines = if self.is_eager(level, bytes) { bytes.div_ceil(LINE) as Time } else { 0 };
        match self.layer(level) {
            None => Handling {
                overhead: network.inside.overhead,
                copies: lines * if sends { stream[0] } else { stream[level] },
            },
            Some(layer) => Handling {
                overhead: network.layers[layer].messages.overhead,
                copies: if sends { 0 } else { lines * stream[0] },
            },
        }
    }

    /// A rank posts its side of a message, having spent its [handling](Fabric::handling) if it sends.
    pub fn post(
        &mut self,
        events: &mut Events,
        (rank, peer, sends): (Rank, Rank, bool),
        tag: Tag,
        span: Span,
        (now, path): (Time, &Path),
    ) -> u32 {
        let bytes = span.bytes().len();
        let level = self.places.level(rank, peer);
        let channel = if sends { (rank, peer) } else { (peer, rank) };
        let channel = (channel.0, channel.1, u16::from(tag.lane) << 8 | u16::from(tag.phase));
        let mut post = Post {
            channel,
            sends,
            eager: false,
            level: level as u8,
            span,
            time: now,
            path: *path,
            data: None,
            partner: NONE,
            next: NONE,
            there: !sends,
            done: false,
            waited: false,
            left: false,
            held: 1,
        };
        let eager = self.is_eager(level, bytes);
        if sends {
            self.traffic[level].messages += 1;
            self.traffic[level].units += bytes as u64;
            post.eager = eager;
            // SAFETY: who made the span promised valid memory, which does not change until the post is done.
            post.data = (eager && self.carries).then(|| unsafe { contents(span) });
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.posts[id as usize] = post;
                id
            }
            None => {
                self.posts.push(post);
                (self.posts.len() - 1) as u32
            }
        };
        self.pair(id);
        match (sends, self.layer(level)) {
            (false, _) => self.meet(events, id),
            (true, None) => {
                let lines = self.places.network.inside.lines * self.places.machine.handover[level];
                let mut path = *path;
                path.add(Cause::Lines, lines);
                self.arrive(events, id, now + lines, path);
            }
            (true, Some(_)) => events.push(now, What::Leaves(id)),
        }
        id
    }

    /// Finds the other side, or waits for it.
    fn pair(&mut self, id: u32) {
        let Post { channel, sends, .. } = self.posts[id as usize];
        match self.unmatched.entry(channel) {
            Entry::Vacant(none) => {
                none.insert((id, id));
            }
            Entry::Occupied(mut some) => {
                let (first, last) = *some.get();
                if self.posts[first as usize].sends == sends {
                    self.posts[last as usize].next = id;
                    some.get_mut().1 = id;
                    return;
                }
                match self.posts[first as usize].next {
                    NONE => drop(some.remove()),
                    next => some.get_mut().0 = next,
                }
                self.posts[first as usize].partner = id;
                self.posts[id as usize].partner = first;
                let (one, other) = (self.posts[first as usize].span, self.posts[id as usize].span);
                assert_eq!(one.bytes().len(), other.bytes().len(), "lengths of a message {channel:?}");
            }
        }
    }

    /// A message leaves, or its data do.
    pub fn leave(&mut self, events: &mut Events, id: u32, now: Time) {
        let post = &self.posts[id as usize];
        let (from, to, _) = post.channel;
        let bytes = post.span.bytes().len();
        if post.sends {
            let bytes = if post.eager { bytes } else { 0 };
            let crossed = self.links.across(&self.places, (from, to), bytes, now);
            let path = post.path.and(&crossed.path);
            return self.arrive(events, id, crossed.done, path);
        }
        let (send, path) = (post.partner, post.path);
        let crossed = self.links.across(&self.places, (from, to), bytes, now);
        let path = path.and(&crossed.path);
        let latency = crossed.path.by[Cause::Latency as usize];
        let mut sent = path;
        sent.by[Cause::Latency as usize] -= latency;
        self.over(events, send, id, (crossed.done - latency, sent), (crossed.done, path));
    }

    fn arrive(&mut self, events: &mut Events, id: u32, time: Time, path: Path) {
        let post = &mut self.posts[id as usize];
        (post.time, post.path, post.there) = (time, path, true);
        self.meet(events, id);
    }

    /// Both sides may be there.
    fn meet(&mut self, events: &mut Events, id: u32) {
        let partner = self.posts[id as usize].partner;
        if partner == NONE {
            return;
        }
        let (send, recv) = if self.posts[id as usize].sends { (id, partner) } else { (partner, id) };
        let (one, other) = (&self.posts[send as usize], &self.posts[recv as usize]);
        if !one.there {
            return;
        }
        let (at, mut path) = match one.time >= other.time {
            true => (one.time, one.path),
            false => (other.time, other.path),
        };
        let ((from, to, _), bytes) = (one.channel, other.span.bytes().len());
        let level = usize::from(one.level);
        if one.eager {
            return self.over(events, send, recv, (one.time, one.path), (at, path));
        }
        if let Some(layer) = self.layer(level) {
            let latency = self.places.network.layers[layer].messages.latency;
            path.add(Cause::Latency, latency);
            self.posts[recv as usize].path = path;
            return events.push(at + latency, What::Leaves(recv));
        }
        let machine = self.places.machine;
        let [call, page, _] = machine.system_copy;
        let system = call + page * (bytes.div_ceil(PAGE) as Time);
        let begin = at.max(self.fetching[to as usize]) + system;
        let end = self.links.inside(&self.places, (from, to), bytes, begin);
        self.fetching[to as usize] = end;
        path.add(Cause::System, system);
        path.add(Cause::Copies, end - at - system);
        let mut told = path;
        told.add(Cause::Lines, machine.handover[level]);
        self.over(events, send, recv, (end + machine.handover[level], told), (end, path));
    }

    /// A message is there.
    fn over(&mut self, events: &mut Events, send: u32, recv: u32, sent: (Time, Path), received: (Time, Path)) {
        if self.carries && !self.posts[recv as usize].left {
            let data = self.posts[send as usize].data.take();
            let to = self.posts[recv as usize].span.bytes();
            // SAFETY: who made the spans promised valid memory, until both posts are done: that is now.
            unsafe {
                let data = data.unwrap_or_else(|| contents(self.posts[send as usize].span));
                std::ptr::copy_nonoverlapping(data.as_ptr(), to.ptr(), data.len());
            }
        }
        for (id, (time, path)) in [(send, sent), (recv, received)] {
            let post = &mut self.posts[id as usize];
            post.held -= 1;
            if !post.done {
                (post.done, post.time, post.path) = (true, time, path);
                if post.waited {
                    post.held += 1;
                    events.push(time, What::Done(id));
                }
            }
            self.release(id);
        }
    }

    /// Whether a post is done, for its owner, whose clock shows `now`. If not, an event tells when.
    pub fn poll(&mut self, events: &mut Events, id: u32, now: Time) -> bool {
        let post = &mut self.posts[id as usize];
        if post.eager || (post.done && post.time <= now) {
            post.left = true;
            self.release(id);
            return true;
        }
        if !post.waited {
            post.waited = true;
            if post.done {
                post.held += 1;
                events.push(post.time, What::Done(id));
            }
        }
        false
    }

    /// From whom a receive is, and where to; `None`: it is a send.
    pub fn received(&self, id: u32) -> Option<(Rank, Span)> {
        let post = &self.posts[id as usize];
        (!post.sends).then_some((post.channel.0, post.span))
    }

    /// The lane of a post.
    pub fn lane(&self, id: u32) -> u8 {
        (self.posts[id as usize].channel.2 >> 8) as u8
    }

    /// Whether a core copies what comes, and not an adapter.
    pub fn is_copied(&self, id: u32) -> bool {
        let post = &self.posts[id as usize];
        let level = usize::from(post.level);
        self.layer(level).is_none() || self.is_eager(level, post.span.bytes().len())
    }

    /// Who waits for a post that is done now, since when, and how it came to that.
    pub fn done(&mut self, id: u32) -> Option<(Rank, Time, Path)> {
        let post = &mut self.posts[id as usize];
        post.held -= 1;
        if post.left {
            self.release(id);
            return None;
        }
        Some((if post.sends { post.channel.0 } else { post.channel.1 }, post.time, post.path))
    }

    /// Nobody waits for it any more.
    pub fn abandon(&mut self, id: u32) {
        self.posts[id as usize].left = true;
        self.release(id);
    }

    fn release(&mut self, id: u32) {
        let post = &self.posts[id as usize];
        if post.left && post.held == 0 {
            self.free.push(id);
        }
    }

    /// Posts that have no partner, or are not done.
    pub fn pending(&self) -> usize {
        self.posts.len() - self.free.len()
    }
}

/// The bytes of a span.
///
/// # Safety
/// It is valid memory that nobody writes meanwhile.
unsafe fn contents(span: Span) -> Box<[u8]> {
    let span = span.bytes();
    let mut data = Vec::with_capacity(span.len());
    if !span.is_empty() {
        // SAFETY: by the caller's promise.
        unsafe { data.extend_from_slice(std::slice::from_raw_parts(span.ptr(), span.len())) };
    }
    data.into_boxed_slice()
}
