// SPDX-License-Identifier: BSD-3-Clause
//! Reader–writer locks in memory that processes share, for what is read by all and seldom written.
//!
//! | kind | a reader writes | the writer |
//! | --- | --- | --- |
//! | [`TwoMutexes`] | its two mutexes | takes all of the first, then all of the second |
//! | [`MutexSignal`] | its mutex, and reads its signal | raises all signals, then takes all mutexes |
//! | [`Mcs`] | its queue | enters all queues, then awaits its turn in each |
//!
//! These are the locks 2N-mutex, N(mutex+signal) and N-MCS of K. Pavsky et al., "Algorithms for optimising
//! the execution of parallel programs on high-performance systems" (Avtometriya 57(5), 2021); the first is
//! that of A. Polyakov et al. (EuroMPI 2019). What a reader writes lies in lines that only the writer
//! touches beside it, so readers do not slow each other down.
//!
//! **Who dies.** A thread that reads has a [`Slot`]: a robust mutex, locked for as long as the thread has
//! the slot. A thread that writes has locked the one mutex of writers. Who waits for another now and then
//! tries to lock the other's: that works only if the other is gone, and then who has locked it does in the
//! place of the dead what that one owed. So a reader or writer that is killed at any step keeps nobody
//! waiting. A writer that dies, or panics, between its first and last store leaves the record torn: readers
//! and the next writer are told ([`Record::Torn`]), until a writer has ended. (The mutexes of the first two
//! kinds are robust themselves.)
//!
//! **Order of memory.** With all kinds: *a writer's stores are seen by all who get in after it, and what
//! readers have read is not what a later writer writes.* Each file says by which words. That a write was
//! begun ([`Area::unfinished`]) is stored and read only by who is inside, so the same words order it.
//!
//! Nothing is allocated to read or to write. A child that was forked shares the memory, but not the slots: it
//! must take its own. A thread that would wait for itself, as it writes while it reads, gets an error.

mod area;
mod mcs;
mod mutex_signal;
mod robust;
mod two_mutexes;
mod waiting;

pub use area::Area;
pub use mcs::Mcs;
pub use mutex_signal::MutexSignal;
#[cfg(loom)]
pub use robust::die;
pub use robust::{Left, Robust};
pub use two_mutexes::TwoMutexes;

use super::segment::Segment;
use super::shared::Ordering;
use super::wait;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::compiler_fence;

/// The word of a line behind a mutex.
const BEHIND: usize = 6;

/// The most slots of a lock. A writer holds up to two mutexes of each; the kernel marks 2048 of a thread that
/// ends, and some are the program's own.
pub const MOST_READERS: usize = 768;

/// Why a lock cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no lock of this kind at this place, or no room for one.
    Layout,
    /// All slots are taken.
    Full,
    /// The C library refused; its error number.
    System(i32),
    /// Ended at a step, as [`Steps`] said.
    Ended,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Layout => f.write_str("there is no lock of this kind in the shared memory"),
            Error::Full => f.write_str("all slots of the lock are taken"),
            Error::System(code) => write!(f, "a mutex of the lock: {}", std::io::Error::from_raw_os_error(*code)),
            Error::Ended => f.write_str("ended at a step, as was asked for"),
        }
    }
}

impl std::error::Error for Error {}

/// How the last writer left what the lock guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// It ended.
    Whole,
    /// It died, or panicked, while it wrote.
    Torn,
}

/// The steps of reading and writing at which a test may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was written yet; a writer has the mutex of writers.
    Called,
    /// The signalling mutex of this reader is taken, its signal raised, or its queue entered.
    Signalled,
    /// The main mutex of this reader is taken, or it is one's turn in its queue.
    Entered,
    /// About to read or write.
    Inside,
    /// Through with that.
    Leaving,
    /// What this reader's lines needed to leave is done by half.
    HalfLeft,
    /// It is done.
    Left,
}

impl Step {
    /// All, in the order of their coming.
    pub const ALL: [Step; 7] =
        [Step::Called, Step::Signalled, Step::Entered, Step::Inside, Step::Leaving, Step::HalfLeft, Step::Left];
}

/// What is asked at each step: for tests, which kill the process there, or let a modelled thread die.
pub trait Steps {
    /// Whether to end at this step, for this reader's lines, and leave all as it is.
    fn ends(&self, step: Step, reader: usize) -> bool;

    /// The same as a result.
    #[inline(always)]
    fn at(&self, step: Step, reader: usize) -> Result<(), Error> {
        if self.ends(step, reader) { Err(Error::Ended) } else { Ok(()) }
    }
}

/// Ends nowhere, and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Through;

impl Steps for Through {
    #[inline(always)]
    fn ends(&self, _step: Step, _reader: usize) -> bool {
        false
    }
}

/// A kind of lock: what the words of a reader mean. All of it is called by [`Slot`] alone, in this order.
pub trait Kind: Sized {
    /// Its published name.
    const NAME: &'static str;
    /// Its number in shared memory.
    const NUMBER: u64;
    /// Lines of each reader, beside that of its slot.
    const LINES: usize;

    /// Makes the lines of all readers what they are when nobody is inside; they are zero.
    fn set_up(area: &Area) -> Result<(), Error>;
    /// Waits until the reader is inside.
    fn enter(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error>;
    /// Leaves.
    fn leave(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error>;
    /// Waits until the writer is inside. The caller holds the mutex of writers. After an error of the system
    /// it is not inside, and keeps nobody waiting.
    fn enter_to_write(area: &Area, steps: &impl Steps) -> Result<(), Error>;
    /// Lets all in again.
    fn leave_written(area: &Area, steps: &impl Steps) -> Result<(), Error>;
    /// Does what a reader that is gone still owed. The caller has locked its slot. Twice is as good as once.
    fn mend_reader(area: &Area, reader: usize);
    /// The same for a writer; the caller has locked the mutex of writers.
    fn mend_writer(area: &Area);
}

/// A lock of one kind, as one process sees it.
pub struct Lock<K> {
    area: Area,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Lock<K> {
    fn clone(&self) -> Lock<K> {
        Lock { area: self.area.clone(), kind: PhantomData }
    }
}

impl<K: Kind> Lock<K> {
    /// Words that a lock with so many slots takes.
    pub fn words(readers: usize) -> usize {
        Area::words::<K>(readers)
    }

    /// Sets one up from word `at` on, in zeroed memory that nobody else looks at yet.
    pub fn create(segment: Arc<Segment>, at: usize, readers: usize) -> Result<Lock<K>, Error> {
        Ok(Lock { area: Area::create::<K>(segment, at, readers)?, kind: PhantomData })
    }

    /// The lock that somebody has set up from word `at` on.
    pub fn attach(segment: Arc<Segment>, at: usize) -> Result<Lock<K>, Error> {
        Ok(Lock { area: Area::attach::<K>(segment, at)?, kind: PhantomData })
    }

    /// A free slot for this thread; `wanted` if it is free.
    pub fn slot(&self, wanted: usize) -> Result<Slot<K>, Error> {
        let readers = self.area.readers().len();
        let order = (0..readers).map(|i| (wanted % readers + i) % readers);
        for reader in order {
            let Some(left) = self.take(reader)? else { continue };
            if left == Left::Died {
                K::mend_reader(&self.area, reader);
            }
            return Ok(Slot { area: self.area.clone(), reader, kind: PhantomData });
        }
        Err(Error::Full)
    }

    /// Takes a slot; `None`: a thread has it.
    fn take(&self, reader: usize) -> Result<Option<Left>, Error> {
        let (mutex, taken) = (self.area.slot(reader), self.area.taken(reader));
        loop {
            match mutex.try_lock() {
                Ok(Some(left)) => {
                    taken.store(1, Ordering::Relaxed);
                    return Ok(Some(left));
                }
                Ok(None) if taken.load(Ordering::Relaxed) != 0 => return Ok(None),
                // A writer looks whether the slot's last thread lives.
                Ok(None) => wait::yield_now(),
                // The thread has this one already.
                Err(Error::System(libc::EDEADLK)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what the lock guards: `write` is told how the last writer left it. It takes no slot.
    #[inline]
    pub fn write<R>(&self, write: impl FnOnce(Record) -> R) -> Result<R, Error> {
        self.write_by(&Through, write)
    }

    /// [`write`](Lock::write), step by step.
    #[inline]
    pub fn write_by<R>(&self, steps: &impl Steps, write: impl FnOnce(Record) -> R) -> Result<R, Error> {
        let area = &self.area;
        if area.writer().lock()? == Left::Died {
            K::mend_writer(area);
        }
        steps.at(Step::Called, 0)?;
        if let Err(error) = K::enter_to_write(area, steps) {
            if error != Error::Ended {
                area.writer().unlock();
            }
            return Err(error);
        }
        let record = record(area);
        area.unfinished().store(1, Ordering::Relaxed);
        // A process that is killed has done what comes before in its code, whatever the processor does.
        compiler_fence(Ordering::SeqCst);
        steps.at(Step::Inside, 0)?;
        let inside = Inside::<K, true>(area, 0, PhantomData);
        let result = write(record);
        std::mem::forget(inside);
        steps.at(Step::Leaving, 0)?;
        compiler_fence(Ordering::SeqCst);
        area.unfinished().store(0, Ordering::Relaxed);
        K::leave_written(area, steps)?;
        area.writer().unlock();
        Ok(result)
    }

    /// The memory that it lies in.
    pub fn segment(&self) -> &Arc<Segment> {
        self.area.segment()
    }
}

/// The right of one thread to read. It stays with the thread, whose end is its end; so the
/// memory stays mapped for as long as the thread may hold a mutex in it.
pub struct Slot<K: Kind> {
    area: Area,
    reader: usize,
    /// Neither `Send` nor `Sync`: mutexes belong to threads.
    kind: PhantomData<*const K>,
}

impl<K: Kind> Slot<K> {
    /// Its number.
    pub fn number(&self) -> usize {
        self.reader
    }

    /// Reads what the lock guards: `read` is told how the last writer left it.
    #[inline]
    pub fn read<R>(&mut self, read: impl FnOnce(Record) -> R) -> Result<R, Error> {
        self.read_by(&Through, read)
    }

    /// [`read`](Slot::read), step by step.
    #[inline]
    pub fn read_by<R>(&mut self, steps: &impl Steps, read: impl FnOnce(Record) -> R) -> Result<R, Error> {
        let (area, reader) = (&self.area, self.reader);
        steps.at(Step::Called, reader)?;
        K::enter(area, reader, steps)?;
        steps.at(Step::Inside, reader)?;
        let inside = Inside::<K, false>(area, reader, PhantomData);
        let result = read(record(area));
        std::mem::forget(inside);
        steps.at(Step::Leaving, reader)?;
        K::leave(area, reader, steps)?;
        Ok(result)
    }
}

/// The checker's order is stronger.
#[cfg(loom)]
fn compiler_fence(_order: Ordering) {}

/// How the last writer left the record; for who is inside.
#[inline(always)]
fn record(area: &Area) -> Record {
    match area.unfinished().load(Ordering::Relaxed) {
        0 => Record::Whole,
        _ => Record::Torn,
    }
}

/// Lets go where the caller's function panics; a record that it was writing counts as torn.
struct Inside<'a, K: Kind, const WRITES: bool>(&'a Area, usize, PhantomData<K>);

impl<K: Kind, const WRITES: bool> Drop for Inside<'_, K, WRITES> {
    fn drop(&mut self) {
        // There is nobody to tell of an error.
        if WRITES {
            let _ = K::leave_written(self.0, &Through);
            self.0.writer().unlock();
        } else {
            let _ = K::leave(self.0, self.1, &Through);
        }
    }
}

impl<K: Kind> Drop for Slot<K> {
    fn drop(&mut self) {
        self.area.taken(self.reader).store(0, Ordering::Relaxed);
        self.area.slot(self.reader).unlock();
    }
}
