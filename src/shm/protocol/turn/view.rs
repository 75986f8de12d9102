// SPDX-License-Identifier: BSD-3-Clause
//! An operation as one member sees it: its lines, and what there is to wait for. Where slots are, and when
//! they are free, [`slots`](super::slots) says.

use super::Circle;
use super::slots::PREFETCHED;
use crate::endpoint::{Error, Result};
use crate::shm::memory::Member;
use crate::shm::memory::layout::{
    LINE, LINES, Line, STEPS, StreamControl, UNSAID, is_old, is_round, line_of, line_word, reached, telling_word, word,
};
use crate::shm::policy::Way;
use crate::shm::protocol::reach::Reach;
use crate::shm::protocol::team::{At, Stream, Team};
use crate::sync::shared::Ordering;

/// An operation as one member sees it.
#[derive(Clone, Copy)]
pub struct View<'t> {
    pub(super) team: &'t Team,
    pub(super) stream: &'t Stream,
    pub(super) controls: &'t [At<StreamControl>],
    pub(super) queues: Option<&'t [At<u8>]>,
    pub(super) op: u32,
    /// Which of each member's lines is this operation's.
    pub(super) line: u32,
    /// A fragment is so many of the queue's, as a power of two.
    pub(super) wide: u32,
    /// One of so many parts of a set is used, as a power of two.
    pub(super) narrow: u32,
    pub(super) blocking: bool,
    /// Whatever the caller sends and gets in this operation lies [still](crate::shm::config::Config::still),
    /// as it knows beforehand.
    pub(super) still: bool,
    pub(super) named: Option<Way>,
    /// What the caller's words [say](super::lengths) of the length of its data.
    pub(super) said: u8,
}

impl<'t> View<'t> {
    /// Of operation `op`, which does not block, and for which no parameter names a way.
    #[inline(always)]
    pub(super) fn of(
        team: &'t Team,
        stream: &'t Stream,
        controls: &'t [At<StreamControl>],
        queues: Option<&'t [At<u8>]>,
        op: u32,
    ) -> View<'t> {
        let line = line_of(op, team.config().lines);
        View {
            team,
            stream,
            controls,
            queues,
            op,
            line,
            wide: 0,
            narrow: 0,
            blocking: false,
            still: false,
            named: None,
            said: UNSAID,
        }
    }

    /// The team.
    #[inline(always)]
    pub fn team(&self) -> &'t Team {
        self.team
    }

    /// The caller's place.
    #[inline(always)]
    pub fn me(&self) -> Member {
        self.team.me()
    }

    /// Number of members.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.team.size()
    }

    /// The operation's number on its stream, the same for all members.
    pub fn number(&self) -> u32 {
        self.op
    }

    /// The other members.
    #[inline(always)]
    pub fn others(&self) -> impl Iterator<Item = Member> + Clone + use<> {
        let me = self.me();
        (0..self.size()).filter(move |&m| m != me)
    }

    /// The same, from the one after the caller on: where all turn to all, not everybody to the same one
    /// first.
    #[inline(always)]
    pub fn around(&self) -> Circle {
        Circle::after(self.me(), self.size())
    }

    /// Whether whatever the caller sends and gets lies still, as it [knows](super::Turn::of_what_lies_still)
    /// beforehand.
    #[inline(always)]
    pub fn is_still(&self) -> bool {
        self.still
    }

    /// Whether all members are within the call until the operation is over, so that each does its part at
    /// once.
    #[inline(always)]
    pub fn is_blocking(&self) -> bool {
        self.blocking
    }

    /// Whether processes take turns on the cores, or give them away where they wait.
    #[inline(always)]
    pub fn shares_cores(&self) -> bool {
        self.team.config().waiting.crowded
    }

    /// Whether copies out of the queues bypass the cache, where so many `readers` copy `bytes` each, as far
    /// as the caller knows; in an alltoall they do from [a little less](Self::nearly_bypass) on.
    #[inline(always)]
    pub fn bypasses(&self, readers: usize, bytes: usize) -> bool {
        bytes.saturating_mul(readers) >= self.team.config().bypass_min
    }

    /// Whether these are nearly as many bytes as copies [bypass](Self::bypasses) the cache from.
    #[inline(always)]
    pub fn nearly_bypass(&self, bytes: usize) -> bool {
        bytes >= self.team.config().bypass_min / 4 * 3
    }

    /// Whether writes to the queues go past the caches, near or far, where all members together write so many
    /// bytes: [nearly as many](Self::nearly_bypass) as copies out of them bypass the cache from.
    #[inline(always)]
    pub fn writes_past(&self, bytes: usize) -> bool {
        self.team.config().past && self.nearly_bypass(bytes)
    }

    /// Bytes of a fragment.
    #[inline(always)]
    pub fn fragment(&self) -> usize {
        self.team.config().fragment << self.wide
    }

    /// Bytes that one slot takes of a message of `len` bytes that goes one way: a quarter, so that the reader
    /// copies out what came first while the writer copies in the rest. Where processes take turns on the
    /// cores, as much as it holds.
    #[inline(always)]
    pub fn piece(&self, len: usize) -> usize {
        let fragment = self.fragment();
        let quarter = len.div_ceil(4).next_multiple_of(64).max(self.team.config().piece_min as usize);
        if self.shares_cores() { fragment } else { fragment.min(quarter) }
    }

    /// Fragments of a set: step k uses slot k modulo this.
    #[inline(always)]
    pub fn depth(&self) -> u32 {
        (self.team.fragment_mask() + 1) >> (self.wide + self.narrow)
    }

    #[inline(always)]
    pub(super) fn control(&self, member: Member) -> &'t StreamControl {
        // SAFETY: the directory says that it is there; it is only accessed through shared words and raw
        // pointers.
        unsafe { &*self.controls[member].0 }
    }

    #[inline(always)]
    pub(super) fn line(&self, member: Member) -> &'t Line {
        &self.control(member).lines[self.line as usize & (LINES - 1)]
    }

    /// The contents of a member's line: the caller's own may be written while the line is free and until it
    /// is published, another's be read once it is.
    #[inline(always)]
    pub fn payload(&self, member: Member) -> *mut u8 {
        self.line(member).payload()
    }

    /// Publishes the steps before `step`: the contents that belong to them are complete.
    #[inline(always)]
    pub fn publish(&self, step: u32) {
        // SYNC(wrote): releases the contents.
        self.team.post(&self.line(self.me()).word, self.line_before(), self.word_of(step));
    }

    /// The word with which the caller publishes the steps before `step`.
    #[inline(always)]
    fn word_of(&self, step: u32) -> u64 {
        telling_word(self.op, step, self.said, self.stream.set.load(Ordering::Relaxed))
    }

    /// What the word of the caller's line was before this operation, at most.
    #[inline(always)]
    fn line_before(&self) -> u64 {
        word(self.op.wrapping_sub(self.team.config().lines), u32::MAX)
    }

    /// Whether what is gathered, and is not short, travels [in halves](super::Turn::halved).
    #[inline(always)]
    pub fn gathers_in_halves(&self) -> bool {
        self.is_crowded() && self.team.config().gathers_in_halves()
    }

    /// Whether all members are in the call, and share cores.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.shares_cores() && self.blocking
    }

    /// Waits until a member has published the steps before `step`.
    #[inline(always)]
    pub fn wrote(&self, member: Member, step: u32) -> Reach<'t> {
        let reach = Reach::new(self.team, &self.line(member).word, line_word(self.op, step), member, self.blocking);
        let reach = reach.of(self.stream);
        if step > 1 && !self.blocking { reach.soon() } else { reach }
    }

    /// Says that the caller is through with the steps before `step`.
    #[inline(always)]
    pub fn acknowledge(&self, step: u32) {
        // SYNC(read): releases the reads, so that they are over when the owner writes again.
        self.team.post(&self.control(self.me()).read.word, word(self.op, 0), word(self.op, step));
    }

    /// Waits until a member is through with the steps before `step`.
    #[inline(always)]
    pub fn read(&self, member: Member, step: u32) -> Reach<'t> {
        self.reader(member, word(self.op, step))
    }

    #[inline(always)]
    pub(super) fn reader(&self, member: Member, target: u64) -> Reach<'t> {
        Reach::new(self.team, &self.control(member).read.word, target, member, self.blocking)
    }

    /// Waits until all others are through with the steps before `step`.
    pub async fn all_read(&self, step: u32) -> Result<()> {
        self.all_past(word(self.op, step)).await
    }

    /// Whether all others are known to be so far.
    #[inline(always)]
    pub(super) fn known(&self, target: u64) -> bool {
        reached(self.stream.behind.load(Ordering::Relaxed), target)
    }

    /// Waits until all others are through with what comes before `target`.
    #[inline(always)]
    pub(super) async fn all_past(&self, target: u64) -> Result<()> {
        if self.known(target) { Ok(()) } else { self.ask_others(target).await }
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` holds its arguments twice")]
    pub(super) fn ask_others(self, target: u64) -> impl Future<Output = Result<()>> + use<'t> {
        async move {
            let mut least: Option<u64> = None;
            for member in self.others() {
                let seen = self.reader(member, target).await?;
                least = Some(self.less(least, seen));
            }
            if let Some(least) = least {
                self.stream.behind.store(least, Ordering::Relaxed);
            }
            Ok(())
        }
    }

    /// `None` where the caller's line is known to be free, else the wait.
    #[inline(always)]
    pub fn line_taken(&self) -> Option<impl Future<Output = Result<()>>> {
        self.room_taken(0)
    }

    /// Waits until the caller's line is free.
    #[inline(always)]
    pub async fn line_free(&self) -> Result<()> {
        match self.line_taken() {
            None => Ok(()),
            Some(wait) => wait.await,
        }
    }

    /// Says what is known from another source: all others have begun this operation.
    #[inline(always)]
    pub fn met(&self) {
        let now = word(self.op, 0);
        if !self.known(now) {
            self.stream.behind.store(now, Ordering::Relaxed);
        }
    }

    /// Ends the operation on the caller's side, and publishes the steps before `last`, if any are left: who
    /// sleeps on either is looked for once.
    #[inline(always)]
    pub(super) fn end(&self, last: Option<u32>) {
        let next = self.op.wrapping_add(1);
        let (line, read) = (&self.line(self.me()).word, &self.control(self.me()).read.word);
        let through = (read, word(self.op, 0), word(next, 0));
        if let Some(step) = last {
            // SYNC(wrote): releases the contents.
            let last = self.word_of(step);
            line.store(last, Ordering::Release);
            // SYNC(read): releases the reads of this operation.
            read.store(word(next, 0), Ordering::Release);
            self.team.wake(|| [through, (line, self.line_before(), last)]);
        } else {
            // SYNC(read): as above.
            read.store(word(next, 0), Ordering::Release);
            self.team.wake(|| [through]);
        }
        self.stream.next.store(next, Ordering::Relaxed);
        self.prefetch(next);
        if is_round(next) {
            self.renew(next);
        }
        self.stream.busy.store(false, Ordering::Relaxed);
    }

    /// Waits until a member has published step 1, and with it `len` bytes at `from`, which it brings to the
    /// cache, if they are few: of many, it would take away from the writer what that is about to write.
    #[inline(always)]
    pub fn wrote_at(&self, member: Member, from: *const u8, len: usize) -> Reach<'t> {
        let reach = self.wrote(member, 1);
        if (LINE + 1..=PREFETCHED * 64).contains(&len) { reach.bringing(from, len) } else { reach }
    }

    /// The same of bytes in its [`room`](View::room).
    #[inline(always)]
    pub fn wrote_room(&self, member: Member, len: usize) -> Reach<'t> {
        self.wrote_at(member, self.room(member, len), len)
    }

    /// Brings up to date what the operations so far had no use for, before it can be taken for something
    /// later.
    #[cold]
    #[inline(never)]
    fn renew(self, next: u32) {
        self.control(self.me()).renew(next);
        // A run of operations along a tree begins anew, before its numbers are too old.
        self.stream.near.mark.store(0, Ordering::Relaxed);
        if is_old(self.stream.behind.load(Ordering::Relaxed), next) {
            self.stream.behind.store(self.least_read(), Ordering::Relaxed);
        }
    }

    /// How far all others are known to be as readers.
    fn least_read(self) -> u64 {
        // SYNC(read): as in `Reach::look`.
        let seen = self.others().map(|m| self.control(m).read.word.load(Ordering::Acquire));
        seen.reduce(|a, b| if reached(a, b) { b } else { a }).unwrap_or(word(self.op.wrapping_add(1), 0))
    }

    /// An error that says how far an operation may go: up to [`STEPS`].
    pub fn steps(&self, count: usize) -> Result<u32> {
        u32::try_from(count).ok().filter(|_| count < STEPS).ok_or(Error::NoMemory(count))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::View;
    use crate::shm::protocol::reach::looks_at_first;
    use crate::shm::protocol::team::Config;
    use crate::shm::protocol::turn::slots::tests::opened;
    use crate::sync::wait::{Mode, Waiting};
    use std::pin::Pin;
    use std::task::{Context, Waker};

    #[test]
    fn who_does_not_block_looks_on_in_the_middle_of_a_message_only() {
        let ways = [Mode::Auto, Mode::Spin].into_iter();
        for (mode, (crowded, spin, [first, later])) in ways
            .flat_map(|mode| [(false, 500, [10, 40]), (false, 7, [7; 2]), (true, 500, [0, 1])].map(|way| (mode, way)))
        {
            let waiting = Waiting { mode, crowded, spin, ..Waiting::default() };
            let teams = opened(2, Config { waiting, ..Config::default() });
            let turn = teams[0].turn(0, 0, true).expect("it is open");
            let looks = |blocking| {
                let view = View { blocking, ..*turn };
                [1, 2, 9].map(|step| view.wrote(1, step).looks())
            };
            assert_eq!(looks(false), [1, later, later]);
            assert_eq!(looks_at_first(&teams[0]), first);
            assert_eq!(looks(true), [waiting.looks(); 3]);
            // Not for ever.
            let mut reach = View { blocking: false, ..*turn }.wrote(1, 2);
            for poll in 0..20 {
                assert_eq!(reach.looks(), if poll < 16 { later } else { 1 });
                assert!(Pin::new(&mut reach).poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            turn.finish();
        }
    }
}
