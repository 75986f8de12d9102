// SPDX-License-Identifier: BSD-3-Clause
//! Copies between the user's buffers and shared memory.
//!
//! libc's memcpy does, but for two cases. Processors of AMD with fast short "rep movsb" copy slowly by it
//! where the target begins a little after the source, counted within pages (glibc's bug 30994), and glibc of
//! the time before that was mended, 2.36 for one, copies 2 KiB to half a MiB by it. That is no rare case:
//! slots begin on pages, and a large block of malloc's 16 bytes after the beginning of one. So on processors
//! of AMD that have AVX all copies of such lengths go by [vectors](ways::vectors), which take about as long
//! wherever both lie (docs/design/long-messages.md).
//!
//! And what is written to a queue goes [past the caches](pace) where the lines of the queue come back slowly
//! from those who have read them.

pub mod cma;
pub mod smsc;

pub mod pace;
mod ways;

use self::pace::{LEAST, Pace, Way};
use self::ways::past_the_cache;
use crate::endpoint::{Result, Span, Stream};
use crate::sync::cache::Stores;
use crate::sync::shared::{will_read, will_write};

/// Copies `len` bytes of private memory to shared memory of the caller's own.
///
/// # Safety
/// Both are valid for so many bytes, do not overlap, and nobody else accesses them meanwhile.
#[inline(always)]
pub unsafe fn write(to: *mut u8, from: *const u8, len: usize) {
    will_write(to, len);
    // SAFETY: by the caller's promise.
    unsafe { by_length(from, to, len, long_write) }
}

/// The same, of what only the caller itself will read.
///
/// # Safety
/// As for [`write`](fn@write).
#[inline(always)]
pub unsafe fn keep(to: *mut u8, from: *const u8, len: usize) {
    will_write(to, len);
    // SAFETY: by the caller's promise.
    unsafe { bytes(from, to, len) }
}

/// How this process writes to its queues.
static PACE: Pace = Pace::new(Stores::Auto);

/// Whether a result of `len` bytes that is to lie in a queue had better be made elsewhere, and then written
/// there: what is written may go [past the caches](pace), what is computed does not. Now and then it says so
/// only to find out how long such a write takes.
pub fn better_elsewhere(len: usize) -> bool {
    len >= LEAST && ways::ticks().is_some_and(|now| PACE.ask_maker(len, now))
}

/// Whether `len` bytes that are written to a queue now go [past the caches](pace).
pub fn goes_past(len: usize) -> bool {
    len >= LEAST && ways::ticks().is_some_and(|now| PACE.ask(len, now) == Way::Past)
}

/// Whether long writes to queues may go past the caches without having been slow before: on processors of
/// AMD's, as it was measured on Zen 4 only, unless the process was [told](set_stores) not to.
pub fn may_go_past() -> bool {
    ways::prefers_vectors() && !PACE.is(Stores::Cached)
}

/// Whether a line comes back slowly from who has read it even where caches are near, so that slots had better
/// [rotate](crate::shm::config::Config::rotates): on processors of AMD's, as it was measured on Zen 4 only.
pub fn rotation_pays() -> bool {
    ways::prefers_vectors()
}

/// Says that processes take turns on the cores, where less is [slow](pace): for all writes of the process
/// from now on, since who is near or far does not depend on the team.
pub fn set_crowded() {
    PACE.set_crowded();
}

/// Whether who reads a line that another core has written takes it over, and does not only get a copy, where
/// the page may be written: on processors of AMD's, as it was measured on Zen 4 only.
pub fn reads_take_over() -> bool {
    ways::prefers_vectors()
}

/// Says that slots [rotate](crate::shm::config::Config::rotates): for all writes of the process from now on,
/// too.
pub fn set_rotating() {
    PACE.set_rotating();
}

/// Makes the process write to its queues so.
pub fn set_stores(stores: Stores) {
    PACE.set(stores);
}

/// While any of these is about, the process writes to its queues through the caches, unless it was
/// [told](set_stores) how to.
pub struct ThroughCaches(());

impl ThroughCaches {
    /// From now on.
    pub fn begin() -> ThroughCaches {
        PACE.hold();
        ThroughCaches(())
    }
}

impl Drop for ThroughCaches {
    fn drop(&mut self) {
        PACE.release();
    }
}

/// # Safety
/// As for [`write`](fn@write).
#[inline(never)]
unsafe fn long_write(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match len < LEAST {
            true => long_bytes(from, to, len),
            false => paced(&PACE, from, to, len),
        }
    }
}

/// # Safety
/// As for [`write`](fn@write).
unsafe fn paced(pace: &Pace, from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match ways::ticks().map_or(Way::Cached, |now| pace.ask(len, now)) {
            Way::Cached => long_bytes(from, to, len),
            Way::Noted(began) => {
                long_bytes(from, to, len);
                pace.note(len, began, ways::ticks().unwrap_or(began));
            }
            Way::Past => past_the_cache(from, to, len),
        }
    }
}

/// Copies past the caches what had better go there, whatever writes took.
///
/// # Safety
/// As for [`write`](fn@write).
unsafe fn past(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(test)]
    WRITTEN_PAST.set(WRITTEN_PAST.get() + len);
    // SAFETY: by the caller's promise.
    unsafe { past_the_cache(from, to, len) }
}

/// Copies `len` bytes of shared memory to private memory; `bypass`: past the cache.
///
/// # Safety
/// Both are valid for so many bytes, do not overlap, and nobody writes them meanwhile.
#[inline(always)]
pub unsafe fn read(to: *mut u8, from: *const u8, len: usize, bypass: bool) {
    will_read(from, len);
    #[cfg(test)]
    BYPASSED.set(BYPASSED.get() + if bypass { len } else { 0 });
    // SAFETY: by the caller's promise.
    unsafe { if bypass { past_the_cache(from, to, len) } else { bytes(from, to, len) } }
}

#[cfg(test)]
thread_local! {
    /// Bytes that this thread has read past the cache.
    pub(in crate::shm) static BYPASSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    /// Bytes that it has written [past the caches](past), whatever writes took.
    pub(in crate::shm) static WRITTEN_PAST: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// As memcpy, but the commonest tiny sizes need no call, and where it may be [slow](self) long ones go by
/// vectors.
///
/// # Safety
/// As for [`write`](fn@write), for any memory.
#[inline(always)]
pub unsafe fn bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe { by_length(from, to, len, long_bytes) }
}

/// The same; `long` copies what is long.
///
/// # Safety
/// As for [`bytes`].
#[inline(always)]
unsafe fn by_length(from: *const u8, to: *mut u8, len: usize, long: unsafe fn(*const u8, *mut u8, usize)) {
    // SAFETY: by the caller's promise.
    unsafe {
        match len {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            ..=VECTORS_UP_TO => std::ptr::copy_nonoverlapping(from, to, len),
            _ => long(from, to, len),
        }
    }
}

/// As [`bytes`], between places that may overlap, or be one and the same.
///
/// # Safety
/// Both are valid for so many bytes; nobody writes to `from`, or accesses `to`, meanwhile.
#[inline(always)]
pub unsafe fn within(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match from.addr().abs_diff(to.addr()) {
            0 => {}
            apart if apart < len => std::ptr::copy(from, to, len),
            _ => bytes(from, to, len),
        }
    }
}

/// So many bytes glibc copies by vectors, and more than `REP_MOVSB_UP_TO` otherwise again, on those
/// processors (from the size of the second cache on, which is half a MiB or one).
const VECTORS_UP_TO: usize = 2048;
const REP_MOVSB_UP_TO: usize = 1 << 20;

/// # Safety
/// As for [`bytes`].
#[inline(never)]
unsafe fn long_bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match len <= REP_MOVSB_UP_TO && ways::prefers_vectors() {
            true => ways::vectors(from, to, len),
            false => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Copies bytes `at..at + len` of a stream to shared memory of the caller's own.
///
/// # Safety
/// `to` is valid for so many bytes, which nobody else accesses meanwhile.
#[inline(always)]
pub unsafe fn pack<S: Stream + ?Sized>(data: &S, at: usize, len: usize, to: *mut u8) -> Result<()> {
    match data.direct() {
        Some(span) => {
            let from = span.slice(at..at + len);
            // SAFETY: who made the span promised valid memory; `to` by the caller's promise.
            unsafe { write(to, from.ptr(), len) };
            Ok(())
        }
        None => {
            will_write(to, len);
            // SAFETY: by the caller's promise, and the stream only writes there now.
            data.pack(at, unsafe { Span::new(to, len, 1) })
        }
    }
}

/// As [`pack`]; `goes_past`: past the caches, where the bytes are contiguous.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
pub unsafe fn pack_past<S: Stream + ?Sized>(
    data: &S,
    at: usize,
    len: usize,
    to: *mut u8,
    goes_past: bool,
) -> Result<()> {
    match data.direct().filter(|_| goes_past) {
        Some(span) => {
            will_write(to, len);
            let from = span.slice(at..at + len);
            // SAFETY: who made the span promised valid memory; `to` by the caller's promise.
            unsafe { past(from.ptr(), to, len) };
            Ok(())
        }
        // SAFETY: by the caller's promise.
        None => unsafe { pack(data, at, len, to) },
    }
}

/// Copies shared memory to bytes `at..at + len` of a stream.
///
/// # Safety
/// `from` is valid for so many bytes, which nobody writes meanwhile.
#[inline(always)]
pub unsafe fn unpack<S: Stream + ?Sized>(data: &S, at: usize, len: usize, from: *const u8, bypass: bool) -> Result<()> {
    match data.direct() {
        Some(span) => {
            let to = span.slice(at..at + len);
            // SAFETY: as in `pack`, the other way.
            unsafe { read(to.ptr(), from, len, bypass) };
            Ok(())
        }
        None => {
            will_read(from, len);
            // SAFETY: by the caller's promise, and the stream only reads there now.
            data.unpack(at, unsafe { Span::new(from.cast_mut(), len, 1) })
        }
    }
}

#[cfg(test)]
mod tests;
