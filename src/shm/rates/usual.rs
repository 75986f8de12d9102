// SPDX-License-Identifier: BSD-3-Clause
//! What the ways take where this node is not measured: by kind of processor. Times of machines that were
//! measured (docs/design/long-messages.md).

use super::Rates;
use crate::shm::copy;
use crate::shm::group::reading::Way;

/// Of AMD's, where slots do not rotate: a Zen 4 whose caches lie far apart at times.
const AMD: Rates = Rates {
    queue: [4_000, 6_500, 16_000],
    cached: [9_900, 31_000, 110_000],
    fetch: [5_500, 9_500, 28_000],
    divided: [5_400, 9_200, 23_000],
    copy: [280, 1_200, 5_000],
};

/// Of AMD's, where slots rotate.
const AMD_ROTATING: Rates = Rates { cached: AMD.queue, ..AMD };

/// Other x86-64: an Intel Xeon of family 6, model 207.
const XEON: Rates = Rates {
    queue: [2_100, 6_200, 15_000],
    cached: [2_100, 6_200, 15_000],
    fetch: [3_600, 9_200, 22_000],
    divided: [1_500, 5_000, 12_000],
    copy: [500, 1_600, 6_500],
};

/// The times of this kind of processor, for [a way](Way) of reading, where slots rotate or do not; `None`
/// where none of the kind was measured.
pub fn usual(way: Way, rotates: bool) -> Option<Rates> {
    let times = match (cfg!(target_arch = "x86_64"), copy::rotation_pays(), rotates) {
        (false, ..) => return None,
        (true, false, _) => XEON,
        (true, true, false) => AMD,
        (true, true, true) => AMD_ROTATING,
    };
    match way {
        Way::Nothing => None,
        Way::Cma => Some(times),
        // Memory that is mapped is read as the queue is, without a system call. Not measured: for exchanges
        // it is then worth it, where blocks would be copied twice.
        Way::Smsc => Some(Rates { fetch: times.queue, divided: times.queue, ..times }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::rates::{LONG, LONG_OF_ALL, Terms};

    #[test]
    fn every_kind_leads_to_thresholds_that_are_never_bad() {
        for (times, rotates) in [(AMD, false), (AMD_ROTATING, true), (XEON, false)] {
            for (members, stores) in [(2, true), (2, false), (6, true)] {
                let found = times.thresholds(Terms { members, way: Way::Cma, stores, rotates });
                for of in [found.blocking, found.others] {
                    assert!(of.alltoall.from <= LONG && of.allgather <= LONG_OF_ALL, "{times:?}: {of:?}");
                    assert!(of.bcast >= 16 << 10 && of.gather >= 16 << 10 && of.allreduce >= 128 << 10, "{of:?}");
                }
            }
        }
    }

    #[test]
    fn who_cannot_read_has_no_times() {
        assert_eq!(usual(Way::Nothing, false), None);
        assert_eq!(usual(Way::Cma, false).is_some(), cfg!(target_arch = "x86_64"));
    }
}
