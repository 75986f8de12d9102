// SPDX-License-Identifier: BSD-3-Clause
//! Processes that others may not look into: a reason, no crash.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use coll_rust::shm::memory::Memory;
use coll_rust::shm::pool::backing::Backing;

use super::cases::{self, NoGroup, check_controls, group};
use super::job::{Folder, Job, run_after, skipped};

const CLOSED: usize = 1;

fn on_both(case: &str, before: fn(usize) -> io::Result<()>) -> io::Result<()> {
    run_after(before, case, 3, "memfd")?.well();
    let folder = Folder::new(case);
    // Processes that are no longer root must be able to create files there.
    std::fs::set_permissions(&folder.0, Permissions::from_mode(0o1777))?;
    run_after(before, case, 3, folder.name())?.well();
    assert!(folder.files().is_empty());
    Ok(())
}

#[test]
fn a_process_that_cannot_be_traced() {
    on_both("undumpable", |_| Ok(())).unwrap();
}

pub fn undumpable(job: &mut Job) {
    // SAFETY: only this process' own rights. Root may trace all.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
            assert_eq!(libc::setgid(65534), 0);
            assert_eq!(libc::setuid(65534), 0);
        }
        let dumpable = libc::c_ulong::from(job.rank != CLOSED);
        assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, dumpable, 0, 0, 0), 0);
    }
    job.barrier();
    without_looking(job);
}

/// Of the same user, but nobody's in there.
#[test]
fn a_process_in_another_user_space() {
    fn apart(rank: usize) -> io::Result<()> {
        // SAFETY: a process of one thread, between fork and exec.
        let done = rank != CLOSED || unsafe { libc::unshare(libc::CLONE_NEWUSER) } == 0;
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
    if let Err(error) = on_both("user_spaces", apart) {
        skipped("a_process_in_another_user_space", error);
    }
}

pub fn user_spaces(job: &mut Job) {
    without_looking(job);
}

/// Pools by memfd cannot be attached, by name they can; private memory cannot be read.
fn without_looking(job: &mut Job) {
    let pool = cases::pool(job, 1 << 20).unwrap();
    let made = group(job, Some(&pool), &[0, 1, 2]);
    match (&job.backing, made) {
        (Backing::Memfd, Err(NoGroup(reason))) => {
            let said =
                reason.is_some_and(|reason| reason.contains("Permission denied") || reason.contains("name space"));
            // Somebody was refused; who was not just goes along.
            let heard = job.all([u8::from(said)]);
            assert!(heard.iter().any(|&[refused]| refused == 1));
            assert_eq!(pool.usage().leased, 0);
        }
        (Backing::Folder(_), Ok(Some(group))) => {
            assert!(!group.zero_copy());
            check_controls(job, &group, 9);
            assert!((0..3).all(|member| !group.is_dead(member)));
        }
        (backing, made) => panic!("{backing:?}: {made:?}"),
    }
    job.barrier();
}
