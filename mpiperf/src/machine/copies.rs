// SPDX-License-Identifier: BSD-3-Clause
//! How fast cores copy, each alone and all together, by the component's own copy loop.

use std::time::Instant;

use coll_rust::shm::copy::bytes as copy;

use super::team::on;
use super::{ROUNDS, middle};
use crate::error::Result;

/// Bytes of a line.
const LINE: usize = 64;
/// Bytes of a copy: as many as two of them fit into any level-2 cache.
pub const BLOCK: usize = 64 << 10;

/// Memory that several threads use in turns.
struct Block {
    words: Vec<u64>,
}

impl Block {
    fn new(bytes: usize) -> Block {
        // Written, so that there are pages.
        Block { words: (0..bytes as u64 / 8).collect() }
    }

    fn start(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }
}

/// What one copy of [`BLOCK`] bytes takes, seconds.
fn timed(from: *const u8, to: *mut u8) -> f64 {
    let begun = Instant::now();
    // SAFETY: both are blocks of that length, and threads use a block in turns: they meet between.
    unsafe { copy(from, to, BLOCK) };
    begun.elapsed().as_secs_f64()
}

/// What a line of a long copy takes, seconds.
#[derive(Debug, Clone, Copy)]
pub struct Copy {
    /// What is read was written by the other core, and what is written is the core's own.
    pub read: f64,
    /// What is read is the core's own, and what is written was read by the other core.
    pub written: f64,
}

/// Between two processors.
///
/// # Errors
/// A processor that is not to be had.
pub fn between(one: usize, other: usize) -> Result<Copy> {
    let [theirs, mine, own] = [(); 3].map(|()| Block::new(BLOCK));
    // Pointers are no blocks: threads may have addresses.
    let [shared, private, target] = [&theirs, &mine, &own].map(|block| block.start() as usize);
    let found = on(&[one, other], |place, meeting| {
        let [mut read, mut written] = [const { Vec::new() }; 2];
        let [shared, private, target] = [shared, private, target].map(|at| at as *mut u8);
        for _ in 0..ROUNDS {
            // The other one writes, this one reads; then this one writes what the other one has read.
            if place == 1 {
                timed(private, shared);
            }
            meeting.meet();
            if place == 0 {
                read.push(timed(shared, target));
            }
            meeting.meet();
            if place == 1 {
                timed(shared, private);
            }
            meeting.meet();
            if place == 0 {
                written.push(timed(target, shared));
            }
            meeting.meet();
        }
        let line = |times: &[f64]| middle(times) * LINE as f64 / BLOCK as f64;
        Copy { read: line(&read), written: line(&written) }
    })?;
    Ok(found[0])
}

/// What a line takes of a copy within a core's own caches, seconds.
///
/// # Errors
/// A processor that is not to be had.
pub fn own(processor: usize) -> Result<f64> {
    let blocks = [(); 2].map(|()| Block::new(BLOCK));
    let [from, to] = [0, 1].map(|i| blocks[i].start() as usize);
    let found = on(&[processor], |_, _| {
        let times: Vec<f64> = (0..ROUNDS).map(|_| timed(from as *const u8, to as *mut u8)).collect();
        middle(&times) * LINE as f64 / BLOCK as f64
    })?;
    Ok(found[0])
}

/// Bytes per second of all these processors together, each of which reads what the one behind it in `from`
/// has written.
///
/// # Errors
/// A processor that is not to be had.
pub fn together(readers: &[usize], from: &[usize]) -> Result<f64> {
    let all: Vec<usize> = readers.iter().chain(from.iter().filter(|p| !readers.contains(p))).copied().collect();
    let place_of = |processor: usize| all.iter().position(|p| *p == processor).unwrap_or(0);
    let sources: Vec<usize> = from.iter().map(|&processor| place_of(processor)).collect();
    let blocks: Vec<[Block; 2]> = all.iter().map(|_| [(); 2].map(|()| Block::new(BLOCK))).collect();
    let at: Vec<[usize; 2]> = blocks.iter().map(|[out, into]| [out.start() as usize, into.start() as usize]).collect();
    let spans = on(&all, |place, meeting| {
        let mut times = Vec::new();
        let [out, into] = at[place].map(|at| at as *mut u8);
        let source = sources.get(place).map(|&from| at[from][0] as *const u8);
        for _ in 0..ROUNDS {
            timed(into, out);
            meeting.meet();
            times.push(source.map_or(0.0, |source| timed(source, into)));
            meeting.meet();
        }
        times
    })?;
    let slowest = |round: usize| spans.iter().map(|times| times[round]).fold(0.0, f64::max);
    let time = middle(&(0..ROUNDS).map(slowest).collect::<Vec<_>>());
    Ok((readers.len() * BLOCK) as f64 / time)
}

/// Seconds of a line that is copied from memory by each of these processors at the same time: so much that
/// caches do not have it.
///
/// # Errors
/// A processor that is not to be had.
pub fn from_memory(processors: &[usize], beyond_caches: usize) -> Result<f64> {
    let each = (beyond_caches / processors.len()).next_multiple_of(BLOCK).max(2 * BLOCK);
    let lines = on(processors, |_, meeting| {
        let (far, near) = (Block::new(each), Block::new(BLOCK));
        let mut times = Vec::new();
        meeting.meet();
        for at in (0..each / BLOCK).cycle().take(ROUNDS.max(each / BLOCK)) {
            times.push(timed(far.start().wrapping_add(at * BLOCK), near.start()));
        }
        middle(&times) * LINE as f64 / BLOCK as f64
    })?;
    Ok(lines.iter().sum::<f64>() / lines.len() as f64)
}
