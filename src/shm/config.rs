// SPDX-License-Identifier: BSD-3-Clause
//! Sizes and limits of a team.

use crate::shm::memory::layout::{LINES, SHORT};
use crate::sync::wait::Waiting;

/// The most fragments of a set.
pub const MAX_FRAGMENTS: usize = 64;
const _: () = assert!(MAX_FRAGMENTS <= 1 << u8::BITS);
/// The most sets of a queue, and the fewest lines: a set that is free implies a line that is free.
pub(super) const MAX_SETS: usize = 8;
/// Lines where up to 32 processes take turns on the cores: who has a core goes on for as many operations as
/// it can, before the others have their turns. Where each has a core it gains nothing, and spreads what is
/// written over more cache lines and pages. (This and what follows: docs/design/oversubscribed.md.)
const CROWDED_LINES: u32 = LINES as u32;
/// Short slots there: what is written lies in fewer pages and cache lines, which who has just got a core
/// finds in its caches sooner. For what fits a small slot a writer may be ahead by as many operations as
/// there are lines, since there it matters most.
const CROWDED_SHORTS: u8 = 4;
/// Bytes of a fragment there: whoever has a core copies more before the others have their turns.
const CROWDED_FRAGMENT: usize = 32 << 10;
/// Bytes of a set in use at a time there, as a power of two, in Gather(v) and Reduce among up to eight: with
/// half as much they took longer among three to eight members, with twice as much in some cases. Two were
/// not measured. So much of what is gathered travels as a whole among them, too; not so a broadcast, which
/// lost by it. And more of it [in halves](Config::gathers_in_halves).
const CROWDED_WINDOW: u8 = 18;
/// Bytes that all members together copy out of the queues from which on these copies bypass the cache there:
/// with as much again where they come from, and the queues, they would drive each other out of it. Where each
/// has a core they read such lengths from each other's memory, as a rule, and this was not measured: there
/// nothing bypasses the cache.
const CROWDED_BYPASS: usize = 8 << 20;
/// Bytes of the sets of a queue whose slots [rotate](Config::rotates): twice the second cache of a Zen 4, and
/// four times that of a Zen 2 or 3 (docs/design/rotating-slots.md).
const ROTATING_QUEUE: usize = 2 << 20;
/// Up to so many bytes what is short lies in short slots where others rotate: there the first lines come back
/// to the writer while it has time. Longer ones gain by rotating, shorter ones lose.
const STILL: u32 = 1024;
/// What a process may use of the node's memory, at least, where slots rotate: eight such queues.
pub const ROTATING_SHARE: u64 = 8 * ROTATING_QUEUE as u64;
/// Up to so many members slots rotate: their queues take a part of the third cache that they share, and of
/// the limit for the node. (With two it was measured.)
pub const ROTATING: usize = 4;
/// What a slot holds at least, for each of the other members.
pub(super) const LEAST_SHARE: usize = 128;

/// How the members of a team have cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Each has one for itself.
    Own,
    /// So it may be, but members give them away where they wait: what they wait for comes from other nodes,
    /// and may need them.
    Lent,
    /// There are fewer than members, who take turns.
    Shared,
}

/// Sizes and limits; the same for all members. What every operation needs comes first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// Lines in use: a power of two from 8 up to [`LINES`].
    pub lines: u32,
    /// Where slots [rotate](Config::rotates) what is short rotates with them if it has more than so many
    /// bytes; made [`short`](Config::short) elsewhere, and where a fragment is shorter than a short slot.
    /// Shares of a short slot rotate between two members only.
    pub still: u32,
    /// How to wait.
    pub waiting: Waiting,
    /// The longest contents of a short slot, up to [`SHORT`]; made a multiple of 64. 0: there are none.
    pub short: usize,
    /// What is longer than that, up to so many bytes, travels as a whole in the set, unless each member has
    /// something else for each: where processes take turns on the cores, whoever has one does all its part at
    /// once. Elsewhere not.
    pub whole: u32,
    /// The same of what is gathered: blocks for one member, or the same for several.
    pub whole_gathered: u32,
    /// Bytes of a fragment; made a multiple of 64, and large enough for 128 bytes per member.
    pub fragment: usize,
    /// Fragments of a queue, over all sets.
    pub fragments: usize,
    /// Reductions share the work from so many bytes on; those to a root only among more than two members, and
    /// not where processes take turns on the cores (src/shm/op/reduce.rs).
    pub shared_work_min: usize,
    /// Where all members together copy so many bytes out of the queues in a broadcast, gather, scatter or
    /// allgather, or three quarters of it in an alltoall, these copies bypass the cache. Not so what is
    /// short, or travels as a [whole](Config::whole) (but for blocks of an allgather that are longer than
    /// that); alltoalls of one round where members take turns; and what is not contiguous where it goes. Of
    /// an allgather or alltoall each member takes what it copies for what each does, and of an allgather all
    /// of whose blocks travel as wholes each block for what all are like.
    pub bypass_min: usize,
    /// Number of the first operation of each stream.
    pub first_op: u32,
    /// The shortest piece of a message that goes one way, unless a fragment is shorter; a multiple of 64.
    pub piece_min: u32,
    /// A block that is copied between two members' private memory is divided between them, if the smaller
    /// part has so many bytes.
    pub divided_min: u32,
    /// Short slots in use: a power of two, as many as sets at least, as lines at most.
    pub shorts: u8,
    /// Sets of a queue: so many operations of a stream may be about at a time. A power of two up to 8; up to
    /// 4 where processes take turns on the cores.
    pub sets: u8,
    /// Bytes of a set that are in use at a time where [that is
    /// best](crate::shm::protocol::turn::Turn::narrowed), as a power of two.
    pub window: u8,
    /// Bytes of a small slot, of which there are as many as lines; 0: there are none. Made an eighth of
    /// [`short`](Config::short) where processes take turns on the cores, if that is a multiple of 64.
    pub small: u16,
    /// Whether long writes to queues may go past the caches too, from a little less than
    /// [`bypass_min`](Config::bypass_min) on: see
    /// [`writes_past`](crate::shm::protocol::turn::View::writes_past).
    pub past: bool,
    /// Whether slots of sets go [round the whole queue](crate::shm::protocol::turn::rotation), where each
    /// member has a core: a line is written again only when those who have read it no longer have it in their
    /// own caches, and then need not be asked to give it up.
    pub rotates: bool,
}

/// From how many bytes on so many members share the work of a reduction. Where each has a core, that of
/// eight and more is predicted (docs/design/many-cores.md): the more there are, the longer one of them would
/// combine what all have; but each part is fetched from all, so that very many had better go along a tree.
fn shared_work(members: usize, cores: Cores) -> usize {
    match members {
        _ if cores != Cores::Own => 8 << 10,
        // Each crosses to the other as much either way, so sharing pays only where combining takes long.
        2 => 32 << 10,
        0..=7 => 8 << 10,
        8..=64 => 512,
        _ => 2 << 10,
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            fragment: 16384,
            fragments: 32,
            sets: 2,
            lines: MAX_SETS as u32,
            still: STILL,
            short: SHORT,
            whole: 64 << 10,
            whole_gathered: 64 << 10,
            shared_work_min: 8192,
            piece_min: 4096,
            divided_min: 8192,
            bypass_min: usize::MAX,
            waiting: Waiting::default(),
            first_op: 1,
            shorts: MAX_SETS as u8,
            window: 17,
            small: 0,
            past: false,
            rotates: false,
        }
    }
}

impl Config {
    /// Where in a queue short slots begin: behind the small ones.
    #[inline(always)]
    pub(super) fn shorts_at(&self) -> usize {
        self.lines as usize * usize::from(self.small)
    }

    /// Where in a queue sets begin.
    #[inline(always)]
    pub(super) fn sets_at(&self) -> usize {
        self.shorts_at() + usize::from(self.shorts) * self.short
    }

    /// Whether [more](Config::whole_gathered) of what is gathered travels as a whole than of other messages.
    /// Then, in blocking operations, what is longer [travels in
    /// halves](crate::shm::protocol::turn::Turn::halved) of what is in use of a set: whoever has a core
    /// copies all that there is room for. Bcast and Reduce lost by that.
    #[inline(always)]
    pub fn gathers_in_halves(&self) -> bool {
        self.whole_gathered > self.whole
    }

    /// The same for so many members that have cores in this way, where slots [may rotate](Config::rotates).
    pub fn rotating_among(self, members: usize, cores: Cores) -> Config {
        match members {
            2..=ROTATING if cores == Cores::Own => {
                Config { rotates: true, sets: MAX_SETS as u8, fragments: ROTATING_QUEUE / self.fragment, ..self }
            }
            _ => self,
        }
    }

    /// The sizes for so many members that have cores in this way.
    pub fn built_in(members: usize, cores: Cores) -> Config {
        let bypass_min = if cores == Cores::Shared { CROWDED_BYPASS } else { usize::MAX };
        let (own, shared_work_min) = (cores == Cores::Own, shared_work(members, cores));
        let config = Config { bypass_min, shared_work_min, ..Config::default() };
        let fragments = config.fragments;
        // Many processes have many queues, which come out of one limit for the node.
        match members {
            0..=32 if own => config,
            0..=8 if cores == Cores::Shared => {
                let (lines, shorts) = (CROWDED_LINES, CROWDED_SHORTS);
                let (fragment, window, whole_gathered) = (CROWDED_FRAGMENT, CROWDED_WINDOW, 1 << CROWDED_WINDOW);
                Config { lines, shorts, fragment, window, whole_gathered, ..config }
            }
            0..=32 if cores == Cores::Shared => Config { lines: CROWDED_LINES, shorts: CROWDED_SHORTS, ..config },
            0..=32 => Config { lines: CROWDED_LINES, ..config },
            33..=64 => Config { fragments: fragments / 2, ..config },
            _ => Config { fragments: fragments / 4, ..config },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::memory::heap::Heap;
    use crate::shm::protocol::team::Team;

    #[test]
    fn queues_take_no_more_where_there_are_many_of_them() {
        let kib = |members, cores| {
            let Config { fragment, fragments, shorts, short, .. } = Config::built_in(members, cores);
            (fragment * fragments + shorts as usize * short) >> 10
        };
        assert_eq!([2, 3, 32].map(|members| kib(members, Cores::Own)), [512 + 32; 3]);
        assert_eq!([2, 8, 9, 32].map(|members| kib(members, Cores::Lent)), [512 + 32; 4]);
        assert_eq!([2, 8].map(|members| kib(members, Cores::Shared)), [1024 + 16; 2]);
        assert_eq!([9, 32].map(|members| kib(members, Cores::Shared)), [512 + 16; 2]);
        for cores in [Cores::Own, Cores::Lent, Cores::Shared] {
            assert_eq!([33, 64, 65].map(|members| kib(members, cores)), [256 + 32, 256 + 32, 128 + 32]);
        }
    }

    #[test]
    fn few_members_that_share_cores_use_more_of_a_set() {
        let window = |members, cores| Config::built_in(members, cores).window;
        assert_eq!([2, 4, 5, 8, 9, 32].map(|members| window(members, Cores::Shared)), [18, 18, 18, 18, 17, 17]);
        assert_eq!([Cores::Own, Cores::Lent].map(|cores| window(4, cores)), [17; 2]);
        let gathered = |members, cores| {
            let config = Config::built_in(members, cores);
            (config.whole_gathered, config.gathers_in_halves())
        };
        for (members, cores) in [(4, Cores::Own), (4, Cores::Lent), (9, Cores::Shared), (32, Cores::Shared)] {
            assert_eq!(gathered(members, cores), (64 << 10, false), "{members}, {cores:?}");
        }
        assert_eq!([2, 5, 8].map(|members| gathered(members, Cores::Shared)), [(256 << 10, true); 3]);
    }

    #[test]
    fn slots_rotate_among_few_that_have_a_core_each() {
        let rotating = |members, cores| {
            let config = Config::built_in(members, cores).rotating_among(members, cores);
            (config.rotates, config.sets, (config.fragment * config.fragments) >> 20)
        };
        assert_eq!([2, 4].map(|members| rotating(members, Cores::Own)), [(true, 8, 2); 2]);
        assert_eq!(rotating(5, Cores::Own), (false, 2, 0));
        assert_eq!([Cores::Lent, Cores::Shared].map(|cores| rotating(2, cores).0), [false; 2]);
        let mut config = Config::default().rotating_among(2, Cores::Own);
        for crowded in [false, true] {
            config.waiting.crowded = crowded;
            let team = Team::new(Heap::new(1, 0, true).member(0), config);
            assert_eq!(team.config().rotates, !crowded);
        }
    }

    #[test]
    fn two_with_cores_of_their_own_share_only_long_work() {
        let least = |members, cores| Config::built_in(members, cores).shared_work_min;
        assert_eq!(least(2, Cores::Own), 32 << 10);
        assert_eq!([least(3, Cores::Own), least(7, Cores::Own)], [8192; 2]);
        assert_eq!([least(2, Cores::Lent), least(2, Cores::Shared), least(96, Cores::Shared)], [8192; 3]);
    }

    #[test]
    fn many_share_shorter_work_but_very_many_less() {
        let least = |members| Config::built_in(members, Cores::Own).shared_work_min;
        assert_eq!([8, 64, 65, 192].map(least), [512, 512, 2048, 2048]);
    }
    #[test]
    fn only_crowded_members_bypass_the_cache() {
        let least = |cores| Config::built_in(4, cores).bypass_min;
        assert_eq!([Cores::Own, Cores::Lent, Cores::Shared].map(least), [usize::MAX, usize::MAX, 8 << 20]);
    }
}
