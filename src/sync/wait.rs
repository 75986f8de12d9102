// SPDX-License-Identifier: BSD-3-Clause
//! How to wait for a peer.
//!
//! A future spins for a while within its poll, then returns. After each vain poll the executor of a blocking
//! operation asks its [`Patience`] whether to make progress elsewhere, and what else to do before the next.
//!
//! Where processes take turns on the cores, what counts is how soon the core goes to the one that is awaited:
//! so one looks once or a few times, then yields, and seldom makes progress elsewhere. Four and eight
//! processes on two cores take about half the time of the same with 50 looks and progress after each poll.

use std::fmt;
use std::str::FromStr;

/// The longest sleep: whoever sleeps must look after other communication now and then.
pub const LONGEST_SLEEP_NS: u32 = 1_000_000;

/// What a blocking operation does while it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Spin; sleep where there are more processes than cores that they may use.
    #[default]
    Auto,
    /// Spin for ever.
    Spin,
    /// Give the core away after each vain look.
    Yield,
    /// Sleep soon.
    Block,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        match text {
            "auto" => Ok(Mode::Auto),
            "spin" => Ok(Mode::Spin),
            "yield" => Ok(Mode::Yield),
            "block" => Ok(Mode::Block),
            _ => Err(format!("'{text}' is no way of waiting; accepted: auto, spin, yield, block")),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Auto => "auto",
            Mode::Spin => "spin",
            Mode::Yield => "yield",
            Mode::Block => "block",
        })
    }
}

/// How to wait; the same for all members of a team, but for `yields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What to do.
    pub mode: Mode,
    /// There are more processes than cores that they may use.
    pub crowded: bool,
    /// The caller's progress elsewhere gives the core away where it finds nothing (`mpi_yield_when_idle`),
    /// and cannot be told not to. This may differ between members.
    pub yields: bool,
    /// Looks at a word within one poll of a blocking operation.
    pub spin: u32,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { mode: Mode::Auto, crowded: false, yields: false, spin: 500 }
    }
}

/// What to do after a vain poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing.
    None,
    /// Give the core away.
    Yield,
    /// Sleep until the awaited word changes.
    Sleep,
}

/// Vain polls of an `auto` wait that yield before one sleeps. Whoever has lent its memory waits for as long
/// as others copy, and to be woken takes longer than to come back from a yield: with 100, a Scatter of 1 MiB
/// of four processes on two cores took 10 % longer (docs/design/oversubscribed.md).
const YIELDS: u32 = 1000;
/// Vain polls of a `block` wait that do nothing before one sleeps.
const LOOKS: u32 = 2;
/// Looks within one poll where the awaited process may need this core: a fraction of what giving it away
/// costs.
const CROWDED_LOOKS: u32 = 5;
/// The same of an `auto` wait.
const CROWDED_AUTO_LOOKS: u32 = 1;
/// There, one vain poll of so many makes progress elsewhere.
const POLLS_PER_PROGRESS: u32 = 8;

impl Waiting {
    /// Whether members may sleep, so that writers have to wake them.
    pub fn may_sleep(&self) -> bool {
        match self.mode {
            Mode::Auto => self.crowded,
            Mode::Block => true,
            Mode::Spin | Mode::Yield => false,
        }
    }

    /// Whether one who waits for messages gives the core away by itself, but for the first times.
    pub fn gives_core_away(&self) -> bool {
        match self.mode {
            Mode::Spin => false,
            Mode::Yield | Mode::Block => true,
            Mode::Auto => self.crowded,
        }
    }

    /// Looks within one poll: few where the awaited process may need this core.
    pub fn looks(&self) -> u32 {
        match self.mode {
            Mode::Spin => self.spin,
            Mode::Auto if self.crowded => self.spin.min(CROWDED_AUTO_LOOKS),
            _ if self.crowded => self.spin.min(CROWDED_LOOKS),
            Mode::Yield => self.spin.min(50),
            Mode::Auto | Mode::Block => self.spin,
        }
        .max(1)
    }
}

/// Gives the core away.
#[inline(always)]
pub fn yield_now() {
    // At once, not by way of the standard library: what runs between two processes' turns runs cold.
    #[cfg(not(any(loom, miri)))]
    // SAFETY: no more than a system call.
    unsafe {
        libc::sched_yield();
    }
    #[cfg(all(miri, not(loom)))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// The state of one blocking operation. Progress elsewhere is made by the vain polls of all its waits,
/// however short each of them is; but who sleeps does so because this wait is a long one, whatever there was
/// before: to sleep and to be woken takes as long as many steps of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// Vain polls so far.
    vain: u32,
    /// Those of this wait.
    here: u32,
}

impl Patience {
    /// Begins another wait.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.here = 0;
    }

    /// Whether to make progress elsewhere after one more vain poll. Who is about to sleep does, so that
    /// others wait for that no longer than a sleep.
    pub fn is_progress_due(&self, waiting: &Waiting) -> bool {
        let next = self.more(1);
        // Who has waited for very long does not count any more.
        let due = next.vain.is_multiple_of(POLLS_PER_PROGRESS) || next.vain == u32::MAX;
        !waiting.crowded || due || next.pause(waiting) == Pause::Sleep
    }

    /// After each of the next so many vain polls all there is to do is to give the core away. (Of one who has
    /// counted nearly 2³² of them, perhaps one fewer.)
    #[inline(always)]
    pub fn only_yields(&self, waiting: &Waiting) -> u32 {
        let before_sleep = match waiting.mode {
            Mode::Auto => YIELDS.saturating_sub(self.here),
            Mode::Yield => u32::MAX,
            Mode::Spin | Mode::Block => 0,
        };
        let before_progress = POLLS_PER_PROGRESS - 1 - self.vain % POLLS_PER_PROGRESS;
        if waiting.crowded { before_progress.min(before_sleep) } else { 0 }
    }

    /// Counts so many vain polls after which the core was given away.
    #[inline(always)]
    pub fn gave_way(&mut self, polls: u32) {
        *self = self.more(polls);
    }

    /// What to do after one more vain poll.
    pub fn next(&mut self, waiting: &Waiting) -> Pause {
        *self = self.more(1);
        self.pause(waiting)
    }

    #[inline(always)]
    fn more(self, polls: u32) -> Patience {
        Patience { vain: self.vain.saturating_add(polls), here: self.here.saturating_add(polls) }
    }

    /// The same for one who waits for more than one word, or for messages, and makes progress next: it does
    /// not sleep, and where progress gives the core away by itself, once is enough.
    pub fn next_before_progress(&mut self, waiting: &Waiting) -> Pause {
        match self.next(waiting) {
            Pause::Yield | Pause::Sleep if !waiting.yields => Pause::Yield,
            _ => Pause::None,
        }
    }

    fn pause(self, waiting: &Waiting) -> Pause {
        let vain = self.here;
        match waiting.mode {
            Mode::Spin => Pause::None,
            Mode::Yield => Pause::Yield,
            Mode::Auto if !waiting.crowded => Pause::None,
            Mode::Auto if vain <= YIELDS => Pause::Yield,
            Mode::Block if vain <= LOOKS => Pause::None,
            Mode::Auto | Mode::Block => Pause::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for mode in [Mode::Auto, Mode::Spin, Mode::Yield, Mode::Block] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("Spin".parse::<Mode>().unwrap_err().contains("accepted: auto, spin, yield, block"));
    }

    #[test]
    fn before_progress_the_core_is_given_away_once() {
        for mode in [Mode::Auto, Mode::Spin, Mode::Yield, Mode::Block] {
            for (crowded, yields) in [(false, false), (false, true), (true, false), (true, true)] {
                let waiting = Waiting { mode, crowded, yields, spin: 0 };
                let [mut alone, mut before] = [Patience::default(); 2];
                let after_long = Patience { vain: 2 * YIELDS, here: 2 * YIELDS }
                    .next_before_progress(&Waiting { yields: false, ..waiting });
                assert_eq!(after_long == Pause::Yield, waiting.gives_core_away(), "{waiting:?}");
                for _ in 0..YIELDS + 200 {
                    // As many polls are told to give the core away, one by one, if progress is not due.
                    let (mut told, mut other) = (alone.only_yields(&waiting), alone);
                    while !other.is_progress_due(&waiting) && other.next(&waiting) == Pause::Yield {
                        told -= 1;
                        let mut at_once = alone;
                        at_once.gave_way(other.vain - alone.vain);
                        assert_eq!((at_once.vain, at_once.here), (other.vain, other.here));
                    }
                    assert_eq!(told, 0, "{waiting:?}");
                    let expected = match alone.next(&waiting) {
                        Pause::None => Pause::None,
                        _ if yields => Pause::None,
                        _ => Pause::Yield,
                    };
                    assert_eq!(before.next_before_progress(&waiting), expected, "{waiting:?}");
                }
            }
        }
    }

    #[test]
    fn a_short_wait_does_not_sleep_because_others_were_long() {
        for (mode, polls) in [(Mode::Auto, YIELDS), (Mode::Block, LOOKS)] {
            let waiting = Waiting { mode, crowded: true, yields: false, spin: 0 };
            let mut patience = Patience::default();
            for wait in 0..3 {
                patience.begin();
                for poll in 0..polls {
                    assert_ne!(patience.next(&waiting), Pause::Sleep, "{mode}: wait {wait}, poll {poll}");
                }
                assert_eq!(patience.next(&waiting), Pause::Sleep, "{mode}: wait {wait}");
            }
        }
    }

    #[test]
    fn only_who_may_sleep_does() {
        for mode in [Mode::Auto, Mode::Spin, Mode::Yield, Mode::Block] {
            for crowded in [false, true] {
                let waiting = Waiting { mode, crowded, yields: false, spin: 0 };
                let mut patience = Patience::default();
                let mut slept = false;
                let mut idle = 0;
                for _ in 0..2 * YIELDS {
                    let due = patience.is_progress_due(&waiting);
                    let pause = patience.next(&waiting);
                    idle = if due { 0 } else { idle + 1 };
                    assert!(due || pause != Pause::Sleep, "{waiting:?}: slept without progress");
                    assert!(idle < POLLS_PER_PROGRESS, "{waiting:?}: {idle} polls without progress");
                    slept |= pause == Pause::Sleep;
                }
                assert_eq!(slept, waiting.may_sleep(), "{waiting:?}");
                assert!(
                    Patience { vain: u32::MAX, here: u32::MAX }.is_progress_due(&waiting),
                    "{waiting:?}: no progress for ever"
                );
                assert!(waiting.looks() >= 1);
            }
        }
    }
}
