// SPDX-License-Identifier: BSD-3-Clause
//! How the operations of a stream begin: who takes part first agrees with all others on the memory for it.

use super::Turn;
use crate::endpoint::{Error, Result};
use crate::shm::memory::layout::{BLOCKING, LANES, NOT_YET, PAGES, Part, REFUSED, SLOTS, StreamControl};
use crate::shm::memory::{Contents, Member};
use crate::shm::protocol::reach::Reach;
use crate::shm::protocol::team::{At, Team};
use crate::sync::shared::Ordering;
use std::ptr;

impl Team {
    /// The next operation of a stream, if it is open, and no operation of the caller has failed. Operations
    /// of a stream are taken in the same order by all members, each one when the one before is over on the
    /// caller's side. `queue`: the operation may move more than a line holds.
    ///
    /// # Panics
    /// When the operation before is not over: an error of the caller.
    #[inline(always)]
    pub fn turn(&self, slot: usize, lane: usize, queue: bool) -> Option<Turn<'_>> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let id = slot * LANES + lane;
        let stream = self.stream(id);
        let controls = stream.controls.get()?.as_deref()?;
        let controls = if id == 0 && !self.controls.spilled() { &self.controls } else { controls };
        let queues = if queue { Some(stream.queues.get()?.as_deref()?) } else { None };
        Some(Turn::new(self, stream, controls, queues, slot == BLOCKING))
    }

    /// Whether the agreements of a stream are over, with memory for it.
    #[inline(always)]
    pub fn is_open(&self, slot: usize, lane: usize, queue: bool) -> bool {
        let stream = self.stream(slot * LANES + lane);
        matches!(stream.controls.get(), Some(Some(_))) && (!queue || matches!(stream.queues.get(), Some(Some(_))))
    }

    /// As [`turn`](Team::turn), after an agreement where the stream is used for the first time: `None` when
    /// some member had no memory for it; then all members get `None`, now and later, whatever else fails: the
    /// others take another way. After a failed operation of the caller all others fail.
    pub async fn open(&self, slot: usize, lane: usize, queue: bool) -> Result<Option<Turn<'_>>> {
        assert!(slot < SLOTS && lane < LANES, "stream {slot}.{lane}");
        let id = slot * LANES + lane;
        let stream = self.stream(id);
        if stream.is_refused(queue) {
            return Ok(None);
        }
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Peer);
        }
        if stream.controls.get().is_none() {
            let found = self.agree(id, Part::Control, size_of::<StreamControl>()).await?;
            let controls = found.map(|all| all.iter().map(|at| At(at.0.cast::<StreamControl>())).collect());
            stream.controls.get_or_init(|| controls);
        }
        if queue && stream.queues.get().is_none() && matches!(stream.controls.get(), Some(Some(_))) {
            match self.agree(id, Part::Queue, self.queue_bytes()).await {
                // A member needs none in this operation: its data are shorter. Later ones may find out more.
                Err(Error::Lengths) => return Ok(self.turn(slot, lane, false)),
                found => {
                    let found = found?;
                    stream.queues.get_or_init(|| found);
                }
            }
        }
        let turn = self.turn(slot, lane, queue);
        // Another operation may have failed while this one waited.
        if turn.is_none() && !stream.is_refused(queue) { Err(Error::Peer) } else { Ok(turn) }
    }

    /// Leases and publishes the caller's part of a stream, and waits for all others' word: their addresses,
    /// or `None` if somebody was refused.
    async fn agree(&self, id: usize, part: Part, bytes: usize) -> Result<Option<Box<[At<u8>]>>> {
        let stream = self.stream(id);
        let entry = |member: Member| &self.control(member).directory[id][part as usize];
        let own = &stream.own[part as usize];
        if entry(self.me()).load(Ordering::Relaxed) == NOT_YET {
            let contents = match part {
                Part::Control => Contents::Zeros,
                Part::Queue if self.config().rotates => Contents::Soon,
                Part::Queue => Contents::Anything,
            };
            let published = match self.memory.lease(bytes, contents) {
                None => REFUSED,
                Some((page, at)) => {
                    own.store(at, Ordering::Relaxed);
                    if part == Part::Control {
                        // SAFETY: a lease of this size, which nobody else knows yet.
                        unsafe { &*at.cast::<StreamControl>() }.start(self.config().first_op);
                    }
                    u64::from(page) + PAGES
                }
            };
            // SYNC(directory): releases the words that `start` has written.
            self.post(entry(self.me()), NOT_YET, published);
        }
        let mut all = Vec::with_capacity(self.size());
        let mut refused = false;
        for member in 0..self.size() {
            // SYNC(directory): acquires what the owner has prepared.
            let reach = Reach::new(self, entry(member), REFUSED, member, id / LANES == BLOCKING);
            let seen = if part == Part::Queue { reach.of(stream) } else { reach }.await?;
            refused |= seen == REFUSED;
            all.push((member, seen));
        }
        if refused {
            return Ok(None);
        }
        let page = |seen| (seen - PAGES) as u32;
        if part == Part::Queue && self.config().rotates {
            // Slots that rotate come to all pages soon: one after the other that would take longer, within
            // calls.
            all.iter().for_each(|&(member, seen)| self.memory.map(member, page(seen), bytes));
        }
        let at = |(member, seen): (Member, u64)| match (member == self.me(), id, part) {
            (true, ..) => At(own.load(Ordering::Relaxed)),
            (_, 0, Part::Control) => At(ptr::from_ref(&self.control(member).stream).cast_mut().cast()),
            _ => At(self.memory.view(member, page(seen), bytes).cast_mut()),
        };
        Ok(Some(all.into_iter().map(at).collect()))
    }
}
