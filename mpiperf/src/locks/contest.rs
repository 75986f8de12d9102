// SPDX-License-Identifier: BSD-3-Clause
//! Readers that read without pause until the writer has done its writes.

use std::time::{Duration, Instant};

use coll_rust::sync::segment::{LINE, Segment};
use coll_rust::sync::shared::Ordering;

use super::guards::{Guard, memory};
use crate::error::{Error, Result};

/// What one run gave.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Mean time to take the write lock, in seconds.
    pub write: f64,
    /// Mean time from one read lock to the next, of all readers together, in seconds: one over their rate.
    pub read: f64,
}

/// How one run is made.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Readers.
    pub readers: usize,
    /// Writes until it ends, at least.
    pub writes: usize,
    /// How long it takes, at least: processes that take turns on a core do so every few milliseconds.
    pub least: Duration,
    /// Each reader is bound to a core of its own.
    pub bound: bool,
    /// Readers are threads, not processes.
    pub threads: bool,
}

/// Words that readers and the writer share: whether to begin (1) or to end (2); the record; and for each
/// reader a line with what it has read, in which 1 stands for "ready".
struct Board(std::sync::Arc<Segment>);

impl Board {
    fn state(&self) -> u64 {
        self.0.words()[0].load(Ordering::Acquire)
    }

    fn set(&self, state: u64) {
        self.0.words()[0].store(state, Ordering::Release);
    }

    fn look(&self) {
        std::hint::black_box(self.0.words()[LINE].load(Ordering::Relaxed));
    }

    fn change(&self) {
        let word = &self.0.words()[LINE];
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn read(&self, reader: usize) -> &coll_rust::sync::shared::SharedU64 {
        &self.0.words()[(2 + reader) * LINE]
    }

    /// What a reader does.
    fn reads<G: Guard>(&self, guard: &G, reader: usize, bound: bool) -> Result<()> {
        if bound {
            bind(reader);
        }
        let mut own = guard.reader(reader)?;
        let mut count = 1;
        self.read(reader).store(count, Ordering::Release);
        while self.state() == 0 {
            std::thread::yield_now();
        }
        while self.state() == 1 {
            G::read(&mut own, || self.look());
            count += 1;
            self.read(reader).store(count, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What the writer does, once all are ready.
    fn writes<G: Guard>(&self, guard: &G, setting: &Setting) -> Result<Run> {
        let begun = Instant::now();
        let readers = 0..setting.readers;
        while readers.clone().any(|reader| self.read(reader).load(Ordering::Acquire) == 0) {
            if begun.elapsed() > Duration::from_secs(20) {
                self.set(2);
                return Err(Error::Measure("a reader of the locks does not begin".into()));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        self.set(1);
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        let mut writes = 0;
        while writes < setting.writes || begun.elapsed() < setting.least {
            waited += guard.write(|| self.change())?;
            writes += 1;
        }
        let elapsed = begun.elapsed().as_secs_f64();
        let read: u64 = readers.map(|reader| self.read(reader).load(Ordering::Relaxed) - 1).sum();
        self.set(2);
        Ok(Run { write: waited.as_secs_f64() / writes as f64, read: elapsed / read.max(1) as f64 })
    }
}

/// Binds the calling thread to a core.
fn bind(core: usize) {
    // SAFETY: the set is ours.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// One run.
pub fn run<G: Guard>(guard: &G, setting: &Setting) -> Result<Run> {
    let board = Board(memory((2 + setting.readers) * LINE)?);
    if setting.threads { by_threads(guard, setting, &board) } else { by_processes(guard, setting, &board) }
}

fn by_threads<G: Guard>(guard: &G, setting: &Setting, board: &Board) -> Result<Run> {
    std::thread::scope(|scope| {
        let reads = |reader| move || board.reads(guard, reader, setting.bound);
        let readers: Vec<_> = (0..setting.readers).map(|reader| scope.spawn(reads(reader))).collect();
        let run = board.writes(guard, setting);
        board.set(2);
        for reader in readers {
            reader.join().map_err(|_| Error::Measure("a reader of the locks panicked".into()))??;
        }
        run
    })
}

fn by_processes<G: Guard>(guard: &G, setting: &Setting, board: &Board) -> Result<Run> {
    let mut children = Vec::new();
    for reader in 0..setting.readers {
        // SAFETY: the caller has one thread. The child ends without a return to it.
        match unsafe { libc::fork() } {
            -1 => {
                board.set(2);
                break;
            }
            0 => {
                // SAFETY: the child ends with its parent, and at the end of its reading.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::_exit(i32::from(board.reads(guard, reader, setting.bound).is_err()))
                }
            }
            child => children.push(child),
        }
    }
    let run = if children.len() == setting.readers {
        board.writes(guard, setting)
    } else {
        Err(Error::Measure(format!("fork: {}", std::io::Error::last_os_error())))
    };
    board.set(2);
    let mut good = true;
    for child in children {
        let mut status = 0;
        // SAFETY: our child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        good &= status == 0;
    }
    match run {
        Ok(_) if !good => Err(Error::Measure("a reader of the locks ended early".into())),
        run => run,
    }
}

#[cfg(test)]
mod tests {
    use super::super::guards::{Parking, Posix, ours};
    use super::*;
    use coll_rust::sync::rwlock::{Mcs, MutexSignal, TwoMutexes};

    #[test]
    fn every_lock_takes_part() {
        let processes = Setting { readers: 3, writes: 20, least: Duration::ZERO, bound: false, threads: false };
        let threads = Setting { threads: true, ..processes };
        let runs = [
            run(&ours::<TwoMutexes>(3).unwrap(), &processes),
            run(&ours::<MutexSignal>(3).unwrap(), &processes),
            run(&ours::<Mcs>(3).unwrap(), &processes),
            run(&Posix::new().unwrap(), &processes),
            run(&ours::<Mcs>(3).unwrap(), &threads),
            run(&Parking::default(), &threads),
        ];
        for found in runs {
            let found = found.unwrap();
            assert!(found.write > 0.0 && found.read > 0.0, "{found:?}");
        }
    }
}
