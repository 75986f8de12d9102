// SPDX-License-Identifier: BSD-3-Clause
//! What goes to one other gateway: the frames that it has not acknowledged yet, and the credit of every
//! destination. Numbers in, numbers out: no sockets, no time.
//!
//! A frame is paid for before it is read from its sender, so that what one job holds is bounded: `reserve`,
//! then `push` (or `release` if the sender went away). It needs credit of its destination, which the other
//! gateway grants, and a part of `capacity`, which comes back with acknowledgements.

use crate::wire::{OVERHEAD, cost};
use std::collections::{HashMap, VecDeque};

/// What a sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Paid for.
    Yes,
    /// Not yet: ask again after an acknowledgement or a grant.
    Wait,
    /// The other gateway serves no further destination of this job.
    TooMany,
}

#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    granted: u64,
    used: u64,
}

struct Queued {
    bytes: Vec<u8>,
    /// What comes back when it is acknowledged.
    cost: u64,
}

/// See the module.
pub struct Outgoing {
    capacity: u64,
    used: u64,
    queue: VecDeque<Queued>,
    /// The number of the first frame in the queue.
    first: u64,
    /// The number of the next frame to be sent on the connection there is.
    cursor: u64,
    /// What the other gateway said: credit of every destination, and how many there may be.
    terms: Option<(u64, u64)>,
    credits: HashMap<u64, Credit>,
}

impl Outgoing {
    /// With so many bytes for what is not acknowledged.
    pub fn new(capacity: u64) -> Outgoing {
        let (queue, credits) = (VecDeque::new(), HashMap::new());
        Outgoing { capacity, used: 0, queue, first: 0, cursor: 0, terms: None, credits }
    }

    /// Bytes held now, and promised to senders.
    pub fn held(&self) -> u64 {
        self.used
    }

    /// Whether all has been acknowledged.
    pub fn drained(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether something waits to be sent on this connection.
    pub fn pending(&self) -> bool {
        self.cursor < self.next()
    }

    fn next(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    /// Asks for a frame with such a payload to be paid for.
    pub fn reserve(&mut self, destination: u64, payload: usize) -> Answer {
        let Some((base, most)) = self.terms else { return Answer::Wait };
        let known = self.credits.len() as u64;
        if !self.credits.contains_key(&destination) && known >= most {
            return Answer::TooMany;
        }
        let credit = self.credits.entry(destination).or_insert(Credit { granted: base, used: 0 });
        let cost = cost(payload);
        if credit.used + cost > credit.granted || self.used + cost > self.capacity {
            return Answer::Wait;
        }
        credit.used += cost;
        self.used += cost;
        Answer::Yes
    }

    /// Gives back what was reserved for a frame that does not come.
    pub fn release(&mut self, destination: u64, payload: usize) {
        let cost = cost(payload);
        self.used = self.used.saturating_sub(cost);
        if let Some(credit) = self.credits.get_mut(&destination) {
            credit.used = credit.used.saturating_sub(cost);
        }
    }

    /// A frame that was paid for.
    pub fn push(&mut self, bytes: Vec<u8>, payload: usize) {
        self.queue.push_back(Queued { bytes, cost: cost(payload) });
    }

    /// A frame about a process: needs no credit, since there are few.
    pub fn push_unpaid(&mut self, bytes: Vec<u8>) {
        self.used += OVERHEAD;
        self.queue.push_back(Queued { bytes, cost: OVERHEAD });
    }

    /// A new connection: the other side has got `received` frames, and says its terms.
    pub fn resume(&mut self, received: u64, base: u64, destinations: u64) -> Result<(), &'static str> {
        if self.terms.is_some_and(|terms| terms != (base, destinations)) {
            return Err("it changed the credit of its destinations");
        }
        self.cursor = self.next();
        self.acknowledge(received)?;
        self.cursor = received;
        self.terms = Some((base, destinations));
        Ok(())
    }

    /// The other side has got `received` frames in all.
    pub fn acknowledge(&mut self, received: u64) -> Result<(), &'static str> {
        if received > self.cursor {
            return Err("it acknowledged frames that were not sent");
        }
        if received < self.first {
            return Err("it took back an acknowledgement");
        }
        for queued in self.queue.drain(..(received - self.first) as usize) {
            self.used = self.used.saturating_sub(queued.cost);
        }
        self.first = received;
        Ok(())
    }

    /// A destination's credit in all; smaller than before is an old grant.
    pub fn grant(&mut self, destination: u64, granted: u64) -> Result<(), &'static str> {
        let Some((base, most)) = self.terms else { return Ok(()) };
        let known = self.credits.len() as u64;
        if !self.credits.contains_key(&destination) && known >= most {
            return Err("it granted credit to more destinations than it serves");
        }
        let credit = self.credits.entry(destination).or_insert(Credit { granted: base, used: 0 });
        credit.granted = credit.granted.max(granted);
        Ok(())
    }

    /// Appends frames to be sent, until `bytes` has `most` bytes or more.
    pub fn send(&mut self, bytes: &mut Vec<u8>, most: usize) {
        while bytes.len() < most && self.pending() {
            let at = (self.cursor - self.first) as usize;
            bytes.extend(&self.queue[at].bytes);
            self.cursor += 1;
        }
    }

    /// Forgets all: nothing more will be sent.
    pub fn clear(&mut self) {
        self.cursor = self.next();
        self.first = self.cursor;
        self.queue = VecDeque::new();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing() -> Outgoing {
        let mut out = Outgoing::new(1000);
        assert_eq!(out.reserve(1, 10), Answer::Wait, "before the other side said its terms");
        out.resume(0, 400, 2).unwrap();
        out
    }

    #[test]
    fn credit_and_capacity_hold_senders_up() {
        let mut out = outgoing();
        assert_eq!(out.reserve(1, 300), Answer::Wait);
        assert_eq!(out.reserve(1, 272), Answer::Yes);
        assert_eq!(out.reserve(1, 0), Answer::Wait, "the credit is used up");
        assert_eq!(out.reserve(2, 272), Answer::Yes, "another destination has its own");
        assert_eq!(out.reserve(3, 0), Answer::TooMany);
        out.grant(1, 2000).unwrap();
        assert_eq!(out.reserve(1, 100), Answer::Wait, "the capacity is used up");
        out.push(vec![1], 272);
        out.send(&mut Vec::new(), 10);
        out.acknowledge(1).unwrap();
        assert_eq!((out.held(), out.reserve(1, 100)), (400, Answer::Yes));
        out.release(1, 100);
        assert_eq!((out.held(), out.reserve(1, 472)), (400, Answer::Yes));
    }

    #[test]
    fn after_a_cut_it_goes_on_where_the_other_side_is() {
        let mut out = outgoing();
        for byte in 0..5 {
            assert_eq!(out.reserve(1, 1), if byte < 3 { Answer::Yes } else { Answer::Wait });
            out.push(vec![byte], 1);
        }
        let mut sent = Vec::new();
        out.send(&mut sent, 3);
        assert_eq!(sent, [0, 1, 2]);
        out.acknowledge(1).unwrap();
        assert!(out.resume(2, 500, 2).is_err());
        out.resume(2, 400, 2).unwrap();
        sent.clear();
        out.send(&mut sent, 100);
        assert_eq!((sent, out.pending(), out.drained()), (vec![2, 3, 4], false, false));
        out.acknowledge(5).unwrap();
        assert!(out.drained());
        assert!(out.acknowledge(6).is_err() && out.acknowledge(4).is_err() && out.resume(6, 400, 2).is_err());
    }
}
