// SPDX-License-Identifier: BSD-3-Clause
//! Threads on cores of their own that do something at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Where the threads of a team meet.
pub struct Meeting {
    size: usize,
    came: AtomicUsize,
}

impl Meeting {
    /// Waits until all are here, without giving the core away.
    pub fn meet(&self) {
        let mine = self.came.fetch_add(1, Ordering::AcqRel);
        let all = (mine / self.size + 1) * self.size;
        let mut looks = 0_u32;
        while self.came.load(Ordering::Acquire) < all {
            looks = looks.wrapping_add(1);
            match looks.is_multiple_of(1 << 16) {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
    }
}

/// `work` on each of these processors at the same time, which is told its place among them. What each
/// returns.
///
/// # Errors
/// A processor that the process may not use.
pub fn on<R: Send>(processors: &[usize], work: impl Fn(usize, &Meeting) -> R + Sync) -> Result<Vec<R>> {
    let meeting = Meeting { size: processors.len(), came: AtomicUsize::new(0) };
    let (meeting, work) = (&meeting, &work);
    std::thread::scope(|scope| {
        let body = |(place, &processor): (usize, &usize)| {
            scope.spawn(move || {
                let bound = bind(&[processor]);
                // Whoever fails meets the others once, as they do: then all see it.
                meeting.meet();
                bound.then(|| work(place, meeting))
            })
        };
        let threads: Vec<_> = processors.iter().enumerate().map(body).collect();
        let failed = || Error::Measure("a core that was there is not to be had any more: try again".to_owned());
        threads.into_iter().map(|thread| thread.join().ok().flatten().ok_or_else(failed)).collect()
    })
}

/// Lets the calling thread run on these processors only; whether the system does so.
pub fn bind(processors: &[usize]) -> bool {
    // SAFETY: the set is ours, and numbers are below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        processors.iter().filter(|&&p| p < libc::CPU_SETSIZE as usize).for_each(|&p| libc::CPU_SET(p, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    }
}

/// The processors that this process may use, also those that its launcher did not bind it to.
pub fn usable() -> Vec<usize> {
    let bound = crate::report::about::affinity();
    // The system takes away those that the control group forbids.
    bind(&(0..libc::CPU_SETSIZE as usize).collect::<Vec<_>>());
    let all = crate::report::about::affinity();
    bind(&bound);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_meet_as_often_as_they_say() {
        let here = usable()[0];
        let met = on(&[here, here, here], |place, meeting| {
            for _ in 0..3 {
                meeting.meet();
            }
            place
        });
        assert_eq!(met.unwrap(), [0, 1, 2]);
    }

    #[test]
    fn a_processor_that_is_not_there_is_told() {
        assert!(on(&[1 << 20], |_, _| ()).is_err());
    }
}
