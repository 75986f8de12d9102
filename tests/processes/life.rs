// SPDX-License-Identifier: BSD-3-Clause
//! Pools and groups from their beginning to their end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use coll_rust::endpoint::Error;
use coll_rust::shm::group::reading::{Way, Ways};
use coll_rust::shm::group::{Draft, Group};
use coll_rust::shm::memory::PAGE;
use coll_rust::shm::memory::layout::Sleepers;
use coll_rust::shm::memory::{Contents, Memory, Page};
use coll_rust::shm::os::budget::Budget;
use coll_rust::shm::pool::Pool;
use coll_rust::shm::pool::backing::Backing;
use coll_rust::shm::pool::locator::{HELLO_BYTES, Locator, Place};
use coll_rust::shm::pool::peer::Peer;
use coll_rust::shm::protocol::team::{Config, Team};

use super::cases::{self, check_controls, fill, filled, group, member, zero};
use super::job::{Folder, Job, run};

const MIB: u64 = 1 << 20;

#[test]
fn all_see_what_each_writes() {
    run("patterns", 4, "memfd").well();
    let folder = Folder::new("patterns");
    run("patterns", 4, folder.name()).well();
    assert!(folder.files().is_empty());
}

pub fn patterns(job: &mut Job) {
    const BYTES: usize = 100_000;
    let pool = cases::pool(job, 64 * MIB).unwrap();
    let ranks: Vec<usize> = (0..job.size).rev().collect();
    let group = member(group(job, Some(&pool), &ranks));
    assert_eq!((group.me(), group.size()), (job.size - 1 - job.rank, job.size));
    job.barrier();
    if let Backing::Folder(folder) = &job.backing {
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "names are gone once all have confirmed");
    }
    check_controls(job, &group, 1);
    check_sleepers(job, &group);
    let (page, at) = group.lease(BYTES, Contents::Zeros).unwrap();
    assert!((at as usize).is_multiple_of(64) && zero(at, BYTES));
    fill(at, BYTES, 100 + group.me() as u64);
    let pages = job.all(page.to_le_bytes());
    for (&rank, other) in ranks.iter().zip(0..) {
        let page = Page::from_le_bytes(pages[rank]);
        assert!(filled(group.view(other, page, BYTES), BYTES, 100 + other as u64), "lease of {other}");
        assert!(!group.is_dead(other));
    }
    // Private memory, where the system allows it.
    let mut mine = vec![0; BYTES];
    fill(mine.as_mut_ptr(), BYTES, 200 + group.me() as u64);
    let addresses = job.all((mine.as_ptr() as u64).to_le_bytes());
    for (&rank, other) in ranks.iter().zip(0..).filter(|_| group.zero_copy()) {
        let mut copy = vec![0; BYTES];
        // SAFETY: `copy` is so long, and the others leave theirs unchanged until the next barrier.
        unsafe { group.fetch(other, u64::from_le_bytes(addresses[rank]), copy.as_mut_ptr(), BYTES) }.unwrap();
        assert!(filled(copy.as_ptr(), BYTES, 200 + other as u64));
    }
    job.barrier();
    drop(group);
    job.barrier();
    assert_eq!(pool.usage().leased, 0);
}

/// All members count in one word, which is 0 again when nobody is left.
fn check_sleepers(job: &mut Job, group: &Group) {
    // SAFETY: the group's memory says so; it is only accessed by this word.
    let count = unsafe { &(*group.sleepers().cast::<Sleepers>()).count };
    assert_eq!(count.load(Ordering::Relaxed), 0);
    job.barrier();
    count.fetch_add(1 << (8 * group.me()), Ordering::Relaxed);
    job.barrier();
    let all = (0..group.size()).fold(0, |all, member| all | 1 << (8 * member));
    assert_eq!(count.load(Ordering::Relaxed), all);
    job.barrier();
    count.fetch_sub(1 << (8 * group.me()), Ordering::Relaxed);
    job.barrier();
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

/// A process that comes when the names are gone finds the pools by their owners' descriptors, and maps each
/// once.
#[test]
fn a_late_member_attaches() {
    run("late", 3, "memfd").well();
    run("late", 3, Folder::new("late").name()).well();
}

pub fn late(job: &mut Job) {
    let pool = cases::pool(job, MIB).unwrap();
    let first = group(job, Some(&pool), &[0, 1]).unwrap();
    assert_eq!(first.is_some(), job.rank < 2);
    let all = member(group(job, Some(&pool), &[2, 0, 1]));
    check_controls(job, &all, 7);
    assert_eq!((pool.usage().peers, pool.usage().groups), (2, if job.rank < 2 { 2 } else { 1 }));
    let more: Vec<_> = (0..10).map(|_| member(group(job, Some(&pool), &[0, 1, 2]))).collect();
    assert_eq!(pool.usage().peers, 2, "each pool is mapped once");
    drop((first, all, more));
    job.barrier();
    assert_eq!((pool.usage().leased, pool.usage().groups), (0, 0));
}

#[test]
fn five_thousand_groups_come_and_go() {
    run("many", 2, "memfd").well();
}

pub fn many(job: &mut Job) {
    let pool = cases::pool(job, 64 * MIB).unwrap();
    let empty = pool.usage().held;
    // One at a time: the memory of one is enough.
    for _ in 0..50 {
        let groups = batch(job, &pool, 20);
        drop(groups);
        job.barrier();
    }
    let few = pool.usage().held;
    assert!(few <= empty + 2 * 20 * PAGE as u64, "{empty} bytes became {few}");
    // All at a time, and twice: the second time needs no more. The others' releases are taken up by the next
    // lease.
    let mut held = [0; 2];
    for held in &mut held {
        let groups: Vec<_> = (0..10).flat_map(|_| batch(job, &pool, 500)).collect();
        assert_eq!(pool.usage().groups, 5000);
        assert!(pool.usage().leased >= 5000 * PAGE as u64);
        *held = pool.usage().held;
        drop(groups);
        job.barrier();
        assert_eq!((pool.usage().leased, pool.usage().groups), (0, 0));
    }
    assert_eq!(held[0], held[1]);
    assert!(held[0] <= empty + 5001 * PAGE as u64);
}

/// Makes many groups by one message.
fn batch(job: &mut Job, pool: &Arc<Pool>, count: usize) -> Vec<Group> {
    let drafts: Vec<Draft> = (0..count).map(|_| pool.prepare(Ways::NONE).unwrap()).collect();
    let said = job.exchange(&drafts.iter().flat_map(Draft::hello).collect::<Vec<u8>>());
    let hello = |rank: usize, n: usize| -> [u8; HELLO_BYTES] {
        said[rank].as_ref().unwrap()[n * HELLO_BYTES..][..HELLO_BYTES].try_into().unwrap()
    };
    let attach = |(n, mut draft): (usize, Draft)| {
        draft.attach(job.rank, &(0..job.size).map(|rank| hello(rank, n)).collect::<Vec<_>>()).unwrap();
        assert!(draft.probe_cma().is_err(), "nobody wanted it");
        draft
    };
    let drafts: Vec<Draft> = drafts.into_iter().enumerate().map(attach).collect();
    job.barrier();
    drafts.into_iter().map(|draft| draft.confirm(Way::Nothing).unwrap()).collect()
}

#[test]
fn a_spent_budget_is_no_group_for_all() {
    run("budget", 3, "memfd").well();
    let folder = Folder::new("budget");
    run("budget", 3, folder.name()).well();
    assert!(folder.files().is_empty());
}

pub fn budget(job: &mut Job) {
    // Rank 1 has no memory left for a control block.
    let pool = cases::pool(job, 16 * PAGE as u64).unwrap();
    let first = member(group(job, Some(&pool), &[0, 1, 2]));
    assert!(first.lease(64 * PAGE, Contents::Zeros).is_none());
    assert!(pool.refusal().unwrap().contains("in a row"), "{:?}", pool.refusal());
    let mut leases = 0;
    while job.rank == 1 && first.lease(PAGE, Contents::Zeros).is_some() {
        leases += 1;
    }
    assert!(job.rank != 1 || (10..16).contains(&leases), "{leases}");
    let groups = pool.usage().groups;
    let reason = group(job, Some(&pool), &[0, 1, 2]).unwrap_err().0.unwrap();
    let expected = if job.rank == 1 { "in a row" } else { "member 1 of 3: it has no memory" };
    assert!(reason.contains(expected), "{reason}");
    assert_eq!(pool.usage().groups, groups, "a group given up leaves nothing");
    // The others' pools are not spent.
    drop(first);
    job.barrier();
    member(group(job, Some(&pool), &[0, 1, 2]));
    job.barrier();
    assert_eq!(pool.usage().leased, 0);
}

fn in_process(local: u32, locals: u32, bytes: u64) -> Arc<Pool> {
    Pool::create(&Backing::Memfd, Place { local, locals }, &Arc::new(Budget::new(bytes))).unwrap()
}

/// Two pools of one process are peers like any others.
fn pair(a: &Arc<Pool>, b: &Arc<Pool>) -> [Group; 2] {
    let mut drafts = [a.prepare(Ways::NONE).unwrap(), b.prepare(Ways::NONE).unwrap()];
    let hellos = [drafts[0].hello(), drafts[1].hello()];
    drafts.iter_mut().zip(0..).for_each(|(draft, me)| draft.attach(me, &hellos).unwrap());
    drafts.map(|draft| draft.confirm(Way::Nothing).unwrap())
}

#[test]
fn threads_share_a_pool() {
    let (a, b) = (in_process(0, 2, 8 * MIB), in_process(1, 2, 8 * MIB));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                for round in 0..200 {
                    let [left, right] = pair(a, b);
                    let bytes = PAGE * (1 + (round * 7 + thread as usize) % 5);
                    let (page, at) = left.lease(bytes, Contents::Zeros).unwrap();
                    assert!(zero(at, bytes) && zero(left.control(0), PAGE));
                    fill(at, bytes, thread);
                    fill(left.control(0), PAGE, thread);
                    drop(left);
                    // The owner has left; the page waits for the reader.
                    assert!(filled(right.view(0, page, bytes), bytes, thread));
                }
            });
        }
    });
    assert_eq!((a.usage().leased, b.usage().leased), (0, 0));
    assert_eq!((a.usage().peers, b.usage().peers), (1, 1));
}

#[test]
fn only_who_wants_zeros_pays_for_them() {
    let (a, b) = (in_process(0, 2, 8 * MIB), in_process(1, 2, 8 * MIB));
    let lease = |contents| {
        let [left, right] = pair(&a, &b);
        let (page, at) = left.lease(4 * PAGE, contents).unwrap();
        left.map(0, page, 4 * PAGE);
        right.map(0, page, 4 * PAGE);
        let (was_zero, was_filled) = (zero(at, 4 * PAGE), filled(right.view(0, page, 4 * PAGE), 4 * PAGE, 7));
        fill(at, 4 * PAGE, 7);
        (was_zero, was_filled)
    };
    assert_eq!(lease(Contents::Anything), (true, false), "new ones");
    assert_eq!(lease(Contents::Anything), (false, true));
    assert_eq!(lease(Contents::Zeros), (true, false));
}

#[test]
#[should_panic(expected = "outside the pool")]
fn nothing_outside_a_pool_is_mapped() {
    let (a, b) = (in_process(0, 2, MIB), in_process(1, 2, MIB));
    pair(&a, &b)[0].map(1, MIB as Page / PAGE as Page - 1, 2 * PAGE);
}

#[test]
fn a_forgotten_draft_keeps_its_page() {
    let (a, b) = (in_process(0, 2, MIB), in_process(1, 2, MIB));
    drop(a.prepare(Ways::NONE).unwrap());
    assert_eq!(a.usage().groups, 1);
    drop(pair(&a, &b));
    assert_eq!((a.usage().groups, a.usage().leased), (1, PAGE as u64));
    a.prepare(Ways::NONE).unwrap().give_up();
    assert_eq!(a.usage().groups, 1);
}

#[test]
fn a_forgotten_draft_fails_those_that_have_confirmed() {
    let (a, b) = (in_process(0, 2, MIB), in_process(1, 2, MIB));
    let mut drafts = [a.prepare(Ways::NONE).unwrap(), b.prepare(Ways::NONE).unwrap()];
    let hellos = [drafts[0].hello(), drafts[1].hello()];
    drafts.iter_mut().zip(0..).for_each(|(draft, me)| draft.attach(me, &hellos).unwrap());
    let [left, right] = drafts;
    let team = Team::new(Box::new(right.confirm(Way::Nothing).unwrap()), Config::default());
    let mut opening = std::pin::pin!(team.open(0, 0, false));
    let mut poll = || opening.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    drop(left);
    assert!(matches!(poll(), Poll::Ready(Err(Error::Peer))));
}

#[test]
fn a_refused_draft_leaves_no_name() {
    let folder = Folder::new("refused");
    let budget = Arc::new(Budget::new(MIB));
    let place = Place { local: 0, locals: 2 };
    let create = |backing: Backing| Pool::create(&backing, place, &budget).unwrap();
    let [named, other] = [Backing::Folder(folder.name().into()), Backing::Memfd].map(create);
    assert_eq!(folder.files().len(), 1);
    let drafts: Vec<Draft> = std::iter::from_fn(|| other.prepare(Ways::NONE).ok()).collect();
    assert!(!drafts.is_empty() && named.prepare(Ways::NONE).is_err());
    assert!(folder.files().is_empty());
}

#[test]
fn what_is_no_pool_is_not_attached() {
    let (a, b) = (in_process(0, 3, MIB), in_process(1, 3, MIB));
    let good = a.locator().clone();
    assert!(!Peer::attach(&good).unwrap().is_dead());
    let refused = |locator: Locator, why: &str| {
        let failure = Peer::attach(&locator).unwrap_err().to_string();
        assert!(failure.contains(why), "{failure:?} does not say {why:?}");
    };
    refused(Locator { token: [7; 16], ..good.clone() }, "is not the pool");
    refused(Locator { length: good.length + PAGE as u64, ..good.clone() }, "is not the pool");
    refused(Locator { fd: i32::MAX, ..good.clone() }, "No such file");
    refused(Locator { pid: i32::MAX, ..good.clone() }, "No such file");
    refused(Locator { pid_space: good.pid_space + 1, ..good.clone() }, "another PID name space");
    refused(Locator { path: Some("/dev/null".into()), pid_space: 0, ..good.clone() }, "/dev/null is not the pool");

    // The same local rank in another job.
    drop(pair(&a, &b));
    let other = in_process(1, 3, MIB);
    let mut draft = a.prepare(Ways::NONE).unwrap();
    let stranger = other.prepare(Ways::NONE).unwrap();
    let failure = draft.attach(0, &[draft.hello(), stranger.hello()]).unwrap_err().to_string();
    assert!(failure.contains("known as another process"), "{failure}");
    let twice = b.prepare(Ways::NONE).unwrap();
    let failure = draft.attach(0, &[draft.hello(), twice.hello(), twice.hello()]).unwrap_err().to_string();
    assert!(failure.contains("not as many processes"), "{failure}");
    let longer = in_process(2, 3, 2 * MIB).prepare(Ways::NONE).unwrap();
    let failure = draft.attach(0, &[draft.hello(), longer.hello()]).unwrap_err().to_string();
    assert!(failure.contains("member 1 of 2: a pool of"), "{failure}");
    [draft, stranger, twice, longer].into_iter().for_each(Draft::give_up);
}

#[test]
fn what_cannot_be_a_pool_says_why() {
    let create = |backing: &Backing, place: Place, bytes| {
        Pool::create(backing, place, &Arc::new(Budget::new(bytes))).unwrap_err().to_string()
    };
    let place = Place { local: 0, locals: 64 };
    assert!(create(&Backing::Memfd, place, PAGE as u64).contains("at least"));
    assert!(create(&Backing::Folder("/no/such/folder".into()), place, MIB).contains("/no/such/folder"));
    assert!(create(&Backing::Folder("here".into()), place, MIB).contains("absolute"));
    let long = Backing::Folder(format!("/{}", "x".repeat(200)).into());
    assert!(create(&long, place, MIB).contains("at most"));
}

#[test]
fn two_pools_share_a_budget() {
    let budget = Arc::new(Budget::new(MIB));
    let place = Place { local: 0, locals: 2 };
    let pools = [0, 1].map(|_| Pool::create(&Backing::Memfd, place, &budget).unwrap());
    let mut drafts = Vec::new();
    while let Ok(draft) = pools[drafts.len() % 2].prepare(Ways::NONE) {
        drafts.push(draft);
    }
    assert!(
        budget.left() == 0 && drafts.len() as u64 <= MIB / PAGE as u64 - 2,
        "{} of {}",
        budget.left(),
        drafts.len()
    );
    let failure = pools[0].prepare(Ways::NONE).unwrap_err().to_string();
    assert!(failure.contains("beyond the process' share"), "{failure}");
    drop((drafts, pools));
    assert_eq!(budget.left(), MIB);
}
