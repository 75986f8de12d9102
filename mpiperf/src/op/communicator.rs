// SPDX-License-Identifier: BSD-3-Clause
//! What it costs to make and to free communicators.

use std::os::raw::c_int;

use crate::call;
use crate::error::{Error, Result};
use crate::mpi::{Comm, check, ffi};

use super::table::{Kind, Operation};
use super::{Call, Case};

/// Makes (or frees) one communicator in every call. What a call made is freed, and what it frees is made,
/// when the next one is prepared: `prepare` is collective here.
pub struct CommCase {
    operation: &'static Operation,
    parent: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    group: ffi::MPI_Group,
    made: ffi::MPI_Comm,
    call: u64,
}

impl CommCase {
    /// A case on `comm`.
    pub fn new(comm: &Comm, operation: &'static Operation) -> Result<CommCase> {
        // SAFETY: constants of the library.
        let (mut group, made) = unsafe { (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_COMM_NULL) };
        call!(MPI_Comm_group(comm.raw(), &mut group))?;
        Ok(CommCase { operation, parent: comm.raw(), rank: comm.rank(), size: comm.size(), group, made, call: 0 })
    }

    fn there(&self) -> bool {
        // SAFETY: a constant of the library.
        self.made != unsafe { ffi::RSMPI_COMM_NULL }
    }

    fn free(&mut self) -> Result<()> {
        if self.there() { call!(MPI_Comm_free(&mut self.made)) } else { Ok(()) }
    }
}

impl Case for CommCase {
    fn prepare(&mut self, call: Call) -> Result<()> {
        self.call = call.number;
        self.free()?;
        if self.operation.kind == Kind::CommFree {
            call!(MPI_Comm_dup(self.parent, &mut self.made))?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        match self.operation.kind {
            Kind::CommSplit => {
                call!(MPI_Comm_split(self.parent, self.rank as c_int % 2, self.rank as c_int, &mut self.made))
            }
            Kind::CommCreate => call!(MPI_Comm_create(self.parent, self.group, &mut self.made)),
            Kind::CommFree => call!(MPI_Comm_free(&mut self.made)),
            _ => call!(MPI_Comm_dup(self.parent, &mut self.made)),
        }
    }

    fn verify(&mut self) -> Result<()> {
        let wrong = |text: String| {
            Error::Wrong(format!("{}, call {}, rank {}: {text}", self.operation.name, self.call, self.rank))
        };
        if self.operation.kind == Kind::CommFree {
            return if self.there() { Err(wrong("the handle is not MPI_COMM_NULL".to_owned())) } else { Ok(()) };
        }
        if !self.there() {
            return Err(wrong("the new handle is MPI_COMM_NULL".to_owned()));
        }
        let (mut rank, mut size) = (0, 0);
        call!(MPI_Comm_rank(self.made, &mut rank))?;
        call!(MPI_Comm_size(self.made, &mut size))?;
        let expected = match self.operation.kind {
            Kind::CommSplit => (self.rank / 2, (self.size + 1 - self.rank % 2) / 2),
            _ => (self.rank, self.size),
        };
        if (rank as usize, size as usize) != expected {
            return Err(wrong(format!(
                "rank {rank} of {size} in the new communicator, must be {} of {}",
                expected.0, expected.1
            )));
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        0
    }
}

impl Drop for CommCase {
    fn drop(&mut self) {
        let _ = self.free();
        // SAFETY: made by MPI_Comm_group.
        let _ = check("MPI_Group_free", unsafe { ffi::MPI_Group_free(&mut self.group) });
    }
}
