// SPDX-License-Identifier: BSD-3-Clause
//! Forked processes, and the record that they share.

use coll_rust::sync::rwlock::{Kind, Lock, Record};
use coll_rust::sync::segment::Segment;
use coll_rust::sync::shared::{Ordering, SharedU64};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Words of the record.
pub const RECORD: usize = 512;
/// Counters beside it: what each process has done.
pub const COUNTERS: usize = 64;

/// A lock with its record.
pub struct Guarded<K> {
    pub lock: Lock<K>,
    record: usize,
}

impl<K: Kind> Guarded<K> {
    pub fn new(readers: usize) -> Guarded<K> {
        let record = Lock::<K>::words(readers);
        let segment = Arc::new(Segment::anonymous(record + RECORD + COUNTERS * 8).unwrap());
        Guarded { lock: Lock::create(segment, 0, readers).unwrap(), record }
    }

    pub fn counter(&self, number: usize) -> &SharedU64 {
        &self.lock.segment().words()[self.record + RECORD + number * 8]
    }

    pub fn count(&self, number: usize) -> u64 {
        self.counter(number).load(Ordering::Relaxed)
    }

    /// Its one value, if it is one.
    pub fn value(&self) -> Option<u64> {
        let words = &self.lock.segment().words()[self.record..self.record + RECORD];
        let first = words[0].load(Ordering::Relaxed);
        words.iter().all(|word| word.load(Ordering::Relaxed) == first).then_some(first)
    }

    /// Writes it word by word, from both ends.
    pub fn set(&self, value: u64) {
        let words = &self.lock.segment().words()[self.record..self.record + RECORD];
        for i in 0..RECORD / 2 {
            words[i].store(value, Ordering::Relaxed);
            words[RECORD - 1 - i].store(value, Ordering::Relaxed);
        }
    }

    /// Reads until counter 0 says to stop: whether all that was seen was one value, or known to be torn.
    pub fn reads(&self, counter: usize) -> bool {
        let Ok(mut slot) = self.lock.slot(counter) else { return false };
        while self.count(0) == 0 {
            let fine = slot.read(|record| record == Record::Torn || self.value().is_some());
            if fine != Ok(true) {
                return false;
            }
            self.counter(counter).fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// The same for a writer: it finds its own or another's last value.
    pub fn writes(&self, counter: usize) -> bool {
        while self.count(0) == 0 {
            let fine = self.lock.write(|record| {
                let found = self.value();
                self.set(found.unwrap_or(1 << 32) + 1);
                record == Record::Torn || found.is_some()
            });
            if fine != Ok(true) {
                return false;
            }
            self.counter(counter).fetch_add(1, Ordering::Relaxed);
        }
        true
    }
}

/// A forked process.
pub struct Child(libc::pid_t);

/// Forks a process that does `work` and ends with 0 if that is true. It does not return to the test's
/// harness, whose threads it does not have.
pub fn child(work: impl FnOnce() -> bool) -> Child {
    // SAFETY: the child only uses what does not depend on other threads, and ends at once.
    unsafe {
        match libc::fork() {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::_exit(i32::from(!work()))
            }
            process => Child(process),
        }
    }
}

/// Ends the calling process at once.
pub fn kill_myself() {
    // SAFETY: a signal to the caller.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

impl Child {
    /// How it ended: its code, or the signal below 0. It is killed when it takes longer than 20 s.
    pub fn wait(self) -> i32 {
        let end = Instant::now() + Duration::from_secs(20);
        let mut status = 0;
        loop {
            // SAFETY: our child, which nobody else waits for.
            match unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } {
                0 if Instant::now() > end => self.kill(),
                0 => std::thread::sleep(Duration::from_micros(200)),
                _ if libc::WIFSIGNALED(status) => return -libc::WTERMSIG(status),
                _ => return libc::WEXITSTATUS(status),
            }
        }
    }

    pub fn kill(&self) {
        // SAFETY: a signal to our child.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

/// Waits until it is so; a test fails that waits for long.
pub fn soon(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
