// SPDX-License-Identifier: BSD-3-Clause
//! A team: the members of one group that share memory, and the streams on which they work together.
//!
//! Every byte of shared memory is written by its owner only, but for a count of those who sleep. A member
//! publishes by a release store of a word that others read with acquire; the pairs are marked SYNC in the
//! source:
//!
//! * `SYNC(wrote)`: contents of a line or of slots, published by the line's word;
//! * `SYNC(read)`: reads of others' contents, ended by the word of the `read` line, so that the owner may
//!   write them again;
//! * `SYNC(failed)`: reads of others' contents, ended by a failure;
//! * `SYNC(directory)`: a lease, prepared by its owner, published by its page number;
//! * `SYNC(asleep)`: the handshake between one who goes to sleep and one who publishes (sequentially
//!   consistent fences).

mod apart;
mod at;
mod limits;
mod stream;
mod waking;

use crate::endpoint::Error;
pub use crate::shm::config::Config;
use crate::shm::config::{LEAST_SHARE, MAX_FRAGMENTS, MAX_SETS};
use crate::shm::memory::layout::{
    Control, LINE, LINES, MAX_TOLD, NOT_YET, PAGES, Part, SHARE_ALIGN, SHORT, STREAMS, Sleepers, StreamControl, share,
};
use crate::shm::memory::{Member, Memory};
use crate::shm::policy::Access as Reading;
use crate::shm::thresholds::ByMode;
use crate::sync::shared::Ordering;
pub(in crate::shm) use at::At;
use smallvec::SmallVec;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32};
pub(in crate::shm) use stream::Stream;
use waking::Awaited;
pub(in crate::shm) use waking::LOOKS_FOR_A_TURN;

/// Of so many members or fewer the addresses of their controls lie in [`Team`] itself.
const NEAR: usize = 8;

/// The members of one group that share memory, as one of them sees it. What a blocking operation needs comes
/// first, and close together: where processes take turns on the cores, little of it is in the caches.
#[repr(C, align(64))]
pub struct Team {
    /// A [`Member`], and how many there are.
    me: u32,
    size: u32,
    /// An operation of the caller has failed.
    pub(in crate::shm) failed: AtomicBool,
    may_sleep: bool,
    /// Fragments of a set, less one: a power of two less one.
    fragment_mask: u8,
    /// Bytes for each of the others in a line, where they have something each.
    line_share: u8,
    /// The same in a short slot.
    short_share: u16,
    /// Up to so many bytes of a blocking operation lie [still](Config::still), and are not read elsewhere.
    still: AtomicU16,
    looks: u32,
    /// Where all members are counted that may sleep.
    sleepers: At<Sleepers>,
    /// Of all members, for the first stream.
    pub(in crate::shm) controls: SmallVec<[At<StreamControl>; NEAR]>,
    first: Stream,
    config: Config,
    awaited: Awaited,
    /// All streams but the first, from the first use of one of them on: most communicators never have it.
    others: OnceLock<Box<[Stream]>>,
    pub(in crate::shm) memory: Box<dyn Memory>,
    /// Bytes of a fragment for each of the others.
    share: usize,
    /// Bytes for the [numbers](crate::shm::protocol::turn::View::numbers) that belong to a line; 0: it holds
    /// them.
    table: usize,
    /// What members can do with each other's memory.
    reading: Reading,
    /// Those to begin with, and those that were measured.
    thresholds: [OnceLock<ByMode>; 2],
    /// Under way: copies from and to others' private memory.
    accessing: AtomicU32,
}

/// Bytes for a number of 16 bits for each of the others of so many members, where a line whose contents they
/// share has no place for those.
fn table(size: usize) -> usize {
    let numbers = size_of::<u16>() * size.saturating_sub(1);
    match share(LINE, size, SHARE_ALIGN) * size.saturating_sub(1) + numbers {
        // One of two has one block, and needs no numbers.
        _ if size <= 2 => 0,
        ..=LINE => 0,
        _ => numbers.next_multiple_of(64),
    }
}

impl Team {
    /// The caller's view of the team that shares `memory`. All members give the same `config`.
    pub fn new(memory: Box<dyn Memory>, config: Config) -> Team {
        let (me, size, reading) = (memory.me(), memory.size(), limits::reading(&*memory));
        // SAFETY: `Memory` promises a control block there.
        let control = |m| unsafe { &raw mut (*memory.control(m).cast::<Control>()).stream };
        let controls = (0..size).map(|m| At(control(m))).collect();
        let power = |n: usize| if n.is_power_of_two() { n } else { n.next_power_of_two() / 2 };
        let most_sets = if config.waiting.crowded { MAX_TOLD.into() } else { MAX_SETS };
        let sets = power(usize::from(config.sets).clamp(1, most_sets));
        let each = power((config.fragments / sets).clamp(1, MAX_FRAGMENTS));
        let fragment = config.fragment.max(LEAST_SHARE * size).next_multiple_of(64);
        let short = config.short.min(SHORT).next_multiple_of(64);
        let lines = power((config.lines as usize).clamp(MAX_SETS, LINES));
        let rotates = config.rotates && !config.waiting.crowded;
        let most_whole = if config.waiting.crowded { short.max(each * fragment) } else { short };
        let whole = |limit: u32| (limit as usize).clamp(short, most_whole) as u32;
        let config = Config {
            whole: whole(config.whole),
            whole_gathered: whole(config.whole_gathered),
            fragment,
            fragments: each * sets,
            sets: sets as u8,
            lines: lines as u32,
            shorts: power(usize::from(config.shorts).clamp(sets, lines)) as u8,
            small: if config.waiting.crowded && short.is_multiple_of(512) { short as u16 / 8 } else { 0 },
            short,
            still: if rotates && fragment >= short { config.still.min(short as u32) } else { short as u32 },
            rotates,
            ..config
        };
        let may_sleep = config.waiting.may_sleep() && size > 1;
        let fragment_mask = (each - 1) as u8;
        let looks = config.waiting.looks();
        // Where members take turns a reduction works together from `whole` bytes on.
        let reduced = if config.waiting.crowded { config.whole as usize } else { usize::MAX };
        let still = (config.still as usize).min(config.shared_work_min.min(reduced).saturating_sub(1)).max(LINE);
        let team = Team {
            me: me as u32,
            size: size as u32,
            sleepers: At(memory.sleepers().cast()),
            controls,
            first: Stream::new(config.first_op, 0),
            others: OnceLock::new(),
            memory,
            awaited: Awaited::default(),
            config,
            fragment_mask,
            share: share(fragment, size, 64),
            table: table(size),
            reading,
            may_sleep,
            still: AtomicU16::new(still as u16),
            looks,
            line_share: share(LINE, size, SHARE_ALIGN) as u8,
            short_share: share(short, size, SHARE_ALIGN) as u16,
            thresholds: [const { OnceLock::new() }; 2],
            failed: AtomicBool::new(false),
            accessing: AtomicU32::new(0),
        };
        let control = team.control(me);
        control.stream.start(config.first_op);
        team.first.own[0].store(ptr::from_ref(&control.stream).cast_mut().cast(), Ordering::Relaxed);
        team.post(&control.directory[0][Part::Control as usize], NOT_YET, PAGES);
        team
    }

    /// The caller's place.
    #[inline(always)]
    pub fn me(&self) -> Member {
        self.me as Member
    }

    /// Number of members.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// The sizes in use.
    #[inline(always)]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The memory below.
    pub fn memory(&self) -> &dyn Memory {
        &*self.memory
    }

    /// What members can do with each other's private memory.
    pub(in crate::shm) fn reading(&self) -> Reading {
        self.reading
    }

    /// Bytes for each of the others in a line, and in a short slot, where they have something each.
    #[inline(always)]
    pub fn short_shares(&self) -> [usize; 2] {
        [self.line_share.into(), self.short_share.into()]
    }

    #[inline(always)]
    pub(in crate::shm) fn looks(&self) -> u32 {
        self.looks
    }

    #[inline(always)]
    pub(in crate::shm) fn fragment_mask(&self) -> u32 {
        self.fragment_mask.into()
    }

    #[inline(always)]
    pub(in crate::shm) fn control(&self, member: Member) -> &Control {
        // SAFETY: the team's own.
        unsafe { self.controls[member].control() }
    }

    /// A stream by its number.
    #[inline(always)]
    pub(in crate::shm) fn stream(&self, id: usize) -> &Stream {
        match id {
            0 => &self.first,
            _ => &self.others.get_or_init(|| self.make_others())[id - 1],
        }
    }

    #[cold]
    fn make_others(&self) -> Box<[Stream]> {
        (1..STREAMS).map(|id| Stream::new(self.config.first_op, id)).collect()
    }

    /// Bytes of a member's queue.
    pub fn queue_bytes(&self) -> usize {
        self.tables_at() + self.config.lines as usize * self.table
    }

    /// Where in a queue the [numbers](crate::shm::protocol::turn::View::numbers) begin that belong to lines:
    /// behind the sets.
    pub(in crate::shm) fn tables_at(&self) -> usize {
        self.config.sets_at() + self.config.fragment * self.config.fragments
    }

    /// Bytes for those of one line; 0: it holds them.
    #[inline(always)]
    pub(in crate::shm) fn table(&self) -> usize {
        self.table
    }

    /// Whether reductions of elements of so many bytes fit: an element must fit in a member's share of a
    /// fragment.
    #[inline(always)]
    pub fn fits(&self, element: usize) -> bool {
        element <= self.share
    }

    /// Whether an operation of the caller has failed.
    #[inline(always)]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// An operation of the caller has failed: nobody must wait for it.
    pub fn fail(&self) {
        if !self.failed.swap(true, Ordering::SeqCst) && self.accessing.load(Ordering::SeqCst) == 0 {
            self.tell_failure();
        }
    }

    fn tell_failure(&self) {
        self.post(&self.control(self.me()).failed, 0, 1);
    }

    /// Permission to read and write others' private memory; `None` after an operation of the caller has
    /// failed. Other threads may fail meanwhile: the others, who do not wait for the caller then, learn of it
    /// when nothing is read or written any more.
    pub(in crate::shm) fn access(&self) -> Option<Access<'_>> {
        self.accessing.fetch_add(1, Ordering::SeqCst);
        let access = Access(self);
        (!self.failed.load(Ordering::SeqCst)).then_some(access)
    }

    /// Why it makes no sense to wait for `member` any longer; `slowly` asks the system about its process too,
    /// and, unless only `alone` that member matters, looks whether any other has failed.
    pub(in crate::shm) fn trouble(&self, member: Member, slowly: bool, alone: bool) -> Option<Error> {
        // SYNC(failed): its reads are over.
        let failed = |m: Member| m != self.me() && self.control(m).failed.load(Ordering::Acquire) != 0;
        if failed(member) || (slowly && !alone && (0..self.size()).any(failed)) {
            return Some(Error::Peer);
        }
        (slowly && member != self.me() && self.memory.is_dead(member)).then_some(Error::Peer)
    }
}

/// While it lives, the caller's process may read and write others' private memory.
pub(in crate::shm) struct Access<'t>(&'t Team);

impl Drop for Access<'_> {
    fn drop(&mut self) {
        // Either we see the failure, or who failed sees that nothing is under way.
        if self.0.accessing.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.failed.load(Ordering::SeqCst) {
            self.0.tell_failure();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
