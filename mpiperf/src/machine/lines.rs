// SPDX-License-Identifier: BSD-3-Clause
//! How long a core waits for a line that another one has written, and many cores for the same one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::team::{Meeting, on};
use super::{ROUNDS, middle};
use crate::error::Result;

/// Words of a line and of the one beside it, as processors fetch them in pairs.
const APART: usize = 16;
/// Lines of a chain that is handed over.
const LINES: usize = 256;
/// Round trips of a round.
const TRIPS: u64 = 64;

/// Lines in a random circle: each says which one is next, so that none is asked for before the one before
/// has come.
pub struct Chain {
    words: Vec<AtomicU64>,
}

impl Chain {
    /// So many lines, `apart` words from each other.
    pub fn new(lines: usize, apart: usize) -> Chain {
        let mut order: Vec<usize> = (0..lines).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(1));
        let words: Vec<AtomicU64> = (0..lines * apart).map(|_| AtomicU64::new(0)).collect();
        for (at, line) in order.iter().enumerate() {
            let next = order[(at + 1) % lines] * apart;
            words[line * apart].store(next as u64, Ordering::Relaxed);
        }
        Chain { words }
    }

    /// Writes every line, and changes none.
    fn write(&self) {
        for word in self.words.iter().step_by(APART) {
            word.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Seconds of a step, going so many from `at` on, which goes on.
    pub fn steps(&self, at: &mut usize, count: usize) -> f64 {
        let begun = Instant::now();
        for _ in 0..count {
            *at = self.words[*at].load(Ordering::Relaxed) as usize;
        }
        std::hint::black_box(*at);
        begun.elapsed().as_secs_f64() / count as f64
    }

    /// Seconds of a line, where it is known where all of them lie: in an order that nobody foresees.
    fn all(&self, order: &[usize]) -> f64 {
        let begun = Instant::now();
        let sum = order.iter().fold(0, |sum, at| self.words[*at].load(Ordering::Relaxed).wrapping_add(sum));
        std::hint::black_box(sum);
        begun.elapsed().as_secs_f64() / order.len() as f64
    }
}

/// What was found between two cores, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct HandOver {
    /// Until a core has a line that the other one has written.
    pub line: f64,
    /// The same, where it asks for several at a time.
    pub together: f64,
    /// From one core's store until the other one, which waits for it, has answered with a store; half of it.
    pub one_way: f64,
}

/// Between two processors.
///
/// # Errors
/// A processor that is not to be had.
pub fn between(one: usize, other: usize) -> Result<HandOver> {
    let chain = Chain::new(LINES, APART);
    let mut order: Vec<usize> = (0..LINES).map(|line| line * APART).collect();
    order.shuffle(&mut SmallRng::seed_from_u64(2));
    let flags: Vec<AtomicU64> = (0..4 * APART).map(|_| AtomicU64::new(0)).collect();
    let found = on(&[one, other], |place, meeting| {
        let [mut line, mut together, mut one_way] = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            let given = |what: &dyn Fn() -> f64, times: &mut Vec<f64>| {
                if place == 1 {
                    chain.write();
                }
                meeting.meet();
                if place == 0 {
                    times.push(what());
                }
                meeting.meet();
            };
            given(&|| chain.steps(&mut 0, LINES), &mut line);
            given(&|| chain.all(&order), &mut together);
            one_way.push(ping_pong(place, &flags[APART], &flags[2 * APART], round as u64 * TRIPS));
        }
        HandOver { line: middle(&line), together: middle(&together), one_way: middle(&one_way) }
    })?;
    Ok(found[0])
}

fn ping_pong(place: usize, ping: &AtomicU64, pong: &AtomicU64, from: u64) -> f64 {
    let (mine, theirs) = if place == 0 { (ping, pong) } else { (pong, ping) };
    let begun = Instant::now();
    for count in from + 1..=from + TRIPS {
        if place == 0 {
            mine.store(count, Ordering::Release);
        }
        // Whoever's core is taken away comes back.
        while theirs.load(Ordering::Acquire) < count {
            std::hint::spin_loop();
        }
        if place == 1 {
            mine.store(count, Ordering::Release);
        }
    }
    begun.elapsed().as_secs_f64() / (2 * TRIPS) as f64
}

/// By how much each further reader of one line makes the last one later, seconds: the first processor
/// writes, the others read.
///
/// # Errors
/// A processor that is not to be had.
pub fn served(writer: usize, readers: &[usize]) -> Result<f64> {
    let chain = Chain::new(LINES, APART);
    let last = |readers: &[usize]| -> Result<f64> {
        let all = [&[writer], readers].concat();
        let times = on(&all, |place, meeting: &Meeting| {
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                if place == 0 {
                    chain.write();
                }
                meeting.meet();
                times.push(if place > 0 { chain.steps(&mut 0, LINES) } else { 0.0 });
                meeting.meet();
            }
            times
        })?;
        let slowest = |round: usize| times.iter().map(|times| times[round]).fold(0.0, f64::max);
        Ok(middle(&(0..ROUNDS).map(slowest).collect::<Vec<_>>()))
    };
    let (alone, all) = (last(&readers[..1])?, last(readers)?);
    Ok((all - alone).max(0.0) / (readers.len() - 1) as f64)
}

/// Until a core has a line from its own first cache, and from memory, seconds.
///
/// # Errors
/// A processor that is not to be had.
pub fn own_and_memory(processor: usize, beyond_caches: usize) -> Result<[f64; 2]> {
    let found = on(&[processor], |_, _| {
        let near = Chain::new(64, 8);
        let mut at = 0;
        near.steps(&mut at, 1 << 12);
        let own: Vec<f64> = (0..ROUNDS).map(|_| near.steps(&mut at, 1 << 10)).collect();
        let far = Chain::new(beyond_caches / (APART * 8), APART);
        // Not from its beginning: its end has been written last.
        let mut at = 0;
        far.steps(&mut at, 1 << 14);
        let memory: Vec<f64> = (0..ROUNDS).map(|_| far.steps(&mut at, 1 << 10)).collect();
        [middle(&own), middle(&memory)]
    })?;
    Ok(found[0])
}
