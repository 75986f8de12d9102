// SPDX-License-Identifier: BSD-3-Clause
//! The way of one job to one other gateway: what was sent and not acknowledged, what came and is not
//! delivered, and the connection there is, if any. [`dial`](crate::dial) makes connections,
//! [`session`](crate::session) uses them.

use crate::counters::count;
use crate::job::{Job, Shared, lock};
use crate::outgoing::Answer;
use crate::state::{Phase, State};
use crate::wire::{self, Head, Kind};
use coll_rust::relay::frame::ALL;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tracing::warn;

/// See the module.
pub struct Link {
    /// The other cluster.
    pub peer: String,
    /// Whether this cluster's name comes first: connections that this gateway makes are preferred then.
    pub first: bool,
    /// The job; gone when the job is forgotten.
    pub job: Weak<Job>,
    pub(crate) shared: Weak<Shared>,
    pub(crate) state: Mutex<State>,
    held: Arc<AtomicU64>,
    /// Something is to be sent.
    pub wake: Notify,
    /// Senders may ask again.
    pub space: Notify,
    /// The connection has ended.
    pub down: Notify,
}

/// What to do next for a link without a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Todo {
    /// The job has been forgotten.
    Stop,
    /// There is a connection, or none is wanted.
    Nothing,
    /// Connect.
    Dial,
}

impl Link {
    /// Without a connection yet.
    pub fn new(shared: &Arc<Shared>, job: &Arc<Job>, peer: &str) -> Arc<Link> {
        let config = &shared.config;
        let state = Mutex::new(State::new(config.share(), config.processes));
        let first = config.cluster.as_str() < peer;
        let (job, held, shared) = (Arc::downgrade(job), job.held.clone(), Arc::downgrade(shared));
        let (wake, space, down) = (Notify::new(), Notify::new(), Notify::new());
        Arc::new(Link { peer: peer.to_owned(), first, job, shared, state, held, wake, space, down })
    }

    pub(crate) fn account(&self, state: &mut State) {
        let now = state.out.held() + state.incoming.held();
        let held = if now >= state.counted {
            self.held.fetch_add(now - state.counted, Relaxed) + (now - state.counted)
        } else {
            self.held.fetch_sub(state.counted - now, Relaxed) - (state.counted - now)
        };
        state.counted = now;
        if let Some(shared) = self.shared.upgrade() {
            shared.counters.peak.fetch_max(held, Relaxed);
        }
    }

    fn wake_all(&self) {
        self.wake.notify_waiters();
        self.space.notify_waiters();
        self.down.notify_one();
    }

    /// Whether there is a session.
    pub fn is_up(&self) -> bool {
        lock(&self.state).connection.as_ref().is_some_and(|connection| connection.resumed)
    }

    /// Whether the other gateway is there, or expected.
    pub fn is_open(&self) -> bool {
        lock(&self.state).phase == Phase::Open
    }

    /// Whether all that was sent has been acknowledged.
    pub fn drained(&self) -> bool {
        lock(&self.state).out.drained()
    }

    /// Why it is lost, if it is.
    pub fn lost(&self) -> Option<String> {
        match &lock(&self.state).phase {
            Phase::Lost(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Processes there that have crashed.
    pub fn crashed(&self) -> Vec<(u64, String)> {
        let state = lock(&self.state);
        let crashed = state.gone.iter().filter(|(_, (crashed, _))| *crashed);
        crashed.map(|(&peer, (_, text))| (peer, text.clone())).collect()
    }

    /// A process here wants to send. An error says who cannot be reached, and why.
    pub fn reserve(&self, destination: u64, payload: usize) -> Result<bool, (u64, String)> {
        let mut state = lock(&self.state);
        match &state.phase {
            Phase::Lost(text) | Phase::Ended(text) => return Err((ALL, text.clone())),
            Phase::Open => {}
        }
        if let Some((_, text)) = state.gone.get(&destination) {
            return Err((destination, text.clone()));
        }
        let answer = state.out.reserve(destination, payload);
        self.account(&mut state);
        match answer {
            Answer::Yes => Ok(true),
            Answer::Wait => Ok(false),
            Answer::TooMany => {
                let peer = &self.peer;
                Err((destination, format!("the gateway of {peer} serves no more processes: raise `processes` there")))
            }
        }
    }

    /// What was reserved is not needed.
    pub fn release(&self, destination: u64, payload: usize) {
        let mut state = lock(&self.state);
        state.out.release(destination, payload);
        self.account(&mut state);
        drop(state);
        self.space.notify_waiters();
    }

    /// The frame for which was reserved.
    pub fn push(&self, bytes: Vec<u8>, payload: usize) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open {
            state.out.push(bytes, payload);
            drop(state);
            self.wake.notify_waiters();
        }
    }

    /// A process here has left or is back, which the other gateway is told.
    pub fn say_left(&self, process: u64, number: u64, why: &str) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open {
            let head = Head { source: process, number, ..Head::new(Kind::Left, 0) };
            state.out.push_unpaid(wire::encode(head, why.as_bytes()));
            drop(state);
            self.wake.notify_waiters();
        }
    }

    /// A process here is connected: it may be sent to. False if there are too many.
    pub fn expect(&self, process: u64) -> bool {
        let fits = lock(&self.state).incoming.open(process);
        self.wake.notify_waiters();
        fits
    }

    /// A process here has got a frame, or will never.
    pub fn delivered(&self, process: u64, payload: usize, epoch: u64) {
        let mut state = lock(&self.state);
        if state.epoch != epoch {
            return;
        }
        let tell = state.incoming.consume(process, payload);
        self.account(&mut state);
        drop(state);
        if tell {
            self.wake.notify_waiters();
        }
    }

    /// A connection has ended.
    pub fn disconnected(&self, id: u64, reason: &str) {
        let mut state = lock(&self.state);
        if state.current(id).is_some() {
            state.drop_connection();
            state.reason = reason.to_owned();
            drop(state);
            warn!(peer = self.peer, reason, "session has ended");
            self.down.notify_one();
        }
    }

    /// No connection could be made.
    pub fn failed(&self, reason: &str) {
        lock(&self.state).reason = reason.to_owned();
    }

    /// What to do now; gives up a silent connection, and after `patience` the link.
    pub fn look(&self, patience: Duration, keep_alive: Duration) -> Todo {
        let mut state = lock(&self.state);
        if state.over && state.connection.is_none() {
            return Todo::Stop;
        }
        if state.phase != Phase::Open || state.over {
            return Todo::Nothing;
        }
        if state.connection.as_ref().is_some_and(|connection| connection.heard.elapsed() > 3 * keep_alive) {
            state.drop_connection();
            state.reason = "it did not answer any more".to_owned();
            warn!(peer = self.peer, "session has been silent too long");
        }
        if state.heard.elapsed() > patience {
            let text = format!(
                "the gateway of cluster {} has not been heard of for {} s: {}",
                self.peer,
                patience.as_secs_f64(),
                state.reason
            );
            drop(state);
            self.lose(&text);
            return Todo::Nothing;
        }
        // The other side is given time to connect, if its connections are the preferred ones.
        let grace = if self.first { Duration::ZERO } else { keep_alive.min(Duration::from_millis(500)) };
        if state.connection.is_none() && state.cut.elapsed() >= grace { Todo::Dial } else { Todo::Nothing }
    }

    /// How long until it is given up, unless the other gateway is heard of.
    pub fn time_left(&self, patience: Duration) -> Duration {
        patience.saturating_sub(lock(&self.state).heard.elapsed())
    }

    pub(crate) fn leave_phase(&self, phase: Phase) -> bool {
        let mut state = lock(&self.state);
        if state.phase != Phase::Open {
            return false;
        }
        state.phase = phase;
        state.drop_connection();
        state.out.clear();
        self.account(&mut state);
        drop(state);
        self.wake_all();
        true
    }

    /// Gives the other cluster up, and tells the job's processes.
    pub fn lose(&self, text: &str) {
        if !self.leave_phase(Phase::Lost(text.to_owned())) {
            return;
        }
        let Some(job) = self.job.upgrade() else { return };
        warn!(job = job.label(), peer = self.peer, text, "lost");
        if let Some(shared) = self.shared.upgrade() {
            count(&shared.counters.lost);
        }
        job.tell_lost(&self.peer, ALL, text);
    }

    /// The job is forgotten here, or the gateway stops.
    pub fn end(&self, number: u64, text: &str) {
        let mut state = lock(&self.state);
        state.over = true;
        state.closing = Some((number, text.to_owned()));
        drop(state);
        self.wake_all();
    }
}
