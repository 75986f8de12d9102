// SPDX-License-Identifier: BSD-3-Clause
//! MPI from the first call to the last: every failure ends in one message and the same exit status
//! everywhere, and none in a hang.

use std::time::Duration;

use crate::call;
use crate::error::{Error, Result};
use crate::mpi::{Comm, ffi};

/// How long a rank that failed waits for the others to come to the end, too, before it ends the job.
const GRACE: Duration = Duration::from_secs(5);

/// This process's rank by the environment of the usual launchers; `None` outside of them.
pub fn launched() -> Option<usize> {
    const RANKS: [&str; 5] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID"];
    RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Runs `work` on a communicator of all processes that nothing else uses; the exit status.
pub fn with_mpi(work: impl FnOnce(&Comm) -> Result<()>) -> i32 {
    // SAFETY: once, at the start of the program, by its only thread.
    if let Err(error) = call!(MPI_Init(std::ptr::null_mut(), std::ptr::null_mut())) {
        return complain(&error);
    }
    let status = match Comm::world().and_then(|world| Ok((world.dup()?, world.dup()?))) {
        Ok((comm, end)) => {
            let outcome = work(&comm);
            conclude(&end, &outcome)
        }
        Err(error) => abort(&error),
    };
    // SAFETY: once, at the end; all communicators are freed.
    match call!(MPI_Finalize()) {
        Err(error) if status == 0 => complain(&error),
        _ => status,
    }
}

/// All ranks meet; the lowest one that failed says why; all have the worst status. If the others do not come,
/// they wait for this rank somewhere else: then it ends the job.
fn conclude(comm: &Comm, outcome: &Result<()>) -> i32 {
    if let Err(error) = outcome
        && !comm.meet(Some(GRACE)).unwrap_or(false)
    {
        return abort(error);
    }
    // Those that failed wait in a nonblocking one: both kinds must be the same for the library.
    if outcome.is_ok() && comm.meet(None).is_err() {
        return 1;
    }
    let mine = outcome.as_ref().err().map_or(0, Error::status);
    let Ok(all) = comm.allgather(&[mine]) else { return mine.max(1) };
    let speaker = all.iter().position(|status| *status != 0);
    if let (Err(error), true) = (outcome, speaker == Some(comm.rank())) {
        complain(error);
    }
    // Nobody leaves before it is said: a launcher kills the others when one is gone.
    let _ = comm.barrier();
    all.into_iter().max().unwrap_or(0)
}

/// Says what went wrong and ends the job.
fn abort(error: &Error) -> i32 {
    let status = complain(error);
    // SAFETY: the world communicator is always valid.
    let _ = call!(MPI_Abort(ffi::RSMPI_COMM_WORLD, status));
    status
}

/// One message on standard error; the exit status.
pub fn complain(error: &Error) -> i32 {
    eprintln!("mpiperf: {error}");
    error.status()
}
