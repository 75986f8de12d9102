// SPDX-License-Identifier: BSD-3-Clause
//! How the members of a group read each other's private memory.
//!
//! Two ways: the caller's own [`cma`](crate::shm::copy::cma), and a [component](crate::shm::copy::smsc) of
//! the MPI library's. Each is tried by every member on every other one, and all use one that works
//! everywhere.
//!
//! * *Threads*: a member may read in several threads at once (blocking operations in one, the progress engine
//!   in another). process_vm_readv has no state; a component must say that it can.
//! * *Nonblocking operations*: either way the reader does all the work, within one poll. A component that
//!   maps keeps what it has mapped, so that a poll costs a copy.
//! * *Cost*: process_vm_readv takes a system call and a walk over the pages each time. Mapped memory costs
//!   that once, and then what a copy costs.
//! * *Failure*: some memory can be accessed by its own process only, such as a device's: then a read fails,
//!   and with it the operation. So it is where rights are missing that the owner has given up since, and
//!   where process_vm_readv reads from a process that has died, also when its number is
//!   [another's](crate::shm::pool::peer) by then. Mapped memory of one may be gone in the middle of a copy:
//!   SIGBUS.
//!
//! So, where the choice is ours, a component that maps comes first, then process_vm_readv, then any other
//! component (which is what is left where process_vm_readv is forbidden).

use crate::shm::copy::smsc::Component;
use std::sync::atomic::{AtomicU64, Ordering};

/// The way of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They do not.
    Nothing,
    /// process_vm_readv.
    Cma,
    /// By the component.
    Smsc,
}

/// The ways that may be tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// process_vm_readv.
    pub cma: bool,
    /// A component.
    pub smsc: Option<&'static dyn Component>,
}

impl Ways {
    /// process_vm_readv only.
    pub const CMA: Ways = Ways { cma: true, smsc: None };
    /// None.
    pub const NONE: Ways = Ways { cma: false, smsc: None };
}

impl Way {
    /// The way for all members, from what works for all of them: process_vm_readv, the component, and whether
    /// the component maps.
    pub fn choose(cma: bool, smsc: bool, maps: bool) -> Way {
        match (cma, smsc) {
            (_, true) if maps || !cma => Way::Smsc,
            (true, _) => Way::Cma,
            _ => Way::Nothing,
        }
    }

    /// Its number, up to [`WAYS`]; none of its own has [`Way::Nothing`].
    pub fn number(self) -> Option<usize> {
        match self {
            Way::Nothing => None,
            Way::Cma => Some(0),
            Way::Smsc => Some(1),
        }
    }
}

/// How many ways have a number.
pub const WAYS: usize = 2;

/// Bytes that this process has read, by each way.
static READ: [AtomicU64; WAYS] = [const { AtomicU64::new(0) }; WAYS];

/// Counts what was read.
pub(in crate::shm) fn count(way: Way, bytes: usize) {
    if let Some(number) = way.number() {
        READ[number].fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The counter of the bytes that this process has read by a way that is one.
pub fn counter(way: Way) -> Option<&'static AtomicU64> {
    way.number().map(|number| &READ[number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_maps_comes_first_and_what_copies_last() {
        assert_eq!(Way::choose(true, true, true), Way::Smsc);
        assert_eq!(Way::choose(false, true, true), Way::Smsc);
        assert_eq!(Way::choose(true, true, false), Way::Cma);
        assert_eq!(Way::choose(true, false, true), Way::Cma);
        assert_eq!(Way::choose(false, true, false), Way::Smsc);
        assert_eq!(Way::choose(false, false, true), Way::Nothing);
    }
}
