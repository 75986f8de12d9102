// SPDX-License-Identifier: BSD-3-Clause
//! The stream of one link: connections that take over from each other, and what goes and comes on them.

use crate::counters::count;
use crate::job::{Item, Job, lock};
use crate::link::Link;
use crate::state::{Phase, State};
use crate::wire::{self, Head, Kind, Resume};
use coll_rust::relay::frame::{self, Header};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;
use tracing::info;

/// What to say to a gateway that has connected.
pub enum Welcome {
    /// Go on: the number of the connection, how to learn that it is replaced, and the answer.
    Yes(u64, Arc<Notify>, Resume),
    /// There is another connection.
    Busy,
    /// The frame of CLOSE.
    Close(Vec<u8>),
}

fn close(number: u64, text: &str) -> Vec<u8> {
    wire::encode(Head { number, ..Head::new(Kind::Close, 0) }, text.as_bytes())
}

impl Link {
    /// This gateway has connected, and both have the key. `None` if there is a better connection by now.
    pub fn dialled(&self) -> Option<(u64, Arc<Notify>, Resume)> {
        let mut state = lock(&self.state);
        if state.phase != Phase::Open || state.over || (!self.first && state.connection.is_some()) {
            return None;
        }
        let (id, stop) = state.take_over(true);
        Some((id, stop, state.resume()))
    }

    /// The other gateway has connected, and has shown that it has the key.
    pub fn called(&self, theirs: &Resume) -> Welcome {
        let mut state = lock(&self.state);
        if let (Phase::Ended(_), true) = (&state.phase, theirs.you == [0; 16] && Some(theirs.me) != state.you) {
            info!(peer = self.peer, "the job is back there");
            let (share, most) = self.terms();
            let (numbers, counted, epoch) = (state.numbers, state.counted, state.epoch + 1);
            *state = State { numbers, counted, epoch, ..State::new(share, most) };
            self.account(&mut state);
        }
        if state.over {
            return Welcome::Close(close(0, "the job has ended"));
        }
        match &state.phase {
            Phase::Ended(text) => return Welcome::Close(close(0, text)),
            Phase::Lost(text) => return Welcome::Close(close(1, text)),
            Phase::Open => {}
        }
        if let Err(text) = state.check(theirs) {
            drop(state);
            self.lose(&text);
            return Welcome::Close(close(1, &text));
        }
        if self.first && state.connection.as_ref().is_some_and(|connection| connection.dialled) {
            return Welcome::Busy;
        }
        let (id, stop) = state.take_over(false);
        Welcome::Yes(id, stop, state.resume())
    }

    fn terms(&self) -> (u64, u64) {
        self.shared.upgrade().map_or((0, 0), |shared| (shared.config.share(), shared.config.processes))
    }

    /// Both sides have said how far they are.
    pub fn resumed(&self, id: u64, theirs: &Resume) -> Result<(), String> {
        let mut state = lock(&self.state);
        let fits = state.check(theirs);
        let again = state.you.is_some();
        let now = Instant::now();
        let Some(connection) = state.current(id) else { return Err("replaced by another connection".to_owned()) };
        (connection.resumed, connection.heard) = (true, now);
        let fits = fits.and_then(|()| {
            let resumed = state.out.resume(theirs.received, theirs.base, theirs.destinations);
            resumed.map_err(|what| format!("the gateway of {}: {what}", self.peer))
        });
        if let Err(text) = fits {
            drop(state);
            self.lose(&text);
            return Err(text);
        }
        (state.you, state.heard) = (Some(theirs.me), now);
        state.untold = 0;
        state.incoming.resume();
        self.account(&mut state);
        drop(state);
        if let Some(shared) = self.shared.upgrade() {
            count(if again { &shared.counters.resumed } else { &shared.counters.sessions });
        }
        self.space.notify_waiters();
        Ok(())
    }

    /// What to send on this connection: the frames, and whether it ends then. `None` if it is not the current
    /// one.
    pub fn batch(&self, id: u64, most: usize, alive: bool) -> Option<(Vec<u8>, bool)> {
        let mut state = lock(&self.state);
        state.current(id)?;
        let mut bytes = Vec::new();
        while let Some((destination, number)) = state.incoming.next_grant() {
            bytes.extend(Head { destination, number, ..Head::new(Kind::Grant, 0) }.encode());
        }
        state.out.send(&mut bytes, most);
        let closing = if state.out.pending() { None } else { state.closing.clone() };
        if alive || !bytes.is_empty() || state.untold >= 32 * 1024 || closing.is_some() {
            let number = state.incoming.received();
            bytes.extend(Head { number, ..Head::new(Kind::Ack, 0) }.encode());
            state.untold = 0;
        }
        if let Some((number, text)) = &closing {
            bytes.extend(close(*number, text));
        }
        Some((bytes, closing.is_some()))
    }

    /// A frame came on this connection. False if the connection is over; an error is the other side's fault.
    pub fn receive(self: &Arc<Link>, id: u64, head: &Head, payload: &[u8]) -> Result<bool, String> {
        let Some(job) = self.job.upgrade() else { return Ok(true) };
        let mut state = lock(&self.state);
        let now = Instant::now();
        let Some(connection) = state.current(id) else { return Ok(false) };
        connection.heard = now;
        state.heard = now;
        match head.kind {
            Kind::Data => {
                state.incoming.arrive(head.destination, payload.len())?;
                state.untold += wire::cost(payload.len());
                self.deliver(&mut state, &job, head, payload);
            }
            Kind::Left => {
                state.incoming.count();
                state.untold += wire::OVERHEAD;
                return self.left(state, &job, head, payload);
            }
            Kind::Ack => state.out.acknowledge(head.number)?,
            Kind::Grant => state.out.grant(head.destination, head.number)?,
            Kind::Resume => return Err("a second RESUME on a connection".to_owned()),
            Kind::Close => {
                drop(state);
                self.closed(head.number, payload);
                return Ok(false);
            }
        }
        self.account(&mut state);
        let wake = state.untold >= 32 * 1024;
        drop(state);
        match head.kind {
            Kind::Ack | Kind::Grant => self.space.notify_waiters(),
            _ if wake => self.wake.notify_waiters(),
            _ => {}
        }
        Ok(true)
    }

    /// The other side says that nothing follows.
    pub fn closed(&self, number: u64, payload: &[u8]) {
        let text = String::from_utf8_lossy(payload);
        if number != 0 {
            return self.lose(&text);
        }
        self.leave_phase(Phase::Ended(text.into_owned()));
    }

    /// Into the queue of its process. The state is locked all the while: order is kept over connections.
    fn deliver(self: &Arc<Link>, state: &mut State, job: &Job, head: &Head, payload: &[u8]) {
        // The process's connection puts in the index of the cluster: before it is there, nobody knows it.
        let header = Header {
            length: head.length,
            kind: frame::Kind::Data,
            cluster: u16::MAX,
            peer: head.source,
            key: head.key,
            number: head.number,
        };
        let item = Item { bytes: frame::encode(header, payload), from: Some((self.clone(), state.epoch)) };
        if !job.process(head.destination).push(item) && state.incoming.consume(head.destination, payload.len()) {
            self.wake.notify_waiters();
        }
    }

    fn left(&self, mut state: MutexGuard<'_, State>, job: &Job, head: &Head, payload: &[u8]) -> Result<bool, String> {
        let text = String::from_utf8_lossy(payload).into_owned();
        if head.number == 2 {
            state.gone.remove(&head.source);
            return Ok(true);
        }
        let crashed = head.number == 0;
        if state.gone.len() as u64 >= 4 * state.incoming.most() {
            return Err("it told of more processes than a job may have".to_owned());
        }
        state.gone.insert(head.source, (crashed, text.clone()));
        drop(state);
        self.space.notify_waiters();
        if crashed {
            job.tell_lost(&self.peer, head.source, &text);
        }
        Ok(true)
    }
}
