// SPDX-License-Identifier: BSD-3-Clause
//! Stacks of very many coroutines.
//!
//! The system allows some ten thousand mappings only, and a guard page makes two of one. So many stacks have
//! one mapping, and guard pages only where members are few. Else a stack's last page must never be touched,
//! which is looked at when its coroutine has ended.

use corosensei::stack::{Stack, StackPointer};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::{NonNull, without_provenance_mut};
use std::rc::Rc;

/// Bytes of a stack, of which those that it never touches are no memory.
const STACK: usize = 1 << 20;
const PAGE: usize = 4096;
/// Stacks of a mapping.
const TOGETHER: usize = 256;
/// More members than this have no guard pages.
const GUARDED: usize = 1 << 13;

/// Some stacks.
struct Mapping(NonNull<c_void>);

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody has one of its stacks any more.
        // If it fails, nothing can be done.
        let _ = unsafe { munmap(self.0, STACK * TOGETHER) };
    }
}

/// One of them.
pub struct Room {
    limit: NonZeroUsize,
    guarded: bool,
    _kept: Rc<Mapping>,
}

// SAFETY: the memory between the two is mapped for as long as this lives, and nobody else's. Beyond its limit
// is the next stack: see above for what keeps a coroutine from going there.
unsafe impl Stack for Room {
    fn base(&self) -> StackPointer {
        self.limit.saturating_add(STACK)
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

impl Room {
    /// # Panics
    /// Somebody has been where nobody may be.
    fn is_whole(&self) {
        let mut touched = 0_u8;
        // SAFETY: a page that is mapped, and a byte for it.
        let asked = unsafe { libc::mincore(without_provenance_mut(self.limit.get()), PAGE, &raw mut touched) };
        assert!(self.guarded || (asked == 0 && touched & 1 == 0), "a coroutine's stack of {STACK} bytes is too small");
    }
}

/// Stacks that nobody uses now.
#[derive(Default)]
pub struct Stacks(Vec<Room>);

impl Stacks {
    /// One for one of so many members.
    ///
    /// # Panics
    /// When the system has no memory.
    pub fn take(&mut self, members: usize) -> Room {
        if self.0.is_empty() {
            self.more(members <= GUARDED);
        }
        self.0.pop().expect("there are more now")
    }

    /// It is not used any more.
    pub fn give_back(&mut self, room: Room) {
        room.is_whole();
        self.0.push(room);
    }

    fn more(&mut self, guarded: bool) {
        let len = NonZeroUsize::MIN.saturating_add(STACK * TOGETHER - 1);
        let (access, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
        // SAFETY: a new mapping, of which nothing else is known.
        let at = unsafe { mmap_anonymous(None, len, access, flags | MapFlags::MAP_NORESERVE) };
        let at = at.unwrap_or_else(|error| panic!("no memory for the stacks of coroutines: {error}"));
        // Pages of two megabytes would make memory of what is never touched. It is no harm if there are none.
        // SAFETY: it changes no contents.
        let _ = unsafe { madvise(at, len.get(), MmapAdvise::MADV_NOHUGEPAGE) };
        let mapping = Rc::new(Mapping(at));
        for stack in 0..TOGETHER {
            let limit = at.addr().saturating_add(stack * STACK);
            if guarded {
                // SAFETY: nobody uses the page yet, and nobody may.
                let guard = unsafe { mprotect(at.byte_add(stack * STACK), PAGE, ProtFlags::PROT_NONE) };
                guard.unwrap_or_else(|error| panic!("no guard page for the stack of a coroutine: {error}"));
            }
            self.0.push(Room { limit, guarded, _kept: Rc::clone(&mapping) });
        }
    }
}
