// SPDX-License-Identifier: BSD-3-Clause
//! Readers and writers that are killed.

use super::family::{Guarded, child, kill_myself, soon};
use coll_rust::sync::rwlock::{Kind, Mcs, MutexSignal, Record, Step, Steps, TwoMutexes};
use coll_rust::sync::shared::Ordering;

const READERS: usize = 5;

/// Kills its process at a step.
struct KillAt(Step, usize);

impl Steps for KillAt {
    fn ends(&self, step: Step, reader: usize) -> bool {
        if (step, reader) == (self.0, self.1) {
            kill_myself();
        }
        false
    }
}

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Reader,
    Writer,
}

/// Forks a process that takes a slot and is killed at a step; whether it came to that step.
fn kill<K: Kind>(guarded: &Guarded<K>, victim: Victim, step: Step, reader: usize) -> bool {
    let ended = child(|| match victim {
        Victim::Reader => {
            let Ok(mut slot) = guarded.lock.slot(READERS - 1) else { return false };
            let steps = KillAt(step, slot.number());
            slot.read_by(&steps, |_| guarded.value()).is_ok()
        }
        Victim::Writer => {
            let inside = matches!(step, Step::Called | Step::Inside | Step::Leaving);
            let steps = KillAt(step, if inside { 0 } else { reader });
            let write = |_| guarded.set(guarded.value().unwrap_or(1 << 32) + 1);
            guarded.lock.write_by(&steps, write).is_ok()
        }
    });
    match ended.wait() {
        code if code == -libc::SIGKILL => true,
        0 => false,
        code => panic!("{}: the victim ended with {code}", K::NAME),
    }
}

/// Each step of both, while two readers and a writer go on; these all come on afterwards.
fn others_go_on<K: Kind>(steps: usize) {
    let guarded = Guarded::<K>::new(READERS);
    let others: Vec<_> =
        (1..=3).map(|me| child(|| if me < 3 { guarded.reads(me) } else { guarded.writes(me) })).collect();
    let go_on = |what: &str| {
        let before = [1, 2, 3].map(|me| guarded.count(me));
        soon(what, || (1..=3).all(|me| guarded.count(me) > before[me - 1] + 2));
    };
    go_on("the others begin");
    let mut came = 0;
    for step in Step::ALL {
        came += usize::from(kill(&guarded, Victim::Reader, step, 0));
        go_on(&format!("{}: a reader dies: {step:?}", K::NAME));
        for reader in [0, 1, READERS - 1] {
            came += usize::from(kill(&guarded, Victim::Writer, step, reader));
            go_on(&format!("{}: a writer dies: {step:?} {reader}", K::NAME));
        }
    }
    guarded.counter(0).store(1, Ordering::Relaxed);
    others.into_iter().for_each(|child| assert_eq!(child.wait(), 0, "{}", K::NAME));
    assert_eq!(came, steps, "{}: steps at which a process died", K::NAME);
}

#[test]
fn others_go_on_2n_mutex() {
    others_go_on::<TwoMutexes>(6 + 7 * 3);
}

#[test]
fn others_go_on_n_mutex_signal() {
    others_go_on::<MutexSignal>(6 + 7 * 3);
}

#[test]
fn others_go_on_n_mcs() {
    others_go_on::<Mcs>(7 + 7 * 3);
}

/// With nobody else there: who comes next is told what the dead one left, and the one after that finds it
/// whole.
fn the_next_is_told<K: Kind>() {
    let guarded = Guarded::<K>::new(READERS);
    for step in Step::ALL {
        for (victim, reader) in [(Victim::Reader, 0), (Victim::Writer, 0), (Victim::Writer, READERS - 1)] {
            for reads_first in [true, false] {
                kill(&guarded, victim, step, reader);
                let torn = matches!((victim, step), (Victim::Writer, Step::Inside | Step::Leaving));
                let expected = if torn { Record::Torn } else { Record::Whole };
                let case = format!("{}: {victim:?} {step:?} {reader}", K::NAME);
                let mut slot = guarded.lock.slot(READERS - 1).unwrap();
                assert_eq!(slot.number(), READERS - 1, "{case}: the slot of the dead");
                if reads_first {
                    assert_eq!(slot.read(|record| record), Ok(expected), "{case}");
                }
                assert_eq!(guarded.lock.write(|record| record), Ok(expected), "{case}");
                assert_eq!(slot.read(|record| record), Ok(Record::Whole), "{case}");
            }
        }
    }
}

#[test]
fn the_next_one_is_told() {
    the_next_is_told::<TwoMutexes>();
    the_next_is_told::<MutexSignal>();
    the_next_is_told::<Mcs>();
}

/// Readers and writers that are killed at any moment and replaced: nobody sees a mixture that it was not told
/// of, and at the end everybody gets in.
fn killed_at_any_moment<K: Kind>(kills: u64) {
    let guarded = Guarded::<K>::new(READERS);
    let spawn = |me: usize| child(|| if me % 2 == 1 { guarded.reads(me) } else { guarded.writes(me) });
    let mut others: Vec<_> = (1..=4).map(spawn).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(std::time::Duration::from_micros(random >> 33 & 4095));
        let who = (random >> 60) as usize % 4;
        others[who].kill();
        let dead = std::mem::replace(&mut others[who], spawn(who + 1));
        assert_eq!(dead.wait(), -libc::SIGKILL, "{}", K::NAME);
    }
    let before = [1, 2, 3, 4].map(|me| guarded.count(me));
    soon(K::NAME, || (1..=4).all(|me| guarded.count(me) > before[me - 1]));
    guarded.counter(0).store(1, Ordering::Relaxed);
    others.into_iter().for_each(|child| assert_eq!(child.wait(), 0, "{}", K::NAME));
}

#[test]
fn anybody_is_killed_at_any_moment() {
    killed_at_any_moment::<TwoMutexes>(60);
    killed_at_any_moment::<MutexSignal>(60);
    killed_at_any_moment::<Mcs>(60);
}
