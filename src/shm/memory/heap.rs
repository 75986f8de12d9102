// SPDX-License-Identifier: BSD-3-Clause
//! A team's memory on the heap: members are threads, or futures of one thread. For tests and measurements.

use crate::endpoint::Result;
use crate::shm::memory::layout::Sleepers;
use crate::shm::memory::{Contents, Member, Memory, Page};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const CONTROL_BYTES: usize = 4096;
/// What lies where anything may lie.
const LEFT_OVER: u8 = 0xa5;

struct Block {
    at: *mut u8,
    layout: Layout,
}

impl Block {
    fn new(bytes: usize) -> Block {
        let layout = Layout::from_size_align(bytes.max(1), 64).expect("a size");
        // SAFETY: not of size 0.
        let at = unsafe { alloc_zeroed(layout) };
        if at.is_null() {
            handle_alloc_error(layout);
        }
        Block { at, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.at, self.layout) };
    }
}

// SAFETY: memory that the members share by their protocol.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

struct Shared {
    controls: Vec<Block>,
    sleepers: Block,
    leases: Vec<Mutex<Vec<Block>>>,
    /// How many leases each member may still take.
    budget: Vec<AtomicUsize>,
    zero_copy: bool,
    dead: AtomicUsize,
}

/// What all members share.
#[derive(Clone)]
pub struct Heap(Arc<Shared>);

impl Heap {
    /// Memory for `members`, each of which gets `leases` leases at most.
    pub fn new(members: usize, leases: usize, zero_copy: bool) -> Heap {
        Heap(Arc::new(Shared {
            controls: (0..members).map(|_| Block::new(CONTROL_BYTES)).collect(),
            sleepers: Block::new(size_of::<Sleepers>()),
            leases: (0..members).map(|_| Mutex::default()).collect(),
            budget: (0..members).map(|_| AtomicUsize::new(leases)).collect(),
            zero_copy,
            dead: AtomicUsize::new(usize::MAX),
        }))
    }

    /// From now on `member` gets so many leases.
    pub fn limit(&self, member: Member, leases: usize) {
        self.0.budget[member].store(leases, Ordering::Relaxed);
    }

    /// From now on `member` counts as dead.
    pub fn kill(&self, member: Member) {
        self.0.dead.store(member, Ordering::Relaxed);
    }

    /// A member's view.
    pub fn member(&self, me: Member) -> Box<dyn Memory> {
        Box::new(View { shared: self.0.clone(), me })
    }

    /// All 64-bit words of all controls, and of leases no longer than one.
    pub fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        let mut add = |block: &Block| {
            // SAFETY: within the block, which members write through atomics only where it is not contents.
            words
                .extend((0..block.layout.size() / 8).map(|i| unsafe { block.at.cast::<u64>().add(i).read_volatile() }));
        };
        self.0.controls.iter().for_each(&mut add);
        for leases in &self.0.leases {
            lock(leases).iter().filter(|block| block.layout.size() <= CONTROL_BYTES).for_each(&mut add);
        }
        words
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct View {
    shared: Arc<Shared>,
    me: Member,
}

// SAFETY: the blocks are aligned to 64 bytes, zeroed (but where anything may lie), and live as long as any
// view.
unsafe impl Memory for View {
    fn me(&self) -> Member {
        self.me
    }

    fn size(&self) -> usize {
        self.shared.controls.len()
    }

    fn control(&self, member: Member) -> *mut u8 {
        self.shared.controls[member].at
    }

    fn sleepers(&self) -> *mut u8 {
        self.shared.sleepers.at
    }

    fn lease(&self, bytes: usize, contents: Contents) -> Option<(Page, *mut u8)> {
        let take = |left: usize| left.checked_sub(1);
        self.shared.budget[self.me].fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let mut leases = lock(&self.shared.leases[self.me]);
        let block = Block::new(bytes);
        let at = block.at;
        if contents != Contents::Zeros {
            // SAFETY: the block, which nobody else knows yet.
            unsafe { at.write_bytes(LEFT_OVER, bytes) };
        }
        leases.push(block);
        Some((leases.len() as Page - 1, at))
    }

    fn view(&self, member: Member, page: Page, bytes: usize) -> *const u8 {
        let leases = lock(&self.shared.leases[member]);
        let block = &leases[page as usize];
        assert!(bytes <= block.layout.size());
        block.at
    }

    fn zero_copy(&self) -> bool {
        self.shared.zero_copy
    }

    fn stores(&self) -> bool {
        self.shared.zero_copy
    }

    unsafe fn fetch(&self, _member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        #[cfg(all(feature = "clock", not(loom)))]
        crate::sync::timed::tell(|watch| watch.system_copy(_member, from as usize, to.addr(), bytes, false));
        // SAFETY: all members are in one process; the rest is the caller's promise.
        unsafe { std::ptr::copy(from as usize as *const u8, to, bytes) };
        Ok(())
    }

    unsafe fn store(&self, _member: Member, from: *const u8, to: u64, bytes: usize) -> Result<()> {
        #[cfg(all(feature = "clock", not(loom)))]
        crate::sync::timed::tell(|watch| watch.system_copy(_member, to as usize, from.addr(), bytes, true));
        // SAFETY: as in `fetch`.
        unsafe { std::ptr::copy(from, to as usize as *mut u8, bytes) };
        Ok(())
    }

    fn is_dead(&self, member: Member) -> bool {
        self.shared.dead.load(Ordering::Relaxed) == member
    }
}
