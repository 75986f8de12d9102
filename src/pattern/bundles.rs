// SPDX-License-Identifier: BSD-3-Clause
//! Who hands what to whom where the blocks between two nodes travel together.
//!
//! Of each two nodes with enough edges between them, each has a *leader*: one of its members that have edges
//! there, another one for each other node, as far as there are others. The blocks from one node to the other
//! are a *bundle*: by sender, of each by receiver. Senders hand theirs to the leader of their node, it sends
//! the bundle to the leader of the other one, which hands to each receiver what is for it.
//!
//! Every member finds its part from the neighbourhoods of the members of its own node: all edges of the two
//! nodes have an end there.

use super::neighborhood::Neighbors;
use std::collections::BTreeMap;

/// What a member hands to a leader of its node and gets from it, for one other node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Via {
    /// The leader; maybe the member itself.
    pub leader: usize,
    /// Slots of the send buffer, in the order of the bundle.
    pub out: Vec<usize>,
    /// Slots of the receive buffer that each block is for, in the order of the bundle.
    pub into: Vec<Vec<usize>>,
}

/// A member whose blocks a leader collects and hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The member.
    pub member: usize,
    /// How many blocks it hands in.
    pub out: usize,
    /// Which blocks of the arriving bundle it gets.
    pub into: Vec<usize>,
}

/// What a leader does for one other node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// The leader over there.
    pub peer: usize,
    /// The members of its own node that have edges there, ascending.
    pub shares: Vec<Share>,
    /// The leader's own part: its place in [`Bundles::vias`].
    pub own: usize,
}

/// The part of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundles {
    /// Edges that go without: within the node, and to nodes with few.
    pub plain: Neighbors,
    /// For each other node that the member has bundled edges with, ascending.
    pub vias: Vec<Via>,
    /// For each that it leads for, ascending.
    pub led: Vec<Led>,
}

/// Edges between two nodes, sorted by the end over there after that here, as (member, peer, slot).
type Edges = Vec<(usize, usize, usize)>;

impl Bundles {
    /// The part of member `me`. `local`: the neighbourhoods of all members of its node that have any,
    /// ascending. `node`: the number of a member's node, the same for all who ask. `same`: every receiver
    /// gets the same block from a sender, so a bundle has it once. `least`: edges between two nodes, both
    /// ways together, for which it pays.
    pub fn new(
        me: usize,
        local: &[(usize, Neighbors)],
        node: impl Fn(usize) -> usize,
        same: bool,
        least: usize,
    ) -> Bundles {
        let here = node(me);
        let mut nodes: BTreeMap<usize, (Edges, Edges)> = BTreeMap::new();
        for (member, neighbors) in local {
            for (edges, outgoing) in [(&neighbors.destinations, true), (&neighbors.sources, false)] {
                for edge in edges.iter().filter(|edge| node(edge.peer) != here) {
                    let (out, into) = nodes.entry(node(edge.peer)).or_default();
                    if outgoing { out } else { into }.push((*member, edge.peer, edge.slot));
                }
            }
        }
        nodes.retain(|_, (out, into)| out.len() + into.len() >= least.max(1));
        let own = local.iter().find(|(member, _)| *member == me).map(|(_, neighbors)| neighbors.clone());
        let mut plain = own.unwrap_or_default();
        plain.retain(|edge| !nodes.contains_key(&node(edge.peer)));
        let mut bundles = Bundles { plain, ..Bundles::default() };
        for (there, (mut out, mut into)) in nodes {
            // Edges of the same ends keep the order in which they are matched.
            out.sort_by_key(|&(member, peer, _)| (member, peer));
            into.sort_by_key(|&(member, peer, _)| (peer, member));
            bundles.add(me, here, there, &out, &into, same);
        }
        bundles
    }

    /// The same with other numbers for the members.
    pub fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        self.plain.renumber(&number);
        self.vias.iter_mut().for_each(|via| via.leader = number(via.leader));
        for led in &mut self.led {
            led.peer = number(led.peer);
            led.shares.iter_mut().for_each(|share| share.member = number(share.member));
        }
    }

    /// Whom it has messages with, in any order.
    pub fn peers(&self) -> impl Iterator<Item = usize> {
        let led = self.led.iter().flat_map(|led| led.shares.iter().map(|share| share.member).chain([led.peer]));
        self.plain.peers().chain(self.vias.iter().map(|via| via.leader)).chain(led)
    }

    /// Adds another node.
    fn add(&mut self, me: usize, here: usize, there: usize, out: &Edges, into: &Edges, same: bool) {
        let (members, peers) = (ends(out, into, |edge| edge.0), ends(out, into, |edge| edge.1));
        let leader = members[there % members.len()];
        // The blocks of the arriving bundle: the slots of each receiver.
        let mut number = 0;
        let mut shares: Vec<Share> = members.iter().map(|&member| Share { member, out: 0, into: Vec::new() }).collect();
        let mut via = Via { leader, ..Via::default() };
        let mut last = None;
        for &(member, peer, slot) in into {
            let first_of_peer = last.is_some_and(|last: (usize, usize)| last.1 != peer);
            if last.is_some() && (!same || first_of_peer) {
                number += 1;
            }
            let again = same && last == Some((member, peer));
            let share = &mut shares[members.partition_point(|&other| other < member)];
            if !again {
                share.into.push(number);
            }
            if member == me && again {
                via.into.last_mut().into_iter().for_each(|slots| slots.push(slot));
            } else if member == me {
                via.into.push(vec![slot]);
            }
            last = Some((member, peer));
        }
        for &(member, _, slot) in out {
            let share = &mut shares[members.partition_point(|&other| other < member)];
            if same && share.out > 0 {
                continue;
            }
            share.out += 1;
            if member == me {
                via.out.push(slot);
            }
        }
        if members.binary_search(&me).is_ok() {
            self.vias.push(via);
        }
        if leader == me {
            self.led.push(Led { peer: peers[here % peers.len()], shares, own: self.vias.len() - 1 });
        }
    }
}

/// One end of all edges, each member once, ascending.
fn ends(out: &Edges, into: &Edges, end: impl Fn(&(usize, usize, usize)) -> usize) -> Vec<usize> {
    let mut all: Vec<usize> = out.iter().chain(into).map(end).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Led {
    /// Blocks of the arriving bundle.
    pub fn arriving(&self) -> usize {
        self.shares.iter().flat_map(|share| &share.into).max().map_or(0, |last| last + 1)
    }
}
