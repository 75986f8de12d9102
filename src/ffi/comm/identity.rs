// SPDX-License-Identifier: BSD-3-Clause
//! Identities of operations: the tags that keep their messages apart.
//!
//! A call takes the next identity of its *series*, of which a communicator has one per operation and mode
//! (blocking, nonblocking). Within a series calls are made in the same order on all ranks, so all give one
//! operation the same identity. Across series they need not be: Open MPI itself calls our Iallreduce from its
//! progress engine, at a different moment on each rank, while a communicator is duplicated (MPI_Comm_idup);
//! calls that look like those have a series of their own. (A program's own Iallreduce of one int by MPI_MAX
//! or MPI_MIN looks so too: it must not overlap with an MPI_Comm_idup of the same communicator.) While an
//! inter-communicator is duplicated, Open MPI calls our Ireduce and Ibcast on the group's own communicator:
//! one such duplication at a time.
//!
//! Identities come round again. Two operations with the same tags are told apart by the order of posting,
//! which is the same on all ranks if each of them posts the later one only when the earlier one is complete
//! *there*. Blocking calls do so by themselves, nonblocking ones wait for their [`turn`](Identities::turn),
//! but for those that post no messages, whose slot in shared memory has turns of its own.
//!
//! A persistent operation keeps its identity until its request is freed, which each rank does when it likes.
//! When all identities have been given out, the ranks agree, inside the initialisation (which MPI lets
//! synchronise), which of them are free everywhere. So it is with the few slots of shared memory for
//! persistent operations; where none is free, an operation does without.

use crate::endpoint::{MAX_LANES, PHASES};
use crate::ffi::base::glue::{self, CR_ERR_OTHER};
use crate::ffi::base::kind::Kind;
use crate::ffi::base::messages;
use crate::ffi::comm::slot::{PERSISTENT, Slot};
use crate::params::Config;
use std::collections::{BTreeSet, HashSet};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// What tells an operation's messages from others'.
#[derive(Clone, Copy)]
pub struct Identity {
    pub ticket: Option<Ticket>,
    /// Where it may go through shared memory.
    pub slot: Option<Slot>,
    pub first_tag: i32,
    pub synchronise: bool,
}

/// Tags of one operation.
const TAGS: u64 = PHASES as u64 * MAX_LANES as u64;
/// Series of a communicator: operations times modes, [`AGREEMENT`], and [`HANDSHAKE`].
const SERIES: usize = 2 * Kind::COUNT + 2;
/// The series of nonblocking calls that Open MPI itself may have made.
const AGREEMENT: usize = 2 * Kind::COUNT;
/// Where all slots of shared memory are in use, so many persistent operations at most go without before the
/// ranks agree again.
const LONGEST_PAUSE: u32 = 62;
/// The series of the one handshake for shared memory.
const HANDSHAKE: usize = AGREEMENT + 1;

/// The identities of one communicator.
pub struct Identities {
    /// First tag of all calls; tags go downwards.
    first_call: i32,
    /// Identities of a series, a power of two.
    calls: u64,
    series: [Series; SERIES],
    /// First tag of persistent operations.
    first_init: i32,
    /// Identities of persistent operations.
    persistent: Lots,
    /// Their slots of shared memory.
    slots: Lots,
}

#[derive(Default)]
struct Series {
    next: AtomicU64,
    /// Number of the oldest call that is not complete here (nonblocking series only).
    oldest: AtomicU64,
    /// Numbers of later calls that are.
    complete: Mutex<BTreeSet<u64>>,
}

/// Numbers that persistent operations draw: all ranks the same, in the order of their initialisations.
struct Lots {
    /// How many there are.
    total: u64,
    /// The most initialisations that do not ask again when none was free.
    longest_pause: u32,
    drawn: Mutex<Drawn>,
}

#[derive(Default)]
struct Drawn {
    /// Given out for the first time so far.
    fresh: u64,
    /// Free on all ranks, the next one last.
    agreed: Vec<u64>,
    /// Of requests that this rank has not freed.
    live: HashSet<u64>,
    /// Agreements in a row that found none free.
    vain: u32,
    /// Initialisations that are not to ask.
    pause: u32,
}

impl Lots {
    fn new(total: u64, longest_pause: u32) -> Lots {
        Lots { total, longest_pause, drawn: Mutex::default() }
    }

    /// The next number; `None` where all are in use. `agree` finds out which the ranks use, from those that
    /// this one uses, as bits.
    fn draw(
        &self,
        agree: impl FnOnce(&mut [u8]) -> std::result::Result<(), i32>,
    ) -> std::result::Result<Option<u64>, i32> {
        let mut drawn = lock(&self.drawn);
        if drawn.fresh < self.total {
            let number = drawn.fresh;
            drawn.fresh += 1;
            drawn.live.insert(number);
            return Ok(Some(number));
        }
        if drawn.agreed.is_empty() {
            if drawn.pause > 0 {
                drawn.pause -= 1;
                return Ok(None);
            }
            let mut bits = vec![0u8; (self.total as usize).div_ceil(8)];
            for &number in &drawn.live {
                bits[number as usize / 8] |= 1 << (number % 8);
            }
            drop(drawn); // no lock is held while others' progress runs
            agree(&mut bits)?;
            drawn = lock(&self.drawn);
            drawn.agreed = (0..self.total).rev().filter(|&i| bits[i as usize / 8] & (1 << (i % 8)) == 0).collect();
        }
        let number = drawn.agreed.pop();
        match number {
            Some(number) => {
                drawn.live.insert(number);
                drawn.vain = 0;
            }
            None => {
                drawn.vain = (drawn.vain + 1).min(16);
                drawn.pause = ((1 << drawn.vain) - 2).min(self.longest_pause);
            }
        }
        Ok(number)
    }

    fn free(&self, number: u64) {
        lock(&self.drawn).live.remove(&number);
    }
}

/// What a persistent operation keeps until its request is freed.
#[derive(Clone, Copy)]
pub struct Kept {
    identity: u64,
    /// The slot of shared memory, where there was one left.
    pub slot: Option<u64>,
    /// First tag of the operation.
    pub first_tag: i32,
}

/// The identity of a nonblocking call.
#[derive(Clone, Copy)]
pub struct Ticket {
    series: usize,
    number: u64,
    /// First tag of the operation.
    pub first_tag: i32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Identities {
    /// For a communicator. Collective tags are negative; the ranges of Open MPI's own collectives begin at
    /// −10 and grow downwards, so ours begin half-way to the largest tag.
    pub fn new(config: &Config) -> Identities {
        // SAFETY: reads a number of the selected PML.
        let largest = unsafe { glue::cr_max_tag() }.clamp(1 << 15, 1 << 30);
        let quarter = largest.min(config.max_tag.unwrap_or(largest)) / 4;
        let persistent = quarter as u64 / TAGS;
        let calls = persistent / SERIES as u64;
        Identities {
            first_call: -2 * quarter,
            calls: 1 << calls.ilog2(),
            series: std::array::from_fn(|_| Series::default()),
            first_init: -3 * quarter,
            persistent: Lots::new(persistent, 0),
            slots: Lots::new(PERSISTENT, LONGEST_PAUSE),
        }
    }

    fn call_tag(&self, series: usize, number: u64) -> i32 {
        let identity = series as u64 * self.calls + (number & (self.calls - 1));
        self.first_call - (identity * TAGS) as i32
    }

    /// The first tag of the blocking operation that is being called; its tags go downwards from there.
    pub fn blocking(&self, kind: Kind) -> i32 {
        let series = 2 * kind as usize;
        self.call_tag(series, self.series[series].next.fetch_add(1, Ordering::Relaxed))
    }

    /// The first tag of the handshake for shared memory, which is made once.
    pub fn handshake(&self) -> i32 {
        self.call_tag(HANDSHAKE, 0)
    }

    /// The identity of the nonblocking operation that is being called; `like_agreement`: see
    /// [`Call::is_like_agreement`](crate::ffi::call::arguments::Call::is_like_agreement). To be given back by
    /// [`complete`](Self::complete).
    pub fn nonblocking(&self, kind: Kind, like_agreement: bool) -> Ticket {
        let index = if like_agreement { AGREEMENT } else { 2 * kind as usize + 1 };
        let number = self.series[index].next.fetch_add(1, Ordering::Relaxed);
        Ticket { series: index, number, first_tag: self.call_tag(index, number) }
    }

    /// Waits until no earlier operation that has the same tags is under way here.
    pub async fn turn(&self, ticket: Ticket) {
        let oldest = &self.series[ticket.series].oldest;
        poll_fn(|_| match ticket.number < oldest.load(Ordering::Acquire) + self.calls {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// The operation of this ticket is complete here.
    pub fn complete(&self, ticket: Ticket) {
        let series = &self.series[ticket.series];
        let mut complete = lock(&series.complete);
        let mut oldest = series.oldest.load(Ordering::Relaxed);
        if ticket.number != oldest {
            complete.insert(ticket.number);
            return;
        }
        oldest += 1;
        while complete.remove(&oldest) {
            oldest += 1;
        }
        series.oldest.store(oldest, Ordering::Release);
    }

    /// What the persistent operation that is being initialised keeps; `shared`: it could use shared memory.
    /// `agree` makes, of the bits for what this rank uses, those for what any rank uses, and synchronises; it
    /// takes a [tag](Self::blocking) for that.
    pub fn persistent(
        &self,
        shared: bool,
        agree: impl Fn(&mut [u8]) -> std::result::Result<(), i32>,
    ) -> std::result::Result<Kept, i32> {
        let slot = if shared { self.slots.draw(&agree)? } else { None };
        let drawn = self.persistent.draw(&agree);
        let Ok(Some(identity)) = drawn else {
            slot.inspect(|&slot| self.slots.free(slot));
            drawn?;
            messages::print(&format!(
                "coll/rust: {} persistent collectives are alive on one communicator, as many as the point-to-point layer \
                 has tags for; free some first",
                self.persistent.total
            ));
            return Err(CR_ERR_OTHER as i32);
        };
        Ok(Kept { identity, slot, first_tag: self.first_init - (identity * TAGS) as i32 })
    }

    /// The request of a persistent operation was freed here.
    pub fn free(&self, kept: Kept) {
        self.persistent.free(kept.identity);
        kept.slot.inspect(|&slot| self.slots.free(slot));
    }
}
