// SPDX-License-Identifier: BSD-3-Clause
//! The process's side of the connection with its gateway, without the socket: bytes in, bytes out.

use super::frame::{ALL, Frame, HEADER, Header, Kind, plain};
use super::hello::Hello;
use super::key::Key;
use super::mail::{Handle, Mail, Memory, Peer};
use super::proof::{self, Side};
use std::collections::VecDeque;

/// So many bytes wait for the socket at most, and one frame.
const AHEAD: usize = 128 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// HELLO is on its way.
    Greets,
    /// So is the proof.
    Proves,
    /// The gateway has let the process in.
    Open,
    /// The process has said BYE.
    Ends,
}

/// The connection, and the messages that go by it.
pub struct Session<M> {
    /// The messages.
    pub mail: Mail<M>,
    stage: Stage,
    key: [u8; 32],
    hello: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Of `output`, what has left.
    left: usize,
    /// Where in `output` messages end that are over when that has left.
    ends: VecDeque<(usize, Handle)>,
    /// Who was lost, as the gateway says it.
    pub notices: Vec<String>,
}

impl<M: Memory> Session<M> {
    /// A connection that begins. The error says what is wrong with the names.
    pub fn new(hello: &Hello, key: &Key) -> Result<Session<M>, String> {
        let hello = hello.encode().map_err(|fault| fault.to_string())?;
        Ok(Session { stage: Stage::Greets, key: key.bytes, output: hello.clone(), hello, ..Session::lost() })
    }

    /// One that is not to be.
    pub fn lost() -> Session<M> {
        Session {
            mail: Mail::default(),
            stage: Stage::Ends,
            key: [0; 32],
            hello: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            left: 0,
            ends: VecDeque::new(),
            notices: Vec::new(),
        }
    }

    /// Whether the gateway has let the process in.
    pub fn is_let_in(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Ends)
    }

    /// What is to be sent.
    pub fn output(&mut self) -> &[u8] {
        if self.left == self.output.len() {
            self.output.clear();
            self.left = 0;
        }
        while self.stage == Stage::Open && self.output.len() < AHEAD {
            let begin = self.output.len();
            self.output.resize(begin + HEADER, 0);
            let Some(out) = self.mail.next(&mut self.output) else {
                self.output.truncate(begin);
                break;
            };
            let length = self.output.len() - begin - HEADER;
            let (to, comm, number) = (out.address.to, out.address.comm, out.address.number);
            let plain = Header::plain(Kind::Data, length);
            let header = Header { cluster: to.cluster, peer: to.name, key: comm, number, ..plain };
            self.output[begin..begin + HEADER].copy_from_slice(&header.encode());
            self.ends.extend(out.ends.map(|handle| (self.output.len(), handle)));
        }
        &self.output[self.left..]
    }

    /// So many bytes of it were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.left += bytes;
        while let Some(&(_, handle)) = self.ends.front().filter(|(end, _)| *end <= self.left) {
            self.ends.pop_front();
            self.mail.left(handle);
        }
    }

    /// Bytes have come. An error is the end of the connection, and says why.
    pub fn received(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.input.is_empty() {
            let taken = self.take_all(bytes)?;
            self.input.extend_from_slice(&bytes[taken..]);
            return Ok(());
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let taken = self.take_all(&input)?;
        input.drain(..taken);
        self.input = input;
        Ok(())
    }

    /// Takes all frames that are complete; how many bytes they have.
    fn take_all(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut at = 0;
        while let Some(frame) = Frame::parse(&bytes[at..]).map_err(|fault| format!("it has sent {fault}"))? {
            at += frame.header.frame();
            self.take(&frame)?;
        }
        Ok(at)
    }

    fn take(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let header = frame.header;
        match (header.kind, self.stage) {
            (Kind::Challenge, Stage::Greets) => self.prove(frame.payload),
            (Kind::Welcome, Stage::Proves) => {
                self.stage = Stage::Open;
                Ok(())
            }
            (Kind::Refused, _) => Err(format!("it refuses this process: {}", frame.text())),
            (Kind::Data, Stage::Open | Stage::Ends) => {
                let from = Peer { cluster: header.cluster, name: header.peer };
                let taken = self.mail.arrived(from, header.key, header.number, frame.payload);
                taken.map_err(|_| "it has sent a message that is none".to_owned())
            }
            (Kind::Lost, Stage::Open | Stage::Ends) => {
                let name = (header.peer != ALL).then_some(header.peer);
                self.mail.lose(Some(header.cluster), name);
                self.notices.push(frame.text());
                Ok(())
            }
            // What it is good for: something has come.
            (Kind::Alive, Stage::Open | Stage::Ends) => Ok(()),
            (Kind::Bye, _) => Err("it ends".to_owned()),
            (kind, _) => Err(format!("it has sent {kind:?} out of turn")),
        }
    }

    fn prove(&mut self, challenge: &[u8]) -> Result<(), String> {
        let Some((nonce, proof)) = challenge.split_first_chunk::<32>() else {
            return Err("it has sent a challenge without a nonce".to_owned());
        };
        if !proof::holds(proof, &self.key, Side::Gateway, &self.hello, nonce) {
            return Err("it has another key by this name".to_owned());
        }
        let proof = proof::make(&self.key, Side::Process, &self.hello, nonce);
        self.output.extend(plain(Kind::Proof, &proof));
        self.stage = Stage::Proves;
        Ok(())
    }

    /// Says BYE behind what is still to be sent.
    pub fn end(&mut self) {
        let was_open = self.stage == Stage::Open;
        self.stage = Stage::Ends;
        if was_open {
            self.output.extend(plain(Kind::Bye, &[]));
        }
    }
}
