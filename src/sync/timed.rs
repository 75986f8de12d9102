// SPDX-License-Identifier: BSD-3-Clause
//! Shared words and contents whose accesses a simulated clock watches.
//!
//! With the feature `clock` these stand in for what [`shared`](crate::sync::shared) gives elsewhere. They are
//! the real words in the real memory; each access is told to the thread's [`Watch`], if it has one.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who is told of accesses: of reads before they happen, of stores when they have.
pub trait Watch {
    /// Something shared is about to be touched: whoever is earlier goes first.
    fn in_order(&self);
    /// The word at this address is read.
    fn load(&self, at: usize);
    /// It is written.
    fn store(&self, at: usize);
    /// So many bytes from this address on are read.
    fn read(&self, at: usize, len: usize);
    /// They are written.
    fn write(&self, at: usize, len: usize);
    /// The line at this address is asked for, to be written soon.
    fn own(&self, at: usize);
    /// Who is polled goes on only when the word at this address has been written.
    fn awaits(&self, at: usize);
    /// So many bytes at this address of another member's memory are copied by a system call to, or `from`,
    /// that address of the caller's.
    fn system_copy(&self, member: usize, theirs: usize, own: usize, len: usize, writes: bool);
    /// Operands of so many bytes are combined.
    fn combine(&self, len: usize);
}

thread_local! {
    static WATCH: RefCell<Option<Rc<dyn Watch>>> = const { RefCell::new(None) };
}

/// While it lives, the thread's accesses are told to somebody.
pub struct Watched(());

impl Watched {
    /// From now on `watch` is told.
    ///
    /// # Panics
    /// Somebody is told already.
    pub fn by(watch: Rc<dyn Watch>) -> Watched {
        let before = WATCH.replace(Some(watch));
        assert!(before.is_none(), "one clock at a time");
        Watched(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        WATCH.set(None);
    }
}

/// Tells who watches the thread.
pub fn tell(what: impl FnOnce(&dyn Watch)) {
    let watch = WATCH.with_borrow(Clone::clone);
    if let Some(watch) = watch {
        what(&*watch);
    }
}

/// Whether somebody watches the thread.
pub fn is_watched() -> bool {
    WATCH.with_borrow(Option::is_some)
}

/// A 64-bit word.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SharedU64(AtomicU64);

impl SharedU64 {
    /// A word that holds this.
    pub const fn new(value: u64) -> SharedU64 {
        SharedU64(AtomicU64::new(value))
    }

    /// Where it lies.
    pub fn as_ptr(&self) -> *mut u64 {
        self.0.as_ptr()
    }

    fn at(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Reads the word.
    pub fn load(&self, order: Ordering) -> u64 {
        tell(|watch| watch.load(self.at()));
        self.0.load(order)
    }

    /// Writes the word.
    pub fn store(&self, value: u64, order: Ordering) {
        tell(|watch| watch.in_order());
        self.0.store(value, order);
        tell(|watch| watch.store(self.at()));
    }

    /// Adds to the word: what it was before.
    pub fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        self.changes(|word| word.fetch_add(more, order))
    }

    /// Takes from the word: what it was before.
    pub fn fetch_sub(&self, less: u64, order: Ordering) -> u64 {
        self.changes(|word| word.fetch_sub(less, order))
    }

    /// Sets bits of the word: what it was before.
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.changes(|word| word.fetch_or(bits, order))
    }

    /// Exchanges the word: what it was before.
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.changes(|word| word.swap(value, order))
    }

    /// Exchanges the word if it is `seen`; otherwise what it is.
    ///
    /// # Errors
    /// It is something else.
    pub fn compare_exchange(&self, seen: u64, value: u64, then: Ordering, or: Ordering) -> Result<u64, u64> {
        self.changes(|word| word.compare_exchange(seen, value, then, or))
    }

    fn changes<R>(&self, change: impl FnOnce(&AtomicU64) -> R) -> R {
        tell(|watch| watch.load(self.at()));
        let result = change(&self.0);
        tell(|watch| watch.store(self.at()));
        result
    }
}

/// Tells that `len` bytes at `at` are about to be read.
pub fn will_read(at: *const u8, len: usize) {
    if len > 0 {
        tell(|watch| watch.read(at.addr(), len));
    }
}

/// Tells that `len` bytes at `at` are about to be written.
pub fn will_write(at: *const u8, len: usize) {
    if len > 0 {
        tell(|watch| watch.write(at.addr(), len));
    }
}

/// Tells that whoever is polled waits for this word, at least.
pub fn awaits(word: &SharedU64) {
    tell(|watch| watch.awaits(word.at()));
}
