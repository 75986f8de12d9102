// SPDX-License-Identifier: BSD-3-Clause
//! What every [`Endpoint`] has to do: one suite for the simulated and the real one.
//!
//! All ranks call the same function at the same time, one function after the other: [`all`] does. Each panics
//! with a message that says what the endpoint did wrong. With one rank, those that send do nothing.

#![forbid(unsafe_code)]

use super::{Rng, UnitBuffer, UnitType};
use crate::endpoint::{Endpoint, MAX_LANES, PHASES, Rank, Result, Span, Tag, TempBuffer};

/// Combines the data of a unit on the left into those of one on the right.
pub type Combine = fn(&[u8], &mut [u8]);

/// What the suite knows of the endpoint that it tests.
#[derive(Clone, Copy)]
pub struct Kit {
    /// Layout of the operation's unit.
    pub unit: UnitType,
    /// Length of the long messages, in units: enough that they are not sent eagerly.
    pub long: usize,
    /// What the operation's `reduce` does to the data of two units; none where the operation reduces nothing.
    pub combine: Option<Combine>,
}

impl Kit {
    /// A buffer whose data are known from `key`.
    fn filled(&self, key: u64, units: usize) -> UnitBuffer {
        let buffer = self.empty(units);
        buffer.set(&self.data(key, units));
        buffer
    }

    /// The data of such a buffer.
    fn data(&self, key: u64, units: usize) -> Vec<u8> {
        let mut rng = Rng::new(key);
        (0..units * self.unit.size).map(|_| rng.bits() as u8).collect()
    }

    /// A buffer to receive into.
    fn empty(&self, units: usize) -> UnitBuffer {
        UnitBuffer::new(self.unit, units)
    }

    /// Panics unless the buffer holds the data known from `key`, and nothing else was written.
    fn expect(&self, what: &str, rank: Rank, buffer: &UnitBuffer, key: u64) {
        assert!(buffer.data() == self.data(key, buffer.len()), "{what}: rank {rank} has wrong data (message {key:#x})");
        assert!(buffer.gaps_intact(), "{what}: rank {rank} wrote outside the units (message {key:#x})");
    }
}

/// The tag of phase `phase` in lane `lane`.
fn tag(lane: u8, phase: u8) -> Tag {
    Tag { lane, phase, level: 0 }
}

/// Names message `index` from `from` to `to`.
fn key(from: Rank, to: Rank, index: usize) -> u64 {
    (u64::from(from) << 40) ^ (u64::from(to) << 16) ^ index as u64
}

/// The ranks after and before one's own in the ring; none where there is only one.
fn neighbours<E: Endpoint>(ep: &E) -> Option<(Rank, Rank)> {
    let (me, size) = (ep.rank(), ep.size());
    (size > 1).then(|| ((me + 1) % size, (me + size - 1) % size))
}

/// Runs the whole suite.
pub async fn all<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    rank_and_size(ep);
    ping_pong(ep, kit).await?;
    order_in_tag(ep, kit).await?;
    many_receives(ep, kit).await?;
    lanes_and_phases(ep, kit).await?;
    zero_units(ep, kit).await?;
    parts_of_a_buffer(ep, kit).await?;
    temp_reuse(ep, kit).await?;
    copies(ep, kit);
    reduce_order(ep, kit);
    Ok(())
}

/// The rank is one of the communicator's.
pub fn rank_and_size<E: Endpoint>(ep: &E) {
    assert!(ep.rank() < ep.size(), "rank {} of {}", ep.rank(), ep.size());
}

/// Pairs of ranks exchange a message there and back, short and long.
pub async fn ping_pong<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let (me, peer) = (ep.rank(), ep.rank() ^ 1);
    if peer >= ep.size() {
        return Ok(());
    }
    for (index, units) in [1, 7, kit.long].into_iter().enumerate() {
        let (ping, pong) = (kit.filled(key(me, peer, index), units), kit.empty(units));
        if me < peer {
            ep.send(peer, tag(0, 0), ping.span()).await?;
            ep.recv(peer, tag(0, 0), pong.span()).await?;
        } else {
            ep.recv(peer, tag(0, 0), pong.span()).await?;
            ep.send(peer, tag(0, 0), ping.span()).await?;
        }
        kit.expect("ping_pong", me, &pong, key(peer, me, index));
        kit.expect("ping_pong, sender", me, &ping, key(me, peer, index));
    }
    Ok(())
}

/// Messages of one tag match in the order of posting, whatever their lengths and whichever is awaited first.
pub async fn order_in_tag<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let (me, Some((next, previous))) = (ep.rank(), neighbours(ep)) else { return Ok(()) };
    let lens = [kit.long, 1, 3, kit.long, 2, 1, kit.long, 5];
    let sent: Vec<_> = lens.iter().enumerate().map(|(i, &len)| kit.filled(key(me, next, i), len)).collect();
    let received: Vec<_> = lens.iter().map(|&len| kit.empty(len)).collect();
    // Half of the receives are posted before their messages, half after.
    let mut posts: Vec<_> = received[..4].iter().map(|b| ep.recv(previous, tag(1, 0), b.span())).collect();
    posts.extend(sent.iter().map(|b| ep.send(next, tag(1, 0), b.span())));
    posts.extend(received[4..].iter().map(|b| ep.recv(previous, tag(1, 0), b.span())));
    for post in posts.into_iter().rev() {
        post.await?;
    }
    for (i, buffer) in received.iter().enumerate() {
        kit.expect("order_in_tag", me, buffer, key(previous, me, i));
    }
    Ok(())
}

/// Everybody posts a receive from everybody, then sends to everybody.
pub async fn many_receives<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let me = ep.rank();
    let peers: Vec<Rank> = (0..ep.size()).filter(|&peer| peer != me).collect();
    let received: Vec<_> = peers.iter().map(|_| kit.empty(3)).collect();
    let sent: Vec<_> = peers.iter().map(|&peer| kit.filled(key(me, peer, 0), 3)).collect();
    let mut posts: Vec<_> = peers.iter().zip(&received).map(|(&p, b)| ep.recv(p, tag(0, 1), b.span())).collect();
    posts.extend(peers.iter().zip(&sent).map(|(&p, b)| ep.send(p, tag(0, 1), b.span())));
    for post in posts {
        post.await?;
    }
    for (&peer, buffer) in peers.iter().zip(&received) {
        kit.expect("many_receives", me, buffer, key(peer, me, 0));
    }
    Ok(())
}

/// Every lane and phase is a stream of its own: messages sent in one order are received in the opposite one.
pub async fn lanes_and_phases<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let (me, Some((next, previous))) = (ep.rank(), neighbours(ep)) else { return Ok(()) };
    let tags: Vec<_> = (0..MAX_LANES).flat_map(|lane| (0..PHASES).map(move |phase| tag(lane, phase))).collect();
    let sent: Vec<_> = (0..tags.len()).map(|i| kit.filled(key(me, next, i), 2)).collect();
    let received: Vec<_> = tags.iter().map(|_| kit.empty(2)).collect();
    let mut posts: Vec<_> = tags.iter().zip(&sent).map(|(&tag, b)| ep.send(next, tag, b.span())).collect();
    for (&tag, buffer) in tags.iter().zip(&received).rev() {
        // The level is for counters: it does not have to agree.
        posts.push(ep.recv(previous, Tag { level: 1, ..tag }, buffer.span()));
    }
    for post in posts {
        post.await?;
    }
    for (i, buffer) in received.iter().enumerate() {
        kit.expect("lanes_and_phases", me, buffer, key(previous, me, i));
    }
    Ok(())
}

/// Messages without units are messages: they take their place in the order, and they synchronise.
pub async fn zero_units<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let (me, Some((next, previous))) = (ep.rank(), neighbours(ep)) else { return Ok(()) };
    let (sent, received) = (kit.filled(key(me, next, 0), 4), kit.empty(4));
    let posts = [
        ep.recv(previous, tag(0, 2), Span::empty()),
        ep.recv(previous, tag(0, 2), received.span()),
        ep.recv(previous, tag(0, 2), received.span().slice(2..2)),
        ep.send(next, tag(0, 2), Span::empty()),
        ep.send(next, tag(0, 2), sent.span()),
        ep.send(next, tag(0, 2), sent.span().slice(4..4)),
    ];
    for post in posts {
        post.await?;
    }
    kit.expect("zero_units", me, &received, key(previous, me, 0));
    ep.copy(Span::empty(), Span::empty());
    ep.reduce(Span::empty(), Span::empty());
    Ok(())
}

/// Parts of one buffer are separate messages; many sends may share their data; what lies between stays.
pub async fn parts_of_a_buffer<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let (me, Some((next, previous))) = (ep.rank(), neighbours(ep)) else { return Ok(()) };
    let (sent, received) = (kit.filled(key(me, next, 0), 10), kit.filled(key(me, me, 1), 10));
    let (from, to) = (sent.span(), received.span());
    let posts = [
        ep.send(next, tag(0, 3), from.slice(0..4)),
        ep.send(next, tag(0, 3), from.slice(2..5)),
        ep.recv(previous, tag(0, 3), to.slice(5..9)),
        ep.recv(previous, tag(0, 3), to.slice(1..4)),
    ];
    for post in posts {
        post.await?;
    }
    let (data, mut expected) = (kit.data(key(previous, me, 0), 10), kit.data(key(me, me, 1), 10));
    let size = kit.unit.size;
    expected[5 * size..9 * size].copy_from_slice(&data[..4 * size]);
    expected[size..4 * size].copy_from_slice(&data[2 * size..5 * size]);
    assert!(received.data() == expected, "parts_of_a_buffer: rank {me} has wrong data");
    assert!(received.gaps_intact(), "parts_of_a_buffer: rank {me} wrote outside the units");
    Ok(())
}

/// Temporary buffers have the length asked for, are apart from each other, and can be had again and again.
pub async fn temp_reuse<E: Endpoint>(ep: &E, kit: Kit) -> Result<()> {
    let me = ep.rank();
    for round in 0..4 {
        let temps = [ep.temp(3)?, ep.temp(0)?, ep.temp(kit.long)?, ep.temp(3)?];
        for (temp, units) in temps.iter().zip([3, 0, kit.long, 3]) {
            assert_eq!(temp.span().len(), units, "temp_reuse: rank {me} got a buffer of another length");
        }
        for (i, temp) in temps.iter().enumerate() {
            ep.copy(kit.filled(key(me, i as Rank, round), temp.span().len()).span(), temp.span());
        }
        let read = |what: &str, i: usize, temp: Span, from: Rank| {
            let buffer = kit.empty(temp.len());
            ep.copy(temp, buffer.span());
            kit.expect(what, me, &buffer, key(from, i as Rank, round));
        };
        for (i, temp) in temps.iter().enumerate() {
            read("temp_reuse", i, temp.span(), me);
        }
        if let Some((next, previous)) = neighbours(ep) {
            let landing = ep.temp(kit.long)?;
            let recv = ep.recv(previous, tag(0, 4), landing.span());
            ep.send(next, tag(0, 4), temps[2].span()).await?;
            recv.await?;
            read("temp_reuse, message", 2, landing.span(), previous);
        }
    }
    Ok(())
}

/// `copy` copies the units, and nothing between or beside them.
pub fn copies<E: Endpoint>(ep: &E, kit: Kit) {
    let me = ep.rank();
    for units in [1, 2, 9, kit.long] {
        let (from, to) = (kit.filled(key(me, 0, units), units), kit.empty(units));
        ep.copy(from.span(), to.span());
        kit.expect("copies", me, &to, key(me, 0, units));
    }
}

/// `reduce` keeps the order of its operands, and puts the result into the right one.
pub fn reduce_order<E: Endpoint>(ep: &E, kit: Kit) {
    let (me, Some(combine)) = (ep.rank(), kit.combine) else { return };
    for units in [1, 2, 9, kit.long] {
        let (left, right) = (kit.filled(key(me, 0, units), units), kit.filled(key(me, 1, units), units));
        let (a, mut b) = (left.data(), right.data());
        if kit.unit.size > 0 {
            a.chunks(kit.unit.size).zip(b.chunks_mut(kit.unit.size)).for_each(|(a, b)| combine(a, b));
        }
        ep.reduce(left.span(), right.span());
        assert!(right.data() == b, "reduce_order: rank {me} has a wrong result for {units} units");
        assert!(right.gaps_intact(), "reduce_order: rank {me} wrote outside the units");
        kit.expect("reduce_order, left", me, &left, key(me, 0, units));
    }
}
