// SPDX-License-Identifier: BSD-3-Clause
//! Members as futures of one thread.

use coll_rust::endpoint::Result;
use coll_rust::shm::memory::heap::Heap;
use coll_rust::shm::memory::{Contents, Member, Memory, Page};
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sim::Rng;
use std::pin::Pin;
use std::sync::Arc;
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

    /// The same; `before` is called before each copy from or to another member's private memory, and may
    /// refuse it.
    pub fn watched(
        size: usize,
        config: Config,
        before: impl Fn(Access) -> Result<()> + Send + Sync + 'static,
    ) -> World {
        let heap = Heap::new(size, usize::MAX, true);
        let before: Arc<Before> = Arc::new(before);
        let memory = |me| Box::new(Watched { memory: heap.member(me), before: before.clone() });
        let teams = (0..size).map(|me| Team::new(memory(me), config)).collect();
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

/// A copy from or to another member's private memory.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Of so many bytes.
    Fetch(usize),
    /// To this address.
    Store(u64),
}

type Before = dyn Fn(Access) -> Result<()> + Send + Sync;

/// A member's memory, under somebody's eyes.
struct Watched {
    memory: Box<dyn Memory>,
    before: Arc<Before>,
}

// SAFETY: what the memory below gives.
unsafe impl Memory for Watched {
    fn me(&self) -> Member {
        self.memory.me()
    }

    fn size(&self) -> usize {
        self.memory.size()
    }

    fn control(&self, member: Member) -> *mut u8 {
        self.memory.control(member)
    }

    fn sleepers(&self) -> *mut u8 {
        self.memory.sleepers()
    }

    fn lease(&self, bytes: usize, contents: Contents) -> Option<(Page, *mut u8)> {
        self.memory.lease(bytes, contents)
    }

    fn view(&self, member: Member, page: Page, bytes: usize) -> *const u8 {
        self.memory.view(member, page, bytes)
    }

    fn zero_copy(&self) -> bool {
        self.memory.zero_copy()
    }

    fn stores(&self) -> bool {
        self.memory.stores()
    }

    unsafe fn fetch(&self, member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        (self.before)(Access::Fetch(bytes))?;
        // SAFETY: by the caller's promise.
        unsafe { self.memory.fetch(member, from, to, bytes) }
    }

    unsafe fn store(&self, member: Member, from: *const u8, to: u64, bytes: usize) -> Result<()> {
        (self.before)(Access::Store(to))?;
        // SAFETY: by the caller's promise.
        unsafe { self.memory.store(member, from, to, bytes) }
    }

    fn is_dead(&self, member: Member) -> bool {
        self.memory.is_dead(member)
    }
}
