//! Taking slots back.
//!
//! A cache line that others have read is theirs too, and its owner has to ask for it before it can write it again. Stores become visible in
//! order, so what is published waits until all lines before it have been given back: for 1 KiB that takes as long as all the rest of a broadcast. So a
//! member keeps a trail of what it has written to its queue. When an operation ends, it asks for those lines in the slots of the next one, if all others are
//! through with them: by the time it writes, they are its own again. Not where none of the latest operations has used queues: the next one is taken not to need them, either.

use super::View;
use crate::shm::layout::{line_of, reached, word};
use crate::shm::team::Config;
use crate::sync::cache;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Cache lines of a short slot that are asked for before they are needed, by who writes them and by who reads them. With the first ones that
/// takes no longer than the line of the flag does, in any case.
pub(super) const SOON: usize = 4;
/// Bytes of a cache line.
const BYTES: usize = 64;
/// Bytes of a set that are taken back, at most: asking for more takes longer than there is time.
const MOST: usize = 32 << 10;

/// Nothing is taken back after so many operations that did not need the queue: the next one is taken not to need it, either.
const WARM: u32 = 64;

/// What a member has written to its queue since it was last taken back. Private to the member; atomic only so that it may be shared.
pub(in crate::shm) struct Trail {
    /// Bytes of a short slot.
    short: usize,
    /// Bytes of all short slots.
    shorts: usize,
    /// Bytes of a fragment.
    fragment: usize,
    /// A bit for each line of each short slot.
    lines: Box<[AtomicU64]>,
    /// Of each fragment, how many bytes from its beginning on.
    fragments: Box<[AtomicU32]>,
    /// The latest operation that used queues.
    latest: AtomicU32,
}

impl Trail {
    /// Of a queue of these sizes.
    pub fn new(config: &Config) -> Trail {
        let &Config { lines, short, fragment, fragments, .. } = config;
        let fragments = (0..fragments).map(|_| AtomicU32::new(0)).collect();
        let shorts = lines * short;
        let lines = (0..lines).map(|_| AtomicU64::new(0)).collect();
        Trail { short, shorts, fragment, lines, fragments, latest: AtomicU32::new(0) }
    }

    /// Notes that operation `op` uses queues.
    #[inline(always)]
    pub fn touch(&self, op: u32) {
        self.latest.store(op, Ordering::Relaxed);
    }

    /// Whether one of the latest operations before `next` used queues.
    #[inline(always)]
    fn is_warm(&self, next: u32) -> bool {
        next.wrapping_sub(self.latest.load(Ordering::Relaxed)) <= WARM
    }

    /// Notes that `len` bytes from byte `at` of the queue on are written; nothing, where that is elsewhere.
    #[inline(never)]
    pub fn note(&self, at: usize, len: usize) {
        match at.checked_sub(self.shorts) {
            None => {
                let (slot, from) = (&self.lines[at / self.short], at % self.short / BYTES);
                let to = (at % self.short + len).div_ceil(BYTES).min(64);
                let bits = u64::MAX >> (64 - (to - from)) << from;
                slot.store(slot.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
            }
            Some(at) => {
                let mut end = at % self.fragment + len;
                for fragment in self.fragments.iter().skip(at / self.fragment) {
                    let here = end.min(self.fragment) as u32;
                    fragment.store(fragment.load(Ordering::Relaxed).max(here), Ordering::Relaxed);
                    end -= here as usize;
                    if end == 0 {
                        break;
                    }
                }
            }
        }
    }

    /// Whether anything is noted of a short slot.
    #[inline(always)]
    pub fn has_short(&self, slot: usize) -> bool {
        self.lines[slot].load(Ordering::Relaxed) != 0
    }

    /// Whether anything is noted of the first fragment of a set.
    #[inline(always)]
    pub fn has_set(&self, first: usize) -> bool {
        self.fragments[first].load(Ordering::Relaxed) != 0
    }

    /// Asks for what is noted of a short slot of the queue at `queue`, and forgets it.
    #[inline(never)]
    pub fn take_short(&self, slot: usize, queue: *const u8) {
        let mut lines = self.lines[slot].load(Ordering::Relaxed);
        self.lines[slot].store(0, Ordering::Relaxed);
        while lines != 0 {
            cache::own(queue.wrapping_add(slot * self.short + lines.trailing_zeros() as usize * BYTES));
            lines &= lines - 1;
        }
    }

    /// The same of a set of fragments.
    #[inline(never)]
    pub fn take_set(&self, set: Range<usize>, queue: *const u8) {
        let mut left = MOST;
        for fragment in set {
            let len = self.fragments[fragment].load(Ordering::Relaxed) as usize;
            self.fragments[fragment].store(0, Ordering::Relaxed);
            let first = queue.wrapping_add(self.shorts + fragment * self.fragment);
            (0..len.min(left)).step_by(BYTES).for_each(|at| cache::own(first.wrapping_add(at)));
            left -= len.min(left);
        }
    }

    /// Forgets what is noted of a set: others are not through with it, and to ask them again costs more than it may save.
    #[inline(never)]
    pub fn forget_set(&self, set: Range<usize>) {
        self.fragments[set].iter().for_each(|fragment| fragment.store(0, Ordering::Relaxed));
    }
}

impl View<'_> {
    /// Asks for what the caller will write in operation `next`, so that it is its own by then.
    #[inline(always)]
    pub(super) fn prepare(&self, next: u32) {
        let &Config { lines, short, sets, .. } = self.team.config();
        let slot = line_of(next, lines) as usize;
        cache::own(ptr::from_ref(&self.control(self.me()).lines[slot]).cast());
        let Some(queues) = self.queues else { return };
        if !queues.trail.is_warm(next) {
            return;
        }
        let queue = queues.at[self.me()].0;
        (0..SOON).for_each(|i| cache::own(queue.wrapping_add(slot * short + i * 64)));
        if queues.trail.has_short(slot) && self.known(word(next.wrapping_sub(lines as u32 - 1), 0)) {
            queues.trail.take_short(slot, queue);
        }
        let depth = self.team.fragment_mask() as usize + 1;
        let set = (next as usize & (sets - 1)) * depth;
        if queues.trail.has_set(set) {
            match self.sees(word(next.wrapping_sub(sets as u32 - 1), 0)) {
                true => queues.trail.take_set(set..set + depth, queue),
                false => queues.trail.forget_set(set..set + depth),
            }
        }
    }

    /// Whether all others are so far, as far as one can see at once.
    fn sees(self, target: u64) -> bool {
        if !self.known(target) {
            self.stream.behind.store(self.least_read(), Ordering::Relaxed);
        }
        self.known(target)
    }

    /// How far all others are known to be as readers.
    pub(super) fn least_read(self) -> u64 {
        // SYNC(read): as in `Reach::look`.
        let seen = self.others().map(|m| self.control(m).read.word.load(Ordering::Acquire));
        seen.reduce(|a, b| if reached(a, b) { b } else { a }).unwrap_or(word(self.op.wrapping_add(1), 0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::endpoint::{Blocks, Result, Span, Stream};
    use crate::shm::heap::Heap;
    use crate::shm::op::{self, Combine};
    use crate::shm::team::Team;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    fn fragments(trail: &Trail) -> Vec<u32> {
        trail.fragments.iter().map(|f| f.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn lines_of_short_slots_are_noted_one_by_one() {
        let trail = Trail::new(&Config { fragments: 4, ..Config::default() });
        trail.note(2 * 4096 + 60, 8);
        trail.note(2 * 4096 + 640, 64);
        trail.note(7 * 4096, 4096);
        let lines: Vec<_> = trail.lines.iter().map(|l| l.load(Ordering::Relaxed)).collect();
        assert_eq!(lines, [0, 0, 0b100_0000_0011, 0, 0, 0, 0, u64::MAX]);
        assert_eq!(fragments(&trail), [0; 4]);
        trail.take_short(2, std::ptr::null());
        assert!(!trail.has_short(2) && trail.has_short(7));
    }

    #[test]
    fn fragments_are_noted_from_their_beginnings_on() {
        let trail = Trail::new(&Config { fragments: 6, ..Config::default() });
        let base = 8 * 4096;
        trail.note(base + 100, 50);
        trail.note(base, 20);
        // As long as two and a bit.
        trail.note(base + 2 * 16384, 2 * 16384 + 7);
        assert_eq!(fragments(&trail), [150, 0, 16384, 16384, 7, 0]);
        // Beyond the queue: nothing to do.
        trail.note(base + 6 * 16384, 5);
        trail.take_set(2..3, std::ptr::null());
        trail.forget_set(3..4);
        assert_eq!(fragments(&trail), [150, 0, 0, 0, 7, 0]);
        assert!(trail.has_set(0) && !trail.has_set(2));
    }

    /// Adds bytes.
    struct Add;

    impl Combine for Add {
        fn size(&self) -> usize {
            1
        }

        unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
            for i in 0..count {
                // SAFETY: by the caller's promise.
                unsafe { *right.add(i) = right.add(i).read().wrapping_add(left.add(i).read()) };
            }
        }
    }

    /// Data in one run, or two blocks of so many bytes, one after the other.
    struct Plain(Span, usize);

    impl Stream for Plain {
        fn len(&self) -> usize {
            self.1
        }

        fn direct(&self) -> Option<Span> {
            Some(self.0)
        }

        fn pack(&self, _: usize, _: Span) -> Result<()> {
            unreachable!("`direct` says where")
        }

        fn unpack(&self, _: usize, _: Span) -> Result<()> {
            unreachable!("`direct` says where")
        }
    }

    impl Blocks for Plain {
        fn len(&self, _: usize) -> usize {
            self.1
        }

        fn direct(&self, members: Range<usize>) -> Option<Span> {
            Some(self.0.slice(members.start * self.1..members.end * self.1))
        }

        fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
            unreachable!("`direct` says where")
        }

        fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
            unreachable!("`direct` says where")
        }
    }

    type Work<'w> = Pin<Box<dyn Future<Output = Result<()>> + 'w>>;

    /// Runs one operation of both members.
    fn run(mut works: [Work<'_>; 2]) {
        let mut over = [false; 2];
        for _ in 0..10_000 {
            for (work, over) in works.iter_mut().zip(&mut over) {
                *over =
                    *over || work.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(Result::unwrap).is_ready();
            }
            if over == [true; 2] {
                return;
            }
        }
        panic!("it hangs");
    }

    /// An operation of one member, of blocks of so many bytes.
    fn work<'t>(name: &'static str, team: &'t Team, len: usize) -> Work<'t> {
        Box::pin(async move {
            let turn = team.open(0, 0, true).await?.expect("there is memory");
            let me = team.me();
            let (mut first, mut second) = (vec![7; 2 * len], vec![0; 2 * len]);
            let (input, output) = (Span::new(first.as_mut_ptr(), len, 1), Span::new(second.as_mut_ptr(), len, 1));
            let both = |buffer: &mut Vec<u8>| Plain(Span::new(buffer.as_mut_ptr(), 2 * len, 1), len);
            let (own, out, all) = (Plain(input, len), both(&mut first), both(&mut second));
            match (name, me) {
                ("bcast", _) => op::bcast::bcast(turn, 0, &own, usize::MAX).await,
                ("gather", 0) => op::gather::receive(turn, Some(&own), &all, usize::MAX).await,
                ("gather", _) => op::gather::send(turn, 0, &own, usize::MAX).await,
                ("scatter", 0) => op::scatter::send(turn, &all, Some(&own), usize::MAX).await,
                ("scatter", _) => op::scatter::receive(turn, 0, &own, usize::MAX).await,
                ("allgather", _) => op::allgather::allgather(turn, Some(&own), &all, usize::MAX).await,
                ("alltoall", _) => op::alltoall::alltoall(turn, Some(&out), &all, usize::MAX).await,
                ("reduce", _) => op::reduce::reduce(turn, 0, &Add, input, output).await,
                ("allreduce", _) => op::allreduce::allreduce(turn, &Add, input, output, usize::MAX).await,
                ("reduce_scatter", _) => {
                    op::reduce_scatter::reduce_scatter(turn, &Add, input, |_| len / 2, output).await
                }
                ("scan", _) => op::scan::scan(turn, false, &Add, input, output).await,
                _ => op::barrier::barrier(turn).await,
            }
        })
    }

    /// Whether the trail of a member leads to the slots of operation `op`: the short one, the set.
    fn leads(team: &Team, op: u32) -> [bool; 2] {
        let turn = team.turn(0, 0, true).expect("it is open");
        let trail = &turn.queues.expect("there is one").trail;
        let config = team.config();
        let found = [
            trail.has_short(op as usize % config.lines),
            trail.has_set((op as usize % config.sets) * (config.fragments / config.sets)),
        ];
        // Another operation, which writes nothing.
        turn.finish();
        found
    }

    #[test]
    fn operations_take_back_what_they_have_written() {
        // Who writes, and whether so many bytes are noted: the shared work of a long allreduce is not.
        for (name, writer) in [
            ("bcast", 0),
            ("gather", 1),
            ("scatter", 0),
            ("allgather", 1),
            ("alltoall", 0),
            ("reduce", 1),
            ("allreduce", 0),
            ("reduce_scatter", 0),
            ("scan", 0),
        ] {
            for len in [1000, 30_000] {
                if name == "allreduce" && len > 4096 {
                    continue;
                }
                let heap = Heap::new(2, 8, false);
                let teams: Vec<_> = (0..2).map(|me| Team::new(heap.member(me), Config::default())).collect();
                let both = |name| run([work(name, &teams[0], len), work(name, &teams[1], len)]);
                let first = Config::default().first_op;
                both(name);
                let noted = teams.iter().map(|team| leads(team, first)).collect::<Vec<_>>();
                assert!(noted[writer].contains(&true), "{name} of {len} bytes has noted nothing");
                (0..Config::default().lines).for_each(|_| both("barrier"));
                assert_eq!(leads(&teams[writer], first), [false; 2], "{name} of {len} bytes was not taken back");
            }
        }
    }

    #[test]
    fn nothing_is_taken_back_after_many_operations_without_queues() {
        for (between, taken) in [(WARM - 1, true), (WARM, false)] {
            let heap = Heap::new(2, 8, false);
            let teams: Vec<_> = (0..2).map(|me| Team::new(heap.member(me), Config::default())).collect();
            let both = |name, len| run([work(name, &teams[0], len), work(name, &teams[1], len)]);
            // In slots, if not in one's own.
            both("scatter", 1000);
            (0..between).for_each(|_| both("barrier", 0));
            for team in &teams {
                let turn = team.turn(0, 0, true).expect("it is open");
                assert_eq!(turn.queues.expect("there is one").trail.is_warm(turn.op), taken, "{between}");
                turn.finish();
            }
        }
    }

    #[test]
    fn who_is_far_ahead_looks_once_for_each_long_operation() {
        let heap = Heap::new(2, 8, false);
        let teams: Vec<_> = (0..2).map(|me| Team::new(heap.member(me), Config::default())).collect();
        run([work("barrier", &teams[0], 8), work("barrier", &teams[1], 8)]);
        let op = Config::default().first_op + 1;
        // The other member does not come.
        let ends = work("bcast", &teams[0], 30_000).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(ends);
        assert!(leads(&teams[0], op)[1], "noted");
        assert!(!leads(&teams[0], op)[1], "forgotten when it was asked for");
    }
}
