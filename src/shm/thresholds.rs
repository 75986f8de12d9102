// SPDX-License-Identifier: BSD-3-Clause
//! Lengths from which on data are read from another process' memory: for each operation, and where nothing is
//! measured.

#[cfg(doc)]
use crate::shm::config::Config;
use crate::shm::config::Cores;
use crate::shm::copy;
use crate::shm::group::reading::Way;

/// Where n processes take turns on the cores, blocks are read that have so many bytes / n²: those of a
/// scatter, and those of an alltoall. Where two cores' caches are fast, reading shorter ones takes 5 to 15 %
/// longer; where they are slow, and writes do not go past them, the queue takes up to a third longer, and
/// more than other libraries (docs/design/oversubscribed.md). As nothing is measured there, it is the choice
/// with the best worst case.
const CROWDED_SCATTER: usize = 16 << 20;
/// See there.
const CROWDED_ALLTOALL: usize = 4 << 20;
/// Up to so many processes queues may [do better](queues_win) there: as many as it was measured with. Of 33
/// and more, shares of a queue are too short to go past the caches.
const CROWDED_QUEUES: usize = 8;
/// Shorter blocks are not read there.
const CROWDED_LEAST: usize = 128 << 10;

/// From how many bytes on data are read from another process' memory, for each operation; `usize::MAX`:
/// never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Of a broadcast.
    pub bcast: usize,
    /// Of a block that is gathered.
    pub gather: usize,
    /// Of a block that is scattered.
    pub scatter: usize,
    /// Of a block of an allgather.
    pub allgather: usize,
    /// Of a block of an alltoall, and of which longer ones not any more. (Neighbourhoods, and nodes among
    /// others, do without that end: it was measured of whole alltoalls.)
    pub alltoall: Reads,
    /// Of an operand of an allreduce.
    pub allreduce: usize,
}

/// Which blocks are read from another process' memory: those of `from` bytes and more, but of less than
/// `end`. Whose they are decides, where they are not short, so that others need not know; members must agree
/// about a `from` that keeps short ones from shares of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The shortest ones.
    pub from: usize,
    /// Those are not, nor longer ones.
    pub end: usize,
}

impl Reads {
    /// Those of so many bytes and more, without an end.
    pub const fn on(from: usize) -> Reads {
        Reads { from, end: usize::MAX }
    }

    /// Whether blocks of so many bytes are.
    pub fn has(self, len: usize) -> bool {
        (self.from..self.end).contains(&len)
    }
}

impl From<usize> for Reads {
    /// As [`on`](Reads::on).
    fn from(from: usize) -> Reads {
        Reads::on(from)
    }
}

/// Thresholds of each mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByMode {
    /// Of blocking operations, which may be [divided](crate::shm::op::divided).
    pub blocking: Thresholds,
    /// Of all others.
    pub others: Thresholds,
}

impl From<Thresholds> for ByMode {
    fn from(both: Thresholds) -> ByMode {
        ByMode { blocking: both, others: both }
    }
}

impl Thresholds {
    /// The least of all.
    pub(super) fn least(&self) -> usize {
        let &Thresholds { bcast, gather, scatter, allgather, alltoall, allreduce } = self;
        [gather, scatter, allgather, alltoall.from, allreduce].into_iter().fold(bcast, usize::min)
    }

    /// Where nothing has been measured: the root of a scatter, which copies for all others, leaves that to
    /// them, and so do members of an alltoall, where each copies something else for each other; whatever else
    /// is copied twice needs no turns in between, or is copied in only once for all.
    pub const UNKNOWN: Thresholds =
        Thresholds { scatter: 16 << 10, alltoall: Reads::on(64 << 10), ..Thresholds::all(usize::MAX) };
    /// The same where processes [give cores away](crate::shm::config::Cores::Lent) while they wait, so that
    /// times say little.
    pub const LENT: Thresholds =
        Thresholds { scatter: CROWDED_LEAST, alltoall: Reads::on(CROWDED_LEAST), ..Thresholds::all(usize::MAX) };
    /// The same where they take turns. There who lends its memory has to wait until the others have had their
    /// turns, and what is shorter is sooner copied twice, while it fits the caches. `queues`: they [do
    /// better](queues_win). Then nothing is read in an alltoall.
    pub fn crowded(members: usize, queues: bool) -> Thresholds {
        let from = |bytes: usize, parts: usize| (bytes / parts).max(CROWDED_LEAST);
        let alltoall = Reads::on(if queues { usize::MAX } else { from(CROWDED_ALLTOALL, members.pow(2)) });
        let scatter = from(CROWDED_SCATTER, members.pow(2));
        Thresholds { scatter, alltoall, ..Thresholds::all(usize::MAX) }
    }

    /// The same for all operations.
    pub const fn all(bytes: usize) -> Thresholds {
        let [bcast, gather, scatter, allgather, allreduce] = [bytes; 5];
        Thresholds { bcast, gather, scatter, allgather, alltoall: Reads::on(bytes), allreduce }
    }
}

/// Whether long blocks had better go through the queues where others' memory could be read: where processes
/// take turns on the cores, writes [may go past the caches](copy::may_go_past), and reading is a system call
/// each time. (Mapped memory needs none.)
pub fn queues_win(way: Way, cores: Cores, members: usize) -> bool {
    way != Way::Smsc && cores == Cores::Shared && members <= CROWDED_QUEUES && copy::may_go_past()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_win_only_among_few_that_share_cores_and_read_by_system_calls() {
        let (cma, shared) = (Way::Cma, Cores::Shared);
        assert_eq!([2, 8].map(|members| queues_win(cma, shared, members)), [copy::may_go_past(); 2]);
        for (way, cores, members) in
            [(Way::Smsc, shared, 4), (cma, shared, 9), (cma, Cores::Lent, 4), (cma, Cores::Own, 4)]
        {
            assert!(!queues_win(way, cores, members), "{way:?}, {cores:?}, {members}");
        }
    }

    #[test]
    fn the_more_take_turns_the_shorter_is_what_they_read() {
        const KIB: usize = 1 << 10;
        for (members, scatter, alltoall) in [(2, 4096, 1024), (4, 1024, 256), (8, 256, 128), (16, 128, 128)] {
            let alltoall = Reads::on(alltoall * KIB);
            let expected = Thresholds { scatter: scatter * KIB, alltoall, ..Thresholds::all(usize::MAX) };
            assert_eq!(Thresholds::crowded(members, false), expected);
        }
        assert_eq!(Thresholds::crowded(64, false), Thresholds::LENT);
        let queues = [4, 8].map(|members| Thresholds::crowded(members, true));
        assert_eq!(
            queues.map(|of| (of.scatter, of.alltoall.from)),
            [(1024 * KIB, usize::MAX), (256 * KIB, usize::MAX)]
        );
    }
}
