// SPDX-License-Identifier: BSD-3-Clause
//! Processes that die, and folders that are full.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, SystemTime};

use coll_rust::endpoint::Error;
use coll_rust::shm::group::Draft;
use coll_rust::shm::group::reading::Ways;
use coll_rust::shm::memory::PAGE;
use coll_rust::shm::memory::{Contents, Memory};

use super::cases::{self, check_controls, eventually, fill, filled, group, member};
use super::job::{Folder, Job, UNNAMED, run, run_after, skipped};

const VICTIM: usize = 1;

#[test]
fn a_killed_process_leaves_nothing() {
    run("killed", 3, "memfd").but(&[VICTIM]);
    let folder = Folder::new("killed");
    run("killed", 3, folder.name()).but(&[VICTIM]);
    assert!(folder.files().is_empty());
}

/// A process that sees no other one: so it is where each rank is in a container of its own.
#[test]
fn a_process_that_cannot_be_looked_for_is_seen_to_die() {
    fn alone(_: usize) -> io::Result<()> {
        let done = |code: i32| if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: a process of one thread, between fork and exec, which gets mounts of its own, and changes
        // only those.
        unsafe {
            done(libc::unshare(libc::CLONE_NEWNS))?;
            let private = libc::MS_REC | libc::MS_PRIVATE;
            done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
            done(libc::mount(c"none".as_ptr(), c"/proc".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()))
        }
    }
    let folder = Folder::new("alone");
    match run_after(alone, "killed", 3, folder.name()) {
        Ok(job) => job.but(&[VICTIM]),
        Err(error) => skipped("a_process_that_cannot_be_looked_for_is_seen_to_die", error),
    }
    assert!(folder.files().is_empty());
}

pub fn killed(job: &mut Job) {
    let pool = cases::pool(job, 64 * PAGE as u64).unwrap();
    let group = member(group(job, Some(&pool), &[0, 1, 2]));
    check_controls(job, &group, 3);
    if job.rank == VICTIM {
        // SAFETY: this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    // It is a zombie until the test waits for it.
    eventually("the death is seen", || group.is_dead(VICTIM));
    let other = 2 - job.rank;
    assert!(!group.is_dead(other) && !group.is_dead(job.rank));
    // What it wrote stays.
    assert!(filled(group.control(VICTIM), PAGE, 3 + VICTIM as u64));
    group.lease(40 * PAGE, Contents::Zeros).unwrap();
    job.barrier();
    drop(group);
    job.barrier();
    // The dead one never announces that it is through with them; when they are needed, they are free all the
    // same.
    assert_eq!(pool.usage().leased, 41 * PAGE as u64);
    let drafts: Vec<_> = (0..50).map(|_| pool.prepare(Ways::NONE).unwrap()).collect();
    assert_eq!(pool.usage().groups, 50);
    drafts.into_iter().for_each(Draft::give_up);
    assert_eq!(pool.usage().leased, 0);
    job.barrier();
}

/// One process dies before the others have heard of its pool, they while they wait for it.
#[test]
fn who_is_killed_before_there_is_a_group_leaves_nothing() {
    let folder = Folder::new("killed_early");
    let unnamed = format!("{UNNAMED}{}", folder.name());
    run("killed_early", 3, &unnamed).but(&[0, 1, 2]);
    assert_eq!(folder.files(), Vec::<std::path::PathBuf>::new());
    run("killed", 3, &unnamed).but(&[VICTIM]);
    assert_eq!(folder.files(), Vec::<std::path::PathBuf>::new());
}

pub fn killed_early(job: &mut Job) {
    let pool = cases::pool(job, 64 * PAGE as u64).unwrap();
    let draft = pool.prepare(Ways::NONE).unwrap();
    // Messages of the victim come no more; the others' runtime ends them.
    assert!(draft.hello().iter().any(|&byte| byte != 0));
    job.barrier();
    // SAFETY: this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Names that were left are removed by the next process that makes one, if they are old, and nobody's.
#[test]
fn names_that_were_left_go() {
    let folder = Folder::new("left");
    let file = |name: &str, old: bool| {
        let file = File::create(folder.0.join(name)).unwrap();
        let then = SystemTime::now() - Duration::from_secs(if old { 3600 } else { 0 });
        file.set_modified(then).unwrap();
        file
    };
    let owned = file("coll_rust.owned", true);
    assert!(coll_rust::shm::os::lifelock::take(&owned));
    drop((file("coll_rust.left", true), file("coll_rust.new", false), file("another", true)));
    let backing = coll_rust::shm::pool::backing::Backing::Folder(folder.0.clone());
    drop(coll_rust::shm::pool::backing::Store::create(&backing, 16 * PAGE as u64).unwrap());
    let mut left: Vec<_> = folder.files().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, ["another", "coll_rust.new", "coll_rust.owned"]);
}

/// A folder of 3 MiB for the calling thread and what it starts. `None`: not allowed here.
fn small(folder: &Folder) -> io::Result<()> {
    let path = CString::new(folder.name()).unwrap();
    let done = |code: i32| if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: this thread gets mounts of its own, and changes only those.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
        done(libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, c"size=3m".as_ptr().cast()))
    }
}

#[test]
fn a_full_folder_is_an_error_in_time() {
    let folder = Folder::new("full");
    let ran = std::thread::scope(|scope| {
        let there = || small(&folder).map(|()| run("full", 2, folder.name()).well());
        scope.spawn(there).join().unwrap()
    });
    if let Err(error) = ran {
        skipped("a_full_folder_is_an_error_in_time", error);
    }
}

pub fn full(job: &mut Job) {
    const BYTES: usize = 150_000;
    let pool = cases::pool(job, 64 << 20).unwrap();
    let first = member(group(job, Some(&pool), &[0, 1]));
    check_controls(job, &first, 5);
    // Nothing is left of a lease that fails half-way. One at a time: together they would have less.
    let before = pool.usage();
    for rank in 0..2 {
        assert!(rank != job.rank || first.lease(4 << 20, Contents::Zeros).is_none());
        job.barrier();
    }
    assert_eq!(pool.usage(), before);
    let mut leases = Vec::new();
    while let Some((_, at)) = first.lease(BYTES, Contents::Zeros) {
        fill(at, BYTES, leases.len() as u64);
        leases.push(at);
    }
    assert!(pool.refusal().unwrap().contains("No space left"), "{:?}", pool.refusal());
    job.barrier();
    for (stamp, &at) in leases.iter().enumerate() {
        assert!(filled(at, BYTES, stamp as u64));
    }
    let all: u64 = job.all(leases.len().to_le_bytes()).iter().map(|&n| usize::from_le_bytes(n) as u64).sum();
    assert!((14..21).contains(&all), "{all} leases of {BYTES} bytes in 3 MiB");
    // What is left holds control blocks still, then nothing; and a pool begun now cannot begin.
    let mut groups = Vec::new();
    while let Ok(group) = group(job, Some(&pool), &[0, 1]) {
        groups.push(group);
    }
    assert!(groups.len() < 768);
    job.barrier();
    let mut crumbs = 0;
    while first.lease(1, Contents::Zeros).is_some() {
        crumbs += 1;
    }
    assert!(crumbs < 768);
    job.barrier();
    let failure = cases::pool(job, 8 << 20).unwrap_err().to_string();
    assert!(failure.contains("No space left"), "{failure}");
    check_names(job);
    drop((first, groups));
    job.barrier();
    assert_eq!(pool.usage().leased, 0);
    // Used again without asking the folder.
    let again = member(group(job, Some(&pool), &[0, 1]));
    let failing = leases.iter().filter(|_| again.lease(BYTES, Contents::Zeros).is_none()).count();
    assert_eq!(failing, 0);
    job.barrier();
}

fn check_names(job: &mut Job) {
    job.barrier();
    if let coll_rust::shm::pool::backing::Backing::Folder(folder) = &job.backing {
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }
    job.barrier();
}

#[test]
fn a_number_that_another_process_has_got_is_nobodys() {
    match fs::read(LAST_NUMBER).and_then(|last| fs::write(LAST_NUMBER, last)) {
        Ok(()) => run("reused", 2, "memfd").well(),
        Err(error) => skipped("a_number_that_another_process_has_got_is_nobodys", error),
    }
}

/// Where the system says which number it gave last, and is told.
const LAST_NUMBER: &str = "/proc/sys/kernel/ns_last_pid";

/// The same address in all processes, with `byte` there.
fn common_page(byte: u8) -> u64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let wanted = std::ptr::without_provenance_mut(0x1234_5670_0000);
    // SAFETY: a new mapping.
    unsafe {
        let page = libc::mmap(wanted, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_eq!(page, wanted);
        page.cast::<u8>().write_bytes(byte, PAGE);
        page as u64
    }
}

/// A child of the caller, which waits.
fn fork() -> i32 {
    // SAFETY: the child makes system calls only.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            loop {
                libc::pause();
            }
        }
        child
    }
}

/// Ends a child, and forgets it.
fn end(child: i32) {
    // SAFETY: a child that has not been waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

pub fn reused(job: &mut Job) {
    if job.rank == VICTIM {
        // SAFETY: the child goes on as the member; the parent forgets it when it has ended.
        let child = unsafe { libc::fork() };
        if child != 0 {
            // SAFETY: as above.
            unsafe {
                libc::waitpid(child, std::ptr::null_mut(), 0);
                libc::_exit(0);
            }
        }
    }
    let page = common_page(job.rank as u8);
    let pool = cases::pool(job, 64 * PAGE as u64).unwrap();
    let group = member(group(job, Some(&pool), &[0, 1]));
    let number = job.all(std::process::id().to_le_bytes())[VICTIM];
    let number = u32::from_le_bytes(number) as i32;
    if job.rank == VICTIM {
        job.barrier();
        // SAFETY: this process; nothing that it has is of use.
        unsafe { libc::_exit(0) };
    }
    let mut bytes = [9_u8; 64];
    let at = bytes.as_mut_ptr();
    // SAFETY: so many bytes, here and there.
    unsafe { group.fetch(VICTIM, page, at, bytes.len()) }.unwrap();
    assert_eq!(bytes, [VICTIM as u8; 64]);
    job.barrier();
    assert!(job.exchange(&[])[VICTIM].is_none());
    // Others start processes too.
    let another = (0..1000).find_map(|_| {
        fs::write(LAST_NUMBER, (number - 1).to_string()).unwrap();
        let child = fork();
        if child == number {
            return Some(child);
        }
        end(child);
        None
    });
    let another = another.expect("a process of that number");
    // Numbers do not come round that fast by themselves.
    std::thread::sleep(Duration::from_millis(50));
    bytes.fill(9);
    // SAFETY: as above; what there is at the address belongs to a process that has it for nothing else.
    let (read, written) = unsafe { (group.fetch(VICTIM, page, at, 64), group.store(VICTIM, at, page, 64)) };
    end(another);
    assert_eq!((read, written, bytes), (Err(Error::Peer), Err(Error::Peer), [9; 64]));
}
