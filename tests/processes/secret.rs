// SPDX-License-Identifier: BSD-3-Clause
//! Operations on memory that no other process can get at.

use std::io;
use std::ptr;

use coll_rust::endpoint::{Error, Span};
use coll_rust::shm::group::reading::Ways;
use coll_rust::shm::memory::Memory;
use coll_rust::shm::op;
use coll_rust::shm::protocol::team::{Config, Team};

use super::cases::{self, byte, group_by, member};
use super::job::{Job, run, skipped};
use super::zero_copy::{Row, Rows, drive, drive_to, row, turn};

#[test]
fn what_only_its_owner_can_write_is_read() {
    match secret(1) {
        Ok(_) => run("secret", 3, "memfd").well(),
        Err(error) => skipped("what_only_its_owner_can_write_is_read", error),
    }
}

#[test]
fn what_only_its_owner_can_read_is_an_error() {
    match secret(1) {
        Ok(_) => [2, 3].into_iter().for_each(|size| run("unread", size, "memfd").well()),
        Err(error) => skipped("what_only_its_owner_can_read_is_an_error", error),
    }
}

/// Memory that the kernel shows to nobody else (memfd_secret(2)), as it does a device's; until the process
/// ends.
fn secret(bytes: usize) -> io::Result<Span> {
    // SAFETY: a new descriptor, and a new mapping of it.
    let start = unsafe {
        let fd = libc::syscall(libc::SYS_memfd_secret, 0) as i32;
        if fd < 0 || libc::ftruncate(fd, bytes as i64) != 0 {
            return Err(io::Error::last_os_error());
        }
        let start = libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0);
        libc::close(fd);
        start
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: mapped for good, and so long.
    Ok(unsafe { Span::new(start.cast(), bytes, 1) })
}

fn holds(part: Span, contents: &[u8]) -> bool {
    // SAFETY: the process' own memory, which nobody writes now.
    part.len() == contents.len() && unsafe { std::slice::from_raw_parts(part.ptr(), part.len()) } == contents
}

pub fn divided(job: &mut Job) {
    const LEN: usize = 100_000;
    let pool = cases::pool(job, 64 << 20).unwrap();
    let ranks: Vec<usize> = (0..job.size).collect();
    let group = member(group_by(job, Some(&pool), &ranks, Ways::CMA));
    assert!(group.stores());
    let team = Team::new(Box::new(group), Config::default());
    let (me, size) = (team.me(), team.size());
    // Others' memory is ordinary, and they write to each other.
    let into = match me {
        1 => secret(size * LEN).unwrap(),
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        _ => unsafe { Span::new(vec![byte(99, me); size * LEN].leak().as_mut_ptr(), size * LEN, 1) },
    };
    for root in 0..size {
        let mut data = row(root, 7, LEN);
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let data = if me == root { unsafe { Span::new(data.as_mut_ptr(), LEN, 1) } } else { into.slice(0..LEN) };
        drive(op::bcast::bcast(turn(&team), root, &Row(data), 1));
        assert!(holds(data, &row(root, 7, LEN)), "bcast");

        let (mut mine, mut all) = (row(me, root, LEN), Vec::new());
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let own = Row(unsafe { Span::new(mine.as_mut_ptr(), LEN, 1) });
        (0..size).for_each(|to| all.extend(row(root, to, LEN)));
        if me == root {
            let rows = Rows { start: into.ptr(), each: LEN };
            drive(op::gather::receive(turn(&team), Some(&own), &rows, 1));
            (0..size)
                .for_each(|of| assert!(holds(into.slice(of * LEN..(of + 1) * LEN), &row(of, root, LEN)), "gather"));
            let rows = Rows { start: all.as_mut_ptr(), each: LEN };
            drive(op::scatter::send(turn(&team), &rows, Some(&own), 1));
        } else {
            drive(op::gather::send(turn(&team), root, &own, 1));
            let own = into.slice(0..LEN);
            drive(op::scatter::receive(turn(&team), root, &Row(own), 1));
            assert!(holds(own, &row(root, me, LEN)), "scatter");
        }
    }
    // Nobody ends before all are through: who has ended counts as dead.
    job.barrier();
}

/// A buffer that cannot be read: every reader gets an error, and nobody waits.
pub fn unread(job: &mut Job) {
    const LEN: usize = 100_000;
    let pool = cases::pool(job, 64 << 20).unwrap();
    let ranks: Vec<usize> = (0..job.size).collect();
    for divided_min in [1, u32::MAX] {
        let group = member(group_by(job, Some(&pool), &ranks, Ways::CMA));
        let team = Team::new(Box::new(group), Config { divided_min, ..Config::default() });
        let data = secret(LEN).unwrap();
        let end = drive_to(op::bcast::bcast(turn(&team), 0, &Row(data), 1));
        let expected = if team.me() == 0 { [Error::Peer; 2] } else { [Error::Fetch(libc::EFAULT), Error::Peer] };
        assert!(expected.map(Err).contains(&end), "member {} gets {end:?}", team.me());
        job.barrier();
        drop(team);
        job.barrier();
    }
}
