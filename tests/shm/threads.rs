// SPDX-License-Identifier: BSD-3-Clause
//! Members as threads: real concurrency, with random delays, in every way of waiting.

use super::data::{config, hash, seeds};
use super::operations::{Call, KINDS, Kind, run, run_with};
use super::waits::Blocks;
use coll_rust::endpoint::Result;
use coll_rust::shm::exec::drive::{Around, drive};
use coll_rust::shm::memory::heap::Heap;
use coll_rust::shm::memory::layout::Sleepers;
use coll_rust::shm::protocol::reach::Reach;
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::shm::protocol::turn::waits::Runs;
use coll_rust::sim::Rng;
use coll_rust::sync::wait::{Mode, Patience, Waiting, yield_now};
use std::cell::Cell;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

/// What the executor of a blocking operation does.
pub fn block_on<T>(team: &Team, future: impl Future<Output = T>) -> T {
    block_on_with(team, future, &mut Patience::default())
}

fn block_on_with<T>(team: &Team, future: impl Future<Output = T>, patience: &mut Patience) -> T {
    drive(pin!(future), || Some(team), Nothing, patience)
}

/// Runs what an operation waits for to its end, so that it is not suspended itself; with one patience for all
/// that.
#[derive(Clone, Copy)]
struct InTeam<'t>(&'t Team, &'t Cell<Patience>);

impl Runs for InTeam<'_> {
    fn run<F: Future>(self, late: impl FnOnce() -> F) -> F::Output {
        let mut patience = self.1.get();
        let result = block_on_with(self.0, late(), &mut patience);
        self.1.set(patience);
        result
    }

    fn reach(self, late: Reach<'_>) -> Result<()> {
        let mut patience = self.1.get();
        let has_come = late.gives_way(&mut patience, yield_now);
        self.1.set(patience);
        if has_come { Ok(()) } else { self.run(move || late).map(drop) }
    }
}

/// There is nothing around.
struct Nothing;

impl Around for Nothing {
    fn progress(&mut self) {}

    fn progress_hushed(&mut self) {}

    fn take_awaited(&mut self) -> bool {
        false
    }
}

/// Does a call on a stream in either of the ways in which operations wait: members may take different ones.
fn call_either_way(team: &Team, slot: usize, call: Call, suspended: bool) {
    match suspended {
        true => block_on(team, run(team, slot, 0, call)),
        false => {
            let patience = Cell::default();
            block_on(team, run_with(team, slot, 0, call, Blocks(InTeam(team, &patience))));
        }
    }
}

fn delay(rng: &mut Rng) {
    match rng.below(40) {
        0 => std::thread::sleep(Duration::from_micros(rng.below(200) as u64)),
        1..5 => std::thread::yield_now(),
        5..10 => (0..rng.below(300)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}

/// Settings for `size` threads, in any way of waiting.
pub fn settings(size: usize, rng: &mut Rng) -> Config {
    // Only who gives the core away makes progress where others are waiting for it.
    let mode = [Mode::Auto, Mode::Yield, Mode::Block, Mode::Spin][rng.below(if size == 2 { 4 } else { 3 })];
    let looks = if cfg!(miri) { 3 } else { 200 };
    // Not crowded, more than two only get on where they give their cores away.
    let crowded = (size > 2 && mode == Mode::Auto) || rng.chance(128);
    let waiting = Waiting { mode, crowded, yields: false, spin: 1 + rng.below(looks) as u32 };
    Config { waiting, ..config(rng) }
}

fn calls(rng: &mut Rng, count: usize, mut kind: impl FnMut(&mut Rng) -> Kind) -> Vec<Call> {
    (0..count).map(|n| Call { kind: kind(rng), id: rng.below(1 << 30) << 8 | n }).collect()
}

fn any(rng: &mut Rng) -> Kind {
    KINDS[rng.below(KINDS.len())]
}

/// Members as threads, each of which goes through all calls on a stream.
fn go_through(seed: u64, size: usize, config: Config, slot: usize, calls: &[Call]) {
    let heap = Heap::new(size, usize::MAX, true);
    let memory = heap.member(0);
    // SAFETY: the memory says so, and lasts until then.
    let count = unsafe { &(*memory.sleepers().cast::<Sleepers>()).count };
    // Somebody of another team may have been killed in its sleep.
    let gone = seed % 2;
    count.store(gone, Ordering::Relaxed);
    std::thread::scope(|scope| {
        for me in 0..size {
            let heap = &heap;
            scope.spawn(move || {
                let team = Team::new(heap.member(me), config);
                let mut rng = Rng::new(hash(&[seed as usize, me]));
                for &call in calls {
                    call_either_way(&team, slot, call, rng.chance(128));
                    delay(&mut rng);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), gone, "who sleeps counts itself, and takes that back");
}

#[test]
fn random_sequences() {
    for seed in 0..seeds(40) {
        let mut rng = Rng::new(hash(&[seed as usize, 7]));
        let size = 2 + rng.below(3);
        let config = settings(size, &mut rng);
        let calls = calls(&mut rng, if cfg!(miri) { 6 } else { 80 }, any);
        go_through(seed, size, config, rng.below(2), &calls);
    }
}

#[test]
fn each_operation_by_itself() {
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..seeds(10)).map(move |seed| (kind, seed))) {
        let mut rng = Rng::new(hash(&[seed as usize, kind as usize, 8]));
        let size = 2 + (seed as usize + kind as usize) % 2;
        let config = settings(size, &mut rng);
        let calls = calls(&mut rng, if cfg!(miri) { 5 } else { 20 }, |_| kind);
        go_through(seed, size, config, 0, &calls);
    }
}

/// Each member has two threads: one in blocking operations, and one that polls nonblocking ones.
#[test]
fn two_threads_of_each_member() {
    for seed in 0..seeds(20) {
        let mut rng = Rng::new(hash(&[seed as usize, 9]));
        let size = 2 + rng.below(2);
        let config = settings(size, &mut rng);
        let config = Config { waiting: Waiting { mode: Mode::Block, crowded: true, ..config.waiting }, ..config };
        let length = if cfg!(miri) { 3 } else { 40 };
        let [blocking, polled] = [(); 2].map(|()| calls(&mut rng, length, any));
        let heap = Heap::new(size, usize::MAX, true);
        let teams: Vec<_> = (0..size).map(|me| Team::new(heap.member(me), config)).collect();
        std::thread::scope(|scope| {
            for team in &teams {
                scope.spawn(|| blocking.iter().for_each(|&call| call_either_way(team, 0, call, call.id & 1 << 8 != 0)));
                scope.spawn(|| {
                    for &call in &polled {
                        let mut work = std::pin::pin!(run(team, 1, 3, call));
                        while work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}
