//! Waiting for a moment. Nothing here touches the MPI library.

use std::time::Duration;

use super::Wait;
use crate::clock::Timer;

/// How long before the moment a sleeping rank wants to be awake, seconds: the system wakes up to some 60 µs late.
const AWAKE: f64 = 100e-6;
/// Less is not worth a sleep, seconds.
const WORTH: f64 = 20e-6;

/// Waits until the local time `moment` (see [`Timer::now`]). Spinning reads the clock without `pause`: under a hypervisor many of them
/// in a row cost the processor.
#[inline]
pub fn until(timer: &Timer, moment: f64, how: Wait) {
    match how {
        Wait::Spin => while timer.now() < moment {},
        Wait::Sleep => loop {
            let left = moment - timer.now();
            if left <= 0.0 {
                return;
            }
            if left > AWAKE + WORTH {
                std::thread::sleep(Duration::from_secs_f64(left - AWAKE));
            } else {
                std::thread::yield_now();
            }
        },
    }
}
