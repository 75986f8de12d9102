// SPDX-License-Identifier: BSD-3-Clause
//! What the processes of the jobs do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coll_rust::shm::group::reading::{Way, Ways};
use coll_rust::shm::group::{Draft, Group};
use coll_rust::shm::memory::Memory;
use coll_rust::shm::memory::PAGE;
use coll_rust::shm::os::budget::Budget;
use coll_rust::shm::os::failure::Failure;
use coll_rust::shm::pool::Pool;
use coll_rust::shm::pool::locator::{HELLO_BYTES, Hello, Place};

use super::job::Job;
use super::{blocked, faults, life, load, placement, secret, zero_copy};

/// Where a process of a job begins; nothing when it is run as a test.
#[test]
fn play() {
    let Some((case, mut job)) = Job::of_this_process() else { return };
    match case.as_str() {
        "patterns" => life::patterns(&mut job),
        "late" => life::late(&mut job),
        "many" => life::many(&mut job),
        "budget" => life::budget(&mut job),
        "load" => load::load(&mut job),
        "signals" => load::signals(&mut job),
        "killed" => faults::killed(&mut job),
        "killed_early" => faults::killed_early(&mut job),
        "placement" => placement::placement(&mut job),
        "reused" => faults::reused(&mut job),
        "full" => faults::full(&mut job),
        "undumpable" => blocked::undumpable(&mut job),
        "user_spaces" => blocked::user_spaces(&mut job),
        "components" => zero_copy::components(&mut job),
        "unlike" => zero_copy::unlike(&mut job),
        "secret" => secret::divided(&mut job),
        "unread" => secret::unread(&mut job),
        _ => panic!("no case is called {case}"),
    }
}

/// The pool of a process of the job.
pub fn pool(job: &Job, bytes: u64) -> Result<Arc<Pool>, Failure> {
    let place = Place { local: job.rank as u32, locals: job.size as u32 };
    Pool::create(&job.backing, place, &Arc::new(Budget::new(bytes)))
}

/// How a handshake ended where the group did not come to be: the draft is given up, and this is what the
/// caller saw.
#[derive(Debug)]
pub struct NoGroup(pub Option<String>);

/// A group of some processes of the job, in this order; all processes of the job call it. `Ok(None)`: the
/// caller is not in it.
pub fn group(job: &mut Job, pool: Option<&Arc<Pool>>, ranks: &[usize]) -> Result<Option<Group>, NoGroup> {
    group_by(job, pool, ranks, Ways::CMA)
}

/// The same, by these ways of reading private memory; their component is one of [`super::component`].
pub fn group_by(
    job: &mut Job,
    pool: Option<&Arc<Pool>>,
    ranks: &[usize],
    ways: Ways,
) -> Result<Option<Group>, NoGroup> {
    let mine = ranks.iter().position(|&rank| rank == job.rank);
    let mut failure = None;
    let mut draft: Option<Draft> = None;
    if let (Some(pool), Some(_)) = (pool, mine) {
        draft = pool.prepare(ways).map_err(|refused| failure = Some(refused.to_string())).ok();
    }
    let hello = draft.as_ref().map_or(Hello::UNABLE, Draft::hello);
    let hellos = job.all::<HELLO_BYTES>(hello);
    let hellos: Vec<_> = ranks.iter().map(|&rank| hellos[rank]).collect();
    let mut attached = mine.is_none();
    let (mut cma, mut smsc) = (true, true);
    let pids = job.all(std::process::id().to_le_bytes());
    if let (Some(draft), Some(me)) = (&mut draft, mine) {
        match draft.attach(me, &hellos) {
            Ok(()) => attached = true,
            Err(refused) => failure = Some(refused.to_string()),
        }
        cma = attached && draft.probe_cma().is_ok();
        let endpoint = |member: usize| super::component::endpoint(ways, u32::from_le_bytes(pids[ranks[member]]));
        smsc = attached && draft.probe_smsc(endpoint).is_ok();
    }
    let (attached, cma, smsc) = (job.agree(attached), job.agree(cma), job.agree(smsc));
    let way = Way::choose(cma, smsc, ways.smsc.is_some_and(|component| component.maps()));
    match draft {
        Some(draft) if attached => Ok(Some(draft.confirm(way).unwrap())),
        None if attached => Ok(None),
        Some(draft) => {
            draft.give_up();
            Err(NoGroup(failure))
        }
        None => Err(NoGroup(failure)),
    }
}

/// A byte that is different at each place of each lease.
pub fn byte(stamp: u64, at: usize) -> u8 {
    (stamp.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).wrapping_add(at as u64 * 31 + at as u64 / PAGE as u64) as u8
}

/// Fills memory by `stamp`.
pub fn fill(at: *mut u8, bytes: usize, stamp: u64) {
    // SAFETY: a lease of the caller, of so many bytes.
    (0..bytes).for_each(|i| unsafe { at.add(i).write_volatile(byte(stamp, i)) });
}

/// Whether memory is as `stamp` has filled it.
pub fn filled(at: *const u8, bytes: usize, stamp: u64) -> bool {
    // SAFETY: a view or a lease of so many bytes.
    (0..bytes).all(|i| unsafe { at.add(i).read_volatile() } == byte(stamp, i))
}

/// Whether memory is zero.
pub fn zero(at: *const u8, bytes: usize) -> bool {
    // SAFETY: a view or a lease of so many bytes.
    (0..bytes).all(|i| unsafe { at.add(i).read_volatile() } == 0)
}

/// Waits until something holds that must come to be.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: not after 10 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The process is in the group.
pub fn member(group: Result<Option<Group>, NoGroup>) -> Group {
    group.unwrap().unwrap()
}

/// Control blocks of all members are zero and their own.
pub fn check_controls(job: &mut Job, group: &Group, stamp: u64) {
    assert!(zero(group.control(group.me()), PAGE));
    job.barrier();
    fill(group.control(group.me()), PAGE, stamp + group.me() as u64);
    job.barrier();
    for member in 0..group.size() {
        assert!(filled(group.control(member), PAGE, stamp + member as u64), "control block of {member}");
    }
}
