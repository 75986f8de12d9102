// SPDX-License-Identifier: BSD-3-Clause
//! Posts, matching, delivery, and the set of enabled actions: all that the ranks of a run share.

mod buffers;
mod carried;

use super::gateways::{Gateways, Next};
use super::memory::POISON;
use super::region::{PostId, Regions};
use super::{Access, Bias, Config, Failure, Posted, Rng, Side, Stats, UnitBuffer, UnitType};
use crate::endpoint::{Error, MAX_LANES, PHASES, Rank, Span, Tag};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

/// What the scheduler may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Poll a rank.
    Poll(Rank),
    /// Deliver the message that this receive matched.
    Deliver(PostId),
    /// Report this send done.
    Finish(PostId),
    /// Move a frame between a rank and its gateway.
    Gateway(Next),
}

/// A send or receive that was posted.
pub(super) struct Post {
    /// How failures name it.
    pub(super) posted: Posted,
    /// Its memory.
    span: Span,
    /// Of an eager send until delivery: its data.
    data: Option<Vec<u8>>,
    /// The send that this receive matched.
    partner: PostId,
    /// Of a receive: the length of its message.
    sent: usize,
    /// The layer below is done with it.
    done: bool,
    /// The rank has seen that: it is no longer in flight.
    seen: bool,
    /// A send's place on the critical path, see [`Stats::rounds`]. Of a delivered receive, that of its
    /// message.
    round: u32,
    /// The same for [`Stats::port_rounds`].
    port_round: u32,
    waker: Option<Waker>,
}

/// Unmatched posts of one (source, destination, lane, phase). One of the two is empty.
#[derive(Default)]
struct Channel {
    sends: VecDeque<PostId>,
    recvs: VecDeque<PostId>,
}

/// What the run knows of a rank.
#[derive(Default)]
pub(super) struct RankState {
    /// A poll is enabled.
    queued: bool,
    /// Its future was polled once.
    started: bool,
    /// Its future returned.
    pub(super) finished: bool,
    /// Why its operation fails.
    pub(super) noted: Option<Error>,
    in_flight: usize,
    regions: Regions,
    /// Highest message seen to arrive, on the critical path.
    round: u32,
    /// The same with one send per round, and the last send.
    port_round: u32,
    temp_units: usize,
    /// Temporary buffers that were given back: they stay memory until the run ends.
    pool: Vec<UnitBuffer>,
}

/// Whether two ranks may have messages with each other.
pub(super) type Allowed = dyn Fn(Rank, Rank) -> bool + Send + Sync;

/// The state of a run.
pub(super) struct State {
    pub(super) unit: UnitType,
    /// Whether two ranks may have messages, where not all may.
    pub(super) allowed: Option<Arc<Allowed>>,
    /// Where some messages go by gateways.
    pub(super) gateways: Option<Gateways>,
    pub(super) config: Config,
    pub(super) rng: Rng,
    pub(super) stats: Stats,
    pub(super) ranks: Vec<RankState>,
    pub(super) posts: Vec<Post>,
    channels: HashMap<(Rank, Rank, u8, u8), Channel>,
    ready: VecDeque<Action>,
    /// Actions that the bias puts last.
    deferred: VecDeque<Action>,
    /// The first rule broken.
    pub(super) failure: Option<Failure>,
    /// What was dropped in flight: a failure unless the rank was returning an error or panicking just then.
    pub(super) dropped: Option<Failure>,
    /// The run is over: nothing that happens now counts.
    pub(super) closed: bool,
}

impl State {
    /// A run of `size` ranks, none of them started.
    pub(super) fn new(size: u32, unit: UnitType, seed: u64, config: Config) -> State {
        let count = size as usize;
        let mut state = State {
            unit,
            allowed: None,
            gateways: None,
            config,
            rng: Rng::new(seed),
            stats: Stats::new(count),
            ranks: std::iter::repeat_with(RankState::default).take(count).collect(),
            posts: Vec::new(),
            channels: HashMap::new(),
            ready: VecDeque::new(),
            deferred: VecDeque::new(),
            failure: None,
            dropped: None,
            closed: false,
        };
        (0..size).for_each(|rank| state.wake(rank));
        state
    }

    /// Notes a broken rule; the first one counts.
    pub(super) fn fail(&mut self, failure: Failure) {
        if !self.closed && self.failure.is_none() {
            self.failure = Some(failure);
        }
    }

    /// Notes why a rank's operation fails; the first error counts.
    pub(super) fn note(&mut self, rank: Rank, error: Error) {
        self.ranks[rank as usize].noted.get_or_insert(error);
    }

    /// Enables an action.
    fn enable(&mut self, action: Action) {
        let rank = match action {
            Action::Poll(rank) => rank,
            Action::Deliver(post) | Action::Finish(post) => self.posts[post].posted.rank,
            Action::Gateway(Next::Carry(rank) | Next::Take(rank)) => rank,
        };
        let last = match self.config.bias {
            Bias::Starve(victim) => rank == victim,
            Bias::Late(victim) => rank == victim && !self.ranks[rank as usize].started,
            Bias::Random | Bias::Fifo | Bias::Lifo => false,
        };
        if last { self.deferred.push_back(action) } else { self.ready.push_back(action) }
    }

    /// Enables polling a rank.
    pub(super) fn wake(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank as usize];
        if !self.closed && !state.queued && !state.finished {
            state.queued = true;
            self.enable(Action::Poll(rank));
        }
    }

    /// Takes the next action out of the enabled ones.
    pub(super) fn next(&mut self) -> Option<Action> {
        if self.config.spurious > 0 && !self.ready.is_empty() && self.rng.chance(self.config.spurious) {
            let rank = self.rng.below(self.ranks.len());
            if self.ranks[rank].started && !self.ranks[rank].finished {
                return Some(Action::Poll(rank as Rank));
            }
        }
        let leak = matches!(self.config.bias, Bias::Starve(_)) && !self.deferred.is_empty() && self.rng.chance(2);
        let from = if self.ready.is_empty() || leak { &mut self.deferred } else { &mut self.ready };
        let action = match (from.len(), self.config.bias) {
            (0, _) => None,
            (_, Bias::Fifo) if !self.rng.chance(32) => from.pop_front(),
            (_, Bias::Lifo) if !self.rng.chance(32) => from.pop_back(),
            (len, _) => from.swap_remove_back(self.rng.below(len)),
        }?;
        if let Action::Poll(rank) = action {
            let state = &mut self.ranks[rank as usize];
            (state.queued, state.started) = (false, true);
        }
        Some(action)
    }

    /// Checks and posts a message; `None` when it breaks a rule.
    pub(super) fn post(&mut self, rank: Rank, side: Side, peer: Rank, tag: Tag, span: Span) -> Option<PostId> {
        let posted = Posted { rank, side, peer, tag, units: span.len(), matched: false };
        let size = self.ranks.len() as u32;
        if self.closed {
            return None;
        } else if peer >= size {
            self.fail(Failure::RankRange { post: posted, size });
        } else if peer == rank {
            self.fail(Failure::ToSelf { post: posted });
        } else if self.allowed.as_ref().is_some_and(|allowed| !allowed(rank, peer)) {
            self.fail(Failure::Apart { post: posted });
        } else if tag.lane >= MAX_LANES || tag.phase >= PHASES {
            self.fail(Failure::TagRange { post: posted });
        }
        self.access(rank, if side == Side::Send { Access::Send } else { Access::Recv }, span);
        if self.failure.is_some() {
            return None;
        }
        let (id, hull, me) = (self.posts.len(), self.unit.hull(span), &mut self.ranks[rank as usize]);
        me.in_flight += 1;
        let (mut round, mut port_round) = (0, 0);
        if side == Side::Send {
            me.regions.add_send(hull, id);
            me.port_round += 1;
            (round, port_round) = (me.round + 1, me.port_round);
        } else {
            me.regions.add_recv(hull, id);
            // SAFETY: who made the span promised valid memory; nobody else uses it, by the check of access
            // above.
            unsafe { self.unit.scatter(&vec![POISON; span.len() * self.unit.size], span) };
        }
        self.posts.push(Post {
            posted,
            span,
            data: None,
            partner: id,
            sent: 0,
            done: false,
            seen: false,
            round,
            port_round,
            waker: None,
        });
        if self.gateways.as_ref().is_some_and(|gateways| gateways.join(rank, peer)) {
            self.pair(id, true);
            self.post_by_gateway(id, span);
            return Some(id);
        }
        if side == Side::Send && self.rng.chance(self.config.eager) {
            // SAFETY: who made the span promised valid memory; no receive writes it, by the check of access
            // above.
            self.posts[id].data = Some(unsafe { self.unit.gather(span) });
            self.finish_now_or_later(id);
        }
        self.pair(id, false);
        Some(id)
    }

    /// Matches a new post with the oldest one of the other side, or queues it.
    fn pair(&mut self, id: PostId, by_gateway: bool) {
        let Posted { rank, side, peer, tag, .. } = self.posts[id].posted;
        let (from, to) = if side == Side::Send { (rank, peer) } else { (peer, rank) };
        let channel = self.channels.entry((from, to, tag.lane, tag.phase)).or_default();
        let (mine, other) = match side {
            Side::Send => (&mut channel.sends, &mut channel.recvs),
            Side::Recv => (&mut channel.recvs, &mut channel.sends),
        };
        let Some(found) = other.pop_front() else {
            mine.push_back(id);
            return;
        };
        let (send, recv) = if side == Side::Send { (id, found) } else { (found, id) };
        self.posts[send].posted.matched = true;
        self.posts[recv].posted.matched = true;
        self.posts[recv].partner = send;
        self.posts[recv].sent = self.posts[send].posted.units;
        let (sent, expected) = (self.posts[send].posted, self.posts[recv].posted);
        let has_failed = self.ranks[sent.rank as usize].noted.is_some();
        if sent.units != expected.units && !has_failed && !self.config.lengths_may_differ {
            self.fail(Failure::Length { send: sent, recv: expected });
        } else if !by_gateway {
            self.enable(Action::Deliver(recv));
        }
    }

    /// Delivers the message that a receive matched; returns who waits for what is done now.
    pub(super) fn deliver(&mut self, recv: PostId) -> [Option<Waker>; 2] {
        let send = self.posts[recv].partner;
        let (from, to) = (self.posts[send].span, self.posts[recv].span);
        let eager = self.posts[send].data.take();
        let rendezvous = eager.is_none();
        let data = eager.unwrap_or_else(|| {
            // SAFETY: the send is not done, so its rank's future lives and keeps the memory valid and
            // unwritten, or the run would have failed before.
            unsafe { self.unit.gather(from) }
        });
        // SAFETY: the receive is not done, so its rank's future lives and keeps the memory valid and for it
        // alone.
        let before = unsafe { self.unit.gather(to) };
        if before.iter().any(|&byte| byte != POISON) {
            self.fail(Failure::Overwritten { post: self.posts[recv].posted });
        }
        let fits = data.len().min(to.len() * self.unit.size);
        // SAFETY: as above.
        unsafe { self.unit.scatter(&data[..fits], to.slice(0..fits / self.unit.size.max(1))) };
        [self.arrived(recv), if rendezvous { self.finish_now_or_later(send) } else { None }]
    }

    /// Reports a send done whose data left, or enables that for later.
    fn finish_now_or_later(&mut self, send: PostId) -> Option<Waker> {
        if self.rng.chance(self.config.lazy_done) {
            self.enable(Action::Finish(send));
            None
        } else {
            self.finish(send)
        }
    }

    /// Marks a post done; returns who waits for it.
    pub(super) fn finish(&mut self, id: PostId) -> Option<Waker> {
        self.posts[id].done = true;
        self.posts[id].waker.take()
    }

    /// Whether a post is done; where it is, its rank has seen it now, else `waker` is woken.
    pub(super) fn poll_post(&mut self, id: PostId, waker: &Waker) -> bool {
        let Some(post) = self.posts.get_mut(id) else { return false };
        if !post.done {
            post.waker = Some(waker.clone());
            return false;
        }
        if !post.seen {
            post.seen = true;
            let hull = self.unit.hull(post.span);
            let me = &mut self.ranks[post.posted.rank as usize];
            me.in_flight -= 1;
            match post.posted.side {
                Side::Send => me.regions.remove_send(hull, id),
                Side::Recv => {
                    match post.sent {
                        units if units == post.posted.units => {}
                        units if units == 0 || post.posted.units == 0 => drop(me.noted.get_or_insert(Error::Peer)),
                        _ => drop(me.noted.get_or_insert(Error::Lengths)),
                    }
                    me.regions.remove_recv(hull);
                    me.round = me.round.max(post.round);
                    me.port_round = me.port_round.max(post.port_round);
                }
            }
        }
        true
    }

    /// Notes that something in flight was dropped.
    fn drop_in_flight(&mut self, failure: Failure) {
        if !self.closed && self.dropped.is_none() {
            self.dropped = Some(failure);
        }
    }

    /// Notes that a post's future was dropped.
    pub(super) fn drop_post(&mut self, id: PostId) {
        if let Some(Post { posted, seen: false, .. }) = self.posts.get(id) {
            self.drop_in_flight(Failure::Dropped { post: *posted });
        }
    }

    /// Cancels a rank's receives that no send has matched.
    pub(super) fn cancel(&mut self, rank: Rank) {
        for channel in self.channels.values_mut() {
            channel.recvs.retain(|&recv| self.posts[recv].posted.rank != rank);
        }
    }

    /// Posts still in flight of a rank.
    pub(super) fn in_flight(&self, rank: Rank) -> usize {
        self.ranks[rank as usize].in_flight
    }

    /// The posts in flight, by rank in the order of posting.
    pub(super) fn pending(&self) -> Vec<Posted> {
        let mut pending: Vec<Posted> = self.posts.iter().filter(|post| !post.seen).map(|post| post.posted).collect();
        pending.sort_by_key(|post| post.rank);
        pending
    }

    /// The sends that their sender saw done and that nobody received.
    pub(super) fn unreceived(&self) -> Vec<Posted> {
        let left = |post: &&Post| post.posted.side == Side::Send && post.seen && !post.posted.matched;
        self.posts.iter().filter(left).map(|post| post.posted).collect()
    }

    /// The ranks that have not returned.
    pub(super) fn running(&self) -> Vec<Rank> {
        (0..self.ranks.len() as Rank).filter(|&rank| !self.ranks[rank as usize].finished).collect()
    }
}
