// SPDX-License-Identifier: BSD-3-Clause
//! A process's messages with processes of other clusters: which arrival belongs to which receive, and how
//! long messages travel.
//!
//! A short message comes with its data (*eager*). Of a long one an *offer* comes first; where the receive is
//! posted, its process answers that the way is *clear*, and the data follow in *pieces*, read from the
//! sender's memory and written to the receiver's as they pass. What arrives before its receive is posted is
//! kept. Messages from one process in one communicator with one tag are matched in their order.
//!
//! Nothing here touches a socket: [`Mail::next`] gives what is to be sent, [`Mail::arrived`] takes what came.

mod payload;
mod words;

use super::frame::PAYLOAD;
use std::collections::{HashMap, VecDeque};

use payload::{BRINGS, GIVES_UP, HEAD, IS_CLEAR, IS_PIECE, OFFERS, UNWANTED, head, read, split};
pub use words::{Address, Failure, Garbled, Handle, Memory, Out, Peer};

/// The longest message that comes with its data, and data of a piece at most: what a frame holds. To ask for
/// what is ready takes two more ways between clusters.
pub const EAGER: usize = PAYLOAD - HEAD;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Envelope {
    from: u64,
    comm: u64,
    tag: i32,
}

/// A message that came before its receive.
enum Early {
    Whole(Vec<u8>),
    Offered { bytes: u64, theirs: u64 },
}

enum State<M> {
    Sends { memory: M, to: Peer, comm: u64, tag: i32 },
    Receives { memory: M, from: Peer, envelope: Envelope, left: Option<usize> },
    Over(Result<usize, Failure>),
}

/// What waits to be sent.
enum Waiting {
    /// A message with its data, or the offer of one.
    First(Handle),
    Note {
        address: Address,
        what: u32,
        value: u64,
    },
}

/// Pieces that wait to be sent.
struct Stream {
    ours: Handle,
    theirs: u64,
    at: usize,
}

/// All messages of a process.
pub struct Mail<M> {
    /// The longest message that comes with its data, and data of a piece at most.
    most: usize,
    messages: HashMap<Handle, State<M>>,
    next: Handle,
    posted: HashMap<Envelope, VecDeque<Handle>>,
    early: HashMap<Envelope, VecDeque<Early>>,
    waiting: VecDeque<Waiting>,
    streams: VecDeque<Stream>,
    lost: Vec<(u16, Option<u64>)>,
    all_lost: bool,
}

impl<M> Default for Mail<M> {
    fn default() -> Mail<M> {
        Mail {
            most: EAGER,
            messages: HashMap::new(),
            next: 1,
            posted: HashMap::new(),
            early: HashMap::new(),
            waiting: VecDeque::new(),
            streams: VecDeque::new(),
            lost: Vec::new(),
            all_lost: false,
        }
    }
}

impl<M: Memory> Mail<M> {
    /// One whose messages are cut into pieces of so many bytes: not zero, and at most [`EAGER`].
    pub fn in_pieces(most: usize) -> Mail<M> {
        Mail { most: most.clamp(1, EAGER), ..Mail::default() }
    }

    fn add(&mut self, state: State<M>) -> Handle {
        let handle = self.next;
        self.next += 1;
        self.messages.insert(handle, state);
        handle
    }

    fn end(&mut self, handle: Handle, how: Result<usize, Failure>) {
        if let Some(state) = self.messages.get_mut(&handle) {
            *state = State::Over(how);
        }
    }

    fn is_lost(&self, peer: Peer) -> bool {
        let is_of = |&(cluster, name): &(u16, Option<u64>)| {
            cluster == peer.cluster && name.is_none_or(|name| name == peer.name)
        };
        self.all_lost || self.lost.iter().any(is_of)
    }

    fn note(&mut self, address: Address, what: u32, value: u64) {
        self.waiting.push_back(Waiting::Note { address, what, value });
    }

    /// Sends a message. The memory stays as it is until the message is [over](Mail::test), or
    /// [given up](Mail::give_up).
    pub fn send(&mut self, to: Peer, comm: u64, tag: i32, memory: M) -> Handle {
        if self.is_lost(to) {
            return self.add(State::Over(Err(Failure::Lost)));
        }
        let handle = self.add(State::Sends { memory, to, comm, tag });
        self.waiting.push_back(Waiting::First(handle));
        handle
    }

    /// Receives a message: of exactly as many bytes as the memory has; others are not written there.
    pub fn recv(&mut self, from: Peer, comm: u64, tag: i32, memory: M) -> Handle {
        let envelope = Envelope { from: from.name, comm, tag };
        let early = self.take_early(envelope);
        if early.is_none() && self.is_lost(from) {
            return self.add(State::Over(Err(Failure::Lost)));
        }
        let handle = self.add(State::Receives { memory, from, envelope, left: None });
        match early {
            None => self.posted.entry(envelope).or_default().push_back(handle),
            Some(Early::Whole(data)) => self.take(handle, &data),
            Some(Early::Offered { bytes, theirs }) => self.accept(handle, from, comm, bytes, theirs),
        }
        handle
    }

    fn take_early(&mut self, envelope: Envelope) -> Option<Early> {
        let queue = self.early.get_mut(&envelope)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.early.remove(&envelope);
        }
        first
    }

    fn take_posted(&mut self, envelope: Envelope) -> Option<Handle> {
        let queue = self.posted.get_mut(&envelope)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.posted.remove(&envelope);
        }
        first
    }

    /// Whether a message is over: how many bytes came, or went. It is forgotten then.
    pub fn test(&mut self, handle: Handle) -> Option<Result<usize, Failure>> {
        match self.messages.get(&handle) {
            Some(State::Over(_)) | None => match self.messages.remove(&handle) {
                Some(State::Over(how)) => Some(how),
                _ => Some(Ok(0)),
            },
            Some(_) => None,
        }
    }

    /// Whether any message is under way.
    pub fn is_busy(&self) -> bool {
        !self.messages.is_empty() || !self.waiting.is_empty()
    }

    /// Gives a message up, whether it is over or not: its memory is not touched any more.
    pub fn give_up(&mut self, handle: Handle) {
        match self.messages.remove(&handle) {
            Some(State::Sends { to, comm, .. }) => {
                if let Some(at) = self.streams.iter().position(|stream| stream.ours == handle)
                    && let Some(stream) = self.streams.remove(at)
                {
                    self.note(Address { to, comm, number: stream.theirs }, GIVES_UP, 0);
                }
            }
            Some(State::Receives { envelope, .. }) => {
                if let Some(queue) = self.posted.get_mut(&envelope) {
                    queue.retain(|&other| other != handle);
                    if queue.is_empty() {
                        self.posted.remove(&envelope);
                    }
                }
            }
            _ => {}
        }
    }

    /// The communicator goes: nobody will ask for what has come early.
    pub fn forget(&mut self, comm: u64) {
        self.early.retain(|envelope, _| envelope.comm != comm);
    }

    /// There is no way any more: to a process, to all of a cluster, or, without one, to anybody.
    pub fn lose(&mut self, cluster: Option<u16>, name: Option<u64>) {
        match cluster {
            Some(cluster) => self.lost.push((cluster, name)),
            None => self.all_lost = true,
        }
        let peers = self.messages.iter().filter_map(|(&handle, state)| match state {
            State::Sends { to, .. } => Some((handle, *to)),
            State::Receives { from, .. } => Some((handle, *from)),
            State::Over(_) => None,
        });
        let gone: Vec<Handle> = peers.filter(|&(_, peer)| self.is_lost(peer)).map(|(handle, _)| handle).collect();
        for handle in gone {
            self.give_up(handle);
            self.messages.insert(handle, State::Over(Err(Failure::Lost)));
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|waiting| !matches!(waiting, Waiting::Note { address, .. } if self.is_lost(address.to)));
        self.waiting = waiting;
    }

    /// What is to be sent next; its payload is written behind what is in `to`.
    pub fn next(&mut self, to: &mut Vec<u8>) -> Option<Out> {
        loop {
            match self.waiting.pop_front() {
                Some(Waiting::Note { address, what, value }) => {
                    head(to, what, 0, value);
                    return Some(Out { address, ends: None });
                }
                Some(Waiting::First(handle)) => {
                    if let Some(out) = self.first(handle, to) {
                        return Some(out);
                    }
                }
                None => break,
            }
        }
        loop {
            let stream = self.streams.pop_front()?;
            if let Some(out) = self.piece(stream, to) {
                return Some(out);
            }
        }
    }

    /// The beginning of a message; none where it was dropped, or cannot be read.
    fn first(&mut self, handle: Handle, to: &mut Vec<u8>) -> Option<Out> {
        let Some(State::Sends { memory, to: peer, comm, tag }) = self.messages.get(&handle) else { return None };
        let (address, bytes) = (Address { to: *peer, comm: *comm, number: handle }, memory.bytes());
        if bytes > self.most {
            head(to, OFFERS, *tag, bytes as u64);
            return Some(Out { address, ends: None });
        }
        let begin = to.len();
        head(to, BRINGS, *tag, bytes as u64);
        match read(memory, 0, bytes, to) {
            Ok(()) => Some(Out { address, ends: Some(handle) }),
            Err(error) => {
                to.truncate(begin);
                self.end(handle, Err(Failure::Memory(error)));
                None
            }
        }
    }

    /// The next piece of a message; what remains queues up again.
    fn piece(&mut self, stream: Stream, to: &mut Vec<u8>) -> Option<Out> {
        let Some(State::Sends { memory, to: peer, comm, .. }) = self.messages.get(&stream.ours) else { return None };
        let address = Address { to: *peer, comm: *comm, number: stream.theirs };
        let bytes = self.most.min(memory.bytes() - stream.at);
        let begin = to.len();
        head(to, IS_PIECE, 0, stream.at as u64);
        if let Err(error) = read(memory, stream.at, bytes, to) {
            to.truncate(begin);
            self.end(stream.ours, Err(Failure::Memory(error)));
            head(to, GIVES_UP, 0, 0);
            return Some(Out { address, ends: None });
        }
        let at = stream.at + bytes;
        let is_last = at == memory.bytes();
        let ours = stream.ours;
        if !is_last {
            self.streams.push_back(Stream { at, ..stream });
        }
        Some(Out { address, ends: is_last.then_some(ours) })
    }

    /// What [ends](Out::ends) a message has left.
    pub fn left(&mut self, handle: Handle) {
        if let Some(State::Sends { memory, .. }) = self.messages.get(&handle) {
            let bytes = memory.bytes();
            self.end(handle, Ok(bytes));
        }
    }

    /// Something came.
    pub fn arrived(&mut self, from: Peer, comm: u64, number: u64, payload: &[u8]) -> Result<(), Garbled> {
        let (what, tag, value, data) = split(payload).ok_or(Garbled)?;
        let envelope = Envelope { from: from.name, comm, tag };
        match what {
            BRINGS => match self.take_posted(envelope) {
                Some(handle) => self.take(handle, data),
                None => self.early.entry(envelope).or_default().push_back(Early::Whole(data.to_vec())),
            },
            OFFERS => match self.take_posted(envelope) {
                Some(handle) => self.accept(handle, from, comm, value, number),
                None => {
                    let offered = Early::Offered { bytes: value, theirs: number };
                    self.early.entry(envelope).or_default().push_back(offered);
                }
            },
            IS_CLEAR => self.clear(from, comm, number, value),
            IS_PIECE => self.put(from, number, value, data)?,
            GIVES_UP => {
                if matches!(self.messages.get(&number), Some(State::Receives { left: Some(_), .. })) {
                    self.end(number, Err(Failure::GivenUp));
                }
            }
            _ => return Err(Garbled),
        }
        Ok(())
    }

    /// A whole message is there.
    fn take(&mut self, handle: Handle, data: &[u8]) {
        let Some(State::Receives { memory, .. }) = self.messages.get(&handle) else { return };
        let written = if memory.bytes() == data.len() { memory.write(0, data) } else { Ok(()) };
        self.end(handle, written.map(|()| data.len()).map_err(Failure::Memory));
    }

    /// A message is offered. Where it is of another length, the receive is over, and so is the send.
    fn accept(&mut self, handle: Handle, from: Peer, comm: u64, bytes: u64, theirs: u64) {
        let Some(State::Receives { memory, left, .. }) = self.messages.get_mut(&handle) else { return };
        let address = Address { to: from, comm, number: theirs };
        if memory.bytes() as u64 == bytes {
            *left = Some(memory.bytes());
            self.note(address, IS_CLEAR, handle);
        } else {
            self.end(handle, Ok(usize::try_from(bytes).unwrap_or(usize::MAX)));
            self.note(address, IS_CLEAR, UNWANTED);
        }
    }

    /// The way is clear for a message of ours. If it was dropped meanwhile, the other side has to know.
    fn clear(&mut self, from: Peer, comm: u64, ours: Handle, theirs: u64) {
        match self.messages.get(&ours) {
            Some(State::Sends { memory, to, .. }) if *to == from => match theirs {
                UNWANTED => {
                    let bytes = memory.bytes();
                    self.end(ours, Ok(bytes));
                }
                _ => self.streams.push_back(Stream { ours, theirs, at: 0 }),
            },
            _ if theirs == UNWANTED => {}
            _ => self.note(Address { to: from, comm, number: theirs }, GIVES_UP, 0),
        }
    }

    /// A piece is there. It may be one of a message that was dropped.
    fn put(&mut self, from: Peer, handle: Handle, at: u64, data: &[u8]) -> Result<(), Garbled> {
        let Some(State::Receives { memory, from: sender, left: Some(left), .. }) = self.messages.get_mut(&handle)
        else {
            return Ok(());
        };
        let at = usize::try_from(at).map_err(|_| Garbled)?;
        // Pieces of a message come in their order.
        if *sender != from || memory.bytes() - *left != at || data.is_empty() || data.len() > *left {
            return Err(Garbled);
        }
        *left -= data.len();
        let written = memory.write(at, data);
        let (is_over, bytes) = (*left == 0, memory.bytes());
        match written {
            Err(error) => self.end(handle, Err(Failure::Memory(error))),
            Ok(()) if is_over => self.end(handle, Ok(bytes)),
            Ok(()) => {}
        }
        Ok(())
    }
}
