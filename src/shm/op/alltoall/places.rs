//! Where blocks are that travel at once.

use crate::shm::memory::Member;
use crate::shm::op::block::{Place, index};
use crate::shm::op::put;
use crate::shm::turn::Turn;

/// Where blocks of a length are that travel at once, whoever writes them.
pub(super) trait Places: Copy {
    /// The block of `writer`, that it has published or will, for `reader`.
    fn at(self, turn: &Turn<'_>, writer: Member, reader: Member) -> *mut u8;
    /// Writes what comes before the contents.
    fn begin(self, contents: *mut u8);
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
    /// In shares of so many bytes of the writer's set, which it tells with the step that it publishes; the contents come after an address.
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
