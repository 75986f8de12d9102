// SPDX-License-Identifier: BSD-3-Clause
//! When to write past the caches.

use super::*;

/// A write of `len` bytes that begins then and takes so many ticks for each line, unless it goes past the
/// caches. Says whether it did.
fn write(pace: &Pace, at: u64, len: usize, ticks: u64) -> bool {
    match pace.ask(len, at) {
        Way::Noted(now) => pace.note(len, now, now + ticks * (len as u64 / LINE)),
        Way::Cached => {}
        Way::Past => return true,
    }
    false
}

const LEN: usize = 64 << 10;
/// Of a line that comes from a far cache, a near one, and the writer's own.
const FAR: u64 = 73;
const NEAR: u64 = 18;
const OWN: u64 = 3;

fn writes(pace: &Pace, len: usize, ticks: &[u64]) -> usize {
    ticks.iter().filter(|&&ticks| write(pace, 1000, len, ticks)).count()
}

#[test]
fn slow_writes_go_past_the_caches_after_four() {
    let pace = Pace::new(Stores::Auto);
    assert_eq!(writes(&pace, LEN, &[FAR; 4]), 0);
    assert_eq!(writes(&pace, LEN, &[FAR, NEAR, OWN]), 3);
    // Any that are not short do.
    assert_eq!([LEAST - 1, LEAST].map(|len| write(&pace, 1000, len, FAR)), [false, true]);
}

#[test]
fn what_counts_is_the_mean() {
    for (ticks, past) in [
        ([NEAR, NEAR, NEAR, NEAR], false),
        ([OWN, OWN, OWN, 10_000], false),
        ([NEAR, NEAR, 10_000, NEAR], false),
        ([NEAR, OWN, 10_000, 10_000], true),
        ([FAR, FAR, OWN, FAR], true),
        ([OWN, FAR, OWN, FAR], true),
        ([OWN, OWN, FAR, OWN], false),
    ] {
        let pace = Pace::new(Stores::Auto);
        assert_eq!(writes(&pace, LEN, &ticks), 0);
        assert_eq!(write(&pace, 1000, LEN, OWN), past, "{ticks:?}");
    }
}

#[test]
fn where_processes_take_turns_less_is_slow() {
    for (ticks, past) in [
        ([NEAR, NEAR, NEAR, NEAR], [false, false]),
        ([NEAR, FAR, OWN, OWN], [false, true]),
        ([30, 30, 30, 30], [false, true]),
        ([OWN, FAR, OWN, FAR], [true, true]),
    ] {
        let paces = [(); 2].map(|()| Pace::new(Stores::Auto));
        paces[1].set_crowded();
        let found = paces.each_ref().map(|pace| {
            assert_eq!(writes(pace, LEN, &ticks), 0);
            write(pace, 1000, LEN, OWN)
        });
        assert_eq!(found, past, "{ticks:?}");
    }
}

#[test]
fn what_is_still_on_its_way_does_not_count() {
    // Until the buffer is full all go at once; then as fast as lines come.
    let ticks = |ticks: u64| ticks * (COUNTS as u64 / LINE - BUFFERED) / (COUNTS as u64 / LINE);
    for (speed, past) in [(NEAR, 0), (FAR, 2)] {
        let pace = Pace::new(Stores::Auto);
        assert_eq!(writes(&pace, COUNTS, &[ticks(speed); 6]), past);
    }
}

#[test]
fn short_writes_count_together() {
    // Most of the first of four has gone when it is over.
    let (pace, ticks) = (Pace::new(Stores::Auto), [NEAR, FAR, FAR, FAR]);
    assert_eq!(writes(&pace, LEAST, &ticks.repeat(4)), 0);
    assert!(write(&pace, 1000, LEAST, FAR));
    // Each waited for before the next one.
    let pace = Pace::new(Stores::Auto);
    assert_eq!(writes(&pace, LEAST, &[NEAR; 40]), 0);
}

#[test]
fn it_tries_again_later_and_later_while_nothing_changes() {
    let pace = Pace::new(Stores::Auto);
    let (mut now, took) = (1000, FAR * (LEN as u64 / LINE));
    for term in [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST, 16 * FIRST, 32 * FIRST, LONGEST, LONGEST] {
        assert_eq!([0; 4].map(|_| write(&pace, now, LEN, FAR)), [false; 4], "{term}");
        now += took + term;
        assert!(write(&pace, now - 1, LEN, FAR), "{term}");
    }
    // Once they are near, it begins with the shortest time.
    let found = [FAR, NEAR, OWN, OWN, FAR, FAR, FAR, FAR, FAR].map(|ticks| write(&pace, now, LEN, ticks));
    assert_eq!(found, [false, false, false, false, false, false, false, false, true]);
    assert!(!write(&pace, now + took + FIRST, LEN, FAR));
}

#[test]
fn where_slots_rotate_it_forgets_for_how_long_it_was_when_it_has_been_fast_for_long() {
    let term = |rotates, fast: u32| {
        let pace = Pace::new(Stores::Auto);
        if rotates {
            pace.set_rotating();
        }
        let mut now = 1000;
        // Twice, so that the second time is twice as long.
        for _ in 0..2 {
            (0..SAMPLES).for_each(|_| assert!(!write(&pace, now, LEN, FAR)));
            now += LONGEST + 1;
        }
        (0..fast * SAMPLES).for_each(|_| assert!(!write(&pace, now, LEN, OWN)));
        (0..SAMPLES).for_each(|_| assert!(!write(&pace, now, LEN, FAR)));
        pace.term.load(Relaxed)
    };
    assert_eq!([0, 1].map(|fast| term(false, fast)), [4 * FIRST, FIRST]);
    assert_eq!([0, 1, FAST - 1, FAST].map(|fast| term(true, fast)), [4 * FIRST, 4 * FIRST, 4 * FIRST, FIRST]);
}

#[test]
fn who_says_how_has_it_so() {
    for (stores, past) in [(Stores::Cached, false), (Stores::Streaming, true)] {
        let pace = Pace::new(Stores::Auto);
        pace.set(stores);
        assert_eq!([FAR; 6].map(|ticks| write(&pace, 1000, LEN, ticks)), [past; 6]);
        assert!(!write(&pace, 1000, LEAST - 1, FAR));
    }
}

#[test]
fn what_is_made_in_place_is_tried_elsewhere_now_and_then() {
    let pace = Pace::new(Stores::Auto);
    let make = |pace: &Pace, ticks: u64| {
        let elsewhere = pace.ask_maker(LEN, 1000);
        (elsewhere, elsewhere && write(pace, 1000, LEN, ticks))
    };
    let mut made = (0..4 * SAMPLE).map(|_| make(&pace, FAR));
    assert_eq!(made.by_ref().filter(|&(elsewhere, past)| elsewhere && !past).count(), 4);
    assert_eq!([make(&pace, FAR), make(&pace, FAR)], [(true, true); 2]);
    for (stores, elsewhere) in [(Stores::Cached, false), (Stores::Streaming, true)] {
        assert_eq!([0; 9].map(|_| Pace::new(stores).ask_maker(LEN, 1000)), [elsewhere; 9]);
    }
    assert!(!pace.ask_maker(LEAST - 1, 1000));
}

#[test]
fn who_measures_has_it_through_the_caches() {
    let pace = Pace::new(Stores::Auto);
    let goes_past = || pace.ask(LEN, 1000 + FIRST / 2) == Way::Past;
    writes(&pace, LEN, &[FAR; 4]);
    assert!(goes_past());
    (0..2).for_each(|_| pace.hold());
    // Nor does that count.
    assert_eq!([FAR, NEAR].map(|ticks| write(&pace, 1000, LEN, ticks)), [false; 2]);
    pace.release();
    assert!(!goes_past());
    pace.release();
    assert!(goes_past());
    // Who says how has it so.
    pace.set(Stores::Streaming);
    pace.hold();
    assert!(goes_past());
}

#[test]
fn a_clock_that_is_set_back_does_no_harm() {
    let pace = Pace::new(Stores::Auto);
    (0..4).for_each(|_| assert!(!write(&pace, 1000 * LONGEST, LEN, FAR)));
    assert!(write(&pace, 1000 * LONGEST + FIRST / 2, LEN, FAR));
    assert!(!write(&pace, 1000, LEN, FAR));
}

#[test]
fn clocks_may_differ_from_core_to_core() {
    let pace = Pace::new(Stores::Auto);
    (0..SAMPLES).for_each(|_| pace.note(LEN, 1000, 900));
    assert!(!write(&pace, 1000, LEN, FAR));
}
