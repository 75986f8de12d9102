// SPDX-License-Identifier: BSD-3-Clause
//! Contents that nobody wrote: no panic, no read out of bounds, bounded memory.

use super::random::{Random, World, decoded, store};
use coll_rust::store::image::sum;
use coll_rust::store::sequence::encode;
use coll_rust::store::{Error, Store, placement};
use coll_rust::sync::rwlock::Mcs;
use coll_rust::sync::segment::Segment;
use coll_rust::sync::shared::Ordering;
use std::sync::Arc;

/// Cases of each test.
fn cases() -> u64 {
    std::env::var("COLL_RUST_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000)
}

/// Another word: a bit, a small number, an end of a range, anything.
fn other(random: &mut Random, word: u64) -> u64 {
    match random.below(5) {
        0 => word ^ 1 << random.below(64),
        1 => random.below(70),
        2 => [u64::MAX, 1 << 63, u64::from(u32::MAX), 1 << 32, (1 << 24) + 1][random.below(5) as usize],
        3 => word.wrapping_add(random.below(9)).wrapping_sub(4),
        _ => random.next(),
    }
}

#[test]
fn lists() {
    let mut random = Random(6);
    for _ in 0..cases() * 4 {
        let list: Vec<u32> = (0..random.below(40)).map(|i| (i / 3) as u32 ^ random.below(2) as u32).collect();
        let mut words = encode(&list);
        for _ in 0..1 + random.below(3) {
            let place = random.below(words.len() as u64) as usize;
            words[place] = other(&mut random, words[place]);
        }
        let len = if random.below(4) == 0 { random.below(words.len() as u64) as usize } else { words.len() };
        // At most 64 MiB, by the limit of lengths; at places beyond what a wrong list has, an error.
        let _ = decoded(&words[..len]);
    }
}

/// Words of the active image are changed, with and without the sum that goes with it.
#[test]
fn images() {
    let mut random = Random(7);
    let (mut noticed, mut fine) = (0, 0);
    for case in 0..cases() {
        let world = World::random(&mut random);
        let local = world.local(world.hosts[0]);
        let room = world.job(1, &local).words().unwrap();
        let store = store(room, 2);
        placement::put(&store, &world.job(1, &local)).unwrap();
        let words = store.segment().words();
        let at = words.len() - room.next_multiple_of(8);
        let image = &words[at..at + room];
        assert_eq!(image[0].load(Ordering::Relaxed), room as u64, "the second room holds the first image");
        let mends = random.below(3) > 0;
        for _ in 0..1 + random.below(4) {
            let place = random.below(room as u64) as usize;
            let was = image[place].load(Ordering::Relaxed);
            image[place].store(other(&mut random, was), Ordering::Relaxed);
        }
        if mends {
            let len = (image[0].load(Ordering::Relaxed) as usize).min(room);
            let others = image[..len].iter().enumerate().filter(|(place, _)| *place != 2);
            image[2].store(sum(others.map(|(_, word)| word.load(Ordering::Relaxed))), Ordering::Relaxed);
        }
        let mut reader = store.reader(0).unwrap();
        let me = local[0].0;
        let found = placement::groups(&mut reader, 1, me, &world.levels);
        let members: Vec<u32> = (0..world.hosts.len() as u32).collect();
        let _ = placement::placement(&mut reader, 1, &members, me as usize);
        let _ = placement::node(&mut reader, 1, me);
        match found {
            Err(Error::Corrupt | Error::Missing) => noticed += 1,
            Ok(groups) if mends || groups == world.groups(me) => fine += 1,
            other => panic!("case {case}: {other:?}"),
        }
        // A writer does not build on it, or puts what is whole.
        let _ = placement::put(&store, &world.job(1, &local));
    }
    assert!(noticed > cases() / 4 && fine > 0, "{noticed} noticed, {fine} fine");
}

/// The words before the rooms: sizes, format, the lock's head.
#[test]
fn heads() {
    let mut random = Random(8);
    for _ in 0..cases() {
        let store = store(64, 2);
        let words = store.segment().words();
        let place = [0, 8, 24][random.below(3) as usize];
        let was = words[place].load(Ordering::Relaxed);
        let now = other(&mut random, was);
        words[place].store(now, Ordering::Relaxed);
        let attached = Store::<Mcs>::attach(store.segment().clone());
        if let Ok(other) = &attached {
            let _ = other.reader(0).map(|mut reader| placement::node(&mut reader, 1, 0));
        }
        assert!(place != 0 || now == was || attached.is_err());
    }
    for words in [1, 8, 24, 40, 100] {
        assert!(Store::<Mcs>::attach(Arc::new(Segment::anonymous(words).unwrap())).is_err());
        assert!(Store::<Mcs>::create(Arc::new(Segment::anonymous(words).unwrap()), 64, 2).is_err());
    }
    let segment = Arc::new(Segment::anonymous(4096).unwrap());
    assert!(Store::<Mcs>::create(segment.clone(), usize::MAX / 2, 2).is_err());
    assert!(Store::<Mcs>::create(segment, 64, usize::MAX).is_err());
}
