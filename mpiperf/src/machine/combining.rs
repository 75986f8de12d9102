// SPDX-License-Identifier: BSD-3-Clause
//! How fast the MPI library adds up numbers.

use std::time::Instant;

use super::{ROUNDS, middle};
use crate::call;
use crate::error::Result;
use crate::mpi::ffi;

/// Numbers of an operand: two of them fit into a level-1 cache.
const COUNT: usize = 1024;

/// Bytes per second of one operand, both of which are in the core's own caches.
///
/// # Errors
/// The library's.
pub fn rate() -> Result<f64> {
    let (from, mut into) = (vec![1.0_f64; COUNT], vec![0.0_f64; COUNT]);
    // SAFETY: constants of the library.
    let (double, sum) = unsafe { (ffi::RSMPI_DOUBLE, ffi::RSMPI_SUM) };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        call!(MPI_Reduce_local(from.as_ptr().cast(), into.as_mut_ptr().cast(), COUNT as i32, double, sum))?;
        times.push(begun.elapsed().as_secs_f64());
    }
    Ok((COUNT * size_of::<f64>()) as f64 / middle(&times))
}
