// SPDX-License-Identifier: BSD-3-Clause
//! Many groups that come and go, out of step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coll_rust::shm::group::Group;
use coll_rust::shm::memory::PAGE;
use coll_rust::shm::memory::{Contents, Memory, Page};

use super::cases::{self, fill, filled, group, member, zero};
use super::job::{Folder, Job, run};

/// Numbers that are the same everywhere (xorshift64*, Vigna 2016).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// A group, and what its members have leased.
struct Held {
    group: Group,
    /// By member: first page, bytes, stamp.
    leases: Vec<(Page, usize, u64)>,
    /// The round in which this member leaves.
    until: u64,
}

impl Held {
    /// What the others have written is there, however long they have left the group.
    fn check(&self) {
        for (member, &(page, bytes, stamp)) in self.leases.iter().enumerate() {
            assert!(filled(self.group.view(member, page, bytes), bytes, stamp), "lease of {member}, stamp {stamp}");
        }
    }
}

/// No member reads memory that its owner has handed out again, and what is handed out is zero. Members leave
/// groups whenever they like.
#[test]
fn pages_wait_for_their_last_reader() {
    run("load", 4, "memfd").well();
    run("load", 4, Folder::new("load").name()).well();
}

pub fn load(job: &mut Job) {
    // So little that pages must be used again.
    let pool = cases::pool(job, 48 * PAGE as u64).unwrap();
    let mut common = Numbers(11);
    let mut own = Numbers(100 + job.rank as u64);
    let mut held: Vec<Held> = Vec::new();
    let (mut made, mut refused) = (0, 0);
    for round in 0..400 {
        let mask = 1 + common.below((1 << job.size) - 1);
        let ranks: Vec<usize> = (0..job.size).filter(|rank| mask >> rank & 1 == 1).collect();
        let new = group(job, Some(&pool), &ranks);
        let mut lease = (0, 0, 0);
        if let Ok(Some(group)) = &new {
            let bytes = 1 + own.below(3 * PAGE as u64) as usize;
            let contents = if own.below(2) == 0 { Contents::Zeros } else { Contents::Anything };
            if let Some((page, at)) = group.lease(bytes, contents) {
                assert!(contents == Contents::Anything || zero(at, bytes));
                assert!(zero(group.control(group.me()), PAGE));
                group.map(group.me(), page, bytes);
                let stamp = round * 8 + job.rank as u64;
                fill(at, bytes, stamp);
                fill(group.control(group.me()), PAGE, stamp);
                lease = (page, bytes, stamp);
            }
        }
        let said = [u64::from(lease.0), lease.1 as u64, lease.2].map(u64::to_le_bytes).concat();
        let said = job.all::<24>(said.try_into().unwrap());
        match new {
            Ok(Some(group)) => {
                made += 1;
                let number = |rank: usize, n: usize| u64::from_le_bytes(said[rank][n * 8..][..8].try_into().unwrap());
                for (other, &rank) in ranks.iter().enumerate().filter(|&(_, &rank)| number(rank, 1) > 0) {
                    group.map(other, number(rank, 0) as Page, number(rank, 1) as usize);
                }
                let leases =
                    ranks.iter().map(|&rank| (number(rank, 0) as Page, number(rank, 1) as usize, number(rank, 2)));
                held.push(Held { group, leases: leases.collect(), until: round + own.below(8) });
            }
            Ok(None) => {}
            Err(_) => refused += 1,
        }
        std::thread::sleep(Duration::from_micros(own.below(200)));
        held.iter().for_each(Held::check);
        held.retain(|held| held.until > round);
    }
    assert!(made > 100 && refused < 200, "{made} groups made, {refused} refused");
    held.iter().for_each(Held::check);
    drop(held);
    job.barrier();
    let usage = pool.usage();
    assert_eq!((usage.leased, usage.groups), (0, 0));
    assert!(usage.held <= 48 * PAGE as u64);
}

/// Signals interrupt fallocate (on some kernels; others only heed deadly ones); memory comes nevertheless.
#[test]
fn signals_do_not_hinder_a_lease() {
    run("signals", 2, "memfd").well();
}

pub fn signals(job: &mut Job) {
    extern "C" fn nothing(_: libc::c_int) {}
    let pool = cases::pool(job, 256 << 20).unwrap();
    let group = member(group(job, Some(&pool), &[0, 1]));
    // SAFETY: a handler that does nothing, without SA_RESTART.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()), 0);
    }
    // SAFETY: the number of this thread, which outlives the one that sends.
    let me = unsafe { libc::pthread_self() };
    let done = AtomicBool::new(false);
    let lease = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: as above.
                assert_eq!(unsafe { libc::pthread_kill(me, libc::SIGALRM) }, 0);
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let lease = group.lease(64 << 20, Contents::Zeros);
        done.store(true, Ordering::Relaxed);
        lease
    });
    assert!(lease.is_some(), "{:?}", pool.refusal());
    assert!(pool.usage().held >= 64 << 20);
    job.barrier();
}
