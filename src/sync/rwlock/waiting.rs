// SPDX-License-Identifier: BSD-3-Clause
//! How one waits for a word: looks, then gives the core away, then sleeps; and now and then asks whether who
//! is awaited lives.
//!
//! Who is about to sleep says so in the word itself ([`ASLEEP`]), by compare-and-swap; who writes the
//! awaited value does so by an exchange, and wakes whom it found asleep. Both are on one word, so one is
//! first: either the sleeper finds the value, or the writer finds the sleeper. No fence is needed.

use super::robust::Robust;
use super::{Error, robust::Left};
use crate::sync::futex::{self, Half};
use crate::sync::shared::{Ordering, SharedU64};
use crate::sync::wait;

/// In the place of a word that somebody sleeps on. No value that one waits for is this.
pub const ASLEEP: u64 = 2;

/// Looks before the core is given away, and how often that happens before one sleeps. A look takes some
/// nanoseconds, what a writer does some microseconds.
const LOOKS: u32 = if cfg!(any(loom, miri)) { 0 } else { 200 };
const YIELDS: u32 = if cfg!(any(loom, miri)) { 0 } else { 20 };
/// The longest sleep before one asks whether the other lives.
const SLEEP_NS: u32 = 10_000_000;

/// Waits until `word` is `value`, which [`tell`] writes. `peer` is the mutex of who will write it: if it is
/// found left, `mend` is called with it locked, and must see to it that the word is written; and told how it
/// was left.
pub fn until(word: &SharedU64, value: u64, peer: Robust<'_>, mend: impl Fn(Left)) -> Result<(), Error> {
    let mut vain = 0;
    loop {
        // Acquire: with the value comes what its writer did before.
        let seen = word.load(Ordering::Acquire);
        if seen == value {
            return Ok(());
        }
        vain += 1;
        if vain <= LOOKS {
            std::hint::spin_loop();
        } else if vain <= LOOKS + YIELDS {
            wait::yield_now();
        } else if seen == ASLEEP || word.compare_exchange(seen, ASLEEP, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            sleep(word, peer);
            if let Some(left) = peer.try_lock()? {
                mend(left);
                peer.unlock();
            }
        }
    }
}

#[cfg(not(loom))]
fn sleep(word: &SharedU64, _peer: Robust<'_>) {
    futex::wait(word, Half::Low, ASLEEP, SLEEP_NS);
}

/// The model has no time: one sleeps until there is something to be seen.
#[cfg(loom)]
fn sleep(word: &SharedU64, peer: Robust<'_>) {
    let _ = (SLEEP_NS, Half::Low, futex::wake);
    crate::sync::model::sleep_unless(|| word.load(Ordering::Relaxed) != ASLEEP || peer.is_left());
}

/// Writes what somebody may wait for.
pub fn tell(word: &SharedU64, value: u64) {
    // Release: with the value goes what the caller did before.
    if word.swap(value, Ordering::Release) == ASLEEP {
        futex::wake(word, Half::Low);
    }
}
