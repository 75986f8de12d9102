// SPDX-License-Identifier: BSD-3-Clause
//! Waiting for a moment. Nothing here touches the MPI library.

use std::time::Duration;

use super::Wait;
use crate::clock::Timer;
use crate::node::Counts;

/// How long before the moment a sleeping rank wants to be awake, seconds: the system wakes up to some 60 µs
/// late, under a hypervisor sometimes more than 100.
const AWAKE: f64 = 250e-6;
/// Less is not worth a sleep, seconds.
const WORTH: f64 = 20e-6;
/// How long a rank that has to wait gives its core away again and again before it sleeps, seconds: others may
/// still be in the call before, and to go to sleep keeps the core busy for longer than to give it away (under
/// a hypervisor, 10 to 18 µs instead of 2).
const LINGER: f64 = 150e-6;
/// How long it sleeps while it waits for the others of its node to be through.
const NAP: Duration = Duration::from_micros(200);
/// A spinning rank sleeps, too, where it would spin longer than this, seconds: who burns a whole time slice
/// before the moment is likely to lose the core at the moment, if anything else wants it.
const PATIENCE: f64 = 1e-3;
/// Before the moment it spins at least this long, seconds: the core is at speed again.
const WARM: f64 = 400e-6;

/// Lets others have the core where ranks share cores: of a rank whose call is over and timed. What it does
/// next would count as a part of theirs, so it gives the core away until all ranks of the node are through,
/// or until the local time `latest`; without `counts`, once. As whoever waits, it naps after a while: a core
/// that is idle can take over what waits elsewhere.
#[inline]
pub fn give_way(timer: &Timer, counts: Option<&Counts>, latest: f64, how: Wait) {
    if how != Wait::Sleep {
        return;
    }
    counts.inspect(|counts| counts.advance());
    let begun = timer.now();
    let mut now = begun;
    loop {
        match now - begun > LINGER {
            true => std::thread::sleep(NAP.min(Duration::from_secs_f64((latest - now).max(0.0)))),
            false => std::thread::yield_now(),
        }
        now = timer.now();
        if counts.is_none_or(Counts::all_here) || now >= latest {
            return;
        }
    }
}

/// Waits until the local time `moment` (see [`Timer::now`]); the reading that ended the wait. Spinning reads
/// the clock without `pause`: under a hypervisor many of them in a row cost the processor.
#[inline]
pub fn until(timer: &Timer, moment: f64, how: Wait) -> f64 {
    let mut begun = None;
    loop {
        let now = timer.now();
        if now >= moment {
            return now;
        }
        let left = moment - now;
        match how {
            Wait::Spin if left > PATIENCE => std::thread::sleep(Duration::from_secs_f64(left - WARM)),
            Wait::Spin => {}
            Wait::Sleep if left > AWAKE + WORTH && now - *begun.get_or_insert(now) > LINGER => {
                std::thread::sleep(Duration::from_secs_f64(left - AWAKE))
            }
            Wait::Sleep => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Source;

    #[test]
    fn both_ways_end_in_time() {
        let timer = Timer::new(Source::Monotonic).unwrap();
        for how in [Wait::Spin, Wait::Sleep] {
            for wait in [-1.0, 0.0, 5e-5, 2e-3] {
                let moment = timer.now() + wait;
                let reading = until(&timer, moment, how);
                assert!(reading >= moment && reading <= timer.now(), "{how:?} {wait}");
            }
        }
    }
}
