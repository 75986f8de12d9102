//! Operations that read other processes' memory by a component.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use coll_rust::endpoint::{Blocks, Result, Span, Stream};
use coll_rust::shm::memory::Memory;
use coll_rust::shm::op::{self, Combine};
use coll_rust::shm::reading::{self, Way, Ways};
use coll_rust::shm::team::{Config, Team};
use coll_rust::shm::turn::Turn;

use super::cases::{self, byte, group_by, member};
use super::component::{Fake, What};
use super::job::{Job, run};

const KINDS: [What; 3] = [What::Copies, What::Maps, What::CopiesByKey];

#[test]
fn components_of_all_kinds_serve() {
    run("components", 3, "memfd").well();
}

#[test]
fn members_with_unlike_components_do_without() {
    run("unlike", 3, "memfd").well();
}

/// A block for each member, one after the other.
pub struct Rows {
    pub start: *mut u8,
    pub each: usize,
}

// SAFETY: used by one thread at a time.
unsafe impl Sync for Rows {}

impl Blocks for Rows {
    fn len(&self, _: usize) -> usize {
        self.each
    }

    fn direct(&self, members: std::ops::Range<usize>) -> Option<Span> {
        let start = self.start.wrapping_add(members.start * self.each);
        Some(Span::new(start, members.len() * self.each, 1))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }
}

pub struct Row(pub Span);

impl Stream for Row {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn direct(&self) -> Option<Span> {
        Some(self.0)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }
}

struct Xor;

impl Combine for Xor {
    fn size(&self) -> usize {
        1
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        (0..count).for_each(|i| unsafe { *right.add(i) ^= *left.add(i) });
    }

    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        (0..count).for_each(|i| unsafe { *out.add(i) = *left.add(i) ^ *right.add(i) });
    }
}

/// Waits in between, so that others get the core.
pub fn drive<T>(future: impl Future<Output = Result<T>>) -> T {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => return result.unwrap(),
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

pub fn turn(team: &Team) -> Turn<'_> {
    drive(team.open(0, 0, true)).unwrap()
}

fn read_so_far() -> u64 {
    reading::counter(Way::Smsc).unwrap().load(Ordering::Relaxed)
}

/// Bytes of member `of` for member `to`.
pub fn row(of: usize, to: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| byte((8 * of + to) as u64 + 1, i)).collect()
}

/// Every operation that reads, all of whose data are read that can be; then without the component's help.
fn operate(job: &mut Job, team: &Team, len: usize) {
    let (me, size) = (team.me(), team.size());
    let span = |room: &mut Vec<u8>| Span::new(room.as_mut_ptr(), room.len(), 1);
    let flat = |rows: &dyn Fn(usize) -> Vec<u8>| (0..size).flat_map(rows).collect::<Vec<u8>>();
    for root in 0..size {
        let mut data = if me == root { row(root, 7, len) } else { vec![0; len] };
        drive(op::bcast::bcast(turn(team), root, &Row(span(&mut data)), 1));
        assert!(data == row(root, 7, len), "bcast");

        let (mut mine, mut all) = (row(me, root, len), vec![0; size * len]);
        let own = Row(span(&mut mine));
        if me == root {
            let all = Rows { start: all.as_mut_ptr(), each: len };
            drive(op::gather::receive(turn(team), Some(&own), &all, 1));
        } else {
            drive(op::gather::send(turn(team), root, &own, 1));
        }
        assert!(me != root || all == flat(&|of| row(of, root, len)), "gather");

        let mut all = flat(&|to| row(root, to, len));
        let own = Row(span(&mut mine));
        if me == root {
            drive(op::scatter::send(turn(team), &Rows { start: all.as_mut_ptr(), each: len }, Some(&own), 1));
        } else {
            drive(op::scatter::receive(turn(team), root, &own, 1));
        }
        assert!(mine == row(root, me, len), "scatter");
    }
    let (mut mine, mut all) = (row(me, 9, len), vec![0; size * len]);
    let into = Rows { start: all.as_mut_ptr(), each: len };
    drive(op::allgather::allgather(turn(team), Some(&Row(span(&mut mine))), &into, 1));
    assert!(all == flat(&|of| row(of, 9, len)), "allgather");

    let mut out = flat(&|to| row(me, to, len));
    drive(op::alltoall::alltoall(turn(team), Some(&Rows { start: out.as_mut_ptr(), each: len }), &into, 1));
    assert!(all == flat(&|of| row(of, me, len)), "alltoall");

    let mut sum = vec![0; len];
    drive(op::allreduce::allreduce(turn(team), &Xor, span(&mut mine), span(&mut sum), 1));
    let rows: Vec<_> = (0..size).map(|of| row(of, 9, len)).collect();
    assert!((0..len).all(|i| sum[i] == rows.iter().fold(0, |sum, row| sum ^ row[i])), "allreduce");
    job.barrier();
}

pub fn components(job: &mut Job) {
    let ranks: Vec<usize> = (0..job.size).collect();
    for what in KINDS {
        let fake = Fake::leaked(what);
        let pool = cases::pool(job, 64 << 20).unwrap();
        for cma in [false, true] {
            let ways = Ways { cma, smsc: Some(fake) };
            let group = member(group_by(job, Some(&pool), &ranks, ways));
            let expected = if cma && what != What::Maps { Way::Cma } else { Way::Smsc };
            assert_eq!(group.way(), expected, "{what:?}");
            assert_eq!(group.registers(), what == What::CopiesByKey && group.way() == Way::Smsc);
            // Nobody ends before all are through: who has ended counts as dead.
            let team = Team::new(Box::new(group), Config::default());
            for len in [57, 5000, 100_000] {
                let before = read_so_far();
                operate(job, &team, len);
                assert_eq!(read_so_far() > before, expected == Way::Smsc, "{what:?}, {len} bytes");
            }
            if what == What::Maps && cma {
                // What cannot be mapped is read all the same.
                let before = read_so_far();
                fake.tired.store(true, Ordering::Relaxed);
                operate(job, &team, 5000);
                fake.tired.store(false, Ordering::Relaxed);
                assert_eq!(read_so_far(), before);
            }
            job.barrier();
            drop(team);
            job.barrier();
        }
        assert_eq!(fake.about.load(Ordering::Relaxed), 0, "{what:?}: everything has been given back");
        assert_eq!(pool.usage().leased, 0);
    }
}

pub fn unlike(job: &mut Job) {
    let ranks: Vec<usize> = (0..job.size).collect();
    let fakes = KINDS.map(Fake::leaked);
    // Two members have a component that needs keys, or none at all; the third one another.
    for (most, other) in [(Some(2), Some(0)), (Some(0), Some(2)), (Some(1), None), (None, Some(1))] {
        let pool = cases::pool(job, 16 << 20).unwrap();
        let smsc = if job.rank == 1 { other } else { most };
        let ways = Ways { cma: false, smsc: smsc.map(|n: usize| fakes[n] as _) };
        let group = member(group_by(job, Some(&pool), &ranks, ways));
        assert_eq!((group.way(), group.zero_copy()), (Way::Nothing, false), "{most:?}, {other:?}");
        let team = Team::new(Box::new(group), Config::default());
        let before = read_so_far();
        operate(job, &team, 5000);
        assert_eq!(read_so_far(), before);
        job.barrier();
        drop(team);
        job.barrier();
        assert!(fakes.iter().all(|fake| fake.about.load(Ordering::Relaxed) == 0));
    }
}
