//! Calls to the shim that short operations make, without the table of addresses.
//!
//! The compiler takes the address of what another object defines from the global offset table, also of what the linker then finds in the same file: a line of the process' own data, which no
//! other call has brought to the cache, in a page that has to be looked up. Where processes take turns on the cores, short operations waited for that longer than for anything else (up to 0.5 µs where
//! nothing is in the caches). A call by name needs none: the linker fills in where the function is.

use super::glue::{self, ompi_datatype_t, ompi_op_t};

// What is called by name below has these types.
const _: unsafe extern "C" fn(*mut ompi_datatype_t, *mut usize) -> i32 = glue::cr_dtype_plain;
const _: unsafe extern "C" fn(*mut ompi_op_t, *mut ompi_datatype_t) -> i32 = glue::cr_op_is_plain;

/// Calls a function of the shim of two addresses, which returns an `int`.
macro_rules! call {
    ($function:path, $first:expr, $second:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            let answer: i32;
            std::arch::asm!(
                "call {function}",
                function = sym $function,
                in("rdi") $first,
                in("rsi") $second,
                lateout("eax") answer,
                clobber_abi("C"),
            );
            answer
        }
        #[cfg(not(target_arch = "x86_64"))]
        $function($first, $second)
    }};
}

/// As [`glue::cr_dtype_plain`]: whether it is without gaps, and its `size`.
///
/// # Safety
/// The datatype is live; `size` may be written.
#[inline(always)]
pub unsafe fn dtype_plain(dtype: *mut ompi_datatype_t, size: *mut usize) -> bool {
    // SAFETY: a C function of these arguments, by the caller's promise; the stack is aligned for calls.
    let plain: i32 = unsafe { call!(glue::cr_dtype_plain, dtype, size) };
    plain != 0
}

/// As [`glue::cr_op_is_plain`]: whether it is one of MPI's own, and defined for the datatype.
///
/// # Safety
/// Both are live.
#[inline(always)]
pub unsafe fn op_is_plain(op: *mut ompi_op_t, dtype: *mut ompi_datatype_t) -> bool {
    // SAFETY: as above.
    let plain: i32 = unsafe { call!(glue::cr_op_is_plain, op, dtype) };
    plain != 0
}
