// SPDX-License-Identifier: BSD-3-Clause
//! A million inputs for everything that reads bytes of others, before or behind a proof.

use crate::support::*;
use coll_rust::relay::frame::{self, Frame, HEADER};
use coll_rust::relay::hello::Hello;
use coll_rust_gateway::noise::About;
use coll_rust_gateway::wire::{self, Head, Kind, Resume};

/// Inputs: the same number with and without optimisation.
const INPUTS: u64 = 1_000_000;

/// Bytes that are often nearly right: one of the originals with some bytes changed, cut or longer.
fn input(random: &mut Random, originals: &[Vec<u8>]) -> Vec<u8> {
    if random.below(8) == 0 {
        let length = random.below(96) as usize;
        return random.bytes(length);
    }
    let mut bytes = originals[random.below(originals.len() as u64) as usize].clone();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = if random.below(2) == 0 { random.next() as u8 } else { bytes[at].wrapping_add(1) };
    }
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
        1 => bytes.extend(vec![random.next() as u8; random.below(40) as usize]),
        _ => {}
    }
    bytes
}

#[test]
fn a_million_inputs_are_read_or_refused() {
    let hello = Who::new("job", 0, 0, 0).hello([1; 32]);
    let data = frame::encode(frame::Header::plain(frame::Kind::Data, 20), &[5; 20]);
    let between = wire::encode(Head { source: 1, destination: 2, ..Head::new(Kind::Data, 20) }, &[5; 20]);
    let resume = Resume { me: [1; 16], you: [2; 16], received: 3, base: 4, destinations: 5 }.encode();
    let (from, to) = ("north".to_owned(), "south".to_owned());
    let about = About { hash: [1; 32], key: "astro".to_owned(), from, to }.encode();
    let originals = [hello, data, between, resume, about];
    let mut random = Random(0x5eed);
    let mut whole = [0; 5];
    for _ in 0..INPUTS {
        let bytes = input(&mut random, &originals);
        if let Ok(Some(found)) = Frame::parse(&bytes) {
            whole[0] += 1;
            assert_eq!(frame::encode(found.header, found.payload), bytes[..HEADER + found.payload.len()]);
            let hello = (found.header.kind == frame::Kind::Hello).then(|| Hello::decode(&found));
            if let Some(Ok(hello)) = hello {
                whole[1] += 1;
                assert_eq!(hello.encode().unwrap()[HEADER..], *found.payload);
            }
        }
        if let Ok(Some((head, payload))) = wire::parse(&bytes) {
            whole[2] += 1;
            assert!(payload.len() == head.length as usize && payload.len() <= frame::PAYLOAD);
            if head.kind == Kind::Resume && Resume::decode(&head, payload).is_some() {
                whole[3] += 1;
            }
        }
        if let Some((about, rest)) = About::decode(&bytes) {
            whole[4] += 1;
            assert_eq!([about.encode(), rest.to_vec()].concat(), bytes);
        }
    }
    // Each of them was read often enough to say something, and refused as often.
    assert!(whole.iter().all(|&count| count > 50_000 && count < INPUTS / 2), "{whole:?}");
}
