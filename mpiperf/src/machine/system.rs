// SPDX-License-Identifier: BSD-3-Clause
//! What a core does by itself, and what copies between processes cost beyond the copying.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::team::on;
use super::{ROUNDS, middle};
use crate::error::{Error, Result};
use crate::node::{PAGE, Transfer, transfer};
use crate::report::output::say;

/// Pages of the longest copy.
pub const PAGES: usize = 64;

/// A process with memory to be read.
pub struct Target {
    child: Child,
    at: usize,
}

impl Target {
    /// Starts one: this program again, with a command that only waits.
    ///
    /// # Errors
    /// It does not start, or does not say where its memory is.
    pub fn start() -> Result<Target> {
        let failed = |what: &str| Error::Measure(format!("a second process, to be read, {what}"));
        let program = std::env::current_exe().map_err(|error| failed(&format!("has no program: {error}")))?;
        let child = Command::new(program).arg("machine-target").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| failed(&format!("does not start: {error}")))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let at = line.trim().parse().unwrap_or(0);
        let target = Target { child, at };
        if at == 0 { Err(failed("does not say where its memory is")) } else { Ok(target) }
    }

    /// Seconds of reading so many pages, by each of these processors at the same time. Each has pages of its
    /// own.
    fn read(&self, processors: &[usize], pages: usize) -> Result<f64> {
        let process = self.child.id() as libc::pid_t;
        let times = on(processors, |place, meeting| {
            let mut into = vec![0_u8; pages * PAGE];
            let from = self.at + place % SHARES * PAGES * PAGE;
            (0..ROUNDS)
                .map(|_| {
                    meeting.meet();
                    let begun = Instant::now();
                    transfer(process, Transfer::Read, into.as_mut_ptr(), from, pages * PAGE)?;
                    Ok(begun.elapsed().as_secs_f64())
                })
                .collect::<Result<Vec<f64>>>()
        })?;
        let times: Vec<f64> = times.into_iter().map(|times| Ok(middle(&times?))).collect::<Result<_>>()?;
        Ok(times.iter().sum::<f64>() / times.len() as f64)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// So many readers have pages of their own.
const SHARES: usize = 64;

/// What [`Target::start`] starts: has memory, says where, and waits until its input ends.
///
/// # Errors
/// The output is closed.
pub fn target() -> Result<()> {
    let memory: Vec<u8> = (0..SHARES * PAGES * PAGE).map(|at| at as u8).collect();
    let from = memory.as_ptr().addr().next_multiple_of(PAGE);
    say(&from.to_string())?;
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::hint::black_box(memory);
    Ok(())
}

/// Seconds of a call and of each page of it, its copying among them: by one processor, and by several at a
/// time.
///
/// # Errors
/// The system refuses.
pub fn reading(target: &Target, processors: &[usize]) -> Result<[f64; 2]> {
    let (one, all) = (target.read(processors, 1)?, target.read(processors, PAGES - 1)?);
    let page = (all - one) / (PAGES - 2) as f64;
    Ok([one - page, page])
}

/// Seconds of a store to a line of the core's own, where many follow each other.
///
/// # Errors
/// A processor that is not to be had.
pub fn store(processor: usize) -> Result<f64> {
    const COUNT: usize = 1 << 12;
    let found = on(&[processor], |_, _| {
        let mut lines = [0_u64; 64];
        let times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                for count in 0..COUNT {
                    // SAFETY: within the array.
                    unsafe { lines.as_mut_ptr().add(count % 64).write_volatile(count as u64) };
                }
                begun.elapsed().as_secs_f64() / COUNT as f64
            })
            .collect();
        middle(&times)
    })?;
    Ok(found[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_takes_some_time() {
        let time = store(crate::machine::team::usable()[0]).unwrap();
        assert!(time > 0.0 && time.is_finite(), "{time}");
    }
}
