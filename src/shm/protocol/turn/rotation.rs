// SPDX-License-Identifier: BSD-3-Clause
//! Slots that go round the whole queue, where each member has a core
//! ([`Config::rotates`](crate::shm::config::Config::rotates)).
//!
//! A line that another core holds because it has read it comes back slowly to who writes it, also where both
//! share a cache beyond their own. So slots do not lie where those of the latest operations lay, but where
//! others have not read for so long that their own caches have lost it.
//!
//! Operation n uses set n % w, as all do. But its slots begin at another fragment of that than those of
//! operation n − w did, and fill that, as long as they need to be, and the following ones. There lies what is
//! short, too, but not so short that it lies [still](crate::shm::config::Config::still). And between two
//! members what does not fit the slots of a set at once goes on in the following sets, instead of in the same
//! slots again: step k is in set (n + 5 (k / d)) % w, for d slots. Who writes step d or a later one knows
//! that the other has read a step of this operation, or has published one, and so is through with all earlier
//! ones, whose sets these are. But afterwards it must not begin to write one of these sets in a later
//! operation, which has it by its number, before the other is through with operation n. Among more members
//! that would not do: who has read the slot that is needed need not be the one that is still reading another
//! set.

use super::View;
use super::slots::set_of;
use crate::shm::memory::Member;
use crate::shm::memory::layout::{SHORT, line_word, reached, word};
use crate::shm::protocol::team::{Stream, Team};
use crate::sync::shared::Ordering;

/// So many fragments further on than those of the operation before in the same set its slots begin: odd, so
/// that they come to each fragment; and a bit less than half of the built-in sets, so that they seldom begin
/// among those of the operation before.
const STRIDE: usize = 7;

/// So many sets further on what does not fit one goes on: odd, so that it comes to all; and such that it is
/// in none that an operation right after or before has, where each needs two or four of eight.
const SET_STRIDE: usize = 5;

/// Fragments of a set.
fn fragments(team: &Team) -> usize {
    team.fragment_mask() as usize + 1
}

/// Half a fragment, or less: a power of two.
#[inline(always)]
fn half(team: &Team) -> usize {
    1 << team.config().fragment.ilog2() >> 1
}

/// In which fragment of its set the slots of operation `op` begin, and how often they have come round to that
/// before.
#[inline(always)]
fn begin(team: &Team, op: u32) -> (usize, usize) {
    let fragments = fragments(team);
    // Both are powers of two.
    let in_set = op as usize >> team.config().sets.ilog2();
    ((in_set * STRIDE) & (fragments - 1), in_set >> fragments.ilog2())
}

/// Where in a queue what is short lies in operation `op` that does not lie
/// [still](crate::shm::config::Config::still): within a fragment, and there each time in another place, until
/// it has been in all (of the largest power of two of bytes in the fragment).
#[inline(never)]
pub(super) fn short_at(team: &Team, op: u32) -> usize {
    let config = team.config();
    let (first, times) = begin(team, op);
    let half = half(team) & !(SHORT - 1);
    let place = (times & 1) * half + (((times >> 1) * SHORT) & (half.max(SHORT) - 1));
    config.sets_at() + (set_of(op, config.sets) * fragments(team) + first) * config.fragment + place
}

/// As [`View::rotated`]: of operation `op`, in which a set is used as so many slots, each of them 2 to the
/// power of `wide` fragments. (No part of operations, and like all such functions without their [`View`],
/// which would lie in memory wherever its address is passed on: a copy of that waits until what was written
/// before has reached the cache.)
#[inline(never)]
fn slot_at(team: &Team, op: u32, wide: u32, depth: u32, step: usize, bytes: usize) -> usize {
    let (fragment, fragments) = (team.config().fragment, fragments(team));
    let sets = usize::from(team.config().sets);
    let (depth, pitch) = (depth as usize, bytes.max(1).next_multiple_of(64));
    let sets_before = if team.size() == 2 { step / depth } else { 0 };
    let set = (op as usize + sets_before * SET_STRIDE) & (sets - 1);
    let ((first, times), step, each) = (begin(team, op), step & (depth - 1), fragment / pitch);
    let in_set = if wide == 0 && each > 1 {
        // A fragment is filled round about, each time from its other half on: what fills one comes round to
        // all of it, what fills half of one to each half in turn.
        let (further, place) = (step / each, ((times & 1) * half(team) / pitch + step) % each);
        ((first + further) & (fragments - 1)) * fragment + place * pitch
    } else {
        // Side by side.
        (first * fragment / pitch + step) % (fragments * fragment / pitch) * pitch
    };
    set * fragments * fragment + in_set
}

/// How far the others must have come as readers before the caller may write the set of operation `op`: at
/// least to `target`, and through with the latest operation that went on in following sets, if this may be
/// one of those.
#[inline(never)]
pub(super) fn after_others(stream: &Stream, op: u32, sets: u8, target: u64) -> u64 {
    let beyond = stream.beyond.load(Ordering::Relaxed);
    match op.wrapping_sub(beyond) {
        since if (1..u32::from(sets)).contains(&since) => word(beyond.wrapping_add(1), 0),
        _ => target,
    }
}

impl View<'_> {
    /// Where a member's slot of `step` is, from the beginning of its sets on, if none of its steps in this
    /// operation has more than `bytes`.
    #[inline(always)]
    pub(super) fn rotated(&self, member: Member, step: usize, bytes: usize) -> usize {
        let beyond = self.size() == 2 && step >= self.depth() as usize && member == self.me();
        if beyond {
            debug_assert!(cfg!(loom) || self.has_begun(1 - member), "the other may still read what is in that set");
            self.stream.beyond.store(self.op, Ordering::Relaxed);
        }
        slot_at(self.team, self.op, self.wide, self.depth(), step, bytes)
    }

    /// Where a member's set begins, all of which the caller uses as one.
    pub fn set_begin(&self, member: Member) -> *mut u8 {
        let config = self.team.config();
        self.queue(member).wrapping_add(config.sets_at() + self.set(member) * fragments(self.team) * config.fragment)
    }

    /// Whether a member is in this operation, by what it has published or read.
    fn has_begun(&self, member: Member) -> bool {
        let [wrote, read] =
            [&self.line(member).word, &self.control(member).read.word].map(|word| word.load(Ordering::Relaxed));
        reached(wrote, line_word(self.op, 1)) || reached(read, word(self.op, 0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::shm::memory::layout::SHORT;
    use crate::shm::protocol::team::{Config, Team};
    use crate::shm::protocol::turn::Turn;
    use crate::shm::protocol::turn::slots::tests::opened;
    use std::ops::Range;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    const FRAGMENT: usize = 1024;

    /// Members whose slots rotate, after their first operation.
    fn members(count: usize, fragments: usize, sets: u8, first_op: u32) -> Vec<Team> {
        opened(count, Config { fragment: FRAGMENT, fragments, sets, rotates: true, first_op, ..Config::default() })
    }

    fn turn(team: &Team) -> Turn<'_> {
        team.turn(0, 0, true).expect("it is open")
    }

    /// Where in the queue the other's slot of `step` is.
    fn place(turn: &Turn<'_>, step: u32, bytes: usize) -> Range<usize> {
        let at = turn.slot_of(1, step, bytes) as usize - turn.queue(1) as usize;
        at..at + bytes
    }

    fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
        a.start < b.end && b.start < a.end
    }

    #[test]
    fn unread_steps_lie_apart_and_within_their_sets() {
        for (count, fragments, sets, first_op) in
            [(2, 32, 2, 1), (2, 128, 8, u32::MAX - 20), (2, 8, 8, 1), (2, 4, 1, 1), (3, 32, 4, u32::MAX - 3)]
        {
            let teams = members(count, fragments, sets, first_op);
            let (begin, set) = (teams[0].config().sets_at(), fragments / usize::from(sets) * FRAGMENT);
            for round in 0..160 {
                let turn = turn(&teams[0]);
                let turn = if round % 2 == 0 { turn } else { turn.widened() };
                let bytes = [1, 64, 100, 200, 257, 640, 700, turn.fragment() / 15, turn.fragment()][round % 9];
                let places: Vec<_> = (0..3 * fragments as u32).map(|step| place(&turn, step, bytes)).collect();
                for (step, at) in places.iter().enumerate() {
                    let others = &places[step + 1..places.len().min(step + turn.depth() as usize)];
                    let within =
                        (at.start - begin) / set == (at.end - 1 - begin) / set && at.end <= teams[0].queue_bytes();
                    assert!(
                        within && others.iter().all(|other| !overlap(at, other)),
                        "{count}, {fragments}, {sets}, {bytes}, {step}"
                    );
                }
                turn.finish();
            }
        }
    }

    #[test]
    fn operations_that_may_be_about_at_a_time_lie_apart() {
        let teams = members(3, 32, 4, u32::MAX - 9);
        let mut latest: Vec<Vec<Range<usize>>> = Vec::new();
        for round in 0..40 {
            let turn = turn(&teams[0]);
            let now: Vec<_> = (0..20).map(|step| place(&turn, step, [FRAGMENT, 200][round % 2])).collect();
            for before in latest.iter().rev().take(3) {
                assert!(!before.iter().any(|a| now.iter().any(|b| overlap(a, b))), "{round}");
            }
            latest.push(now);
            turn.finish();
        }
    }

    #[test]
    fn slots_come_to_the_whole_queue() {
        // Bytes of a slot, how many an operation has, and whether those are wide ones.
        for (bytes, steps, wide) in [
            (FRAGMENT, 4, false),
            (FRAGMENT / 4, 4, false),
            (FRAGMENT / 4, 2, false),
            (640, 4, false),
            (4096 / 15, 4, true),
        ] {
            let teams = members(2, 128, 8, 1);
            let mut lines = vec![false; 128 * FRAGMENT / 64];
            let begin = teams[0].config().sets_at();
            for _ in 0..256 {
                let turn = turn(&teams[0]);
                let turn = if wide { turn.widened() } else { turn };
                assert_eq!(turn.fragment() > FRAGMENT, wide);
                for step in 0..steps {
                    place(&turn, step, bytes).for_each(|at| lines[(at - begin) / 64] = true);
                }
                turn.finish();
            }
            let used = lines.iter().filter(|&&line| line).count();
            // What lies side by side leaves less than a slot at the end of each set.
            assert!(used * 64 + 8 * bytes > 128 * FRAGMENT, "{bytes}, {steps}: {used}");
        }
    }

    /// Where in the queue what is short lies that rotates, in the next operation.
    fn short_place(teams: &[Team], bytes: usize) -> Range<usize> {
        let turn = turn(&teams[0]);
        let at = turn.room(1, bytes) as usize - turn.queue(1) as usize;
        turn.finish();
        at..at + bytes
    }

    #[test]
    fn what_is_short_comes_to_the_whole_queue() {
        for (fragment, times) in [(16384, 4), (8192, 2), (4096, 1)] {
            let config = Config { fragment, fragments: 128, sets: 8, rotates: true, ..Config::default() };
            let teams = opened(2, Config { first_op: u32::MAX - 200, ..config });
            let begin = teams[0].config().sets_at();
            let places: Vec<_> = (0..2 * 128 * times).map(|_| short_place(&teams, SHORT).start - begin).collect();
            let mut seen = vec![0; 128 * times];
            places.iter().for_each(|at| seen[at / SHORT] += 1);
            assert!(places.iter().all(|at| at % SHORT == 0) && seen.iter().all(|&n| n > 0), "{fragment}: {seen:?}");
            // When it comes to a fragment again, it has been elsewhere there as often as there are other
            // places.
            for of in places.chunks(128 * times).flat_map(|all| (0..128).map(|i| &all[i..])) {
                let mut of: Vec<_> = of.iter().step_by(128).collect();
                of.sort_unstable();
                of.dedup();
                assert_eq!(of.len(), times, "{fragment}");
            }
        }
    }

    #[test]
    fn halves_of_a_fragment_take_turns() {
        let teams = members(2, 128, 8, 1);
        let mut latest = vec![usize::MAX; 128];
        for _ in 0..512 {
            let turn = turn(&teams[0]);
            let at: Vec<_> =
                (0..4).map(|step| place(&turn, step, FRAGMENT / 4).start - teams[0].config().sets_at()).collect();
            turn.finish();
            let fragment = at[0] / FRAGMENT;
            assert!(at.iter().all(|at| at / FRAGMENT == fragment), "{at:?}");
            assert!([0, FRAGMENT / 2].contains(&(at[0] % FRAGMENT)) && at[0] != latest[fragment], "{at:?}");
            assert_eq!([(at[0] + FRAGMENT / 4), (at[2] + FRAGMENT / 4)], [at[1], at[3]]);
            latest[fragment] = at[0];
        }
    }

    #[test]
    fn what_is_short_lies_within_its_set() {
        for (fragment, short, still) in
            [(256, 200, 64), (4096, SHORT, 1024), (6000, SHORT, 0), (12352, SHORT, 1024), (24576, SHORT, 1024)]
        {
            let config = Config { fragment, short, still, fragments: 16, sets: 4, rotates: true, ..Config::default() };
            let teams = opened(2, config);
            let (set, bytes) = (teams[0].config().fragment * 4, teams[0].config().short);
            for op in 2..200 {
                let at = short_place(&teams, bytes).start - teams[0].config().sets_at();
                assert_eq!([at / set, (at + bytes - 1) / set], [op % 4; 2], "{fragment}, {op}");
            }
        }
    }

    #[test]
    fn what_lies_still_is_in_short_slots() {
        let slots = |config: Config| {
            let teams = opened(2, Config { fragment: 4096, fragments: 16, ..config });
            let begin = teams[0].config().sets_at();
            [64, 1024, 1025, 4096].map(|bytes| short_place(&teams, bytes).end <= begin)
        };
        let rotates = Config { rotates: true, ..Config::default() };
        assert_eq!(slots(rotates), [true, true, false, false]);
        assert_eq!(slots(Config { still: 4096, ..rotates }), [true; 4]);
        assert_eq!(slots(Config::default()), [true; 4]);
        // A fragment that is shorter than a short slot has no room for it.
        let teams = opened(2, Config { fragment: 2048, fragments: 16, ..rotates });
        assert!(short_place(&teams, 4096).end <= teams[0].config().sets_at());
    }

    #[test]
    fn between_two_a_long_message_goes_on_in_other_sets() {
        let teams = members(2, 64, 8, 1);
        let turn = turn(&teams[0]);
        let sets: Vec<_> = [0, 8, 16, 24, 32]
            .iter()
            .map(|&step| (place(&turn, step, FRAGMENT).start - teams[0].config().sets_at()) / (8 * FRAGMENT))
            .collect();
        assert_eq!(sets, [2, 7, 4, 1, 6]);
        turn.finish();
    }

    #[test]
    fn sets_that_were_gone_on_in_are_free_when_the_other_is_through() {
        let teams = members(2, 4, 4, 1);
        let publish = |steps| {
            let turn = turn(&teams[0]);
            let free = poll(turn.set_free()).is_ready();
            // Who reads, has begun: for the second slot of one.
            let reader = (steps > 1).then(|| self::turn(&teams[1]));
            if let Some(reader) = &reader {
                reader.acknowledge(1);
            }
            (0..steps).for_each(|step| _ = turn.slot(0, step));
            turn.publish_and_finish(steps);
            (free, reader)
        };
        let (free, reader) = publish(2);
        assert!(free, "all are through with the first operation");
        assert!(!publish(1).0, "the set that the second step is in may still be read");
        reader.unwrap().finish();
        assert!(publish(1).0);
    }
}
