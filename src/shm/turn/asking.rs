// SPDX-License-Identifier: BSD-3-Clause
//! Data that other members cannot read where they lie: they ask the owner for them, and get them through its
//! queue.
//!
//! Some memory can be accessed by its own process only: a device's, or what memfd_secret(2) gives. Its owner
//! does not know that it is such. To try would cost a system call each time, so it lends its memory all the
//! same, and who then fails to read it asks: an operation all of whose data can be read does nothing for
//! that. The owner waits for its readers at the end of the operation, where it finds that one of them asks,
//! and answers.
//!
//! (A probe by the owner cannot take the place of asking: one page of many may be such, and memory be mapped
//! anew, so it would touch every page at every call. That takes half as long as to read them.)
//!
//! * *To ask*: a member puts the part that it wants in its last words, and publishes a step of its `read`
//!   word that says whom it asks. Such steps come after all others, so who asks has come to the end of the
//!   operation: it has read all it can, and nobody waits for that any more.
//! * *To answer*: the owner copies the part to the beginning of its set, or as much of it as fits, and
//!   publishes a step of its line that says whom it answers. Nobody else uses the set: before its first
//!   answer the owner waits until all its readers have come to the end, and if they are not all others, it
//!   has chosen a free set before it lent anything. It gives the next answer when the one who got the last
//!   one has said, by its next step, that it is through with it.
//! * *No circle*: who waits for an answer, or for one to be read, answers others meanwhile; and nothing
//!   before the end of an operation waits for its end.
//! * *More than there is* is not given: where both sides have another length (an error of the program), the
//!   reader fails, as it would have by reading on.

use super::View;
use crate::endpoint::{Error, Result};
use crate::shm::copy;
use crate::shm::layout::{ASKING, MOST, line_word, reached, step, word};
use crate::shm::memory::Member;
use crate::sync::clock::Vain;
use crate::sync::shared::Ordering;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::task::Poll;

/// What the caller has announced for others to read.
pub trait Lend: Sync {
    /// All members that read the caller's private memory or its queue in the operation.
    fn readers(&self) -> Vec<Member>;
    /// Copies a part of what a member may read to `room`, which holds so much; false: there is not so much.
    fn copy(&self, to: Member, part: Range<usize>, room: *mut u8) -> Result<bool>;
}

/// Nothing.
pub struct Nothing;

impl Lend for Nothing {
    fn readers(&self) -> Vec<Member> {
        Vec::new()
    }

    fn copy(&self, _: Member, _: Range<usize>, _: *mut u8) -> Result<bool> {
        Ok(false)
    }
}

/// Takes bytes that begin at `at` of what a member has lent.
pub type Take<'a> = dyn Fn(Member, usize, *const u8, usize) -> Result<()> + Sync + 'a;

/// A future that is rarely needed, apart from those that contain it.
pub type Rare<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Bytes before the contents of an answer: how many there are, and what keeps them aligned.
const HEAD: usize = 64;

/// A member at the end of an operation.
struct Desk<'a> {
    lent: &'a dyn Lend,
    readers: Vec<Member>,
    /// Who has got the latest answer, and its word then: until that changes, it may be reading.
    answered: Option<(Member, u64)>,
    vain: Vain,
}

impl Desk<'_> {
    fn new(lent: &dyn Lend) -> Desk<'_> {
        Desk { lent, readers: lent.readers(), answered: None, vain: Vain::NONE }
    }
}

impl View<'_> {
    /// Gets these parts of what members have lent, and answers others meanwhile. When the caller has done
    /// whatever else it had to do before its [end](super::Turn::finish_together) of the operation.
    #[cold]
    #[inline(never)]
    pub fn ask<'a>(&'a self, lent: &'a dyn Lend, wanted: Vec<(Member, Range<usize>)>, take: &'a Take<'a>) -> Rare<'a> {
        Box::pin(async move {
            let mut desk = Desk::new(lent);
            let most = self.fragment() * self.depth() as usize - HEAD;
            for (member, part) in wanted {
                for at in part.clone().step_by(most) {
                    let piece = at..part.end.min(at + most);
                    self.ask_for(&mut desk, member, piece.clone()).await?;
                    let answer = self.set_begin(member);
                    let mut given = [0_u64];
                    // SAFETY: published; the set begins with that number, and holds the piece behind it.
                    // Nobody writes it before the caller's next step.
                    unsafe { copy::read(given.as_mut_ptr().cast(), answer, size_of_val(&given), false) };
                    if given[0] != piece.len() as u64 {
                        return Err(Error::Lengths);
                    }
                    take(member, at, answer.wrapping_add(HEAD), piece.len())?;
                    self.call(self.size())?;
                }
            }
            // A second answer to the same question would be taken for one to the next.
            self.attend_until(&mut desk, None, |desk: &Desk<'_>| desk.answered.is_none()).await
        })
    }

    /// Answers others until all `readers`, who may read the caller's private memory, are through with the
    /// operation. `result`: what has gone wrong before.
    #[cold]
    #[inline(never)]
    pub(super) fn answer<'a>(&'a self, lent: &'a dyn Lend, result: Result<()>, readers: Vec<Member>) -> Rare<'a> {
        Box::pin(async move {
            let mut desk = Desk::new(lent);
            desk.readers.extend(&readers);
            let all_over = |_: &Desk<'_>| readers.iter().all(|&member| self.is_over(self.progress(member)));
            let result = match result {
                Ok(()) => self.attend_until(&mut desk, None, all_over).await,
                failed => failed,
            };
            if result.is_err() {
                self.team.fail();
                let _ = self.all_over(readers.iter().copied()).await;
            }
            result
        })
    }

    async fn ask_for(&self, desk: &mut Desk<'_>, member: Member, piece: Range<usize>) -> Result<()> {
        let before = self.published(member);
        let words = [piece.start as u64, piece.len() as u64];
        // SAFETY: one's own, which nobody reads but whom one asks.
        unsafe { copy::write(self.last_words(self.me()), words.as_ptr().cast(), size_of_val(&words)) };
        self.call(member)?;
        let is_answered = |_: &Desk<'_>| {
            let now = self.published(member);
            now != before && self.whom(now) == Some(self.me())
        };
        self.attend_until(desk, Some(member), is_answered).await
    }

    /// Answers others until something has come to be. `awaited`: a member that is needed for that besides
    /// those that the caller answers.
    async fn attend_until(
        &self,
        desk: &mut Desk<'_>,
        awaited: Option<Member>,
        is_done: impl Fn(&Desk<'_>) -> bool + Send,
    ) -> Result<()> {
        poll_fn(|_| match self.attend(desk) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(()) if is_done(desk) => Poll::Ready(Ok(())),
            // The member may have done its part before it failed.
            Ok(()) => match self.in_vain(desk, awaited) {
                Some(_) if is_done(desk) => Poll::Ready(Ok(())),
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        })
        .await
    }

    /// Answers one who asks, if there is one and nobody else reads the caller's set.
    fn attend(&self, desk: &mut Desk<'_>) -> Result<()> {
        if desk.answered.is_some_and(|(member, then)| self.progress(member) != then) {
            desk.answered = None;
        }
        let words = || desk.readers.iter().map(|&member| (member, self.progress(member)));
        if desk.answered.is_some() || !words().all(|(_, now)| reached(now, word(self.op, ASKING))) {
            return Ok(());
        }
        let Some((member, now)) = words().find(|&(_, now)| self.whom(now) == Some(self.me())) else { return Ok(()) };
        let mut asked = [0_u64; 2];
        // SAFETY: it waits for the answer, and leaves its last words as they are.
        unsafe { copy::read(asked.as_mut_ptr().cast(), self.last_words(member), size_of_val(&asked), false) };
        let [at, len] = asked.map(|number| number as usize);
        debug_assert!(
            self.has_set() || self.others().all(|member| desk.readers.contains(&member)),
            "others may read the set"
        );
        let set = self.set_begin(self.me());
        let fits = len <= self.fragment() * self.depth() as usize - HEAD;
        let given = match at.checked_add(len).filter(|_| fits) {
            Some(end) if desk.lent.copy(member, at..end, set.wrapping_add(HEAD))? => [asked[1]],
            // Both sides have another length.
            _ => [0],
        };
        // SAFETY: the set is the caller's own, and nobody reads it.
        unsafe { copy::write(set, given.as_ptr().cast(), size_of_val(&given)) };
        self.publish(self.following(self.published(self.me()), member)?);
        desk.answered = Some((member, now));
        Ok(())
    }

    /// Why it makes no sense to wait any longer.
    fn in_vain(&self, desk: &mut Desk<'_>, awaited: Option<Member>) -> Option<Error> {
        let slowly = desk.vain.more();
        if self.blocking {
            // Several may do something next.
            self.team.note_messages();
        }
        let readers = desk.readers.iter().copied().filter(|&member| !self.is_over(self.progress(member)));
        readers.chain(awaited).find_map(|member| self.team.trouble(member, slowly, true))
    }

    /// Publishes that the caller asks a member; [`size`](View::size): nobody any more.
    fn call(&self, whom: usize) -> Result<()> {
        let next = self.following(self.progress(self.me()), whom)?;
        // SYNC(read): as in `acknowledge`.
        self.team.post(&self.control(self.me()).read.word, word(self.op, 0), word(self.op, next));
        Ok(())
    }

    /// The step that follows a word of the caller's, and says whom it is for.
    fn following(&self, before: u64, whom: usize) -> Result<u32> {
        let width = self.size() as u32 + 1;
        let count = step(before).checked_sub(ASKING).map_or(0, |number| number / width + 1);
        let next = u64::from(ASKING) + u64::from(count) * u64::from(width) + whom as u64;
        u32::try_from(next).ok().filter(|&next| next <= MOST).ok_or(Error::NoMemory(count as usize))
    }

    /// Whom a word is for, if it asks or answers: a `read` word, or that of a line.
    fn whom(&self, now: u64) -> Option<usize> {
        let is_now = reached(now, line_word(self.op, ASKING)) && !self.is_over(now);
        is_now.then(|| (step(now) - ASKING) as usize % (self.size() + 1))
    }

    /// Whether a word is beyond the operation.
    pub(super) fn is_over(&self, now: u64) -> bool {
        reached(now, word(self.op.wrapping_add(1), 0))
    }

    /// How far a member is as a reader.
    fn progress(&self, member: Member) -> u64 {
        // SYNC(read): acquires what it asks for, and that it has read what it got.
        self.control(member).read.word.load(Ordering::Acquire)
    }

    /// What a member has published.
    fn published(&self, member: Member) -> u64 {
        // SYNC(wrote): acquires the answer.
        self.line(member).word.load(Ordering::Acquire)
    }
}
