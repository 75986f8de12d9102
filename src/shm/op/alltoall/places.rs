//! Where blocks are that travel at once.

use super::Plan;
use crate::shm::memory::Member;
use crate::shm::op::block::{Place, Rooms, index};
use crate::shm::op::put;
use crate::shm::turn::Turn;

/// Where blocks of a length are that travel at once, whoever writes them.
pub(super) trait Places: Copy {
    /// The block of `writer`, that it has published or will, for `reader`.
    fn at(self, turn: &Turn<'_>, writer: Member, reader: Member) -> *mut u8;
    /// Writes what comes before the contents.
    fn begin(self, contents: *mut u8);
}

/// What tells where blocks of a length are. No closure, which the compiler takes for too long to be a part of
/// an operation (an Alltoall of 8 bytes took 70 of 690 instructions more).
pub(super) trait Placing: Copy {
    /// Where they are.
    type At: Places;
    /// Where those of `len` bytes are.
    fn place(self, len: usize) -> Self::At;

    /// The same, asked once where all have the same length.
    #[inline(always)]
    fn of_all(self, each: Option<usize>) -> Option<Self::At> {
        Some(self.place(each?))
    }

    /// Where a block of `len` bytes is, of blocks about which [that](Placing::of_all) has been asked.
    #[inline(always)]
    fn of(self, of_all: Option<Self::At>, len: usize) -> Self::At {
        match of_all {
            Some(place) => place,
            None => self.place(len),
        }
    }
}

impl<'t> Placing for (Rooms, &Turn<'t>) {
    type At = Place<'t>;

    #[inline(always)]
    fn place(self, len: usize) -> Place<'t> {
        self.0.place(self.1, len)
    }
}

impl<'t> Placing for (Plan<'t>, &Turn<'t>) {
    type At = Room<'t>;

    #[inline(always)]
    fn place(self, len: usize) -> Room<'t> {
        self.0.room(self.1, len)
    }
}

/// All are short.
impl Places for Place<'_> {
    #[inline(always)]
    fn at(self, _: &Turn<'_>, writer: Member, reader: Member) -> *mut u8 {
        self.of(writer, reader)
    }

    #[inline(always)]
    fn begin(self, _: *mut u8) {}
}

/// Some may be longer.
#[derive(Clone, Copy)]
pub(super) enum Room<'t> {
    Short(Place<'t>),
    /// In shares of so many bytes of the writer's set, which it tells with the step that it publishes; the
    /// contents come after an address.
    Set {
        each: usize,
        head: usize,
    },
}

impl Places for Room<'_> {
    #[inline(always)]
    fn at(self, turn: &Turn<'_>, writer: Member, reader: Member) -> *mut u8 {
        match self {
            Room::Short(place) => place.of(writer, reader),
            Room::Set { each, head } => turn.slot(writer, 0).wrapping_add(head + each * index(writer, reader)),
        }
    }

    #[inline(always)]
    fn begin(self, contents: *mut u8) {
        if let Room::Set { head, .. } = self {
            put(contents.wrapping_sub(head), 0);
        }
    }
}
