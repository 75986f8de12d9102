// SPDX-License-Identifier: BSD-3-Clause
//! Operations on memory that no other process can get at.

use std::io;
use std::ptr;

use coll_rust::endpoint::Span;
use coll_rust::shm::memory::Memory;
use coll_rust::shm::op;
use coll_rust::shm::reading::Ways;
use coll_rust::shm::team::{Config, Team};

use super::cases::{self, byte, group_by, member};
use super::job::{Job, run, skipped};
use super::zero_copy::{Room, Row, Rows, drive, operate, row, turn};

#[test]
fn what_only_its_owner_can_write_is_read() {
    match secret(1) {
        Ok(_) => run("secret", 3, "memfd").well(),
        Err(error) => skipped("what_only_its_owner_can_write_is_read", error),
    }
}

#[test]
fn what_only_its_owner_can_read_goes_through_the_queue() {
    match secret(1) {
        Ok(_) => [2, 3].into_iter().for_each(|size| run("unread", size, "memfd").well()),
        Err(error) => skipped("what_only_its_owner_can_read_goes_through_the_queue", error),
    }
}

/// Memory that the kernel shows to nobody else (memfd_secret(2)), as it does a device's; until the process
/// ends.
fn secret(bytes: usize) -> io::Result<Span> {
    secret_at(ptr::null_mut(), bytes)
}

/// The same instead of what is mapped at an address that is not null.
fn secret_at(at: *mut u8, bytes: usize) -> io::Result<Span> {
    // SAFETY: a new descriptor, and a new mapping of it.
    let start = unsafe {
        let fd = libc::syscall(libc::SYS_memfd_secret, 0) as i32;
        if fd < 0 || libc::ftruncate(fd, bytes as i64) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::MAP_SHARED | if at.is_null() { 0 } else { libc::MAP_FIXED };
        let start = libc::mmap(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
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

/// A mapping, to be undone.
struct Mapped(Span);

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        assert_eq!(unsafe { libc::munmap(self.0.ptr().cast(), self.0.len()) }, 0);
    }
}

const PAGE: usize = 4096;

/// Pages for these contents.
fn ordinary(contents: &[u8]) -> Mapped {
    let bytes = contents.len().next_multiple_of(PAGE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    Mapped(unsafe { Span::new(start.cast(), bytes, 1) })
}

/// A room of which pages `dark` are secret, as far as it has them; the last of them at least.
fn room(contents: &[u8], dark: std::ops::Range<usize>) -> Room {
    let keep = ordinary(contents);
    let last = keep.0.len() / PAGE - 1;
    let part = dark.start.min(last) * PAGE..dark.end.min(last + 1) * PAGE;
    secret_at(keep.0.ptr().wrapping_add(part.start), part.len()).unwrap();
    let span = keep.0.slice(0..contents.len());
    // SAFETY: so long, and the process' own.
    unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), span.ptr(), span.len()) };
    Room::new(span, keep)
}

/// Buffers that cannot be read at all, and buffers of which a page in the middle cannot: of all members, and
/// of one.
pub fn unread(job: &mut Job) {
    let pool = cases::pool(job, 64 << 20).unwrap();
    let ranks: Vec<usize> = (0..job.size).collect();
    for divided_min in [1, u32::MAX] {
        let group = member(group_by(job, Some(&pool), &ranks, Ways::CMA));
        // Less than the longer data: an owner answers more than once.
        let config = Config { divided_min, fragment: 4096, fragments: 16, ..Config::default() };
        let team = Team::new(Box::new(group), config);
        let me = team.me();
        for len in [5000, 40_000] {
            for odd in [None, Some(1)] {
                for dark in [0..usize::MAX, 2..3] {
                    operate(job, &team, len, |contents| match odd.is_none_or(|odd| odd == me) {
                        true => room(contents, dark.clone()),
                        false => Room::heap(contents),
                    });
                }
            }
        }
        job.barrier();
        drop(team);
        job.barrier();
    }
}
