// SPDX-License-Identifier: BSD-3-Clause
//! Where all members have what an operation needs of each: it lies alike, as a rule, so that who wants that
//! of several asks once.

use super::{View, rotation};
#[cfg(doc)]
use crate::shm::config::Config;
use crate::shm::memory::Member;
use crate::shm::memory::layout::{LINE, LINES, Line, line_word, reached};
use crate::shm::protocol::team::At;
use crate::sync::shared::{Ordering, SharedU64};
use std::mem::offset_of;

/// Rooms of all members that lie alike: each so many bytes behind the beginning of what its member has.
#[derive(Clone, Copy)]
pub struct Alike<'t> {
    begin: &'t [At<u8>],
    at: usize,
}

impl Alike<'_> {
    /// That of a member.
    #[inline(always)]
    pub fn of(&self, member: Member) -> *mut u8 {
        self.begin[member].0.wrapping_add(self.at)
    }
}

/// Where all members have a message as long as the caller's: as a rule alike.
#[derive(Clone, Copy)]
pub enum AllRooms<'t> {
    /// Alike.
    Alike(Alike<'t>),
    /// In sets that their owners have chosen, as an operation sees it for so many bytes.
    Chosen(View<'t>, usize),
}

impl AllRooms<'_> {
    /// That of a member.
    #[inline(always)]
    pub fn of(&self, member: Member) -> *mut u8 {
        match self {
            AllRooms::Alike(rooms) => rooms.of(member),
            AllRooms::Chosen(view, len) => view.room(member, *len),
        }
    }
}

/// Words that say who has published step 1.
#[derive(Clone, Copy)]
pub struct FirstSteps<'t> {
    words: Alike<'t>,
    target: u64,
}

impl FirstSteps<'_> {
    /// Whether a member has: a look, without what a wait needs.
    #[inline(always)]
    pub fn has(&self, member: Member) -> bool {
        // SAFETY: a word of a line, which lasts as long as the team.
        let word = unsafe { &*self.words.of(member).cast::<SharedU64>() };
        // SYNC(wrote): acquires the contents.
        reached(word.load(Ordering::Acquire), self.target)
    }
}

impl<'t> View<'t> {
    /// The contents of the lines.
    #[inline(always)]
    pub fn lines(&self) -> Alike<'t> {
        let (first, members) = (self.controls.as_ptr().cast(), self.controls.len());
        // SAFETY: addresses alike; a control begins with its lines, and a line with its contents.
        let begin = unsafe { std::slice::from_raw_parts::<At<u8>>(first, members) };
        Alike { begin, at: (self.line as usize & (LINES - 1)) * size_of::<Line>() }
    }

    /// The words of the lines, to see who has published step 1.
    #[inline(always)]
    pub fn first_steps(&self) -> FirstSteps<'t> {
        let lines = self.lines();
        let words = Alike { at: lines.at + offset_of!(Line, word), ..lines };
        FirstSteps { words, target: line_word(self.op, 1) }
    }

    /// The small slots, which lie in queues.
    #[inline(always)]
    pub fn small_slots(&self) -> Alike<'t> {
        Alike { begin: self.queues(), at: self.small_at() }
    }

    /// The short ones, for what lies [still](Config::still).
    #[inline(always)]
    pub fn short_slots(&self) -> Alike<'t> {
        Alike { begin: self.queues(), at: self.short_at() }
    }

    /// Those that [rotate](super::rotation), of what does not lie [still](Config::still).
    #[inline(always)]
    pub fn rotated_slots(&self) -> Alike<'t> {
        Alike { begin: self.queues(), at: rotation::short_at(self.team, self.op) }
    }

    /// All members' [rooms](View::room) for so many bytes.
    #[inline(always)]
    pub fn rooms(&self, len: usize) -> AllRooms<'t> {
        let config = self.team.config();
        AllRooms::Alike(match len {
            ..=LINE => self.lines(),
            _ if len <= usize::from(config.small) => self.small_slots(),
            _ if self.still || len <= config.still as usize => self.short_slots(),
            _ if len <= config.short => self.rotated_slots(),
            _ => return AllRooms::Chosen(*self, len),
        })
    }
}
