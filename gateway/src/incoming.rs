// SPDX-License-Identifier: BSD-3-Clause
//! What comes from one other gateway: which frames are here, and what each destination may still be sent.
//! Numbers in, numbers out: no sockets, no time.
//!
//! Every destination has a base of credit that nobody can take from it, so that those who do not read hold
//! up nobody else. What memory there is beyond that is a pool, of which a destination has half of what it
//! has and what is free: with one it is a half, with n of them an nth and a bit less each. One that does not
//! read keeps its part, and gets no more.

use crate::wire::{MOST, cost};
use std::collections::{HashMap, VecDeque};

/// Credit that every destination has: one frame of the longest kind, and some short ones.
pub const BASE: u64 = 96 * 1024;
const _: () = assert!(BASE >= MOST);

struct Window {
    /// Of the pool.
    extra: u64,
    /// All that was ever granted, what the other side knows of that, and what has come.
    granted: u64,
    told: u64,
    received: u64,
    /// Whether it is in the list of grants to tell.
    listed: bool,
}

/// See the module.
pub struct Incoming {
    received: u64,
    held: u64,
    most: u64,
    free: u64,
    windows: HashMap<u64, Window>,
    to_tell: VecDeque<u64>,
}

impl Incoming {
    /// With so many bytes for what is not delivered, for so many destinations.
    pub fn new(memory: u64, destinations: u64) -> Incoming {
        let free = memory.saturating_sub(destinations * BASE);
        let (windows, to_tell) = (HashMap::new(), VecDeque::new());
        Incoming { received: 0, held: 0, most: destinations, free, windows, to_tell }
    }

    /// Counted frames that came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that are not delivered.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Destinations at most.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// A frame that is counted and takes no credit.
    pub fn count(&mut self) {
        self.received += 1;
    }

    /// A destination is there, or the first frame for it: it gets its part of the pool. False if there are
    /// too many.
    pub fn open(&mut self, destination: u64) -> bool {
        if self.windows.contains_key(&destination) {
            return true;
        }
        if self.windows.len() as u64 >= self.most {
            return false;
        }
        let extra = self.free / 2;
        self.free -= extra;
        let window = Window { extra, granted: BASE + extra, told: BASE, received: 0, listed: false };
        self.windows.insert(destination, window);
        self.tell(destination);
        true
    }

    /// A frame of DATA came.
    pub fn arrive(&mut self, destination: u64, payload: usize) -> Result<(), &'static str> {
        if !self.open(destination) {
            return Err("it sent to more processes than this gateway serves");
        }
        let Some(window) = self.windows.get_mut(&destination) else { return Ok(()) };
        window.received += cost(payload);
        if window.received > window.told {
            return Err("it sent more to a process than it had credit for");
        }
        self.held += cost(payload);
        self.received += 1;
        self.tell(destination);
        Ok(())
    }

    /// A frame of DATA has been delivered, or thrown away. True if there is a grant to tell.
    pub fn consume(&mut self, destination: u64, payload: usize) -> bool {
        let cost = cost(payload);
        self.held = self.held.saturating_sub(cost);
        let Some(window) = self.windows.get_mut(&destination) else { return false };
        let target = (self.free + window.extra) / 2;
        window.granted += cost;
        if window.extra < target {
            let more = target - window.extra;
            window.granted += more;
            window.extra += more;
            self.free -= more;
        } else {
            let less = (window.extra - target).min(cost);
            window.granted -= less;
            window.extra -= less;
            self.free += less;
        }
        self.tell(destination)
    }

    /// Lists a grant if the other side may have to wait for it, or will soon.
    fn tell(&mut self, destination: u64) -> bool {
        let Some(window) = self.windows.get_mut(&destination) else { return false };
        let left = window.told.saturating_sub(window.received);
        let due = window.granted > window.told && left < MOST.max((BASE + window.extra) / 2);
        if due && !window.listed {
            window.listed = true;
            self.to_tell.push_back(destination);
        }
        due
    }

    /// A new connection: the last grants may not have arrived.
    pub fn resume(&mut self) {
        for (&destination, window) in &mut self.windows {
            if !window.listed {
                window.listed = true;
                self.to_tell.push_back(destination);
            }
        }
    }

    /// The next grant to tell: destination and its credit in all.
    pub fn next_grant(&mut self) -> Option<(u64, u64)> {
        let destination = self.to_tell.pop_front()?;
        let window = self.windows.get_mut(&destination)?;
        window.listed = false;
        window.told = window.told.max(window.granted);
        Some((destination, window.told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all that the credit allows, in frames of the longest kind; returns their number.
    fn fill(incoming: &mut Incoming, credit: &mut HashMap<u64, u64>, destination: u64) -> u64 {
        while let Some((destination, total)) = incoming.next_grant() {
            credit.insert(destination, total);
        }
        let mut frames = 0;
        let received = |incoming: &Incoming| incoming.windows.get(&destination).map_or(0, |window| window.received);
        while received(incoming) + MOST <= *credit.entry(destination).or_insert(BASE) {
            incoming.arrive(destination, MOST as usize - 128).unwrap();
            while let Some((destination, total)) = incoming.next_grant() {
                credit.insert(destination, total);
            }
            frames += 1;
        }
        frames
    }

    #[test]
    fn what_is_held_is_bounded_and_nobody_is_locked_out() {
        let memory = 32 * BASE + 5_000_000;
        let mut incoming = Incoming::new(memory, 32);
        let mut credit = HashMap::new();
        let first = fill(&mut incoming, &mut credit, 0);
        assert!(first * MOST > 2_000_000, "one destination has half of the pool: {first}");
        for destination in 1..32 {
            assert!(fill(&mut incoming, &mut credit, destination) >= 1, "{destination}");
        }
        assert!(incoming.held() <= memory, "{}", incoming.held());
        assert!(!incoming.open(32), "the 33rd");
        assert!(incoming.arrive(32, 0).is_err());
    }

    #[test]
    fn parts_of_the_pool_become_equal() {
        let mut incoming = Incoming::new(4 * BASE + 4_000_000, 4);
        let mut credit = HashMap::new();
        for _ in 0..400 {
            for destination in 0..3 {
                for _ in 0..fill(&mut incoming, &mut credit, destination) {
                    incoming.consume(destination, MOST as usize - 128);
                }
            }
        }
        let extras: Vec<u64> = (0..3).map(|destination| incoming.windows[&destination].extra).collect();
        assert!(extras.iter().all(|&extra| (900_000..1_100_000).contains(&extra)), "{extras:?}");
        assert_eq!(extras.iter().sum::<u64>() + incoming.free, 4_000_000);
        assert_eq!(incoming.held(), 0);
    }

    #[test]
    fn short_frames_never_end_in_a_standstill() {
        let mut incoming = Incoming::new(BASE, 1);
        let (mut sent, mut credit) = (0, BASE);
        for round in 0..10_000 {
            let payload = if round % 7 == 0 { MOST as usize - 128 } else { round % 300 };
            assert!(sent + cost(payload) <= credit, "round {round}: {sent} of {credit}");
            sent += cost(payload);
            incoming.arrive(5, payload).unwrap();
            incoming.consume(5, payload);
            while let Some((_, total)) = incoming.next_grant() {
                credit = total;
            }
        }
    }

    #[test]
    fn more_than_the_credit_is_a_fault() {
        let mut incoming = Incoming::new(2 * BASE, 2);
        incoming.arrive(1, BASE as usize - 128).unwrap();
        assert!(incoming.arrive(1, 0).is_err());
    }
}
