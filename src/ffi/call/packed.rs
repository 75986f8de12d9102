// SPDX-License-Identifier: BSD-3-Clause
//! Short reductions of packed operands: by user-defined operations, and of elements with gaps.
//!
//! Ranks may describe the same bytes by elements of different datatypes, and what lies in the gaps of a
//! user's buffer must stay. So what travels is packed, and nobody cuts it: whoever combines does so with all
//! of it. A user's function gets copies of operands, in case it writes to both of its arguments.

use crate::endpoint::{Error, Result, Span};
use crate::ffi::base::glue::{self, CR_ERR_NO_MEM, ompi_op_t};
use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::Call;
use crate::ffi::mpi::data::Datatype;
use crate::shm::copy;
use crate::shm::memory::layout::{LINE, SHORT};
use crate::shm::op::Combine;
use crate::sync::shared::will_read;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// So many bytes are combined by one rank at most: of all ranks' operands together. More was not measured.
const MOST: usize = 32 << 10;
/// The same where all ranks know that elements have gaps: unpacking them takes most of the time, and two
/// ranks gain nothing from 256 bytes on (docs/design/short-calls.md).
const MOST_WITH_GAPS: usize = 512;
/// Among so many ranks at most. An assumption: a tree of messages shares the work, and more than eight ranks
/// were not measured.
const MOST_RANKS: usize = 32;
/// The same where every rank combines all operands by a user's function, which may take microseconds: by
/// messages each does so for a logarithm of the ranks only.
const MOST_RANKS_EACH: usize = 4;
/// Alignment of the origin of the first element, as a function may expect of what a program has allocated.
const ALIGN: usize = 64;

/// Whether a reduction on a communicator of one node goes by packed operands. The same on all its ranks.
pub fn is_packed(call: &Call<'_>) -> bool {
    let reduces = matches!(call.kind, Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan);
    // Predefined operations are defined on predefined datatypes only, which are the same on all ranks.
    if !reduces || call.intrinsic && call.units().info.tiles != 0 {
        return false;
    }
    let most = if call.intrinsic { MOST_WITH_GAPS } else { MOST };
    let fits = |bytes: usize| bytes <= LINE || (bytes <= SHORT && bytes * call.ranks() <= most);
    let most_ranks = if call.intrinsic || call.kind == Kind::Reduce { MOST_RANKS } else { MOST_RANKS_EACH };
    call.ranks() <= most_ranks && call.bytes().is_some_and(fits)
}

/// Memory for a rank's elements in the form that its operation takes.
struct Room {
    memory: SmallVec<[u8; 256]>,
    /// Bytes from the lowest byte used to the origin of the first element.
    shift: isize,
}

impl Room {
    /// For so many elements; `None`: there is no such memory. Not written: their gaps may be much larger than
    /// they are.
    fn new(dtype: &Datatype, count: usize) -> Option<Room> {
        let mut memory = SmallVec::new();
        memory.try_reserve_exact(dtype.reach(count)?.checked_add(ALIGN)?).ok()?;
        Some(Room { memory, shift: dtype.origin(count) })
    }

    /// The origin of the first element.
    fn origin(&mut self) -> *mut u8 {
        let origin = self.memory.as_mut_ptr().wrapping_offset(self.shift);
        origin.wrapping_add(origin.addr().wrapping_neg() % ALIGN)
    }
}

/// A rank's operation on packed operands, which count as elements of a byte.
pub struct Packed {
    dtype: Datatype,
    op: *mut ompi_op_t,
    count: usize,
    /// MPI's code of the first failure; 0: none.
    failed: AtomicI32,
}

// SAFETY: addresses of Open MPI's objects, which any thread may use, and numbers.
unsafe impl Send for Packed {}
// SAFETY: as above.
unsafe impl Sync for Packed {}

impl Packed {
    /// That of a call.
    pub fn of(call: &Call<'_>) -> Packed {
        Packed { dtype: call.units(), op: call.op, count: call.operand().len(), failed: AtomicI32::new(0) }
    }

    /// Whether elements lie one after the other in a user's buffer, as they do where they are packed.
    pub fn tiles(&self) -> bool {
        self.dtype.info.tiles != 0 && self.dtype.info.true_lb == 0
    }

    /// Bytes of an operand.
    fn bytes(&self) -> usize {
        self.dtype.info.size * self.count
    }

    /// Memory for an operand.
    pub fn room(&self) -> Vec<u128> {
        vec![0; self.bytes().div_ceil(size_of::<u128>())]
    }

    /// An operand that begins there.
    ///
    /// # Safety
    /// It is valid as long as the span.
    pub unsafe fn span(&self, start: *mut u8) -> Span {
        // SAFETY: by the caller's promise.
        unsafe { Span::new(start, self.bytes(), 1) }
    }

    /// Packs elements.
    ///
    /// # Safety
    /// There are as many, and the room is for them.
    pub unsafe fn pack(&self, elements: *const u8, room: *mut u8) {
        // SAFETY: by the caller's promise.
        self.note(unsafe {
            glue::cr_pack(self.dtype.handle, self.count, elements.cast(), 0, room.cast(), self.bytes())
        });
    }

    /// Unpacks them.
    ///
    /// # Safety
    /// As for [`pack`](Packed::pack).
    pub unsafe fn unpack(&self, room: *const u8, elements: *mut u8) {
        let bytes = self.bytes();
        // SAFETY: by the caller's promise.
        self.note(unsafe { glue::cr_unpack(self.dtype.handle, self.count, elements.cast(), 0, room.cast(), bytes) });
    }

    fn note(&self, code: i32) {
        if code != 0 {
            let _ = self.failed.compare_exchange(0, code, Relaxed, Relaxed);
        }
    }

    /// Whether nothing has failed.
    pub fn ended(&self) -> Result<()> {
        match self.failed.load(Relaxed) {
            0 => Ok(()),
            code => Err(Error::Mpi(code)),
        }
    }
}

impl Combine for Packed {
    fn size(&self) -> usize {
        1
    }

    fn is_whole(&self) -> bool {
        true
    }

    /// Elements with gaps are combined in the caller's own buffer, at the output's address.
    unsafe fn fold_whole(&self, members: usize, bytes: usize, operand: &dyn Fn(usize) -> *const u8, out: *mut u8) {
        debug_assert_eq!(bytes, self.bytes(), "nobody cuts packed operands");
        (0..members).for_each(|member| will_read(operand(member), bytes));
        // SAFETY: the operands are there by the caller's promise. The output holds as many elements.
        let begin = || unsafe {
            match self.tiles() {
                true => copy::within(operand(members - 1), out, bytes),
                false => self.unpack(operand(members - 1), out),
            }
        };
        if members == 1 {
            return begin();
        }
        let Some(mut elements) = Room::new(&self.dtype, self.count) else { return self.note(CR_ERR_NO_MEM as i32) };
        for member in (0..members - 1).rev() {
            // SAFETY: as above; the room is for as many elements.
            unsafe { self.unpack(operand(member), elements.origin()) };
            // In place, the last operand but one may be the output.
            if member + 2 == members {
                begin();
            }
            let operand = elements.origin();
            // SAFETY: both are elements of this rank's.
            unsafe { glue::cr_op_reduce(self.op, operand.cast(), out.cast(), self.count, self.dtype.handle) };
        }
    }

    unsafe fn reduce(&self, _: *const u8, _: *mut u8, _: usize) {
        unreachable!("packed operands go in one step: `is_packed` lets no longer ones pass");
    }
}
