// SPDX-License-Identifier: BSD-3-Clause
//! Copies, whichever way they go.

use super::*;

#[test]
fn every_way_copies_all_and_nothing_else() {
    let from: Vec<u8> = (0..2400).map(|i| (i * 7 + i / 256) as u8).collect();
    for len in
        (0..200).chain([255, 256, 257, 600, 2048, 2049, 2100, 2303, 2304]).step_by(if cfg!(miri) { 37 } else { 1 })
    {
        for shift in [0, 1, 15, 63] {
            for bypass in [false, true] {
                let mut to = vec![0xee; 2500];
                // SAFETY: both vectors are long enough.
                unsafe { read(to.as_mut_ptr().add(shift), from.as_ptr().add(shift / 2), len, bypass) };
                assert_eq!(to[shift..shift + len], from[shift / 2..shift / 2 + len]);
                assert!(to[..shift].iter().chain(&to[shift + len..]).all(|&b| b == 0xee));
            }
        }
    }
}

#[test]
fn nothing_is_timed_while_copies_are_to_go_through_the_caches() {
    let _through_caches = ThroughCaches::begin();
    assert!(PACE.ask(LEAST, 1) == Way::Cached);
}

#[test]
fn vectors_make_the_whole() {
    const LENGTHS: [usize; 5] = [VECTORS_UP_TO, VECTORS_UP_TO + 1, 2112, 2 * VECTORS_UP_TO, 3 * VECTORS_UP_TO + 77];
    let original: Vec<u8> = (0..20_000).map(|i| (i * 11 + i / 251) as u8).collect();
    let check = |len: usize, behind: usize, way: unsafe fn(*const u8, *mut u8, usize)| {
        let (mut room, at) = (original.clone(), 2 * 4096 + behind);
        let start = room.as_mut_ptr();
        // SAFETY: both lie in the room, apart from each other.
        unsafe { way(start.add(7), start.add(7 + at), len) };
        assert_eq!(room[7 + at..][..len], original[7..][..len], "{len} bytes, {behind} behind");
        assert_eq!((&room[..7 + at], &room[7 + at + len..]), (&original[..7 + at], &original[7 + at + len..]));
    };
    for (len, behind) in LENGTHS.iter().flat_map(|len| [0, 1, 16, 31, 63, 64].map(|behind| (*len, behind))) {
        check(len, behind, bytes);
    }
    if ways::prefers_vectors() {
        // All copies of such lengths take this way here, and shorter ones could.
        (0..400).for_each(|len| check(len, 16, ways::vectors));
    }
}

#[test]
fn what_is_written_arrives_whichever_way_it_goes() {
    let from: Vec<u8> = (0..40_000).map(|i| (i * 13 + i / 253) as u8).collect();
    for stores in [Stores::Streaming, Stores::Cached, Stores::Auto] {
        let pace = Pace::new(stores);
        for len in [0, 1, 63, VECTORS_UP_TO, LEAST - 1, LEAST, LEAST + 1, 2 * LEAST + 77, 4 * LEAST] {
            for shift in [0, 1, 16, 63] {
                let mut to = vec![0xee; from.len()];
                // SAFETY: both vectors are long enough.
                unsafe { paced(&pace, from.as_ptr().add(shift / 2), to.as_mut_ptr().add(shift), len) };
                assert_eq!(to[shift..shift + len], from[shift / 2..shift / 2 + len]);
                assert!(to[..shift].iter().chain(&to[shift + len..]).all(|&b| b == 0xee), "{len} bytes");
            }
        }
    }
}

#[test]
fn places_may_overlap() {
    let original: Vec<u8> = (0..6000).map(|i| (i * 11 + i / 251) as u8).collect();
    for (from, to, len) in [(0, 0, 5000), (0, 16, 5000), (16, 0, 5000), (0, 3000, 2500), (3000, 0, 3000)] {
        let mut room = original.clone();
        let start = room.as_mut_ptr();
        // SAFETY: both lie in the room.
        unsafe { within(start.add(from), start.add(to), len) };
        assert_eq!(room[to..][..len], original[from..][..len], "{from} to {to}");
    }
}

/// The shortest of many times of a copy of 16 KiB to so many bytes after the beginning of a page, from the
/// beginning of one.
#[cfg(not(any(miri, loom)))]
fn shortest(after: usize) -> std::time::Duration {
    const LEN: usize = 16 << 10;
    let mut room = vec![0_u8; 4 * LEN];
    let start = room.as_mut_ptr().wrapping_add(room.as_ptr().align_offset(4096));
    let times = (0..200).map(|_| {
        let begin = std::time::Instant::now();
        // SAFETY: both lie in the room, apart from each other.
        unsafe { bytes(start, start.add(2 * LEN + after), LEN) };
        std::hint::black_box(&mut room);
        begin.elapsed()
    });
    times.min().unwrap()
}

#[test]
#[cfg(not(any(miri, loom)))]
fn copies_take_as_long_wherever_they_lie_in_pages() {
    let (even, behind) = (shortest(0), shortest(16));
    assert!(behind < 5 * even, "{behind:?} for 16 KiB to 16 bytes behind the beginning of a page, {even:?} to that");
}
