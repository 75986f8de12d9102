// SPDX-License-Identifier: BSD-3-Clause
//! What messages between two processes cost, as parameters of LogGP.
//!
//! One process sends n messages of s bytes, waiting d between them, and the other one answers the last: the
//! parametrised round trip PRTT(n, d, s) of Hoefler, Lichei, Rehm, "Low-Overhead LogGP Parameter Assessment
//! for Modern Interconnection Networks" (IPDPS 2007). From it
//!
//! * o: what each message takes longer than d where d is long enough for the network to be idle again;
//! * g and G: the line through (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1) over s;
//! * L: half of PRTT(1, 0, 1) without the 2 o of each way.
//!
//! Where the library goes over from eager to rendezvous it says itself: a send that nobody receives ends only
//! while it is eager.

use std::os::raw::c_int;
use std::time::{Duration, Instant};

use super::middle;
use crate::call;
use crate::error::Result;
use crate::mpi::{Comm, byte, ffi};

/// Messages that follow each other.
const MANY: usize = 16;
/// Rounds whose median counts.
const ROUNDS: usize = 200;
/// Lengths that the line of g and G goes through: powers of two up to this one, while they are eager.
const LONGEST: usize = 64 << 10;
/// Longer ones are looked for neither as eager nor otherwise.
const EAGER: usize = 4 << 20;
/// A send that has not ended after so long waits for its receiver.
const PATIENCE: Duration = Duration::from_millis(5);
const TAG: c_int = 7;

/// Between two processes; seconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogGp {
    /// L: the way from process to process.
    pub latency: f64,
    /// o: what a processor does for a message at each end.
    pub overhead: f64,
    /// g: between the starts of two short messages.
    pub gap: f64,
    /// G: of each further byte.
    pub per_byte: f64,
    /// G of messages by rendezvous.
    pub per_byte_long: f64,
    /// What a rendezvous takes longer than an eager message of the same length would.
    pub rendezvous: f64,
    /// The longest message that does not wait for its receiver.
    pub eager: usize,
}

/// Between rank 0 and another one; complete on both. The others need not call it.
///
/// # Errors
/// The library's.
pub fn between(comm: &Comm, other: usize) -> Result<LogGp> {
    let pair = Pair { comm, other, sends: comm.rank() == 0 };
    let eager = pair.eager()?;
    let one = pair.round_trip(1, Duration::ZERO, 1)?;
    let lengths: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&s| s <= LONGEST.min(eager)).collect();
    let gap_at = |s: usize| -> Result<(f64, f64)> {
        let (many, single) = (pair.round_trip(MANY, Duration::ZERO, s)?, pair.round_trip(1, Duration::ZERO, s)?);
        Ok(((s - 1) as f64, (many - single) / (MANY - 1) as f64))
    };
    let (gap, per_byte) = line(&lengths.iter().map(|&s| gap_at(s)).collect::<Result<Vec<_>>>()?);
    // Long enough for any message before to have gone.
    let delay = Duration::from_secs_f64((4.0 * one).max(5e-6));
    let delayed = pair.round_trip(MANY, delay, 1)?;
    let overhead = ((delayed - one) / (MANY - 1) as f64 - delay.as_secs_f64()).max(0.0);
    let latency = (one / 2.0 - 2.0 * overhead).max(0.0);
    let long = [4, 8, 16, 32].map(|times| (times * eager.max(1 << 10)).min(EAGER));
    let times = long.iter().map(|&s| Ok(((s - 1) as f64, pair.round_trip(1, Duration::ZERO, s)? / 2.0)));
    let (rendezvous, per_byte_long) = line(&times.collect::<Result<Vec<_>>>()?);
    let rendezvous = (rendezvous - one / 2.0).max(0.0);
    Ok(LogGp { latency, overhead, gap, per_byte, per_byte_long, rendezvous, eager })
}

struct Pair<'c> {
    comm: &'c Comm,
    other: usize,
    sends: bool,
}

impl Pair<'_> {
    fn peer(&self) -> usize {
        if self.sends { self.other } else { 0 }
    }

    /// Seconds from the first of so many messages to the answer, which is as long as they are.
    fn round_trip(&self, count: usize, delay: Duration, bytes: usize) -> Result<f64> {
        let (mut out, mut into) = (vec![1_u8; bytes], vec![0_u8; bytes]);
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            if self.sends {
                for i in 0..count {
                    self.comm.send(&out, self.peer(), TAG)?;
                    let sent = Instant::now();
                    while i + 1 < count && sent.elapsed() < delay {
                        std::hint::spin_loop();
                    }
                }
                self.comm.recv(&mut into, self.peer(), TAG)?;
            } else {
                for _ in 0..count {
                    self.comm.recv(&mut into, self.peer(), TAG)?;
                }
                self.comm.send(&out, self.peer(), TAG)?;
            }
            times.push(begun.elapsed().as_secs_f64());
            out[0] = out[0].wrapping_add(into[0]);
        }
        self.same(middle(&times))
    }

    /// The sender's number, at both.
    fn same(&self, mine: f64) -> Result<f64> {
        let mut number = [mine];
        match self.sends {
            true => self.comm.send(&number, self.peer(), TAG)?,
            false => self.comm.recv(&mut number, self.peer(), TAG)?,
        }
        Ok(number[0])
    }

    /// The longest message whose send ends although nobody receives it.
    fn eager(&self) -> Result<usize> {
        let (mut ends, mut waits) = (0, EAGER);
        while waits - ends > 1 {
            let bytes = if ends == 0 { 1024.min(waits - 1) } else { (2 * ends).min((ends + waits) / 2) };
            match self.ends_alone(bytes)? {
                true => ends = bytes,
                false if bytes <= 1 => break,
                false => waits = bytes,
            }
            if ends == 0 && waits <= 1024 {
                // Nothing is eager, or very little: halves from there.
                while ends == 0 && waits > 1 {
                    let half = waits / 2;
                    if self.ends_alone(half)? { ends = half } else { waits = half }
                }
            }
        }
        Ok(ends)
    }

    fn ends_alone(&self, bytes: usize) -> Result<bool> {
        let mut data = vec![0_u8; bytes];
        let mut ended = [0.0];
        if !self.sends {
            self.comm.recv(&mut ended, self.peer(), TAG + 1)?;
            self.comm.recv(&mut data, self.peer(), TAG)?;
            return Ok(ended[0] > 0.0);
        }
        // SAFETY: a handle without content, set by the next call; a constant of the library.
        let (mut request, ignore): (ffi::MPI_Request, _) = unsafe { (std::mem::zeroed(), ffi::RSMPI_STATUS_IGNORE) };
        let (at, to) = (data.as_ptr().cast(), self.peer() as c_int);
        call!(MPI_Isend(at, bytes as c_int, byte(), to, TAG, self.comm.raw(), &mut request))?;
        let (begun, mut done) = (Instant::now(), 0);
        while done == 0 && begun.elapsed() < PATIENCE {
            call!(MPI_Test(&mut request, &mut done, ignore))?;
        }
        self.comm.send(&[f64::from(done)], self.peer(), TAG + 1)?;
        if done == 0 {
            call!(MPI_Wait(&mut request, ignore))?;
        }
        Ok(done != 0)
    }
}

/// The line through points, by least squares: its height at 0, and its slope, none of which is negative.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (up, over) = points.iter().fold((0.0, 0.0), |(up, over), point| {
        let away = point.0 - x;
        (up + away * (point.1 - y), over + away * away)
    });
    let slope = if over > 0.0 { (up / over).max(0.0) } else { 0.0 };
    ((y - slope * x).max(0.0), slope)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_line_goes_through_its_points() {
        let near = |found: (f64, f64), height: f64, slope: f64| {
            assert!((found.0 - height).abs() < 1e-9 && (found.1 - slope).abs() < 1e-9, "{found:?}");
        };
        near(line(&[(0.0, 3.0), (1.0, 5.0), (10.0, 23.0)]), 3.0, 2.0);
        near(line(&[(0.0, 3.0), (2.0, 1.0)]), 2.0, 0.0);
        near(line(&[(5.0, 4.0)]), 4.0, 0.0);
    }
}
