// SPDX-License-Identifier: BSD-3-Clause
//! Shared memory for the model checker.
//!
//! A model registers the words and contents that it uses before it starts its threads, so that registering
//! orders nothing.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Table {
    words: HashMap<usize, Arc<AtomicU64>>,
    /// Contents by the address of their first byte: length, and what stands for them.
    contents: BTreeMap<usize, (usize, Arc<UnsafeCell<()>>)>,
}

loom::lazy_static! {
    static ref TABLE: Mutex<Table> = Mutex::new(Table::default());
}

/// Announces a word at `at` that holds `value`.
pub fn register_word(at: *const u8, value: u64) {
    let word = Arc::new(AtomicU64::new(value));
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).words.insert(at as usize, word);
}

/// Announces contents of `len` bytes at `at`, which are read and written as one.
pub fn register_contents(at: *const u8, len: usize) {
    let cell = Arc::new(UnsafeCell::new(()));
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).contents.insert(at as usize, (len, cell));
}

fn word(at: usize) -> Arc<AtomicU64> {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.words.get(&at).expect("the model registered the word").clone()
}

/// What stands for the contents that share bytes with `at..at + len`.
fn contents(at: usize, len: usize) -> Vec<Arc<UnsafeCell<()>>> {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = table.contents.range(..at + len).rev();
    before.take_while(|(start, (size, _))| **start + size > at).map(|(_, (_, cell))| cell.clone()).collect()
}

/// A 64-bit word, known by its address.
#[derive(Debug)]
#[repr(transparent)]
pub struct SharedU64(std::cell::UnsafeCell<u64>);

// SAFETY: only its address is used.
unsafe impl Sync for SharedU64 {}

impl SharedU64 {
    /// Reads the word.
    pub fn load(&self, order: Ordering) -> u64 {
        word(self.0.get() as usize).load(order)
    }

    /// Writes the word.
    pub fn store(&self, value: u64, order: Ordering) {
        word(self.0.get() as usize).store(value, order);
    }

    /// Adds to the word: what it was before.
    pub fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        word(self.0.get() as usize).fetch_add(more, order)
    }

    /// Exchanges the word: what it was before.
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        word(self.0.get() as usize).swap(value, order)
    }

    /// Exchanges the word if it is `seen`; otherwise what it is.
    pub fn compare_exchange(&self, seen: u64, value: u64, then: Ordering, or: Ordering) -> Result<u64, u64> {
        word(self.0.get() as usize).compare_exchange(seen, value, then, or)
    }

    /// Takes from the word: what it was before.
    pub fn fetch_sub(&self, less: u64, order: Ordering) -> u64 {
        word(self.0.get() as usize).fetch_sub(less, order)
    }
}

/// Tells the checker that `len` bytes at `at` are about to be read; private memory is not watched.
pub fn will_read(at: *const u8, len: usize) {
    contents(at as usize, len).iter().for_each(|cell| cell.with(|_| ()));
}

/// Tells the checker that `len` bytes at `at` are about to be written.
pub fn will_write(at: *const u8, len: usize) {
    contents(at as usize, len).iter().for_each(|cell| cell.with_mut(|_| ()));
}

loom::lazy_static! {
    static ref SLEEPERS: (loom::sync::Mutex<()>, loom::sync::Condvar) =
        (loom::sync::Mutex::new(()), loom::sync::Condvar::new());
}

/// The futex of the model: sleeps without a limit, so that a lost wake-up is a deadlock, which the checker
/// reports.
pub fn sleep_unless(changed: impl Fn() -> bool) {
    let held = SLEEPERS.0.lock().expect("nobody panics with it");
    if !changed() {
        drop(SLEEPERS.1.wait(held).expect("nobody panics with it"));
    }
}

/// Wakes all that sleep.
pub fn wake_all() {
    drop(SLEEPERS.0.lock().expect("nobody panics with it"));
    SLEEPERS.1.notify_all();
}
