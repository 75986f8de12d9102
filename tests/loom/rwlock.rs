// SPDX-License-Identifier: BSD-3-Clause
//! The models of the reader–writer locks: a reader and a writer of two words, and one of them that dies at
//! any step. The kernel's mark on the mutexes of a thread that ended is `die`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use coll_rust::sync::rwlock::{Error, Kind, Lock, Mcs, MutexSignal, Record, Step, Steps, TwoMutexes, die};
use coll_rust::sync::segment::Segment;

/// What the lock guards. A torn record is left alone.
struct Guarded<K>(Lock<K>, UnsafeCell<[u32; 2]>);

// SAFETY: loom checks every access to the cell.
unsafe impl<K> Send for Guarded<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Guarded<K> {}

impl<K: Kind> Guarded<K> {
    fn new() -> Arc<Guarded<K>> {
        let segment = std::sync::Arc::new(Segment::anonymous(Lock::<K>::words(1)).unwrap());
        Arc::new(Guarded(Lock::create(segment, 0, 1).unwrap(), UnsafeCell::new([0, 0])))
    }

    fn look(&self) -> [u32; 2] {
        // SAFETY: the lock guards it, and loom checks that.
        self.1.with(|record| unsafe { *record })
    }

    fn add(&self) {
        // SAFETY: as above.
        self.1.with_mut(|record| unsafe { *record = (*record).map(|word| word + 1) });
    }
}

/// Ends at a step.
struct EndAt(Option<Step>);

impl Steps for EndAt {
    fn ends(&self, step: Step, _reader: usize) -> bool {
        self.0 == Some(step)
    }
}

/// Reads once; a thread that has ended at a step is dead.
fn reads<K: Kind>(guarded: &Guarded<K>, step: Option<Step>) {
    let mut slot = guarded.0.slot(0).unwrap();
    let seen = slot.read_by(&EndAt(step), |record| (record, guarded.look()));
    match seen {
        Ok((record, [a, b])) => assert!(record == Record::Torn || a == b),
        Err(error) => {
            assert_eq!(error, Error::Ended);
            die();
            std::mem::forget(slot);
        }
    }
}

/// The same for a writer.
fn writes<K: Kind>(guarded: &Guarded<K>, step: Option<Step>) {
    let written = guarded.0.write_by(&EndAt(step), |_| guarded.add());
    if let Err(error) = written {
        assert_eq!(error, Error::Ended);
        die();
    }
}

/// Some preemptions; every value that the memory model allows.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// A reader reads twice beside a writer that writes `writes` times; each may die at a step.
fn together<K: Kind + 'static>(reader: Option<Step>, writer: Option<Step>) {
    model(move || {
        let guarded = Guarded::<K>::new();
        let other = {
            let guarded = guarded.clone();
            thread::spawn(move || {
                if reader.is_none() {
                    reads(&guarded, None);
                }
                reads(&guarded, reader);
            })
        };
        writes(&guarded, writer);
        if reader.or(writer).is_none() {
            writes(&guarded, None);
        }
        other.join().unwrap();
        // Who comes later gets in.
        writes(&guarded, None);
        reads(&guarded, None);
    });
}

/// A reader that dies at each step.
fn a_reader_dies<K: Kind + 'static>() {
    Step::ALL.into_iter().for_each(|step| together::<K>(Some(step), None));
}

/// A writer that dies at each step.
fn a_writer_dies<K: Kind + 'static>() {
    Step::ALL.into_iter().for_each(|step| together::<K>(None, Some(step)));
}

#[test]
fn who_writes_2n_mutex_is_alone() {
    together::<TwoMutexes>(None, None);
}

#[test]
fn who_writes_n_mutex_signal_is_alone() {
    together::<MutexSignal>(None, None);
}

#[test]
fn who_writes_n_mcs_is_alone() {
    together::<Mcs>(None, None);
}

#[test]
fn the_dead_of_2n_mutex_keep_nobody_waiting() {
    a_reader_dies::<TwoMutexes>();
    a_writer_dies::<TwoMutexes>();
}

#[test]
fn the_dead_of_n_mutex_signal_keep_nobody_waiting() {
    a_reader_dies::<MutexSignal>();
    a_writer_dies::<MutexSignal>();
}

#[test]
fn the_dead_of_n_mcs_keep_nobody_waiting() {
    a_reader_dies::<Mcs>();
    a_writer_dies::<Mcs>();
}
