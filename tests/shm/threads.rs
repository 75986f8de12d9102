//! Members as threads: real concurrency, with random delays, in every way of waiting.

use super::data::{config, hash, seeds};
use super::operations::{Call, KINDS, run};
use coll_rust::shm::heap::Heap;
use coll_rust::shm::team::Team;
use coll_rust::sim::Rng;
use coll_rust::sync::wait::{Mode, Patience, Waiting};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What the executor of a blocking operation does.
pub fn block_on<T>(team: &Team, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut patience = Patience::default();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => return result,
            Poll::Pending => team.pause(&mut patience),
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

#[test]
fn random_sequences() {
    for seed in 0..seeds(40) {
        let mut rng = Rng::new(hash(&[seed as usize, 7]));
        let size = 2 + rng.below(3);
        // Only who gives the core away makes progress where others are waiting for it.
        let mode = [Mode::Auto, Mode::Yield, Mode::Block, Mode::Spin][rng.below(if size == 2 { 4 } else { 3 })];
        let waiting = Waiting { mode, crowded: size > 2 || rng.chance(128), spin: 1 + rng.below(200) as u32 };
        let config = coll_rust::shm::team::Config { waiting, ..config(&mut rng) };
        let heap = Heap::new(size, usize::MAX, true);
        let length = if cfg!(miri) { 6 } else { 80 };
        let calls: Vec<_> = (0..length)
            .map(|n| Call { kind: KINDS[rng.below(KINDS.len())], id: rng.below(1 << 30) << 8 | n })
            .collect();
        let slot = rng.below(2);
        std::thread::scope(|scope| {
            for me in 0..size {
                let (heap, calls) = (&heap, &calls);
                scope.spawn(move || {
                    let team = Team::new(heap.member(me), config);
                    let mut rng = Rng::new(hash(&[seed as usize, me]));
                    for &call in calls {
                        block_on(&team, run(&team, slot, 0, call));
                        delay(&mut rng);
                    }
                });
            }
        });
    }
}
