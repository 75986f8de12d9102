//! Who is on which core, as far as members have told: whether it pays to go on looking.
//!
//! Where processes take turns on the cores, whoever waits gives its core away: to one that is awaited, or has
//! yet to come. But where the one that is awaited runs on another core, and nobody here has anything to do
//! before, to go on looking for about as long as it takes to give the core away saves two turns: all the
//! others have theirs before the caller is back. (Barriers and Reduces of 8 B of four ranks on two cores took
//! 0.95 of the time: docs/findings.md, "Two states in one job".)
//!
//! Only of up to eight members, and by `auto` waits. All of it is hints: where what was told is no longer so,
//! a wait takes longer.

use super::{NEAR, Team};
use crate::shm::layout::{StreamControl, reached};
use crate::shm::memory::Member;
use crate::sync::here::Core;
use crate::sync::shared::{Ordering, SharedU64};
use std::ptr;

impl Team {
    /// Tells the others on which core the caller is, where that is another one than before.
    #[inline(always)]
    pub(super) fn tell_core(&self) {
        let core = self.here.core();
        if core != self.core.load(Ordering::Relaxed) {
            self.tell(core);
        }
    }

    /// Tells them that it is on this one.
    #[cold]
    #[inline(never)]
    pub(in crate::shm) fn tell(&self, core: Core) {
        self.core.store(core, Ordering::Relaxed);
        self.control(self.me()).core.store(u64::from(core), Ordering::Relaxed);
    }

    #[inline(always)]
    fn core_of(&self, member: Member) -> Core {
        self.control(member).core.load(Ordering::Relaxed) as Core
    }

    /// Whether it pays to go on looking for `target` in a word of `member`'s control for the first stream,
    /// rather than give the core away. `root`: all wait for that one, and nobody for the caller.
    #[inline(always)]
    pub(in crate::shm) fn may_come_soon(&self, member: Member, word: &SharedU64, target: u64, root: bool) -> bool {
        let here = self.core.load(Ordering::Relaxed);
        // Of more members, to look where they are costs more than there is to gain.
        if here == 0 || self.size() > NEAR {
            return false;
        }
        let there = self.core_of(member);
        if there == 0 || here == there {
            return false;
        }
        let mut beside = (0..self.size()).filter(|&m| m != self.me() && self.core_of(m) == here);
        if root {
            // Of two that wait for the root one is through at once. Where there are more, they had better
            // come while it is not there.
            beside.next();
            return beside.next().is_none();
        }
        // Those that have yet to come may be awaited by others.
        let at = ptr::from_ref(word).addr().wrapping_sub(self.controls[member].0.addr());
        at < size_of::<StreamControl>() && beside.all(|m| reached(self.word_at(m, at), target))
    }

    /// The word that lies so many bytes after the beginning of a member's control for the first stream.
    #[inline(always)]
    fn word_at(&self, member: Member, at: usize) -> u64 {
        // SAFETY: within the control, since a word of another member's lies there in its own.
        let word = unsafe { &*self.controls[member].0.cast::<u8>().wrapping_add(at).cast::<SharedU64>() };
        word.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::heap::Heap;
    use crate::shm::layout::word;
    use crate::shm::team::Config;

    /// Teams of members on these cores.
    fn on(cores: &[Core]) -> Vec<Team> {
        let heap = Heap::new(cores.len(), usize::MAX, true);
        let team = |(me, &core)| {
            let team = Team::new(heap.member(me), Config::default());
            team.tell(core);
            team
        };
        cores.iter().enumerate().map(team).collect()
    }

    /// Whether member 0 goes on looking for operation 1 of `member`, where these have come already.
    fn looks(cores: &[Core], member: Member, come: &[Member], root: bool) -> bool {
        let teams = on(cores);
        // SAFETY: controls of the team's.
        let line = |m: Member| unsafe { &(*teams[0].controls[m].0).lines[1].word };
        come.iter().for_each(|&m| line(m).store(word(1, 1), Ordering::Relaxed));
        teams[0].may_come_soon(member, line(member), word(1, 1), root)
    }

    #[test]
    fn who_waits_for_another_core_goes_on_looking_when_all_on_its_own_have_come() {
        assert!(looks(&[1, 2], 1, &[], false));
        assert!(!looks(&[1, 2, 1], 1, &[], false));
        assert!(looks(&[1, 2, 1], 1, &[2], false));
        assert!(!looks(&[1, 2, 1, 1], 1, &[2], false));
        assert!(looks(&[1, 2, 1, 1, 2], 1, &[2, 3], false));
    }

    #[test]
    fn who_waits_for_the_root_goes_on_looking_with_one_other() {
        assert!(looks(&[1, 2, 1], 1, &[], true));
        assert!(!looks(&[1, 2, 1, 1], 1, &[], true));
        assert!(looks(&[1, 2, 2, 2], 1, &[], true));
    }

    #[test]
    fn who_waits_for_its_own_core_or_does_not_know_gives_it_away() {
        for root in [false, true] {
            assert!(!looks(&[1, 1], 1, &[], root));
            assert!(!looks(&[0, 1], 1, &[], root));
            assert!(!looks(&[1, 0], 1, &[], root));
            assert!(!looks(&[0, 0], 1, &[], root));
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn who_begins_a_short_call_tells_where_it_is() {
        use crate::sync::here::Here;
        use crate::sync::wait::Waiting;
        for crowded in [true, false] {
            let config = Config { waiting: Waiting { crowded, ..Waiting::default() }, ..Config::default() };
            let team = Team::new(Heap::new(2, usize::MAX, true).member(0), config);
            let told = || {
                let before = Here::find().core();
                team.bring();
                (before, team.core_of(0))
            };
            // The thread may be moved in between.
            let told = (0..100).map(|_| told()).find(|(before, told)| !crowded || before == told);
            assert!(told.is_some_and(|(_, told)| crowded || told == 0), "{crowded}: {told:?}");
        }
    }

    #[test]
    fn of_many_members_nobody_looks_on() {
        assert!(looks(&[1, 2, 2, 2, 2, 2, 2, 2], 1, &[], false));
        assert!(!looks(&[1, 2, 2, 2, 2, 2, 2, 2, 2], 1, &[], false));
    }

    #[test]
    fn what_is_no_word_of_the_first_stream_is_not_looked_for_elsewhere() {
        // With nobody beside the caller, whom there is to ask does not decide.
        let (teams, word) = (on(&[1, 2]), SharedU64::new(0));
        assert!(!teams[0].may_come_soon(1, &word, 1, false));
    }
}
