// SPDX-License-Identifier: BSD-3-Clause
//! Messages between pairs of ranks: what every collective is held against. Rank i and rank i + half the
//! number of ranks are a pair; ranks beyond the pairs do nothing.

use std::os::raw::c_int;

use super::content::{CANARY, differs, fill, key};
use super::table::{Kind, Operation};
use super::{Call, Case, Setting, memory};
use crate::call;
use crate::error::{Error, Result};
use crate::mpi::{Comm, byte, ffi};

/// Messages of a call of `stream` and `exchange`, where nothing else is asked for.
pub const WINDOW: usize = 64;
const TAG: c_int = 7;

/// What people ask of messages, of the mean time of a call.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Rate {
    /// Pairs of ranks.
    pub pairs: usize,
    /// Seconds that a message takes one way: half of a ping-pong.
    pub latency: Option<f64>,
    /// Bytes per second of all pairs together, of streams.
    pub bytes_per_second: Option<f64>,
    /// Messages per second of all pairs together, of streams.
    pub messages_per_second: Option<f64>,
}

/// The rates of a call that takes `time` seconds; `None` for what is no operation of pairs.
pub fn rate(setting: &Setting, processes: usize, time: f64) -> Option<Rate> {
    let operation = super::find(&setting.operation).ok().filter(|operation| operation.pairs())?;
    let pairs = count(setting, processes);
    if operation.kind == Kind::PingPong {
        return Some(Rate { pairs, latency: Some(time / 2.0), bytes_per_second: None, messages_per_second: None });
    }
    let both = if operation.kind == Kind::Exchange { 2 } else { 1 };
    let messages = (both * pairs * setting.window) as f64 / time;
    let bytes = messages * setting.bytes as f64;
    Some(Rate { pairs, latency: None, bytes_per_second: Some(bytes), messages_per_second: Some(messages) })
}

fn count(setting: &Setting, processes: usize) -> usize {
    if setting.pairs == 0 { processes / 2 } else { setting.pairs }
}

/// Refuses what pairs do not have.
pub fn check(setting: &Setting, processes: usize) -> Result<()> {
    let most = processes / 2;
    if setting.pairs > most {
        return Err(Error::usage(format!("--pairs {}: {processes} ranks are {most} pairs", setting.pairs)));
    }
    if setting.datatype != "byte" {
        return Err(Error::usage(format!("{}: sends bytes, not {}", setting.operation, setting.datatype)));
    }
    if setting.cache == super::Cache::Cold {
        return Err(Error::usage(format!("{}: has warm buffers only", setting.operation)));
    }
    Ok(())
}

/// The other one of a rank's pair, and whether the rank is the first one.
fn partner(rank: usize, pairs: usize, processes: usize) -> Option<(usize, bool)> {
    let half = processes / 2;
    if rank < pairs {
        Some((rank + half, true))
    } else {
        rank.checked_sub(half).filter(|first| *first < pairs).map(|first| (first, false))
    }
}

/// A ping-pong, a stream of messages with an answer to the last, or streams both ways.
pub struct Pairs {
    kind: Kind,
    comm: ffi::MPI_Comm,
    rank: usize,
    /// None beyond the pairs.
    partner: Option<(usize, bool)>,
    setting: Setting,
    send: Vec<u8>,
    /// A place for each message of a call: no two are received into the same bytes.
    recv: Vec<u8>,
    requests: Vec<ffi::MPI_Request>,
    call: u64,
}

impl Pairs {
    /// A case on `comm`. Collective.
    pub fn new(comm: &Comm, own: &Comm, operation: &'static Operation, setting: &Setting) -> Result<Pairs> {
        check(setting, comm.size())?;
        let kind = operation.kind;
        let partner = partner(comm.rank(), count(setting, comm.size()), comm.size());
        let sends = partner.is_some_and(|(_, first)| first || kind != Kind::Stream);
        let receives = partner.is_some_and(|(_, first)| !first || kind != Kind::Stream);
        let window = if kind == Kind::PingPong { 1 } else { setting.window };
        let bytes = |there: bool, messages: usize| if there { messages * setting.bytes } else { 0 };
        let (sent, received) = (bytes(sends, 1), bytes(receives, window));
        memory::enough(own, sent + received, "take smaller --sizes or a smaller --window")?;
        // SAFETY: a constant of the library.
        let none = unsafe { ffi::RSMPI_REQUEST_NULL };
        Ok(Pairs {
            kind,
            comm: comm.raw(),
            rank: comm.rank(),
            partner,
            setting: setting.clone(),
            send: vec![0; sent],
            recv: vec![0; received],
            requests: vec![none; 2 * window],
            call: 0,
        })
    }

    fn message(&self, rank: usize) -> u64 {
        key(self.setting.seed, self.call, rank, 0)
    }

    fn send(&mut self, to: usize, bytes: usize) -> Result<()> {
        call!(MPI_Send(self.send.as_ptr().cast(), bytes as c_int, byte(), to as c_int, TAG, self.comm))
    }

    fn receive(&mut self, from: usize, bytes: usize) -> Result<()> {
        // SAFETY: a constant of the library.
        let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
        let to = self.recv.as_mut_ptr().cast();
        call!(MPI_Recv(to, bytes as c_int, byte(), from as c_int, TAG, self.comm, ignore))
    }

    /// Starts receives and sends of a whole window, and waits for all.
    fn window(&mut self, other: usize, receives: bool, sends: bool) -> Result<()> {
        let (bytes, window, other) = (self.setting.bytes, self.setting.window, other as c_int);
        let mut started = 0;
        for i in 0..if receives { window } else { 0 } {
            // SAFETY: the buffer has a place for each message.
            let to = unsafe { self.recv.as_mut_ptr().add(i * bytes) }.cast();
            call!(MPI_Irecv(to, bytes as c_int, byte(), other, TAG, self.comm, &mut self.requests[started]))?;
            started += 1;
        }
        for _ in 0..if sends { window } else { 0 } {
            let from = self.send.as_ptr().cast();
            call!(MPI_Isend(from, bytes as c_int, byte(), other, TAG, self.comm, &mut self.requests[started]))?;
            started += 1;
        }
        // SAFETY: a constant of the library.
        let ignore = unsafe { ffi::RSMPI_STATUSES_IGNORE };
        call!(MPI_Waitall(started as c_int, self.requests.as_mut_ptr(), ignore))
    }
}

impl Case for Pairs {
    fn prepare(&mut self, call: Call) -> Result<()> {
        self.call = call.number;
        let key = self.message(self.rank);
        fill(key, 0, &mut self.send);
        fill(CANARY, 0, &mut self.recv);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let Some((other, first)) = self.partner else { return Ok(()) };
        let bytes = self.setting.bytes;
        match (self.kind, first) {
            (Kind::Stream, true) => self.window(other, false, true).and_then(|()| self.receive(other, 0)),
            (Kind::Stream, false) => self.window(other, true, false).and_then(|()| self.send(other, 0)),
            (Kind::Exchange, _) => self.window(other, true, true),
            (_, true) => self.send(other, bytes).and_then(|()| self.receive(other, bytes)),
            (_, false) => self.receive(other, bytes).and_then(|()| self.send(other, bytes)),
        }
    }

    fn verify(&mut self) -> Result<()> {
        let Some((other, _)) = self.partner.filter(|_| self.setting.verify && self.setting.bytes > 0) else {
            return Ok(());
        };
        let key = self.message(other);
        let wrong = |(i, message): (usize, &[u8])| differs(key, 0, message).map(|at| (i, at));
        match self.recv.chunks(self.setting.bytes).enumerate().find_map(wrong) {
            None => Ok(()),
            Some((message, at)) => Err(Error::Wrong(format!(
                "{}, call {}, rank {}: byte {at} of message {message} of rank {other}",
                self.setting.operation, self.call, self.rank
            ))),
        }
    }

    fn memory(&self) -> usize {
        self.send.len() + self.recv.len()
    }

    fn spoil(&mut self) -> bool {
        self.recv.last_mut().map(|byte| *byte ^= 1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_partner() {
        for processes in 2..9 {
            for pairs in 1..=processes / 2 {
                let all: Vec<_> = (0..processes).map(|rank| partner(rank, pairs, processes)).collect();
                assert_eq!(all.iter().flatten().count(), 2 * pairs, "{processes} {pairs}");
                for (rank, one) in all.iter().enumerate() {
                    let Some((other, first)) = *one else { continue };
                    assert_eq!(all[other], Some((rank, !first)), "{processes} {pairs} {rank}");
                }
            }
        }
    }

    #[test]
    fn rates() {
        let of = |operation: &str, time| {
            let setting = Setting { operation: operation.into(), bytes: 1000, window: 50, ..Setting::default() };
            rate(&setting, 4, time)
        };
        assert_eq!(of("bcast", 1.0), None);
        assert_eq!(of("pingpong", 3e-6).unwrap().latency, Some(1.5e-6));
        let stream = of("stream", 1e-3).unwrap();
        assert_eq!((stream.pairs, stream.messages_per_second, stream.bytes_per_second), (2, Some(1e5), Some(1e8)));
        assert_eq!(of("exchange", 1e-3).unwrap().messages_per_second, Some(2e5));
    }

    #[test]
    fn what_pairs_do_not_have() {
        let one = Setting { operation: "pingpong".into(), ..Setting::default() };
        assert!(check(&one, 2).is_ok());
        for wrong in [
            Setting { pairs: 2, ..one.clone() },
            Setting { datatype: "double".into(), ..one.clone() },
            Setting { cache: super::super::Cache::Cold, ..one },
        ] {
            assert_eq!(check(&wrong, 3).unwrap_err().status(), 2);
        }
    }
}
