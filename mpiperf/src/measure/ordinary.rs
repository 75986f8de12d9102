// SPDX-License-Identifier: BSD-3-Clause
//! The ordinary loop, to compare with.

use crate::clock::Global;
use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::op::{Call, Case};

/// The ordinary loop, for comparison: barrier, `calls` calls, the mean of them, of rank 0 and the maximum
/// over ranks, seconds.
pub fn ordinary_loop(comm: &Comm, clock: &Global, case: &mut dyn Case, calls: u32) -> Result<(f64, f64)> {
    let means = ordinary_loop_ranks(comm, clock, case, calls)?;
    Ok((means[0], means.iter().copied().fold(0.0, f64::max)))
}

/// The same: the mean of each rank, on all ranks. Buffers are prepared once, as such loops do. Collective.
pub fn ordinary_loop_ranks(comm: &Comm, clock: &Global, case: &mut dyn Case, calls: u32) -> Result<Vec<f64>> {
    if calls == 0 {
        return Err(Error::usage("ordinary loop: 0 calls; at least 1 is needed"));
    }
    comm.agree(case.prepare(Call { number: 0 }))?;
    let mut ran = Ok(());
    comm.barrier()?;
    let start = clock.timer.now();
    for _ in 0..calls {
        ran = ran.and(case.run());
    }
    let mean = (clock.timer.now() - start) / f64::from(calls);
    comm.agree(ran)?;
    comm.allgather(&[mean])
}
