// SPDX-License-Identifier: BSD-3-Clause
//! Readers and writers that all live.

use super::family::{Guarded, child, soon};
use coll_rust::sync::rwlock::{Error, Kind, Lock, Mcs, MutexSignal, Record, TwoMutexes};
use coll_rust::sync::segment::Segment;
use coll_rust::sync::shared::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Four readers that never pause, and two writers: nobody sees a mixture, and everybody gets in.
fn nobody_sees_a_mixture<K: Kind>() {
    let guarded = Guarded::<K>::new(8);
    let children: Vec<_> =
        (1..=6).map(|me| child(|| if me <= 4 { guarded.reads(me) } else { guarded.writes(me) })).collect();
    soon("a writer or a reader does not get in", || (1..=6).all(|me| guarded.count(me) >= 300));
    guarded.counter(0).store(1, Ordering::Relaxed);
    children.into_iter().for_each(|child| assert_eq!(child.wait(), 0, "{}", K::NAME));
    let written = guarded.count(5) + guarded.count(6);
    assert_eq!(guarded.value(), Some(written), "{}: writers excluded each other", K::NAME);
}

#[test]
fn nobody_sees_a_mixture_2n_mutex() {
    nobody_sees_a_mixture::<TwoMutexes>();
}

#[test]
fn nobody_sees_a_mixture_n_mutex_signal() {
    nobody_sees_a_mixture::<MutexSignal>();
}

#[test]
fn nobody_sees_a_mixture_n_mcs() {
    nobody_sees_a_mixture::<Mcs>();
}

/// Threads are as good as processes, if each has its slot.
fn threads<K: Kind>() {
    let guarded = Guarded::<K>::new(4);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4)
            .map(|me| {
                let guarded = &guarded;
                scope.spawn(move || if me <= 2 { guarded.reads(me) } else { guarded.writes(me) })
            })
            .collect();
        soon("a thread does not get in", || (1..=4).all(|me| guarded.count(me) >= 100));
        guarded.counter(0).store(1, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| assert!(thread.join().unwrap(), "{}", K::NAME));
    });
}

#[test]
fn threads_are_as_good_as_processes() {
    threads::<TwoMutexes>();
    threads::<MutexSignal>();
    threads::<Mcs>();
}

/// Slots are given once each; a panic lets others in, and a record that was being written is torn.
fn slots_and_panics<K: Kind>() {
    let guarded = Guarded::<K>::new(2);
    let (mut one, two) = (guarded.lock.slot(1).unwrap(), guarded.lock.slot(1).unwrap());
    assert_eq!((one.number(), two.number()), (1, 0));
    assert_eq!(guarded.lock.slot(0).err(), Some(Error::Full));
    drop(two);
    let mut two = guarded.lock.slot(7).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| one.read(|_| panic!("in a reader")))).is_err());
    assert_eq!(guarded.lock.write(|record| record), Ok(Record::Whole));
    assert!(catch_unwind(AssertUnwindSafe(|| guarded.lock.write(|_| panic!("in a writer")))).is_err());
    assert_eq!(two.read(|record| record), Ok(Record::Torn));
    assert_eq!(guarded.lock.write(|record| record), Ok(Record::Torn));
    assert_eq!(one.read(|record| record), Ok(Record::Whole));
}

/// Whoever waits for itself gets an error, not a mixture; and keeps nobody waiting after that.
fn waits_for_itself<K: Kind>() {
    let guarded = Guarded::<K>::new(2);
    let mut one = guarded.lock.slot(0).unwrap();
    let inner = one.read(|_| guarded.lock.write(|_| ())).unwrap();
    assert_eq!(inner, Err(Error::System(libc::EDEADLK)), "{}", K::NAME);
    let inner = guarded.lock.write(|_| guarded.lock.write(|_| ())).unwrap();
    assert_eq!(inner, Err(Error::System(libc::EDEADLK)), "{}", K::NAME);
    for _ in 0..3 {
        assert_eq!(guarded.lock.write(|record| record), Ok(Record::Whole), "{}", K::NAME);
        assert_eq!(one.read(|record| record), Ok(Record::Whole), "{}", K::NAME);
    }
}

#[test]
fn slots_panics_and_selves() {
    slots_and_panics::<TwoMutexes>();
    slots_and_panics::<MutexSignal>();
    slots_and_panics::<Mcs>();
    waits_for_itself::<TwoMutexes>();
    waits_for_itself::<MutexSignal>();
    waits_for_itself::<Mcs>();
}

#[test]
fn what_is_no_lock_is_refused() {
    let words = Lock::<Mcs>::words(3);
    let segment = Arc::new(Segment::anonymous(words + 8).unwrap());
    assert_eq!(Lock::<Mcs>::attach(segment.clone(), 0).err(), Some(Error::Layout));
    for (at, readers) in [(0, 0), (4, 3), (16, 3), (0, 4), (usize::MAX, 1), (0, usize::MAX)] {
        assert_eq!(Lock::<Mcs>::create(segment.clone(), at, readers).err(), Some(Error::Layout), "{at}, {readers}");
    }
    Lock::<Mcs>::create(segment.clone(), 8, 3).unwrap();
    assert!(Lock::<Mcs>::attach(segment.clone(), 8).is_ok());
    assert_eq!(Lock::<TwoMutexes>::attach(segment.clone(), 8).err(), Some(Error::Layout));
    assert_eq!(Lock::<Mcs>::attach(segment.clone(), 16).err(), Some(Error::Layout));
    segment.words()[8].fetch_add(1, Ordering::Relaxed);
    assert_eq!(Lock::<Mcs>::attach(segment, 8).err(), Some(Error::Layout), "more readers than there are lines");
}
