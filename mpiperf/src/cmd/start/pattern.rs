// SPDX-License-Identifier: BSD-3-Clause
//! What collectives cost an application: each between computations that turn the caches over, and ranks
//! arrive at different moments.
//!
//! Nobody is asked to arrive together, and no clock is shared. Who arrives last waits for nobody who is late,
//! so the shortest of the ranks' calls shows what the operation costs; the mean of all has the waiting in it.
//! The moments follow from the round and the rank alone: they are the same for every library.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::job::{Buffers, JobArgs, Of, Series, timed};
use crate::error::Result;
use crate::mpi::Comm;

/// Rounds of all operations; of each the ranks' times.
pub fn run(args: &JobArgs, world: &Comm) -> Result<Vec<Series>> {
    let mut data = vec![1.0_f64; args.turnover / 8];
    let mut buffers = Buffers::new(world.size(), args.block / 8);
    let mut times = vec![Vec::with_capacity(args.rounds); args.of.len()];
    let begun = Instant::now();
    for round in 0..args.rounds as u64 {
        for ((number, operation), times) in (0_u64..).zip(&args.of).zip(&mut times) {
            turn_over(&mut data);
            let draw = mixed(round << 40 | number << 32 | world.rank() as u64);
            compute_on(Duration::from_nanos(draw % (1 + 1000 * args.skew)));
            times.push(timed(world, operation, &mut buffers)?);
        }
    }
    let whole = begun.elapsed().as_secs_f64() / args.rounds as f64;
    let mut series = Vec::new();
    for (operation, times) in args.of.iter().zip(times) {
        let of = |what: &str, of| Series { what: format!("pattern: {operation}, {what}"), of, numbers: times.clone() };
        series.extend([of("of who comes last", Of::Smallest), of("with waiting", Of::Mean)]);
    }
    series.push(Series { what: "pattern: a round of all".to_owned(), of: Of::Largest, numbers: vec![whole] });
    Ok(series)
}

/// Reads and writes all of it.
fn turn_over(data: &mut [f64]) {
    data.iter_mut().for_each(|number| *number = *number * 0.999 + 0.001);
    black_box(data);
}

/// Computes for so long, in registers.
fn compute_on(time: Duration) {
    let begun = Instant::now();
    let mut number = 1.0_f64;
    while begun.elapsed() < time {
        number = black_box(number * 1.000_001);
    }
}

/// A number that looks random (the finaliser of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_differ_between_ranks_and_rounds_and_spread() {
        let draws: Vec<u64> =
            (0..64).flat_map(|round| (0..4).map(move |rank| mixed(round << 40 | rank) % 1001)).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        assert!((400..600).contains(&mean), "{mean}");
        let mut different = draws.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 200, "{}", different.len());
    }

    #[test]
    fn all_of_the_data_is_turned_over() {
        let mut data = vec![2.0; 1000];
        turn_over(&mut data);
        assert!(data.iter().all(|number| (*number - 1.999).abs() < 1e-12));
    }
}
