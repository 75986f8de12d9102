// SPDX-License-Identifier: BSD-3-Clause
//! Two processes that talk by their sessions, in memory: what one writes, the other side of a gateway reads,
//! in portions of any length.

use super::frame::{ALL, Frame, Header, Kind, encode, plain};
use super::hello::Hello;
use super::key::Key;
use super::mail::{EAGER, Failure, Handle, Memory, Peer};
use super::proof::{self, Side};
use super::session::Session;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Memory that the test still sees.
#[derive(Clone, Default)]
struct Bytes(Rc<RefCell<Vec<u8>>>);

impl Bytes {
    fn of(bytes: usize, seed: u8) -> Bytes {
        let byte = |i: usize| (i as u8).wrapping_mul(7).wrapping_add((i >> 8) as u8).wrapping_add(seed);
        Bytes(Rc::new(RefCell::new((0..bytes).map(byte).collect())))
    }
    fn is(&self, other: &Bytes) -> bool {
        *self.0.borrow() == *other.0.borrow()
    }
}

impl Memory for Bytes {
    fn bytes(&self) -> usize {
        self.0.borrow().len()
    }
    fn read(&self, at: usize, to: &mut [u8]) -> Result<(), i32> {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
        Ok(())
    }
    fn write(&self, at: usize, from: &[u8]) -> Result<(), i32> {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }
}

const KEY: [u8; 32] = [5; 32];

fn key() -> Key {
    Key { name: "k".to_owned(), bytes: KEY }
}

/// Processes 0 and 1, in clusters 0 and 1, each with the gateway's side of its connection.
struct World {
    sessions: [Session<Bytes>; 2],
    to_gateway: [Vec<u8>; 2],
    from_gateway: [Vec<u8>; 2],
    /// Bytes that a socket takes or gives at once.
    portion: usize,
    data: usize,
}

fn peer(process: usize) -> Peer {
    Peer { cluster: process as u16, name: process as u64 }
}

impl World {
    fn new(portion: usize) -> World {
        let session = |process: usize| {
            let clusters = vec!["a".to_owned(), "b".to_owned()];
            let (key_name, nonce) = ("k".to_owned(), [process as u8; 32]);
            let (process, cluster) = (process as u64, process as u16);
            let hello = Hello { job: "j".to_owned(), process, cluster, clusters, key: key_name, nonce };
            Session::new(&hello, &key()).unwrap()
        };
        let sessions = [session(0), session(1)];
        World { sessions, to_gateway: Default::default(), from_gateway: Default::default(), portion, data: 0 }
    }

    /// The gateway takes a frame of a process.
    fn gateway(&mut self, from: usize) {
        let bytes = std::mem::take(&mut self.to_gateway[from]);
        let Some(frame) = Frame::parse(&bytes).unwrap() else {
            self.to_gateway[from] = bytes;
            return;
        };
        let whole = frame.header.frame();
        match frame.header.kind {
            Kind::Hello => {
                let proof = proof::make(&KEY, Side::Gateway, &bytes[..whole], &[9; 32]);
                self.from_gateway[from].extend(plain(Kind::Challenge, &[[9; 32], proof].concat()));
            }
            Kind::Proof => self.from_gateway[from].extend(plain(Kind::Welcome, &[])),
            Kind::Data => {
                self.data += 1;
                let (to, header) = (frame.header.peer as usize, frame.header);
                let header = Header { cluster: from as u16, peer: from as u64, ..header };
                self.from_gateway[to].extend(encode(header, frame.payload));
            }
            kind => panic!("{kind:?}"),
        }
        self.to_gateway[from] = bytes[whole..].to_vec();
    }

    /// Lets so many portions pass.
    fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for process in 0..2 {
                let session = &mut self.sessions[process];
                let output = session.output();
                let sent = output.len().min(self.portion);
                self.to_gateway[process].extend(&output[..sent]);
                session.sent(sent);
                let come = self.from_gateway[process].len().min(self.portion);
                let bytes: Vec<u8> = self.from_gateway[process].drain(..come).collect();
                session.received(&bytes).unwrap();
                self.gateway(process);
            }
        }
    }

    fn send(&mut self, from: usize, comm: u64, tag: i32, data: &Bytes) -> Handle {
        self.sessions[from].mail.send(peer(1 - from), comm, tag, data.clone())
    }
    fn recv(&mut self, at: usize, comm: u64, tag: i32, data: &Bytes) -> Handle {
        self.sessions[at].mail.recv(peer(1 - at), comm, tag, data.clone())
    }
    fn test(&mut self, at: usize, handle: Handle) -> Option<Result<usize, Failure>> {
        self.sessions[at].mail.test(handle)
    }
}

const LONG: usize = 3 * 65_536 + 5;

#[test]
fn messages_are_matched_by_sender_communicator_and_tag_in_their_order() {
    for portion in [1 << 20, 4000, 37] {
        for early in [false, true] {
            let mut world = World::new(portion);
            let sizes = [8, LONG, 0, EAGER, EAGER + 1, 100];
            let sent: Vec<Bytes> = (0..).zip(sizes).map(|(seed, bytes)| Bytes::of(bytes, seed)).collect();
            let places = [(1, 5), (1, 5), (1, 5), (2, 5), (1, -6), (1, 5)];
            let got: Vec<Bytes> = sizes.iter().map(|&bytes| Bytes::of(bytes, 99)).collect();
            // In another order where tags or communicators differ.
            let order = [4, 3, 0, 1, 2, 5];
            let mut receives = Vec::new();
            if early {
                receives = order.map(|i| world.recv(1, places[i].0, places[i].1, &got[i])).to_vec();
            }
            let sends: Vec<Handle> = (0..6).map(|i| world.send(0, places[i].0, places[i].1, &sent[i])).collect();
            world.run(100 + 4 * LONG / portion);
            if !early {
                assert_eq!(world.test(0, sends[1]), None, "a long message waits for its receive");
                receives = order.map(|i| world.recv(1, places[i].0, places[i].1, &got[i])).to_vec();
                world.run(100 + 4 * LONG / portion);
            }
            for (i, &handle) in order.iter().zip(&receives) {
                assert_eq!(world.test(1, handle), Some(Ok(sizes[*i])), "{portion} {early} {i}");
                assert!(got[*i].is(&sent[*i]), "{portion} {early} {i}");
            }
            for (i, &handle) in sends.iter().enumerate() {
                assert_eq!(world.test(0, handle), Some(Ok(sizes[i])));
            }
            assert!(world.sessions.iter().all(|session| !session.mail.is_busy()), "something is left");
        }
    }
}

#[test]
fn a_short_message_is_over_when_it_has_left() {
    let mut world = World::new(10);
    let data = Bytes::of(8, 0);
    let handle = world.send(0, 1, 1, &data);
    assert_eq!(world.test(0, handle), None, "nobody is let in yet");
    world.run(100);
    assert_eq!(world.test(0, handle), Some(Ok(8)));
    assert_eq!(world.data, 1, "one frame");
}

#[test]
fn other_lengths_are_told_and_nothing_is_written() {
    for bytes in [8, LONG] {
        let mut world = World::new(1 << 20);
        let (data, short) = (Bytes::of(bytes, 1), Bytes::of(7, 2));
        let (out, into) = (world.send(0, 1, 1, &data), world.recv(1, 1, 1, &short));
        world.run(20);
        assert_eq!((world.test(0, out), world.test(1, into)), (Some(Ok(bytes)), Some(Ok(bytes))));
        assert!(short.is(&Bytes::of(7, 2)));
    }
}

#[test]
fn who_gives_up_harms_nobody_else() {
    let mut world = World::new(70_000);
    let data: Vec<Bytes> = (0..4).map(|seed| Bytes::of(LONG, seed)).collect();
    let got: Vec<Bytes> = (0..4).map(|_| Bytes::of(LONG, 9)).collect();
    world.run(5);
    let out: Vec<Handle> = (0..4).map(|i| world.send(0, 1, i as i32, &data[i])).collect();
    world.run(3);
    // The first sender before its message is asked for, the second in its midst, the third's receiver.
    world.sessions[0].mail.give_up(out[0]);
    let into: Vec<Handle> = (0..4).map(|i| world.recv(1, 1, i as i32, &got[i])).collect();
    world.run(4);
    world.sessions[0].mail.give_up(out[1]);
    world.sessions[1].mail.give_up(into[2]);
    let before = got[2].0.borrow().clone();
    world.run(40);
    assert_eq!(world.test(1, into[0]), Some(Err(Failure::GivenUp)));
    assert_eq!(world.test(1, into[1]), Some(Err(Failure::GivenUp)));
    assert_eq!(*got[2].0.borrow(), before, "memory that was given back");
    assert_eq!(world.test(0, out[2]), Some(Ok(LONG)), "the pieces left");
    assert_eq!((world.test(1, into[3]), got[3].is(&data[3])), (Some(Ok(LONG)), true));
}

#[test]
fn what_came_early_is_forgotten_with_its_communicator() {
    let mut world = World::new(1 << 20);
    for comm in [1, 2] {
        world.send(0, comm, 1, &Bytes::of(4, comm as u8));
    }
    world.run(10);
    world.sessions[1].mail.forget(1);
    let got = [Bytes::of(4, 9), Bytes::of(4, 9)];
    let [one, two] = [1, 2].map(|comm| world.recv(1, comm, 1, &got[comm as usize - 1]));
    assert_eq!((world.test(1, one), world.test(1, two)), (None, Some(Ok(4))));
}

#[test]
fn who_is_lost_fails_its_messages_only() {
    let mut world = World::new(1 << 20);
    world.run(5);
    let lost = |cluster, process| encode(Header { cluster, peer: process, ..Header::plain(Kind::Lost, 0) }, b"why");
    let data = Bytes::of(4, 0);
    let (out, into) = (world.send(0, 1, 1, &data), world.recv(0, 1, 2, &data));
    world.sessions[0].received(&lost(1, 7)).unwrap();
    assert_eq!((world.test(0, out), world.test(0, into)), (None, None));
    world.sessions[0].received(&lost(1, ALL)).unwrap();
    assert_eq!((world.test(0, out), world.test(0, into)), (Some(Err(Failure::Lost)), Some(Err(Failure::Lost))));
    let later = world.send(0, 1, 1, &data);
    assert_eq!(world.test(0, later), Some(Err(Failure::Lost)));
    assert_eq!(world.sessions[0].notices, ["why", "why"]);
    // Nobody is left.
    let mut world = World::new(1 << 20);
    let into = world.recv(0, 1, 2, &data);
    world.sessions[0].mail.lose(None, None);
    assert_eq!(world.test(0, into), Some(Err(Failure::Lost)));
}

/// A gateway, or who poses as one.
#[test]
fn what_a_gateway_must_not_send_ends_the_connection() {
    let ends = |begin: usize, bytes: Vec<u8>, why: &str| {
        let mut world = World::new(1 << 20);
        world.run(begin);
        let end = world.sessions[0].received(&bytes).expect_err(why);
        assert!(end.contains(why), "{end}, not {why}");
    };
    ends(0, plain(Kind::Welcome, &[]), "Welcome out of turn");
    ends(0, plain(Kind::Challenge, &[0; 64]), "another key");
    ends(0, plain(Kind::Refused, b"no such key"), "no such key");
    ends(0, plain(Kind::Alive, &[]), "Alive out of turn");
    ends(9, plain(Kind::Bye, &[]), "it ends");
    ends(9, vec![0; 32], "version 0");
    let data = |payload: &[u8]| encode(Header::plain(Kind::Data, payload.len()), payload);
    ends(9, data(&[0; 15]), "a message that is none");
    ends(9, data(&[9; 16]), "a message that is none");
}

#[test]
fn a_sign_of_life_says_nothing() {
    let mut world = World::new(1 << 20);
    world.run(9);
    assert_eq!(world.sessions[0].received(&plain(Kind::Alive, &[]).repeat(3)), Ok(()));
    assert!(!world.sessions[0].mail.is_busy() && world.sessions[0].notices.is_empty());
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..3000, 60_000usize..150_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Many messages both ways, posted in any order, in any portions.
    #[test]
    fn all_arrive(
        portion in 5_000usize..200_000,
        steps in prop::collection::vec((0usize..2, 0usize..2, 0i32..3, lengths(), 0usize..4), 1..12),
    ) {
        let mut world = World::new(portion);
        let (mut sent, mut got) = (Vec::new(), Vec::new());
        let mut posted: Vec<(usize, bool, Handle, usize)> = Vec::new();
        // Receives are posted before their sends, until one is put off to the end: the later ones are, too.
        let mut receives: Vec<(usize, i32, usize)> = Vec::new();
        for (number, &(from, early, tag, bytes, rounds)) in steps.iter().enumerate() {
            sent.push(Bytes::of(bytes, number as u8));
            got.push(Bytes::of(bytes, 200));
            if early == 1 && receives.is_empty() {
                posted.push((1 - from, true, world.recv(1 - from, 1, tag, &got[number]), bytes));
            } else {
                receives.push((1 - from, tag, number));
            }
            posted.push((from, false, world.send(from, 1, tag, &sent[number].clone()), bytes));
            world.run(rounds);
        }
        for (at, tag, number) in receives {
            let bytes = steps[number].3;
            posted.push((at, true, world.recv(at, 1, tag, &got[number]), bytes));
        }
        let total: usize = steps.iter().map(|step| step.3 + 200).sum();
        world.run(20 + 20 * steps.len() + 4 * total / portion);
        for (at, is_receive, handle, bytes) in posted {
            prop_assert_eq!(world.test(at, handle), Some(Ok(bytes)), "{}", is_receive);
        }
        prop_assert!(sent.iter().zip(&got).all(|(sent, got)| sent.is(got)));
    }
}
