// SPDX-License-Identifier: BSD-3-Clause
//! Cases whose time is known beforehand: they measure the measurement.

use std::os::raw::c_int;
use std::time::Duration;

use super::{Wait, until};
use crate::clock::Timer;
use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::op::{Call, Case};

/// `WaitPatternUp`: rank i waits (i + 1) units, so a call takes as many units as there are ranks.
pub struct WaitUp {
    timer: Timer,
    time: f64,
    how: Wait,
}

impl WaitUp {
    /// On rank `rank`, with a unit in seconds.
    pub fn new(timer: Timer, rank: usize, unit: f64, how: Wait) -> WaitUp {
        WaitUp { timer, time: unit * (rank + 1) as f64, how }
    }
}

impl Case for WaitUp {
    fn prepare(&mut self, _call: Call) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn run(&mut self) -> Result<()> {
        until(&self.timer, self.timer.now() + self.time, self.how);
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> usize {
        0
    }
}

/// `WaitPatternNull`: does nothing, so a call takes no time.
pub struct WaitNull;

impl Case for WaitNull {
    fn prepare(&mut self, _call: Call) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn run(&mut self) -> Result<()> {
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> usize {
        0
    }
}

/// A broadcast in which rank 0 sends to each other rank in turn, and each message costs it a known time: it
/// sleeps to an absolute deadline and sends then. Rank i > 0 has the message after i times the cost, rank 0
/// is back after p − 1 times. Receivers sleep between looking for the message, so that the times hold also
/// with fewer cores than ranks.
pub struct LinearBroadcast {
    comm: Comm,
    timer: Timer,
    cost: f64,
    number: u64,
    buffer: [u64; 1],
}

const TAG: c_int = 7;
/// Between two looks for the message.
const NAP: Duration = Duration::from_micros(20);
/// The sender is awake this long before its deadline, seconds.
const AWAKE: f64 = 80e-6;

impl LinearBroadcast {
    /// On a duplicate of `comm`, with the cost of a message in seconds. Collective.
    pub fn new(comm: &Comm, timer: Timer, cost: f64) -> Result<LinearBroadcast> {
        Ok(LinearBroadcast { comm: comm.dup()?, timer, cost, number: 0, buffer: [0] })
    }

    /// When rank `rank` of `ranks` is back, seconds.
    pub fn expected(&self, rank: usize, ranks: usize) -> f64 {
        self.cost * if rank == 0 { ranks.saturating_sub(1) } else { rank } as f64
    }
}

impl Case for LinearBroadcast {
    fn prepare(&mut self, call: Call) -> Result<()> {
        self.number = call.number;
        self.buffer = [if self.comm.rank() == 0 { call.number } else { !call.number }];
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        if self.comm.rank() > 0 {
            while !self.comm.arrived(0, TAG)? {
                std::thread::sleep(NAP);
            }
            return self.comm.recv(&mut self.buffer, 0, TAG);
        }
        let start = self.timer.now();
        for peer in 1..self.comm.size() {
            let deadline = start + peer as f64 * self.cost;
            std::thread::sleep(Duration::from_secs_f64((deadline - AWAKE - self.timer.now()).max(0.0)));
            until(&self.timer, deadline, Wait::Spin);
            self.comm.send(&self.buffer, peer, TAG)?;
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        if self.buffer[0] == self.number {
            return Ok(());
        }
        let (rank, want, have) = (self.comm.rank(), self.number, self.buffer[0]);
        Err(Error::Wrong(format!("linear broadcast, call {want}: rank {rank} has {have:#x} instead of {want:#x}")))
    }

    fn memory(&self) -> usize {
        size_of_val(&self.buffer)
    }
}
