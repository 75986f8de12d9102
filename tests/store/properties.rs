// SPDX-License-Identifier: BSD-3-Clause
//! What goes in comes out.

use super::random::{Random, World, decoded, store};
use coll_rust::endpoint::Rank;
use coll_rust::store::image::Key;
use coll_rust::store::sequence::encode;
use coll_rust::store::{Error, Store, placement};
use coll_rust::topo::Hierarchy;

#[test]
fn lists_survive() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let (len, how) = (random.below(90), random.below(5));
        let (block, period, first) = (1 + random.below(7), 1 + random.below(9), random.next());
        let list: Vec<u32> = (0..len)
            .map(|i| match how {
                0 => first.wrapping_add(i / block % period * block) as u32,
                1 => random.next() as u32,
                2 => random.below(3) as u32,
                3 if random.below(20) == 0 => u32::MAX,
                _ => (i / block) as u32,
            })
            .collect();
        assert_eq!(decoded(&encode(&list)), Ok(list));
    }
}

#[test]
fn what_is_regular_is_small() {
    let lists: [(&str, Vec<u32>); 5] = [
        ("blocks", (0..1_000_000).map(|rank| rank / 64).collect()),
        ("blocks, the last one cut", (0..999_999).map(|rank| rank / 64).collect()),
        ("round-robin", (0..1_000_000).map(|rank| rank % 15_625).collect()),
        ("pairs dealt", (0..1_000_000).map(|rank| rank / 2 % 15_625).collect()),
        ("lowest ranks", (0..15_625).map(|node| node * 64).collect()),
    ];
    for (name, list) in lists {
        let words = encode(&list);
        assert!(words.len() <= 6, "{name}: {} words", words.len());
        assert_eq!(decoded(&words).as_ref(), Ok(&list), "{name}");
    }
    let mut random = Random(2);
    let irregular: Vec<u32> = (0..100_000).map(|_| random.below(5000) as u32).collect();
    assert!(encode(&irregular).len() * 8 <= 5 * irregular.len(), "about 4 bytes a number");
}

/// From the store every process finds the groups that it finds by itself, and the placement too.
#[test]
fn groups_are_those_of_the_whole_placement() {
    let mut random = Random(3);
    let mut found = 0;
    for case in 0..400 {
        let world = World::random(&mut random);
        let node = world.hosts[random.below(world.hosts.len() as u64) as usize];
        let local = world.local(node);
        let store = store(world.job(9, &local).words().unwrap(), 4);
        placement::put(&store, &world.job(9, &local)).unwrap();
        let mut reader = store.reader(0).unwrap();
        for &(me, _) in &local {
            let groups = placement::groups(&mut reader, 9, me, &world.levels).unwrap();
            assert_eq!(groups, world.groups(me), "case {case}, rank {me}: {world:?}");
            found += groups.len();
        }
        let (me, size) = (local[0].0, world.hosts.len() as Rank);
        for step in [1, 2] {
            // Every second rank, with the caller.
            let members: Vec<Rank> = (0..size).filter(|rank| rank % step == me % step).rev().collect();
            let place = members.iter().position(|rank| *rank == me).unwrap();
            let found = placement::placement(&mut reader, 9, &members, place).unwrap();
            let hosts = members.iter().map(|rank| world.hosts[*rank as usize]).collect();
            let here = |rank: &Rank| world.hosts[*rank as usize] == node;
            let places = (0..).zip(&members).filter(|(_, rank)| here(rank));
            let here = places.map(|(place, rank)| (place, world.localities[*rank as usize])).collect();
            let expected =
                coll_rust::topo::Placement::new(place as Rank, hosts, world.uppers.clone(), here, world.hardware);
            let groups = |placement| Hierarchy::build(placement, &world.levels, false).groups(None);
            assert_eq!(groups(&found), groups(&expected), "case {case}");
            assert_eq!(found.local(), expected.local(), "case {case}");
        }
        let node = placement::node(&mut reader, 9, size - 1);
        assert_eq!(node, Ok(world.hosts[size as usize - 1]), "case {case}");
        assert!(placement::node(&mut reader, 9, size).is_err());
    }
    assert!(found > 2000, "only {found} groups");
}

#[test]
fn jobs_are_added_and_removed() {
    let mut random = Random(4);
    let (one, two) = (World::random(&mut random), World::random(&mut random));
    let (here, there) = (one.local(one.hosts[0]), two.local(two.hosts[0]));
    let store = store(2000, 2);
    let mut reader = store.reader(0).unwrap();
    assert_eq!(placement::node(&mut reader, 1, 0), Err(Error::Missing));
    assert_eq!(placement::put(&store, &one.job(1, &here)), Ok(1));
    assert_eq!(placement::node(&mut reader, 2, 0), Err(Error::Missing));
    assert_eq!(placement::put(&store, &two.job(2, &there)), Ok(2));
    assert_eq!(placement::put_thresholds(&store, &[7, 8]), Ok(3));
    let other = Store::attach(store.segment().clone()).unwrap();
    let mut also: coll_rust::store::Reader<'_> = other.reader(0).unwrap();
    for reader in [&mut reader, &mut also] {
        assert_eq!(placement::groups(reader, 1, here[0].0, &one.levels), Ok(one.groups(here[0].0)));
        assert_eq!(placement::groups(reader, 2, there[0].0, &two.levels), Ok(two.groups(there[0].0)));
        assert_eq!(placement::thresholds(reader), Ok(vec![7, 8]));
    }
    let key = Key::new(7, 0, 0);
    assert_eq!(store.put(&[(key, None)]), Ok(4));
    assert_eq!(placement::thresholds(&mut reader), Err(Error::Missing));
}

#[test]
fn what_does_not_fit_or_contradicts_itself_is_refused() {
    let mut random = Random(5);
    let world = World::random(&mut random);
    let local = world.local(world.hosts[0]);
    let room = world.job(1, &local).words().unwrap();
    let store = store(room, 2);
    placement::put(&store, &world.job(1, &local)).unwrap();
    assert_eq!(store.put(&[(Key::new(99, 0, 0), Some(vec![0; room]))]), Err(Error::Full));
    let mut reader = store.reader(0).unwrap();
    assert!(placement::groups(&mut reader, 1, local[0].0, &world.levels).is_ok(), "as it was before");
    assert_eq!(placement::put(&store, &world.job(1, &[])), Err(Error::Unsound));
    let elsewhere = [(world.hosts.len() as Rank, world.localities[0])];
    assert_eq!(placement::put(&store, &world.job(1, &elsewhere)), Err(Error::Unsound));
    let far = World { hosts: vec![0, 7], ..world.clone() };
    assert_eq!(placement::put(&store, &far.job(1, &[(0, far.localities[0])])).is_ok(), far.uppers.len() > 7);
}

/// Where each rank sits is told as it was put: the node by its name, of the own node modules and core too.
#[test]
fn seats_are_as_they_were_put() {
    let mut random = Random(6);
    for case in 0..200 {
        let world = World::random(&mut random);
        let size = world.hosts.len() as Rank;
        let node = world.hosts[random.below(size.into()) as usize];
        let local = world.local(node);
        let cores: Vec<_> = local.iter().map(|_| (random.below(3) > 0).then(|| random.below(9) as u32)).collect();
        let names: Vec<String> = (0..world.hosts.len()).map(|n| format!("knoten-{n:03}.ä").repeat(n % 3)).collect();
        let job = placement::Job { cores: &cores, names: &names, ..world.job(3, &local) };
        let store = store(job.words().unwrap(), 2);
        placement::put(&store, &job).unwrap();
        let mut reader = store.reader(0).unwrap();
        assert_eq!(placement::names(&mut reader, 3), Ok(names), "case {case}");
        assert_eq!(placement::ranks(&mut reader, 3), Ok(local.iter().map(|at| at.0).collect()));
        // Few, and many: they are looked up differently.
        for times in [1, 70] {
            let ranks: Vec<Rank> = (0..times).flat_map(|_| (0..size).rev()).collect();
            let seats = placement::seats(&mut reader, 3, &ranks).unwrap();
            let nodes: Vec<u32> = ranks.iter().map(|rank| world.hosts[*rank as usize]).collect();
            assert_eq!(seats.nodes, nodes, "case {case}");
            let expected = ranks.iter().enumerate().filter_map(|(at, rank)| {
                let place = local.iter().position(|local| local.0 == *rank)?;
                Some((at, placement::Seat { locality: local[place].1, core: cores[place] }))
            });
            assert_eq!(seats.here, expected.collect::<Vec<_>>(), "case {case}");
        }
        assert!(placement::seats(&mut reader, 3, &[size]).is_err(), "no such rank");
        assert!(placement::seats(&mut reader, 4, &[0]).is_err(), "no such job");
    }
    let world = World::random(&mut random);
    let (local, names) = (world.local(world.hosts[0]), vec!["a\nb".to_owned(); world.hosts.len()]);
    let store = store(1000, 2);
    let put = |job: &placement::Job<'_>| placement::put(&store, job);
    let job = world.job(1, &local);
    assert_eq!(put(&placement::Job { names: &names, ..job.clone() }), Err(Error::Unsound), "a name of two lines");
    assert_eq!(put(&placement::Job { names: &names[..0], cores: &[None; 99], ..job }), Err(Error::Unsound));
}
