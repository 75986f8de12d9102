// SPDX-License-Identifier: BSD-3-Clause
//! Links, and when what crosses them is through.
//!
//! A link carries one message after the other, in the order in which they leave their senders. A message
//! goes on as soon as its first bytes are there, and is through when the slowest link has let its last ones
//! pass. So those that come together share what a link has.

use super::super::machine::Distance;
use super::super::spent::{Cause, Path};
use super::super::{Time, caches::LINE};
use super::network::{Places, takes};
use crate::endpoint::Rank;

/// When each link is free again.
pub struct Links {
    /// Of each adapter: out, in.
    nics: Vec<[Time; 2]>,
    /// Of each switch that is below others, by layer: up, down.
    uplinks: Vec<Vec<[Time; 2]>>,
    /// Of each node: the links of its level-3 caches, then those of its sockets.
    inside: Vec<Time>,
    caches: usize,
    parts: usize,
}

/// How a message went.
#[derive(Clone, Copy, Debug)]
pub struct Crossed {
    /// Its last byte is there.
    pub done: Time,
    /// With what it spent the time since it left.
    pub path: Path,
}

impl Links {
    /// Those of a job.
    pub fn new(places: &Places<'_>) -> Links {
        let nodes = places.nodes as usize;
        let mut switches = places.nodes;
        let layers = &places.network.layers;
        let uplinks = layers[..layers.len().saturating_sub(1)].iter().map(|layer| {
            switches = switches.div_ceil(layer.below);
            vec![[0; 2]; switches as usize]
        });
        let uplinks = uplinks.collect();
        let [_, caches, _, sockets] = places.machine.shape.places(places.machine.shape.cores() - 1);
        let (caches, parts) = (caches as usize + 1, caches as usize + sockets as usize + 2);
        let nics = vec![[0; 2]; nodes * places.network.nics as usize];
        Links { nics, uplinks, inside: vec![0; nodes * parts], caches, parts }
    }

    /// A message of so many bytes leaves for another node, of this level.
    pub fn across(&mut self, places: &Places<'_>, (from, to): (Rank, Rank), bytes: usize, now: Time) -> Crossed {
        let network = places.network;
        let layer = places.level(from, to) - Distance::COUNT;
        let messages = &network.layers[layer].messages;
        let own = takes(bytes, network.nic);
        let alone = takes(bytes, network.nic.max(messages.each));
        let out = &mut self.nics[places.nic(from)][0];
        let start = now.max(*out);
        *out = start + own.max(messages.gap);
        let (mut head, mut through) = (start, start + alone);
        let mut at = [places.node(from), places.node(to)];
        for (links, below) in self.uplinks.iter_mut().zip(&network.layers).take(layer) {
            at = at.map(|at| at / below.below);
            for (way, at) in at.into_iter().enumerate() {
                let free = &mut links[at as usize][way];
                head = head.max(*free);
                *free = head + takes(bytes, below.uplink);
                through = through.max(*free).max(head + alone);
            }
        }
        let uplinks = through - start - alone;
        let came = head + messages.latency;
        let into = &mut self.nics[places.nic(to)][1];
        let begin = came.max(*into);
        *into = begin + own.max(messages.gap);
        let done = (through + messages.latency).max(begin + alone);
        let mut path = Path::default();
        path.add(Cause::Latency, messages.latency);
        path.add(Cause::Transfer, alone);
        path.add(Cause::Uplink, uplinks);
        path.add(Cause::Nic, done - now - messages.latency - alone - uplinks);
        Crossed { done, path }
    }

    /// A rank reads so many bytes of another one on its node, from `now` on. Returns when it is through.
    pub fn inside(&mut self, places: &Places<'_>, (from, to): (Rank, Rank), bytes: usize, now: Time) -> Time {
        let (machine, lines) = (places.machine, bytes.div_ceil(LINE) as Time);
        let far = places.level(from, to);
        let own = machine.caches[0] + machine.caches[1];
        let each = if bytes > own { machine.memory[1].max(machine.stream[far]) } else { machine.stream[far] };
        let mut done = now + lines * each;
        let [_, cache, _, socket] = machine.shape.places(places.core(to));
        let node = places.node(to) as usize * self.parts;
        let links = [
            (far > Distance::L3 as usize, cache as usize, machine.shared[1]),
            (far == Distance::Node as usize, self.caches + socket as usize, machine.shared[2]),
        ];
        for (_, part, each) in links.into_iter().filter(|link| link.0) {
            let free = &mut self.inside[node + part];
            *free = now.max(*free) + lines * each;
            done = done.max(*free);
        }
        done
    }
}
