//! Writing to a queue what one other member reads: it matters on which core that runs.
//!
//! Where processes take turns on the cores, some readers run on the writer's core. What they read is in its
//! caches when they get the core, and, unless others have read there in between, the lines are its own when
//! it writes again: 64 KiB take 2.3 µs for both, and 7.5 or more past the caches (Zen 4). So they need not go
//! [past the caches](super::pace) because lines come back slowly from other cores; and how fast these come
//! back shows best where no others count.
//!
//! For blocks of an alltoall, also among neighbours, and of a scatter whose blocks the set holds at once. Who
//! runs where is a hint: where it is wrong, a copy takes longer.

use super::pace::{LEAST, Pace};
use super::{PACE, bytes, long_bytes, paced, pack, past};
use crate::endpoint::{Result, Stream};
use crate::sync::cache::Stores;
use crate::sync::shared::will_write;

/// How this process writes what is read on other cores only, where that is known.
pub(super) static AWAY: Pace = Pace::new(Stores::Auto);

/// Who will read what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Several members, or one of whom it is not known where it runs.
    Any,
    /// One that runs on the writer's core: what the writer leaves in its caches is there for the reader, and
    /// its lines for the next write.
    Here,
    /// One that runs on another core.
    Elsewhere,
}

impl Reader {
    /// Which of these says how to write for it; `None`: through the caches.
    fn pace<'p>(self, any: &'p Pace, away: &'p Pace) -> Option<&'p Pace> {
        match self {
            Reader::Here if !any.is(Stores::Streaming) => None,
            Reader::Elsewhere => Some(away),
            _ => Some(any),
        }
    }
}

/// As [`pack`], of what one `reader` reads, who is asked for where the bytes are many. `away_past`: past the
/// caches if that is [elsewhere](Reader::Elsewhere), near or far.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
pub unsafe fn pack_for<S: Stream + ?Sized>(
    data: &S,
    at: usize,
    len: usize,
    to: *mut u8,
    away_past: bool,
    reader: impl FnOnce() -> Reader,
) -> Result<()> {
    match data.direct() {
        Some(span) => {
            let from = span.slice(at..at + len).ptr();
            will_write(to, len);
            // SAFETY: who made the span promised valid memory; `to` by the caller's promise.
            unsafe {
                match len < LEAST {
                    true => bytes(from, to, len),
                    false => long_write_for(from, to, len, away_past, reader()),
                }
            }
            Ok(())
        }
        // SAFETY: by the caller's promise.
        None => unsafe { pack(data, at, len, to) },
    }
}

/// # Safety
/// As for [`write`](fn@super::write).
#[inline(never)]
unsafe fn long_write_for(from: *const u8, to: *mut u8, len: usize, away_past: bool, reader: Reader) {
    #[cfg(test)]
    READERS.with_borrow_mut(|readers| readers.push(reader));
    // SAFETY: by the caller's promise.
    unsafe {
        if away_past && reader == Reader::Elsewhere {
            return past(from, to, len);
        }
        match reader.pace(&PACE, &AWAY) {
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
        for (stores, here) in [(Stores::Auto, None), (Stores::Cached, None), (Stores::Streaming, Some(0))] {
            let paces = [Pace::new(stores), Pace::new(stores)];
            let of = |reader: Reader| {
                let pace = reader.pace(&paces[0], &paces[1])?;
                paces.iter().position(|of| std::ptr::eq(of, pace))
            };
            assert_eq!([Reader::Any, Reader::Here, Reader::Elsewhere].map(of), [Some(0), here, Some(1)], "{stores:?}");
        }
    }

    #[test]
    fn what_is_written_for_one_member_is_all_there() {
        let from: Vec<u8> = (0..40_000).map(|i| (i * 13 + i / 253) as u8).collect();
        let data = crate::endpoint::Span::new(from.as_ptr().cast_mut(), from.len(), 1);
        for (reader, away_past, len) in
            [(Reader::Any, true), (Reader::Here, true), (Reader::Elsewhere, false), (Reader::Elsewhere, true)]
                .iter()
                .flat_map(|&(reader, past)| [0, 8, LEAST - 1, LEAST, 3 * LEAST + 77].map(|len| (reader, past, len)))
        {
            let mut to = vec![0xee; from.len()];
            // SAFETY: both vectors are long enough.
            unsafe { pack_for(&data, 5, len, to.as_mut_ptr(), away_past, || reader) }.unwrap();
            assert_eq!(to[..len], from[5..][..len], "{reader:?}");
            assert!(to[len..].iter().all(|&b| b == 0xee), "{reader:?}, {len} bytes");
        }
    }
}
