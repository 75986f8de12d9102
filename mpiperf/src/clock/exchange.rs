// SPDX-License-Identifier: BSD-3-Clause
//! The offset between the clocks of two processes, by ping-pongs.

use std::os::raw::c_int;
use std::time::Duration;

use super::fit::Point;
use crate::error::Result;
use crate::mpi::Comm;

/// Exchanges without a shorter round trip after which the search ends (d).
const PATIENCE: u32 = 100;
/// Exchanges after which it ends in any case.
const MOST: u32 = 20_000;
/// Tags on the tool's own communicator.
const PING: c_int = 101;
const PONG: c_int = 102;
const TURN: c_int = 103;

/// The search for the exchange with the shortest round trip. Pure.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    best: Point,
    round_trip: f64,
    lower: f64,
    upper: f64,
    exchanges: u32,
    futile: u32,
}

impl Default for Search {
    fn default() -> Search {
        let best = Point { local: 0.0, global: 0.0, error: f64::INFINITY };
        let (lower, upper) = (f64::NEG_INFINITY, f64::INFINITY);
        Search { best, round_trip: f64::INFINITY, lower, upper, exchanges: 0, futile: 0 }
    }
}

impl Search {
    /// One exchange: sent and received by the own clock, the other's clock in between.
    pub fn add(&mut self, sent: f64, other: f64, received: f64) {
        self.exchanges += 1;
        self.futile += 1;
        self.lower = self.lower.max(other - received);
        self.upper = self.upper.min(other - sent);
        let round_trip = received - sent;
        if round_trip < self.round_trip {
            self.round_trip = round_trip;
            let middle = sent + round_trip / 2.0;
            self.best = Point { local: middle, global: other, error: round_trip / 2.0 };
            self.futile = 0;
        }
    }

    /// Whether more exchanges are hardly worth it.
    pub fn done(&self) -> bool {
        self.futile >= PATIENCE || self.exchanges >= MOST
    }

    /// The other's clock at a moment of the own; the error is half of the round trip.
    pub fn point(&self) -> Point {
        self.best
    }

    /// The other's clock minus the own, seconds.
    pub fn offset(&self) -> f64 {
        self.best.global - self.best.local
    }

    /// Whether both may be one clock: in no exchange the answer came before the question or after its
    /// arrival.
    pub fn same_clock(&self) -> bool {
        self.lower <= 0.0 && self.upper >= 0.0
    }
}

/// Asks rank `peer` for its time until the shortest round trip is found. The peer calls [`serve`].
pub(super) fn ask(comm: &Comm, peer: usize, now: impl Fn() -> f64) -> Result<Search> {
    let mut search = Search::default();
    let mut other = [0.0f64];
    while !search.done() {
        let sent = now();
        comm.send(&[1u8], peer, PING)?;
        comm.recv(&mut other, peer, PONG)?;
        search.add(sent, other[0], now());
    }
    comm.send(&[0u8], peer, PING)?;
    Ok(search)
}

/// Tells rank `peer` the time until it has enough.
pub(super) fn serve(comm: &Comm, peer: usize, now: impl Fn() -> f64) -> Result<()> {
    let mut more = [0u8];
    loop {
        comm.recv(&mut more, peer, PING)?;
        if more[0] == 0 {
            return Ok(());
        }
        comm.send(&[now()], peer, PONG)?;
    }
}

/// Rank 0 with each rank in turn: on each rank what it found, on rank 0 nothing. Ranks that wait for their
/// turn sleep, so that the two whose turn it is have their cores. Collective.
pub(super) fn in_turn(comm: &Comm, now: impl Fn() -> f64) -> Result<Option<Search>> {
    if comm.rank() == 0 {
        for peer in 1..comm.size() {
            comm.send(&[0u8], peer, TURN)?;
            serve(comm, peer, &now)?;
        }
        for peer in 1..comm.size() {
            comm.send(&[0u8], peer, TURN)?;
        }
        return Ok(None);
    }
    wait_for_turn(comm)?;
    let found = ask(comm, 0, now)?;
    wait_for_turn(comm)?;
    Ok(Some(found))
}

/// Waits for rank 0's sign without burning the core.
fn wait_for_turn(comm: &Comm) -> Result<()> {
    while !comm.arrived(0, TURN)? {
        std::thread::sleep(Duration::from_micros(50));
    }
    comm.recv(&mut [0u8], 0, TURN)
}

#[cfg(test)]
mod tests {
    use super::super::fit::History;
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn simulate(offset: f64, drift: f64, least: f64, seed: u64) -> (Search, f64) {
        simulate_from(50.0, offset, drift, least, seed)
    }

    /// From local time `t` on, ping-pongs with a clock that is `offset` ahead and drifts; both ways take at
    /// least `least`, with long tails.
    fn simulate_from(mut t: f64, offset: f64, drift: f64, least: f64, seed: u64) -> (Search, f64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut delay = || least * (1.0 - 3.0 * rng.random::<f64>().max(1e-9).ln());
        let mut search = Search::default();
        while !search.done() {
            let (there, back) = (delay(), delay());
            let other = (t + there) * (1.0 + drift) + offset;
            search.add(t, other, t + there + back);
            t += there + back;
        }
        (search, t)
    }

    #[test]
    fn offset_is_found_within_half_a_round_trip() {
        for seed in 0..50 {
            let (search, _) = simulate(-12.5, 1e-5, 5e-7, seed);
            let point = search.point();
            let truth = point.local * (1.0 + 1e-5) - 12.5;
            assert!((point.global - truth).abs() <= point.error, "seed {seed}: {search:?}");
            assert!(point.error < 2.5e-6, "seed {seed}: {search:?}");
            assert!(!search.same_clock());
        }
    }

    #[test]
    fn drift_is_corrected_between_synchronisations() {
        // 20 ppm are 20 µs a second; synchronised every 2 s over a network with round trips of 10 µs.
        let (offset, drift, least) = (3.25, 2e-5, 5e-6);
        for seed in 0..20 {
            let mut history = History::default();
            for round in 0..10u32 {
                let at = 100.0 + 2.0 * f64::from(round);
                let (map, error) =
                    history.add(simulate_from(at, offset, drift, least, seed * 100 + u64::from(round)).0.point());
                let wrong = |t: f64| (map.global_at(t) - (t * (1.0 + drift) + offset)).abs();
                assert!(wrong(at) <= 2.0 * error && error < 2e-5, "seed {seed}, round {round}: {error:e}");
                if round >= 2 {
                    assert!(wrong(at + 2.0) < 2e-5, "seed {seed}, round {round}: {:e}", wrong(at + 2.0));
                }
            }
        }
    }

    #[test]
    fn same_clock_is_recognised() {
        for seed in 0..50 {
            assert!(simulate(0.0, 0.0, 5e-7, seed).0.same_clock());
            assert!(!simulate(5e-5, 0.0, 5e-7, seed).0.same_clock());
            assert!(!simulate(-5e-5, 0.0, 5e-7, seed).0.same_clock());
        }
    }

    #[test]
    fn search_ends_after_a_hundred_in_vain() {
        let mut search = Search::default();
        search.add(0.0, 0.0, 1e-6);
        for i in 0..PATIENCE {
            assert!(!search.done());
            search.add(f64::from(i), 0.0, f64::from(i) + 1e-6 + 1e-9);
        }
        assert!(search.done());
        search.add(0.0, 7.0, 1e-7);
        assert!(!search.done() && search.point().error == 5e-8);
    }
}
