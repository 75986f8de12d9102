// SPDX-License-Identifier: BSD-3-Clause
//! When to read another process' memory instead of copying through shared memory: from times measured on this
//! node.
//!
//! Which is faster depends on the machine: process_vm_readv pays for a system call and for every page, but
//! moves data once; through a queue they move twice, but both sides work at the same time, and caches hand
//! lines over without the kernel. Where one side would wait, both can copy between their private memories. On
//! one machine the queue wins at every size, on another it loses from 32 KiB on. So thresholds follow from
//! times: those that are [`usual()`] for this kind of processor, or those that a site has measured once.
//! Where the parameter says so, the first team of a process measures the ways with broadcasts, in its first
//! blocking operation, and later teams reuse that.

mod usual;

pub use usual::usual;

use crate::endpoint::{Result, Span};
use crate::shm::config::Config;
use crate::shm::copy::{self, ThroughCaches};
use crate::shm::group::reading::Way;
use crate::shm::memory::layout::BLOCKING;
use crate::shm::op;
use crate::shm::policy::{Writer, share_among};
use crate::shm::protocol::team::Team;
use crate::shm::thresholds::{ByMode, Reads, Thresholds};
use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Sizes that are measured, in bytes.
const SIZES: [usize; 3] = [16 << 10, 64 << 10, 256 << 10];
/// From so many bytes on an advantage counts that shows at each of [`SIZES`] and at the longer ones.
const FROM: [usize; 3] = [16 << 10, 64 << 10, 128 << 10];
/// An advantage: this part of the other's time, in percent, for each of [`SIZES`]. Less than all of it
/// counts, above all of short messages: a program's calls find other things in the caches, and messages
/// through the queue took longer here than in calls as long as this was measured a few times, with buffers 16
/// bytes behind the beginning of a page.
const PERCENT: [u64; 3] = [65, 80, 90];
/// Blocks of an exchange are read in any case from so many bytes on (but [the longest](QUEUED_AGAIN) of two
/// members, in an alltoall; in calls that do not block [sooner](Rates::thresholds)). Where caches are fast at
/// times only, the queue is faster at those times, and slower than other libraries at others: the choice is
/// made once, so it is the one with the best worst case (docs/design/long-messages.md).
const LONG_OF_ALL: usize = 256 << 10;
/// The same where each has another one for each.
const LONG: usize = 128 << 10;
/// Of two members with cores of their own, whose slots [rotate](Config::rotates), a blocking alltoall has
/// blocks of so many bytes and more in the queues again, where reading is a system call each time
/// (docs/design/long-messages.md).
const QUEUED_AGAIN: usize = 1 << 20;
/// Bytes of a cache line.
const LINE: usize = 64;
/// How often each is measured; the shortest time counts. The first two of each find pages that nobody has
/// touched, and lines that the writer has not taken back; of 256 KiB through the queue, six found 20 to 25 µs
/// where calls then took 12, and a hundred found 12 to 16.
const TRIES: usize = 20;

/// How many ways are measured.
const WAYS: usize = 5;

/// Times of one way of copying in nanoseconds, for each of three sizes.
pub type Times = [u32; SIZES.len()];

/// The times of all ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// A broadcast through the queue: everybody copies at the same time.
    pub queue: Times,
    /// The same, but written through the caches in any case, as it is while they are [near](copy::pace),
    /// unless the parameter says how to write.
    pub cached: Times,
    /// A broadcast whose readers read the root's memory.
    pub fetch: Times,
    /// The same, where the root of two members copies half.
    pub divided: Times,
    /// A copy within a process.
    pub copy: Times,
}

/// Bytes of [`Rates::encode`].
pub const RATES_BYTES: usize = WAYS * SIZES.len() * 4;

/// What thresholds depend on, besides times.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How many members there are.
    pub members: usize,
    /// How they read each other's memory.
    pub way: Way,
    /// They can write to it, too, so that operations may be divided.
    pub stores: bool,
    /// [Slots do](Config::rotates).
    pub rotates: bool,
}

impl From<[Times; WAYS]> for Rates {
    fn from([queue, cached, fetch, divided, copy]: [Times; WAYS]) -> Rates {
        Rates { queue, cached, fetch, divided, copy }
    }
}

impl fmt::Display for Rates {
    /// As the parameter has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, [a, b, c]) in [self.queue, self.cached, self.fetch, self.divided, self.copy].iter().enumerate() {
            write!(f, "{}{a}/{b}/{c}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Rates {
    /// As bytes, for other members.
    pub fn encode(&self) -> [u8; RATES_BYTES] {
        let mut bytes = [0; RATES_BYTES];
        for (to, time) in
            bytes.chunks_exact_mut(4).zip([self.queue, self.cached, self.fetch, self.divided, self.copy].as_flattened())
        {
            to.copy_from_slice(&time.to_ne_bytes());
        }
        bytes
    }

    /// From [`Rates::encode`]; `None` where nothing has been measured.
    pub fn decode(bytes: &[u8; RATES_BYTES]) -> Option<Rates> {
        let (times, _) = bytes.as_chunks::<4>();
        let way = |i: usize| std::array::from_fn(|size| u32::from_ne_bytes(times[i * SIZES.len() + size]));
        let rates = Rates { queue: way(0), cached: way(1), fetch: way(2), divided: way(3), copy: way(4) };
        (rates != Rates::default()).then_some(rates)
    }

    /// What follows for such a team.
    ///
    /// The time of each operation is put together from those of a broadcast: a member of an exchange copies
    /// in, then out, where it could fetch, which overlaps in part while the blocks fit caches; the root of a
    /// scatter copies every block in, besides its own, where members can fetch at the same time; the root of
    /// a gather copies one block after the other, or at least not more than a member.
    pub fn thresholds(&self, terms: Terms) -> ByMode {
        let Terms { members, way, stores, rotates } = terms;
        let of = |divide| self.of_mode(members, divide, rotates);
        let others = of(false);
        let queued_again = members == 2 && rotates && way != Way::Smsc && copy::may_go_past();
        let mut blocking = of(stores);
        if queued_again {
            blocking.alltoall.end = QUEUED_AGAIN;
        }
        // Who does not block gains less by a queue: two ranks' Iallgather of 128 KiB took 1.04 to 1.17 of
        // coll/libnbc's time through it, and 0.94 read. (Others were not measured.)
        ByMode { blocking, others: Thresholds { allgather: others.allgather.min(LONG), ..others } }
    }

    /// The same; `divide`: of operations that may be divided.
    fn of_mode(&self, members: usize, divide: bool, rotates: bool) -> Thresholds {
        let others = members.saturating_sub(1).max(1) as u64;
        let least = Config::default().divided_min as usize;
        let pick = |root: Option<Writer>, queue: fn(u64, u64, u64) -> u64| {
            let divides = |i: usize| divide && root.is_some_and(|root| share_among(members, FROM[i], root, least) > 0);
            let wins = |i: usize| {
                // Where caches are far at times only, both sides copying take up to 1.4 times as long as a
                // queue that is written past them, but half as long as the queue while they are near. (What
                // only the reader copies takes about as long as a queue, near and far.) Where slots rotate a
                // queue takes less, near and far.
                let fetch = if divides(i) { self.divided[i] } else { self.fetch[i] };
                let queue_took = if divides(i) && !rotates { self.cached[i] } else { self.queue[i] };
                let [q, f, c] = [queue_took, fetch, self.copy[i]].map(u64::from);
                f > 0 && f.max(c) * 100 < queue(q, c, others) * PERCENT[i]
            };
            let longest = (0..SIZES.len()).rev().take_while(|&i| wins(i));
            longest.last().map_or(usize::MAX, |i| FROM[i])
        };
        let exchange = pick(None, |queue, _, _| queue * 5 / 4);
        Thresholds {
            bcast: pick(Some(Writer::Idle), |queue, _, _| queue),
            gather: pick(Some(Writer::HasOwn), |queue, _, _| queue),
            scatter: pick(
                Some(Writer::HasOwn),
                if rotates { |queue, _, others| queue * others } else { |queue, copy, others| queue * others + copy },
            ),
            allgather: exchange.min(LONG_OF_ALL),
            alltoall: Reads::on(exchange.min(LONG)),
            allreduce: pick(None, |queue, _, _| queue),
        }
    }
}

/// Measures on the team's blocking stream, before anybody else uses that; all members must be able to fetch.
/// All get the times of member 0; `None` when the stream has no memory.
pub async fn measure(team: &Team) -> Result<Option<Rates>> {
    let mut room = vec![0_u8; SIZES[2] + LINE];
    let mut other = vec![0_u8; if team.me() == 0 { room.len() } else { 0 }];
    // As programs that care have theirs: copies to or from other places take longer.
    let [room, other] = [&mut room, &mut other].map(|bytes| {
        let (start, len) = (bytes.as_mut_ptr(), bytes.len().min(SIZES[2]));
        // SAFETY: memory of so many bytes, which outlives all that is measured, and which nobody else uses.
        unsafe { Span::new(start.wrapping_add(start.align_offset(LINE)), len, 1) }
    });
    let mut best = [[u32::MAX; SIZES.len()]; WAYS];
    if team.config().rotates {
        // Pages that nobody has touched are not what is to be measured: each set once.
        for _ in 0..team.config().sets {
            let Some(turn) = team.open(BLOCKING, 0, true).await? else { return Ok(None) };
            op::bcast::bcast_by(turn, 0, &room, usize::MAX, false).await?;
        }
    }
    for (i, size) in SIZES.into_iter().enumerate() {
        // Way by way: what one leaves in the root's cache, as a divided one does, would take time of the next
        // one.
        let ways = [(usize::MAX, false, false), (usize::MAX, false, true), (0, false, false), (0, true, false)];
        for (way, (limit, divide, cached)) in ways.into_iter().enumerate() {
            let _through_caches = cached.then(ThroughCaches::begin);
            for round in 0..TRIES {
                if team.me() == 0 {
                    // New contents each time, as in a program.
                    // SAFETY: it holds so much, and nobody else uses it.
                    unsafe { room.ptr().write_bytes((3 * round + way) as u8, size) };
                }
                let data = room.slice(0..size);
                let met = meet(team).await?;
                let start = Instant::now();
                let Some(turn) = team.open(BLOCKING, 0, true).await? else { return Ok(None) };
                op::bcast::bcast_by(turn, 0, &data, limit, divide).await?;
                if !(met && meet(team).await?) {
                    return Ok(None);
                }
                best[way][i] = best[way][i].min(nanoseconds(start));
            }
        }
        for _ in 0..TRIES {
            if team.me() == 0 {
                let start = Instant::now();
                // SAFETY: both hold so much, and nobody else uses them.
                unsafe { copy::bytes(room.ptr(), other.ptr(), size) };
                black_box(other.ptr());
                best[WAYS - 1][i] = best[WAYS - 1][i].min(nanoseconds(start));
            }
        }
    }
    let [queue, cached, fetch, divided, copy] = best;
    let mut bytes = Rates { queue, cached, fetch, divided, copy }.encode();
    let Some(turn) = team.open(BLOCKING, 0, true).await? else { return Ok(None) };
    // SAFETY: an array of so many bytes, which outlives the operation.
    op::bcast::bcast(turn, 0, &unsafe { Span::new(bytes.as_mut_ptr(), RATES_BYTES, 1) }, usize::MAX).await?;
    Ok(Rates::decode(&bytes))
}

/// A barrier; false without memory.
async fn meet(team: &Team) -> Result<bool> {
    match team.open(BLOCKING, 0, false).await? {
        Some(turn) => op::barrier::barrier(turn).await.map(|()| true),
        None => Ok(false),
    }
}

fn nanoseconds(start: Instant) -> u32 {
    u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_travel_as_bytes() {
        let (queue, fetch) = ([1, 70_000, 2], [3, 4, 5]);
        let rates = Rates { queue, cached: [11, 12, 13], fetch, divided: [6, 7, 8], copy: [u32::MAX, 9, 10] };
        assert_eq!(Rates::decode(&rates.encode()), Some(rates));
        assert_eq!(Rates::decode(&Rates::default().encode()), None);
        assert_eq!(rates.to_string(), "1/70000/2,11/12/13,3/4/5,6/7/8,4294967295/9/10");
        assert_eq!(Rates::from([queue, [11, 12, 13], fetch, [6, 7, 8], [u32::MAX, 9, 10]]), rates);
    }

    /// Of processes that read by system calls.
    fn terms(members: usize, stores: bool, rotates: bool) -> Terms {
        Terms { members, way: Way::Cma, stores, rotates }
    }

    /// These, but that who does not block reads blocks of an allgather sooner.
    fn modes(blocking: Thresholds, others: Thresholds) -> ByMode {
        ByMode { blocking, others: Thresholds { allgather: others.allgather.min(LONG), ..others } }
    }

    #[test]
    fn a_machine_with_fast_caches_reads_long_blocks_of_exchanges_only() {
        let fetch = [3_000, 8_000, 24_000];
        let queue = [1_100, 2_500, 8_000];
        let rates = Rates { queue, cached: queue, fetch, divided: fetch, copy: [500, 1_900, 7_500] };
        let long = Thresholds { allgather: LONG_OF_ALL, alltoall: Reads::on(LONG), ..Thresholds::all(usize::MAX) };
        assert_eq!(rates.thresholds(terms(2, true, false)), modes(long, long));
    }

    #[test]
    fn a_machine_with_slow_caches_reads_what_would_be_copied_twice() {
        let fetch = [3_600, 9_200, 22_000];
        let queue = [2_100, 6_200, 15_000];
        let rates = Rates { queue, cached: queue, fetch, divided: fetch, copy: [500, 1_600, 6_500] };
        let found = rates.thresholds(terms(2, true, false)).blocking;
        assert_eq!(
            found,
            Thresholds { allgather: LONG_OF_ALL, alltoall: Reads::on(LONG), ..Thresholds::all(usize::MAX) }
        );
        assert_eq!(rates.thresholds(terms(8, true, false)).blocking.scatter, 16 << 10);
        let faster = Rates { fetch: [3_000, 6_000, 15_000], ..rates };
        assert_eq!(faster.thresholds(terms(2, true, false)).blocking.alltoall.from, 64 << 10);
        // Both sides at the same time, where a share is worth it.
        let divided = Rates { divided: [1_300, 4_900, 12_000], ..rates };
        let rooted = Thresholds { bcast: 16 << 10, gather: 64 << 10, scatter: 64 << 10, ..found };
        assert_eq!(divided.thresholds(terms(2, true, false)), modes(rooted, found));
        assert_eq!(divided.thresholds(terms(8, true, false)).blocking.bcast, 64 << 10);
    }

    /// Far, where the queue is written past the caches.
    const FAR: Rates = Rates {
        queue: [4_000, 6_500, 16_000],
        cached: [9_900, 31_000, 110_000],
        fetch: [5_500, 9_500, 28_000],
        divided: [5_400, 9_200, 23_000],
        copy: [280, 1_200, 5_000],
    };

    #[test]
    fn a_machine_with_far_caches_divides_as_if_they_might_come_near() {
        let rates = FAR;
        let ByMode { blocking, others } = rates.thresholds(terms(2, true, false));
        assert_eq!([blocking.bcast, blocking.gather, blocking.scatter], [16 << 10, 64 << 10, 64 << 10]);
        assert_eq!([others.bcast, others.gather, others.scatter], [usize::MAX; 3]);
        assert_eq!([blocking.allgather, blocking.alltoall.from], [LONG_OF_ALL, LONG]);
        let unread = Thresholds { allgather: LONG_OF_ALL, ..others };
        assert_eq!(rates.thresholds(terms(2, false, false)), modes(unread, others));
    }

    #[test]
    fn queues_whose_slots_rotate_are_compared_as_they_were_measured() {
        let rates = FAR;
        let ByMode { blocking, others } = rates.thresholds(terms(2, true, true));
        assert_eq!([blocking.bcast, blocking.gather, blocking.scatter], [usize::MAX; 3]);
        assert_eq!([blocking.allgather, blocking.alltoall.from], [LONG_OF_ALL, LONG]);
        let unended = Thresholds { alltoall: Reads::on(LONG), ..blocking };
        assert_eq!(modes(unended, unended).others, others);
        let slow = Rates { queue: [9_000, 31_000, 90_000], ..rates };
        let of = slow.thresholds(terms(2, true, true)).blocking;
        assert_eq!([of.bcast, of.gather, of.scatter], [16 << 10; 3]);
    }

    #[test]
    fn the_longest_blocks_of_two_members_alltoall_are_not_read_where_slots_rotate() {
        let again = terms(2, true, true);
        let end = if copy::may_go_past() { 1 << 20 } else { usize::MAX };
        let ByMode { blocking, others } = FAR.thresholds(again);
        assert_eq!([blocking.alltoall.end, others.alltoall.end], [end, usize::MAX]);
        assert_eq!(
            [LONG - 1, LONG, (1 << 20) - 1, end].map(|len| blocking.alltoall.has(len)),
            [false, true, true, false]
        );
        for other in
            [Terms { members: 3, ..again }, Terms { rotates: false, ..again }, Terms { way: Way::Smsc, ..again }]
        {
            assert_eq!(FAR.thresholds(other).blocking.alltoall.end, usize::MAX, "{other:?}");
        }
    }
}
