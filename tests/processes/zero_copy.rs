// SPDX-License-Identifier: BSD-3-Clause
//! Operations that read other processes' memory by a component.

use std::any::Any;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use coll_rust::endpoint::{Blocks, Result, Span, Stream};
use coll_rust::pattern::neighborhood::Neighbors;
use coll_rust::shm::group::reading::{self, Way, Ways};
use coll_rust::shm::memory::Memory;
use coll_rust::shm::op::neighbor::Edges;
use coll_rust::shm::op::{self, Combine};
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::shm::protocol::turn::Turn;

use super::cases::{self, byte, group_by, member};
use super::component::{Fake, What};
use super::job::{Job, run};

const KINDS: [What; 2] = [What::Copies, What::Maps];

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
// SAFETY: as above.
unsafe impl Send for Rows {}

impl Blocks for Rows {
    fn len(&self, _: usize) -> usize {
        self.each
    }

    fn direct(&self, members: std::ops::Range<usize>) -> Option<Span> {
        let start = self.start.wrapping_add(members.start * self.each);
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        Some(unsafe { Span::new(start, members.len() * self.each, 1) })
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
    drive_to(future).unwrap()
}

/// The same of what may fail.
pub fn drive_to<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => return result,
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

/// Memory for an operation's data, with what it keeps until it is dropped.
pub struct Room {
    pub span: Span,
    _keep: Box<dyn Any>,
}

impl Room {
    /// At `span`, which is valid while `keep` is.
    pub fn new(span: Span, keep: impl Any) -> Room {
        Room { span, _keep: Box::new(keep) }
    }

    /// On the heap.
    pub fn heap(contents: &[u8]) -> Room {
        let mut keep = contents.to_vec();
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        Room::new(unsafe { Span::new(keep.as_mut_ptr(), keep.len(), 1) }, keep)
    }

    /// Whether these are its first bytes.
    pub fn holds(&self, contents: &[u8]) -> bool {
        let part = self.span.slice(0..contents.len());
        // SAFETY: the process' own memory, which nobody writes now.
        unsafe { std::slice::from_raw_parts(part.ptr(), part.len()) == contents }
    }

    fn rows(&self, each: usize) -> Rows {
        Rows { start: self.span.ptr(), each }
    }
}

/// Every operation that reads, all of whose data are read that can be; then without the component's help.
/// `room` makes the buffers.
pub fn operate(job: &mut Job, team: &Team, len: usize, room: impl Fn(&[u8]) -> Room) {
    let (me, size) = (team.me(), team.size());
    let flat = |rows: &dyn Fn(usize) -> Vec<u8>| (0..size).flat_map(rows).collect::<Vec<u8>>();
    let zeros = vec![0; size * len];
    for root in 0..size {
        let data = room(&if me == root { row(root, 7, len) } else { vec![0; len] });
        drive(op::bcast::bcast(turn(team), root, &Row(data.span), 1));
        assert!(data.holds(&row(root, 7, len)), "bcast");

        let (mine, all) = (room(&row(me, root, len)), room(&zeros));
        if me == root {
            drive(op::gather::receive(turn(team), Some(&Row(mine.span)), &all.rows(len), 1));
        } else {
            drive(op::gather::send(turn(team), root, &Row(mine.span), 1));
        }
        assert!(me != root || all.holds(&flat(&|of| row(of, root, len))), "gather");

        let all = room(&flat(&|to| row(root, to, len)));
        if me == root {
            drive(op::scatter::send(turn(team), &all.rows(len), Some(&Row(mine.span)), 1));
        } else {
            drive(op::scatter::receive(turn(team), root, &Row(mine.span), 1));
        }
        assert!(mine.holds(&row(root, me, len)), "scatter");
    }
    let everybody: Vec<usize> = (0..size).collect();
    let edges = Edges::new(me, size, &Neighbors::listed(me, size, &everybody, &everybody));
    let (mine, all) = (room(&row(me, 9, len)), room(&zeros));
    drive(op::allgather::allgather(turn(team), Some(&Row(mine.span)), &all.rows(len), 1));
    assert!(all.holds(&flat(&|of| row(of, 9, len))), "allgather");
    let all = room(&zeros);
    drive(op::neighbor::spread(turn(team), &edges, &Row(mine.span), &all.rows(len), 1));
    assert!(all.holds(&flat(&|of| row(of, 9, len))), "neighbor_allgather");

    let (out, all) = (room(&flat(&|to| row(me, to, len))), room(&zeros));
    drive(op::alltoall::alltoall(turn(team), Some(&out.rows(len)), &all.rows(len), 1));
    assert!(all.holds(&flat(&|of| row(of, me, len))), "alltoall");
    let all = room(&zeros);
    drive(op::neighbor::exchange(turn(team), &edges, &out.rows(len), &all.rows(len), 1));
    assert!(all.holds(&flat(&|of| row(of, me, len))), "neighbor_alltoall");

    let rows: Vec<_> = (0..size).map(|of| row(of, 9, len)).collect();
    let expected: Vec<u8> = (0..len).map(|i| rows.iter().fold(0, |sum, row| sum ^ row[i])).collect();
    let sum = room(&vec![0; len]);
    drive(op::allreduce::allreduce(turn(team), &Xor, mine.span, sum.span, 1));
    assert!(sum.holds(&expected), "allreduce");
    drive(op::allreduce::allreduce(turn(team), &Xor, mine.span, mine.span, 1));
    assert!(mine.holds(&expected), "allreduce in place");
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
            // Nobody ends before all are through: who has ended counts as dead.
            let team = Team::new(Box::new(group), Config::default());
            for len in [57, 5000, 100_000] {
                let before = read_so_far();
                operate(job, &team, len, Room::heap);
                assert_eq!(read_so_far() > before, expected == Way::Smsc, "{what:?}, {len} bytes");
            }
            if what == What::Maps && cma {
                // What cannot be mapped is read all the same.
                let before = read_so_far();
                fake.tired.store(true, Ordering::Relaxed);
                operate(job, &team, 5000, Room::heap);
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
    // Two members have a component, or none at all; the third one is the other way round.
    for (most, other) in [(Some(0), None), (None, Some(0)), (Some(1), None), (None, Some(1))] {
        let pool = cases::pool(job, 16 << 20).unwrap();
        let smsc = if job.rank == 1 { other } else { most };
        let ways = Ways { cma: false, smsc: smsc.map(|n: usize| fakes[n] as _) };
        let group = member(group_by(job, Some(&pool), &ranks, ways));
        assert_eq!((group.way(), group.zero_copy()), (Way::Nothing, false), "{most:?}, {other:?}");
        let team = Team::new(Box::new(group), Config::default());
        let before = read_so_far();
        operate(job, &team, 5000, Room::heap);
        assert_eq!(read_so_far(), before);
        job.barrier();
        drop(team);
        job.barrier();
        assert!(fakes.iter().all(|fake| fake.about.load(Ordering::Relaxed) == 0));
    }
}
