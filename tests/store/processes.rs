// SPDX-License-Identifier: BSD-3-Clause
//! Real processes: a writer that is killed at any of its stores, while others read.

use super::random::{Random, World, store};
use crate::family::{child, kill_myself, soon};
use coll_rust::store::{Error, Store, placement};
use coll_rust::sync::segment::Segment;
use coll_rust::sync::shared::{Ordering, SharedU64};
use std::sync::Arc;

/// Reads until told to stop: the first job is always there, the second one whole or not at all.
fn reads(store: &Store, worlds: &[World; 2], stop: &SharedU64, count: &SharedU64) -> bool {
    let Ok(mut reader) = store.reader(count.load(Ordering::Relaxed) as usize) else { return false };
    let me = |world: &World| world.local(world.hosts[0])[0].0;
    let expected = [worlds[0].groups(me(&worlds[0])), worlds[1].groups(me(&worlds[1]))];
    while stop.load(Ordering::Relaxed) == 0 {
        let [first, second] = [0, 1]
            .map(|job| placement::groups(&mut reader, job, me(&worlds[job as usize]), &worlds[job as usize].levels));
        let fine =
            first == Ok(expected[0].clone()) && (second == Err(Error::Missing) || second == Ok(expected[1].clone()));
        if !fine {
            return false;
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    true
}

#[test]
fn a_writer_that_dies_at_any_store_leaves_it_readable() {
    let mut random = Random(11);
    let worlds = [World::random(&mut random), World::random(&mut random)];
    let local = [0, 1].map(|i: usize| worlds[i].local(worlds[i].hosts[0]));
    let jobs = [0, 1].map(|i: usize| worlds[i].job(i as u32, &local[i]));
    let room = jobs[0].words().unwrap() + jobs[1].words().unwrap();
    let store = store(room, 4);
    placement::put(&store, &jobs[0]).unwrap();
    let beside = Arc::new(Segment::anonymous(24).unwrap());
    let words = beside.words();
    let readers: Vec<_> =
        [8, 16].map(|count| child(|| reads(&store, &worlds, &words[0], &words[count]))).into_iter().collect();
    let go_on = || {
        let before = [8, 16].map(|count: usize| words[count].load(Ordering::Relaxed));
        soon("a reader goes on", || [8, 16].iter().zip(before).all(|(c, b)| words[*c].load(Ordering::Relaxed) > b));
    };
    go_on();
    // A writer that adds the second job is killed before its k-th store, for all k; then one gets through.
    let mut k = 0;
    loop {
        let writer = child(|| {
            let kill = |step| {
                if step == k {
                    kill_myself()
                }
            };
            placement::put_by(&store, kill, &jobs[1]).is_ok()
        });
        match writer.wait() {
            0 => break,
            code => assert_eq!(code, -libc::SIGKILL, "store {k}"),
        }
        let mut reader = store.reader(3).unwrap();
        assert_eq!(placement::node(&mut reader, 1, 0), Err(Error::Missing), "store {k}");
        k += 1;
    }
    assert!(k > 20, "only {k} stores");
    go_on();
    let mut reader = store.reader(3).unwrap();
    assert_eq!(placement::node(&mut reader, 1, 0), Ok(worlds[1].hosts[0]));
    words[0].store(1, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| assert_eq!(reader.wait(), 0, "a reader saw something else"));
}

/// A process that attaches by the file sees the same memory, once.
#[test]
fn one_copy_for_all() {
    type One = Store;
    let (segment, file) = Segment::create(One::words(4096, 2)).unwrap();
    let store = One::create(Arc::new(segment), 4096, 2).unwrap();
    let mut random = Random(12);
    let world = World::random(&mut random);
    let local = world.local(world.hosts[0]);
    placement::put(&store, &world.job(1, &local)).unwrap();
    let other = child(|| {
        let attached = Segment::of(&file).ok().and_then(|segment| One::attach(Arc::new(segment)).ok());
        let groups = attached.and_then(|store| {
            let mut reader = store.reader(1).ok()?;
            placement::groups(&mut reader, 1, local[0].0, &world.levels).ok()
        });
        groups == Some(world.groups(local[0].0))
    });
    assert_eq!(other.wait(), 0);
}

/// What the kernel says of the mapping of a store in this process, in KiB.
fn mapped(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = text.lines().skip_while(|line| !line.contains("coll-rust-store"));
    let line = lines.find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Four processes that have read all of it have a quarter of it each.
#[test]
fn memory_is_that_of_one_copy() {
    let (segment, _file) = Segment::create(1 << 16).unwrap();
    let sum = || segment.words().iter().map(|word| word.load(Ordering::Relaxed)).sum::<u64>();
    let board = Segment::anonymous(8).unwrap();
    let ready = &board.words()[0];
    let children: Vec<_> = (0..3)
        .map(|_| {
            child(|| {
                ready.fetch_add(1 + sum(), Ordering::Relaxed);
                while ready.load(Ordering::Relaxed) < 100 {
                    std::thread::yield_now();
                }
                true
            })
        })
        .collect();
    assert_eq!(sum(), 0);
    soon("the others read", || ready.load(Ordering::Relaxed) == 3);
    let (whole, share) = (mapped("Rss:"), mapped("Pss:"));
    ready.store(100, Ordering::Relaxed);
    children.into_iter().for_each(|child| assert_eq!(child.wait(), 0));
    assert_eq!(whole, 512);
    assert!((100..=160).contains(&share), "{share} of {whole} KiB");
}

/// A file beyond the limit of file sizes is an error, not a signal; and nobody else may open the memory.
#[test]
fn a_segment_is_private_and_respects_limits() {
    use std::os::unix::fs::PermissionsExt;
    let (_segment, file) = Segment::create(1 << 10).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let limited = child(|| {
        let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
        // SAFETY: a limit of this child's.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
        Segment::create(1 << 16).is_err()
    });
    assert_eq!(limited.wait(), 0);
    let closed = child(|| {
        // SAFETY: the child does not print.
        unsafe { libc::close(0) };
        Segment::create(1 << 10).is_ok_and(|(_, file)| std::os::fd::AsRawFd::as_raw_fd(&file) > 2)
    });
    assert_eq!(closed.wait(), 0);
}
