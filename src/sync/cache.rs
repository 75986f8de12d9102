// SPDX-License-Identifier: BSD-3-Clause
//! Hints to the processor about cache lines that will be needed. They change no contents, and may be about
//! any address.

/// How a process writes what others will read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Stores {
    /// As is faster.
    #[default]
    Auto,
    /// Through the caches.
    Cached,
    /// Past them.
    Streaming,
}

#[cfg(all(test, not(loom)))]
thread_local! {
    /// What this thread has asked for, to write it, since a test began to look.
    pub static ASKED: std::cell::RefCell<Option<Vec<usize>>> = const { std::cell::RefCell::new(None) };
}

/// The line at `at` will be written soon: it should be in this core's cache, and in no other's.
#[inline(always)]
pub fn own(at: *const u8) {
    #[cfg(all(feature = "clock", not(loom)))]
    crate::sync::timed::tell(|watch| watch.own(at.addr()));
    #[cfg(all(test, not(loom)))]
    ASKED.with_borrow_mut(|asked| asked.iter_mut().for_each(|lines| lines.push(at.addr())));
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    // SAFETY: a hint, which faults at no address; processors that do not know it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    let _ = at;
}

/// The line at `at` will be read soon.
#[inline(always)]
pub fn bring(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    // SAFETY: a hint, which faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    let _ = at;
}
