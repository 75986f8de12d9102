// SPDX-License-Identifier: BSD-3-Clause
//! What is known of the way of one job to one other gateway; [`link`](crate::link) locks it.

use crate::incoming::{BASE, Incoming};
use crate::outgoing::Outgoing;
use crate::wire::Resume;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// How things stand with the other gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is there, or will be.
    Open,
    /// The job has ended there. It may come back, with new processes.
    Ended(String),
    /// Messages may be missing: it is not used any more.
    Lost(String),
}

/// One connection, between its handshake and its end.
pub struct Connection {
    pub id: u64,
    /// Whether this gateway made it.
    pub dialled: bool,
    /// Whether both sides have said how far they are.
    pub resumed: bool,
    pub heard: Instant,
    pub stop: Arc<Notify>,
}

pub struct State {
    pub phase: Phase,
    /// The names of this state and of the other side's.
    pub me: [u8; 16],
    pub you: Option<[u8; 16]>,
    pub out: Outgoing,
    pub incoming: Incoming,
    /// Bytes that the other side does not know to be received.
    pub untold: u64,
    /// Processes there that have left; true if they crashed.
    pub gone: HashMap<u64, (bool, String)>,
    pub connection: Option<Connection>,
    pub heard: Instant,
    pub cut: Instant,
    /// Why there is no connection.
    pub reason: String,
    /// CLOSE is to be sent, and then the connection ends.
    pub closing: Option<(u64, String)>,
    /// The job has been forgotten.
    pub over: bool,
    /// What it adds to the job's bytes.
    pub counted: u64,
    /// Connections there were.
    pub numbers: u64,
    /// How often the job came back there: what is left from before has no credit in this state.
    pub epoch: u64,
}

fn name() -> [u8; 16] {
    let mut name = [0; 16];
    // Without random numbers the clock has to do: the name need not be secret.
    if getrandom::fill(&mut name).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        name = now.as_nanos().to_le_bytes();
    }
    name[15] |= 1;
    name
}

impl State {
    pub fn new(share: u64, processes: u64) -> State {
        let now = Instant::now();
        let (out, incoming) = (Outgoing::new(share), Incoming::new(share, processes));
        let reason = "it has not answered yet".to_owned();
        let (phase, gone) = (Phase::Open, HashMap::new());
        State {
            phase,
            me: name(),
            you: None,
            out,
            incoming,
            untold: 0,
            gone,
            connection: None,
            heard: now,
            cut: now,
            reason,
            closing: None,
            over: false,
            counted: 0,
            numbers: 0,
            epoch: 0,
        }
    }

    pub fn resume(&self) -> Resume {
        let (you, received) = (self.you.unwrap_or_default(), self.incoming.received());
        Resume { me: self.me, you, received, base: BASE, destinations: self.incoming.most() }
    }

    /// Whether the other side and this one mean the same stream.
    pub fn check(&self, theirs: &Resume) -> Result<(), String> {
        let forgotten = self.you.is_some_and(|you| you != theirs.me);
        if forgotten || (theirs.you != [0; 16] && theirs.you != self.me) {
            return Err("a gateway was restarted, and what was under way is gone".to_owned());
        }
        Ok(())
    }

    pub fn current(&mut self, id: u64) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|connection| connection.id == id)
    }

    pub fn drop_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.stop.notify_one();
            self.cut = Instant::now();
        }
    }

    pub fn take_over(&mut self, dialled: bool) -> (u64, Arc<Notify>) {
        self.drop_connection();
        self.numbers += 1;
        let (id, stop) = (self.numbers, Arc::new(Notify::new()));
        let heard = Instant::now();
        self.connection = Some(Connection { id, dialled, resumed: false, heard, stop: stop.clone() });
        (id, stop)
    }
}
