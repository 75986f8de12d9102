// SPDX-License-Identifier: BSD-3-Clause
//! Gateways: messages of ranks that do not reach each other go by the component's own [`Mail`], in frames
//! that take their time.
//!
//! A rank's frames leave in their order, by one stream. A gateway holds few of them for a rank that does not
//! take them; then those behind wait too, whoever they are for. When frames move is up to the scheduler.

use super::memory::UnitMemory;
use super::region::PostId;
use super::{Posted, Side, UnitType};
use crate::endpoint::{Rank, Span, Tag};
use crate::relay::mail::{Handle, Mail, Peer};
use std::collections::VecDeque;
use std::sync::Arc;

/// Whether two ranks' messages go by gateways.
pub(super) type Apart = dyn Fn(Rank, Rank) -> bool + Send + Sync;

/// Frames that a stream holds at most.
const ROOM: usize = 2;

/// A frame, and the message that is over for its sender when it has left.
struct Frame {
    from: Rank,
    to: Rank,
    number: u64,
    payload: Vec<u8>,
    ends: Option<Handle>,
}

/// A rank's side.
struct Station {
    mail: Mail<UnitMemory>,
    /// What has been posted and is not over.
    under_way: Vec<(Handle, PostId)>,
    out: VecDeque<Frame>,
    into: VecDeque<Frame>,
    /// Whether the scheduler knows that a frame is to leave, or to be taken.
    leaves: bool,
    takes: bool,
}

/// What the scheduler is to do for a rank from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Its first frame leaves.
    Carry(Rank),
    /// It takes the first one that has come.
    Take(Rank),
}

/// What has become of a step.
#[derive(Default)]
pub(super) struct Outcome {
    /// Posts that are over.
    pub(super) over: Vec<PostId>,
    /// What can happen next.
    pub(super) next: Vec<Next>,
    /// A receive whose memory was not as it was left.
    pub(super) overwritten: Option<PostId>,
    /// A rank that got what no process sends.
    pub(super) garbled: Option<Rank>,
}

/// All of a run.
pub(super) struct Gateways {
    through: Arc<Apart>,
    stations: Vec<Station>,
}

fn peer(rank: Rank) -> Peer {
    Peer { cluster: 0, name: u64::from(rank) }
}

impl Gateways {
    /// For so many ranks; messages beyond `most` bytes come in pieces.
    pub(super) fn new(size: u32, through: Arc<Apart>, most: usize) -> Gateways {
        let station = || Station {
            mail: Mail::in_pieces(most),
            under_way: Vec::new(),
            out: VecDeque::new(),
            into: VecDeque::new(),
            leaves: false,
            takes: false,
        };
        Gateways { through, stations: std::iter::repeat_with(station).take(size as usize).collect() }
    }

    /// Whether the messages of two ranks pass here.
    pub(super) fn join(&self, one: Rank, other: Rank) -> bool {
        (self.through)(one, other)
    }

    /// Posts a message.
    pub(super) fn post(&mut self, id: PostId, posted: Posted, unit: UnitType, span: Span) -> Outcome {
        let Tag { lane, phase, .. } = posted.tag;
        let (tag, memory) = (i32::from(lane) << 8 | i32::from(phase), UnitMemory::new(unit, span));
        let station = &mut self.stations[posted.rank as usize];
        let handle = match posted.side {
            Side::Send => station.mail.send(peer(posted.peer), 0, tag, memory),
            Side::Recv => station.mail.recv(peer(posted.peer), 0, tag, memory),
        };
        station.under_way.push((handle, id));
        let mut outcome = Outcome::default();
        self.settle(posted.rank, &mut outcome);
        outcome
    }

    /// A step that was chosen.
    pub(super) fn step(&mut self, next: Next) -> Outcome {
        let mut outcome = Outcome::default();
        match next {
            Next::Carry(rank) => self.carry(rank, &mut outcome),
            Next::Take(rank) => self.take(rank, &mut outcome),
        }
        outcome
    }

    fn carry(&mut self, rank: Rank, outcome: &mut Outcome) {
        self.stations[rank as usize].leaves = false;
        let Some(to) = self.stations[rank as usize].out.front().map(|frame| frame.to) else { return };
        // Who is held up here goes on when that rank has taken a frame.
        if self.stations[to as usize].into.len() < ROOM
            && let Some(frame) = self.stations[rank as usize].out.pop_front()
        {
            if let Some(handle) = frame.ends {
                self.stations[rank as usize].mail.left(handle);
            }
            self.stations[to as usize].into.push_back(frame);
            self.stir(to, outcome);
            self.settle(rank, outcome);
        }
    }

    fn take(&mut self, rank: Rank, outcome: &mut Outcome) {
        let station = &mut self.stations[rank as usize];
        station.takes = false;
        let Some(frame) = station.into.pop_front() else { return };
        if station.mail.arrived(peer(frame.from), 0, frame.number, &frame.payload).is_err() {
            outcome.garbled = Some(rank);
        }
        self.settle(rank, outcome);
        // Whose first frame is for this rank may have waited for the room.
        for other in 0..self.stations.len() {
            if self.stations[other].out.front().is_some_and(|frame| frame.to == rank) {
                self.stir(other as Rank, outcome);
            }
        }
    }

    /// Sees what is over at a rank, and what it has to send.
    fn settle(&mut self, rank: Rank, outcome: &mut Outcome) {
        let Station { mail, under_way, out, .. } = &mut self.stations[rank as usize];
        while out.len() < ROOM {
            let mut payload = Vec::new();
            let Some(next) = mail.next(&mut payload) else { break };
            let (to, number) = (next.address.to.name as Rank, next.address.number);
            out.push_back(Frame { from: rank, to, number, payload, ends: next.ends });
        }
        under_way.retain(|&(handle, id)| match mail.test(handle) {
            None => true,
            Some(end) => {
                outcome.over.push(id);
                outcome.overwritten = outcome.overwritten.or(end.is_err().then_some(id));
                false
            }
        });
        self.stir(rank, outcome);
    }

    /// Tells the scheduler what can happen at a rank, unless it knows.
    fn stir(&mut self, rank: Rank, outcome: &mut Outcome) {
        let station = &mut self.stations[rank as usize];
        if !station.out.is_empty() && !std::mem::replace(&mut station.leaves, true) {
            outcome.next.push(Next::Carry(rank));
        }
        if !station.into.is_empty() && !std::mem::replace(&mut station.takes, true) {
            outcome.next.push(Next::Take(rank));
        }
    }
}
