// SPDX-License-Identifier: BSD-3-Clause
//! Errors as MPI has them.

use crate::endpoint::Error;
use crate::ffi::base::glue::{CR_ERR_INTERN, CR_ERR_NO_MEM, CR_ERR_REQUEST, CR_ERR_TRUNCATE, CR_PASS};
use crate::ffi::base::messages;

/// An argument is missing that the operation needs: an error of ours.
pub const UNSUPPORTED: Error = Error::Mpi(CR_ERR_INTERN as i32);

/// What a call is answered with where the parameters leave it to the component below.
pub const PASS: i32 = CR_PASS;

/// The answer to the start of a persistent operation that has failed before.
pub fn refused() -> i32 {
    messages::print("coll/rust: a persistent collective that has failed cannot be started again; free it");
    CR_ERR_REQUEST as i32
}

/// The MPI error code for an error; prints what has not been said.
pub fn code(error: Error) -> i32 {
    match error {
        Error::Mpi(code) => code,
        Error::NoMemory(bytes) => {
            messages::print(&format!("coll/rust: no memory for a temporary buffer of {bytes} bytes"));
            CR_ERR_NO_MEM as i32
        }
        Error::Peer => {
            messages::print("coll/rust: a process of the group has died, or has failed in an operation of the group");
            CR_ERR_INTERN as i32
        }
        Error::Lengths => {
            messages::print(
                "coll/rust: the ranks have given different lengths for the same data; check the counts of the call",
            );
            CR_ERR_TRUNCATE as i32
        }
        Error::Fetch(errno) => {
            messages::print(&format!(
                "coll/rust: reading or writing another process' buffer, or one's own: {}; check the buffers of the call, \
                 or set coll_rust_shm_zero_copy to off",
                std::io::Error::from_raw_os_error(errno)
            ));
            CR_ERR_INTERN as i32
        }
    }
}
