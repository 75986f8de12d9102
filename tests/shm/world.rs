//! Members as futures of one thread.

use coll_rust::shm::heap::Heap;
use coll_rust::shm::team::{Config, Team};
use coll_rust::sim::Rng;
use std::pin::Pin;
use std::task::{Context, Waker};

/// What a member does.
pub type Work<'t> = Pin<Box<dyn Future<Output = ()> + Send + 't>>;

/// A team with everything its members share.
pub struct World {
    pub heap: Heap,
    pub teams: Vec<Team>,
}

impl World {
    pub fn new(size: usize, config: Config) -> World {
        let heap = Heap::new(size, usize::MAX, true);
        let teams = (0..size).map(|me| Team::new(heap.member(me), config)).collect();
        World { heap, teams }
    }

    /// Polls all futures to their end, in an order that depends on the seed.
    ///
    /// # Panics
    /// When none of them can move any more: all have been polled, and nobody has finished or stored anything.
    pub fn run<'t>(&'t self, seed: u64, mut works: Vec<Work<'t>>) {
        let mut rng = Rng::new(seed);
        let mut live: Vec<usize> = (0..works.len()).collect();
        let poll = |works: &mut Vec<Work<'t>>, id: usize| {
            works[id].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        while !live.is_empty() {
            match rng.below(4) {
                // One runs ahead.
                0 => {
                    let id = live[rng.below(live.len())];
                    for _ in 0..rng.below(20) {
                        if poll(&mut works, id) {
                            live.retain(|&other| other != id);
                            break;
                        }
                    }
                }
                // One falls behind.
                1 => {
                    let victim = live[rng.below(live.len())];
                    for _ in 0..rng.below(10) {
                        shuffle(&mut live, &mut rng);
                        live.retain(|&id| id == victim || !poll(&mut works, id));
                    }
                }
                _ => {
                    let (before, words) = (live.len(), self.heap.words());
                    shuffle(&mut live, &mut rng);
                    live.retain(|&id| !poll(&mut works, id));
                    let stuck = !live.is_empty() && live.len() == before && self.heap.words() == words;
                    assert!(!stuck, "nothing moves any more: seed {seed}, futures {live:?} wait");
                }
            }
        }
    }
}

fn shuffle(list: &mut [usize], rng: &mut Rng) {
    for i in (1..list.len()).rev() {
        list.swap(i, rng.below(i + 1));
    }
}
