// SPDX-License-Identifier: BSD-3-Clause
//! Building a world, and the scheduler's loop.

#![forbid(unsafe_code)]

use super::gateways::{Gateways, Next};
use super::host::{RankWaker, Reduce, Shared};
use super::state::{Action, Allowed, State};
use super::{Config, Failed, Failure, Rng, SimEndpoint, Stats, UnitType};
use crate::endpoint::{Error, Rank, Result as OpResult};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A simulated job, of which any number of runs can be made.
///
/// The units are bytes unless [`unit`](World::unit) says otherwise, and [`reduce`](World::reduce) says what
/// reducing means; without it, it keeps the left operand.
///
/// ```
/// use coll_rust::endpoint::{Endpoint, Tag};
/// use coll_rust::sim::{UnitBuffer, UnitType, World};
///
/// let buffers = [UnitBuffer::with(UnitType::BYTE, b"data"), UnitBuffer::with(UnitType::BYTE, b"none")];
/// let spans = buffers.each_ref().map(UnitBuffer::span);
/// let tag = Tag { lane: 0, phase: 0, level: 0 };
/// let stats = World::new(2).run_seed(7, |ep| async move {
///     let mine = spans[ep.rank() as usize];
///     if ep.rank() == 0 { ep.send(1, tag, mine).await } else { ep.recv(0, tag, mine).await }
/// })?;
/// assert_eq!(buffers[1].data(), b"data");
/// assert_eq!((stats.total.messages, stats.rounds), (1, 1));
/// # Ok::<(), coll_rust::sim::Failed>(())
/// ```
#[derive(Clone)]
pub struct World {
    size: u32,
    unit: UnitType,
    reduce: Arc<Reduce>,
    allowed: Option<Arc<Allowed>>,
    through: Option<Arc<Allowed>>,
}

impl World {
    /// A job of `size` ranks.
    pub fn new(size: u32) -> World {
        let reduce = Arc::new(|left: &[u8], right: &mut [u8]| right.copy_from_slice(left));
        World { size, unit: UnitType::BYTE, reduce, allowed: None, through: None }
    }

    /// The layout of the operation's unit.
    pub fn unit(self, unit: UnitType) -> World {
        World { unit, ..self }
    }

    /// Which ranks may have messages with each other, where not all may.
    pub fn only(self, allowed: impl Fn(Rank, Rank) -> bool + Send + Sync + 'static) -> World {
        World { allowed: Some(Arc::new(allowed)), ..self }
    }

    /// Which ranks have their messages with each other through gateways: as those of the component, by
    /// [`Mail`](crate::relay::mail::Mail).
    pub fn through(self, apart: impl Fn(Rank, Rank) -> bool + Send + Sync + 'static) -> World {
        World { through: Some(Arc::new(apart)), ..self }
    }

    /// How a unit on the left is combined into one on the right: `right = left ⊕ right`. Both have the data
    /// bytes of one unit.
    pub fn reduce(self, reduce: impl Fn(&[u8], &mut [u8]) + Send + Sync + 'static) -> World {
        World { reduce: Arc::new(reduce), ..self }
    }

    /// Runs with a policy drawn from the seed: what a property test calls for many seeds.
    pub fn run_seed<F, Fut>(&self, seed: u64, rank: F) -> Result<Stats, Failed>
    where
        F: FnMut(SimEndpoint) -> Fut,
        Fut: Future<Output = OpResult<()>>,
    {
        self.run(seed, Config::from_seed(seed, self.size), rank)
    }

    /// Runs `rank` for every rank until all have returned, or until a rule is broken.
    pub fn run<F, Fut>(&self, seed: u64, config: Config, mut rank: F) -> Result<Stats, Failed>
    where
        F: FnMut(SimEndpoint) -> Fut,
        Fut: Future<Output = OpResult<()>>,
    {
        self.ends(seed, config, &mut rank).map(|(stats, _)| stats)
    }

    /// As [`run`](World::run), where ranks may give different lengths for the same data: how each rank ends,
    /// `None` where it waits for ever. Where memory is used against the rules the run fails.
    pub fn judge<F, Fut>(&self, seed: u64, config: Config, mut rank: F) -> Result<Vec<Option<OpResult<()>>>, Failed>
    where
        F: FnMut(SimEndpoint) -> Fut,
        Fut: Future<Output = OpResult<()>>,
    {
        self.ends(seed, Config { lengths_may_differ: true, ..config }, &mut rank).map(|(_, ends)| ends)
    }

    fn ends<F, Fut>(&self, seed: u64, config: Config, rank: &mut F) -> Result<(Stats, Vec<End>), Failed>
    where
        F: FnMut(SimEndpoint) -> Fut,
        Fut: Future<Output = OpResult<()>>,
    {
        let mut state = State::new(self.size, self.unit, seed, config);
        state.allowed = self.allowed.clone();
        // Few bytes, so that short messages too are offered, and come in pieces.
        let most = [7, 64, usize::MAX][Rng::new(seed ^ 0x6d6f_7374).below(3)];
        state.gateways = self.through.clone().map(|through| Gateways::new(self.size, through, most));
        let shared = Arc::new(Shared::new(state, Arc::clone(&self.reduce)));
        let mut futures = Vec::with_capacity(self.size as usize);
        let mut wakers = Vec::with_capacity(self.size as usize);
        for number in 0..self.size {
            let endpoint = SimEndpoint { rank: number, size: self.size, shared: Arc::clone(&shared) };
            futures.push(Some(Box::pin(rank(endpoint))));
            wakers.push(Waker::from(Arc::new(RankWaker { rank: number, shared: Arc::clone(&shared) })));
        }
        let ends = vec![None; self.size as usize];
        let result = Run { shared: &shared, futures, wakers, ends, running: self.size }.go();
        // The futures are gone. Wakers hold the state that holds them: part them.
        let mut state = shared.lock();
        let posts = std::mem::take(&mut state.posts);
        let stats = std::mem::take(&mut state.stats);
        drop(state);
        drop(posts);
        match result {
            Ok(ends) => Ok((stats, ends)),
            Err(failure) => Err(Failed { seed, config, step: stats.steps, failure: Box::new(failure) }),
        }
    }
}

/// How a rank ended, if it has.
type End = Option<OpResult<()>>;

/// A run under way.
struct Run<'a, Fut> {
    shared: &'a Shared,
    futures: Vec<Option<Pin<Box<Fut>>>>,
    wakers: Vec<Waker>,
    ends: Vec<End>,
    /// Ranks that have not returned.
    running: u32,
}

impl<Fut: Future<Output = OpResult<()>>> Run<'_, Fut> {
    /// Runs to the end; afterwards nothing in flight is accessed any more, and the futures are dropped.
    fn go(mut self) -> Result<Vec<End>, Failure> {
        let result = loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break Ok(std::mem::take(&mut self.ends)),
                Err(failure) => break Err(failure),
            }
        };
        self.shared.lock().closed = true;
        result
    }

    /// Takes one step; false when all ranks have returned.
    fn step(&mut self) -> Result<bool, Failure> {
        match self.choose()? {
            None => return Ok(false),
            Some(Action::Poll(rank)) => self.poll(rank)?,
            Some(Action::Deliver(post)) => {
                let woken = self.shared.lock().deliver(post);
                woken.into_iter().flatten().for_each(Waker::wake);
            }
            Some(Action::Gateway(next)) => {
                let woken = self.shared.lock().carry(next);
                woken.into_iter().for_each(Waker::wake);
            }
            Some(Action::Finish(post)) => {
                let woken = self.shared.lock().finish(post);
                woken.into_iter().for_each(Waker::wake);
            }
        }
        Ok(true)
    }

    /// The next action; none when all ranks have returned.
    fn choose(&self) -> Result<Option<Action>, Failure> {
        let mut state = self.shared.lock();
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let differ = state.config.lengths_may_differ;
        if self.running == 0 && differ {
            return Ok(None);
        }
        if self.running == 0 {
            let sends = state.unreceived();
            return if sends.is_empty() { Ok(None) } else { Err(Failure::Unmatched { sends }) };
        }
        if state.stats.steps >= state.config.max_steps {
            return Err(Failure::StepLimit { steps: state.stats.steps, ranks: state.running() });
        }
        let Some(action) = state.next() else {
            if differ {
                return Ok(None);
            }
            let (ranks, pending, unreceived) = (state.running(), state.pending(), state.unreceived());
            return Err(Failure::Deadlock { ranks, pending, unreceived });
        };
        let (kind, what) = match action {
            Action::Poll(rank) => (1, u64::from(rank)),
            Action::Deliver(post) => (2, post as u64),
            Action::Finish(post) => (3, post as u64),
            Action::Gateway(Next::Carry(rank)) => (4, u64::from(rank)),
            Action::Gateway(Next::Take(rank)) => (5, u64::from(rank)),
        };
        state.stats.step(kind, what);
        Ok(Some(action))
    }

    /// Polls a rank, and judges how that ended.
    fn poll(&mut self, rank: Rank) -> Result<(), Failure> {
        let slot = &mut self.futures[rank as usize];
        let mut cx = Context::from_waker(&self.wakers[rank as usize]);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let polled = slot.as_mut().map_or(Poll::Pending, |future| future.as_mut().poll(&mut cx));
            if polled.is_ready() {
                // What the future still owns goes while the rank can be blamed for it.
                *slot = None;
            }
            polled
        }));
        let mut state = self.shared.lock();
        let first = state.failure.take();
        let dropped = state.dropped.take();
        let broken = match &polled {
            // What a rank drops when it fails is no second failure.
            Err(_) | Ok(Poll::Ready(Err(_))) => first,
            Ok(_) => first.or(dropped),
        };
        if let Some(failure) = broken {
            return Err(failure);
        }
        let noted = state.ranks[rank as usize].noted.map_or(Ok(()), Err);
        if state.config.lengths_may_differ
            && let Some(end) = end(&polled)
        {
            state.cancel(rank);
            state.ranks[rank as usize].finished = true;
            self.ends[rank as usize] = Some(noted.and(end));
            self.running -= 1;
            return Ok(());
        }
        match polled.map(|polled| polled.map(|end| noted.and(end))) {
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Err(Failure::Panic { rank, message: text.unwrap_or_else(|| "(no text)".to_owned()) })
            }
            Ok(Poll::Ready(Err(error))) => Err(Failure::Rank { rank, error }),
            Ok(Poll::Ready(Ok(()))) => {
                if state.in_flight(rank) > 0 {
                    let posts = state.pending().into_iter().filter(|post| post.rank == rank).collect();
                    return Err(Failure::Forgotten { rank, posts });
                }
                state.ranks[rank as usize].finished = true;
                self.ends[rank as usize] = Some(Ok(()));
                self.running -= 1;
                Ok(())
            }
            Ok(Poll::Pending) => Ok(()),
        }
    }
}

/// How a rank ended whose lengths may not be those of others; `None`: it has not, or has panicked for another
/// reason.
fn end(polled: &std::thread::Result<Poll<OpResult<()>>>) -> End {
    match polled {
        Ok(Poll::Pending) => None,
        Ok(Poll::Ready(end)) => Some(*end),
        Err(panic) => {
            let text = panic.downcast_ref::<String>()?;
            text.starts_with("span of ").then_some(Err(Error::Lengths))
        }
    }
}
