// SPDX-License-Identifier: BSD-3-Clause
//! How long the data are, as their writer says: programs give different lengths for the same data by mistake.
//!
//! The word of a line [says](said) with every step how many bytes its writer has, if they fit a line; of more
//! the line itself holds the [length](LENGTH_AT), and how they [travel](Travel). A reader compares that with
//! its own length when it has found the first step of another member, before it reads anything else: so it
//! never reads what was not written for the operation. What it does then, docs/design/lengths.md says.

use super::{Turn, View};
use crate::shm::memory::Member;
use crate::shm::memory::layout::{LENGTH_AT, LINE, LONG, TABLE, UNSAID, line_word, reached, said, what_says};
use crate::sync::shared::{Ordering, will_read, will_write};

/// How data travel, from their writer's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// With the first step, in the [room](View::room) for so many bytes, or in a share of it.
    AtOnce = 0,
    /// In [pieces](View::piece), from slot to slot.
    InPieces = 1,
    /// They are to be read at an address that the line begins with.
    Lent = 2,
    /// The same, and the writer waits for the reader to lend it memory too.
    LentBothWays = 3,
    /// In another way, which takes members that agree.
    Otherwise = 4,
}

/// Where the way stands beside the length.
const TRAVEL_AT: u32 = 60;

/// The length in a line's contents, and the way.
#[inline(always)]
fn noted(len: usize, travel: Travel) -> u64 {
    len as u64 | (travel as u64) << TRAVEL_AT
}

impl Turn<'_> {
    /// The same operation, in which the caller writes so many bytes, and [says](self) so.
    #[inline(always)]
    pub fn saying(self, len: usize) -> Self {
        self.saying_as(said(len))
    }

    /// The same operation, in which the caller's words say that.
    #[inline(always)]
    pub(in crate::shm) fn saying_as(mut self, said: u8) -> Self {
        self.view.said = said;
        self
    }
}

impl View<'_> {
    /// Notes how many bytes the caller has, and how they travel, if they do not fit a line. When its line is
    /// free, and before its first step.
    #[inline(always)]
    pub fn note_length(&self, len: usize, travel: Travel) {
        if len > LINE {
            self.note(len, travel);
        }
    }

    /// The same of any length.
    #[inline(always)]
    pub(in crate::shm) fn note(&self, len: usize, travel: Travel) {
        let at = self.payload(self.me()).wrapping_add(LENGTH_AT);
        will_write(at, size_of::<u64>());
        // SAFETY: within the line's contents, aligned; the line is free.
        unsafe { at.cast::<u64>().write(noted(len, travel)) };
    }

    /// What the caller's words say.
    #[inline(always)]
    pub(in crate::shm) fn says(&self) -> u8 {
        self.said
    }

    /// Notes how long the caller's operand of a reduction is, with its first step.
    #[inline(always)]
    pub fn note_operand(&self, step: u32, len: usize) {
        if step == 0 {
            self.note_length(len, Travel::Otherwise);
        }
    }

    /// Where a member's numbers for all others are, which stand for the lengths of its blocks: in the end of
    /// its line or, if that has no place for them, in its queue. They are free when the line is. `None`:
    /// there is no queue.
    #[inline(always)]
    pub(in crate::shm) fn numbers(&self, member: Member) -> Option<*mut u16> {
        let at = match self.team.table() {
            0 => self.payload(member).wrapping_add(LINE - size_of::<u16>() * (self.size() - 1)),
            table => self.queues?[member].0.wrapping_add(self.team.tables_at() + self.line as usize * table),
        };
        Some(at.cast())
    }

    /// What a member has noted.
    #[inline(always)]
    fn noted_by(&self, member: Member) -> u64 {
        let at = self.payload(member).wrapping_add(LENGTH_AT);
        will_read(at, size_of::<u64>());
        // SAFETY: within the line's contents, aligned; published, as the word says that it is long.
        unsafe { at.cast::<u64>().read() }
    }

    /// What the word of a member says whose first step has come.
    #[inline(always)]
    pub(in crate::shm) fn said_by(&self, member: Member) -> u8 {
        // Acquired with the step.
        what_says(self.line(member).word.load(Ordering::Relaxed))
    }

    /// The length that such a member has noted.
    #[inline(always)]
    pub(in crate::shm) fn noted_length(&self, member: Member) -> usize {
        (self.noted_by(member) & !(u64::MAX << TRAVEL_AT)) as usize
    }

    /// Whether a member whose first step has come has other than `len` bytes that travel at once, or does not
    /// say how many.
    #[inline(always)]
    pub fn differs(&self, member: Member, len: usize) -> bool {
        self.said_by(member) != said(len) || (len > LINE && self.differs_at_once(member, len))
    }

    /// The same of one that has noted its length.
    #[inline(always)]
    pub(in crate::shm) fn differs_at_once(&self, member: Member, len: usize) -> bool {
        self.noted_by(member) != noted(len, Travel::AtOnce)
    }

    /// Whether a member whose first step has come has other than `len` bytes, however they travel, or does
    /// not say how many.
    #[inline(always)]
    pub fn differs_anyhow(&self, member: Member, len: usize) -> bool {
        self.said_by(member) != said(len) || (len > LINE && self.noted_length(member) != len)
    }

    /// How many bytes such a member has, and how they travel; `None`: it does not say.
    #[cold]
    #[inline(never)]
    pub fn told(&self, member: Member) -> Option<(usize, Travel)> {
        match self.said_by(member) {
            LONG => {
                let noted = self.noted_by(member);
                let travel = match noted >> TRAVEL_AT {
                    0 => Travel::AtOnce,
                    1 => Travel::InPieces,
                    2 => Travel::Lent,
                    3 => Travel::LentBothWays,
                    _ => Travel::Otherwise,
                };
                Some((self.noted_length(member), travel))
            }
            UNSAID | TABLE => None,
            len => Some((len.into(), Travel::AtOnce)),
        }
    }

    /// Whether so many bytes may travel in a [room](View::room) at all: a number that a peer has published is
    /// not believed.
    pub(in crate::shm) fn has_room(&self, len: usize) -> bool {
        let config = self.team.config();
        len <= LINE || len <= config.whole.max(config.whole_gathered).max(config.still) as usize
    }

    /// As [`Turn::narrowed`].
    #[inline(always)]
    pub(in crate::shm) fn narrowed(mut self) -> Self {
        if self.is_crowded() {
            let window = 1 << self.team.config().window;
            while self.depth() > 2 && self.depth() as usize * self.fragment() > window {
                self.narrow += 1;
            }
        }
        self
    }

    /// As [`Turn::halved`].
    #[inline(always)]
    pub(in crate::shm) fn halved(mut self) -> Self {
        while self.gathers_in_halves() && self.depth() > 2 {
            self.wide += 1;
        }
        self
    }

    /// Whether the caller has published a step of this operation.
    pub(in crate::shm) fn has_published(&self) -> bool {
        reached(self.line(self.me()).word.load(Ordering::Relaxed), line_word(self.op, 1))
    }

    /// The same operation for data of another length than the caller has: `None` where there are no slots, if
    /// they are `needed`. Where all that the caller has fits lines, it has not asked for them.
    pub(in crate::shm) fn of_other_length(&self, needed: bool) -> Option<Self> {
        let queues = self.queues.or_else(|| self.stream.queues.get().and_then(|queues| queues.as_deref()));
        (!needed || queues.is_some()).then_some(View { queues, still: false, ..*self })
    }
}
