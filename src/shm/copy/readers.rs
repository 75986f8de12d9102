//! Writing to a queue what one other member reads: it matters on which core that runs.
//!
//! Where processes take turns on the cores, some readers run on the writer's core. What they read is in its caches when they get the core, and the lines are its own when it writes again: 64 KiB take 2.3 µs for both, and 7.5 or more
//! past the caches (Zen 4). So they need not go [past the caches](super::pace) because lines come back slowly from other cores; and how fast these come back shows best where no others count.

use super::pace::{LEAST, Pace};
use super::{PACE, bytes, long_bytes, paced, pack};
use crate::endpoint::{Result, Stream};
use crate::sync::cache::Stores;
use crate::sync::shared::will_write;

/// How it writes what is read on other cores only, where that is known.
pub(super) static AWAY: Pace = Pace::new(Stores::Auto);

/// Who will read what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Several members, or one of whom it is not known where it runs.
    Any,
    /// One that runs on the writer's core: what the writer leaves in its caches is there for the reader, and its lines for the next write.
    Here,
    /// One that runs on another core.
    Elsewhere,
}

impl Reader {
    /// Who says how to write for it; `None`: through the caches.
    fn pace(self) -> Option<&'static Pace> {
        match self {
            Reader::Here if !PACE.is(Stores::Streaming) => None,
            Reader::Elsewhere => Some(&AWAY),
            _ => Some(&PACE),
        }
    }
}

/// As [`pack`], of what one `reader` reads, who is asked for where the bytes are many.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
pub unsafe fn pack_for<S: Stream + ?Sized>(
    data: &S,
    at: usize,
    len: usize,
    to: *mut u8,
    reader: impl FnOnce() -> Reader,
) -> Result<()> {
    match data.direct() {
        Some(span) => {
            // SAFETY: who made the span promised valid memory; `to` by the caller's promise.
            unsafe { write_for(span.slice(at..at + len).ptr(), to, len, reader) };
            Ok(())
        }
        // SAFETY: by the caller's promise.
        None => unsafe { pack(data, at, len, to) },
    }
}

/// As [`write`](fn@write), of what one `reader` reads, who is asked for where the bytes are many.
///
/// # Safety
/// As for [`write`](fn@write).
#[inline(always)]
unsafe fn write_for(from: *const u8, to: *mut u8, len: usize, reader: impl FnOnce() -> Reader) {
    will_write(to, len);
    // SAFETY: by the caller's promise.
    unsafe {
        match len < LEAST {
            true => bytes(from, to, len),
            false => long_write_for(from, to, len, reader()),
        }
    }
}

/// # Safety
/// As for [`write`](fn@write).
#[inline(never)]
unsafe fn long_write_for(from: *const u8, to: *mut u8, len: usize, reader: Reader) {
    #[cfg(test)]
    READERS.with_borrow_mut(|readers| readers.push(reader));
    // SAFETY: by the caller's promise.
    unsafe {
        match reader.pace() {
            None => long_bytes(from, to, len),
            Some(pace) => paced(pace, from, to, len),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// For whom this thread has [written](pack_for) what is long.
    pub(in crate::shm) static READERS: std::cell::RefCell<Vec<Reader>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_on_the_writers_core_goes_through_its_caches() {
        let paces = [Reader::Any, Reader::Here, Reader::Elsewhere].map(Reader::pace);
        assert!(paces[1].is_none(), "nobody has said how to write");
        assert!(paces[0].is_some_and(|pace| std::ptr::eq(pace, &PACE)));
        assert!(paces[2].is_some_and(|pace| std::ptr::eq(pace, &AWAY)), "it has a measure of its own");
    }
}
