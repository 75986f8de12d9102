// SPDX-License-Identifier: BSD-3-Clause
//! Jobs of 10⁵ and 10⁶ ranks: what a store takes, and how long a process needs for its groups.
//!
//!     cargo test --release --test store large -- --nocapture

use super::random::{World, store};
use crate::memory;
use coll_rust::endpoint::Rank;
use coll_rust::store::placement;
use coll_rust::topo::{Hardware, Hierarchy, LevelSpec, Locality, Modules};
use std::time::{Duration, Instant};

/// 64 ranks a node, 32 nodes a switch, bound to cores.
fn world(ranks: u32, host: impl Fn(u32) -> u32) -> World {
    let hosts: Vec<u32> = (0..ranks).map(host).collect();
    let mut seen = vec![0_u32; ranks.div_ceil(64) as usize];
    let localities = hosts.iter().map(|node| {
        let core = seen[*node as usize];
        seen[*node as usize] += 1;
        Locality { l2: Some(core), l3: Some(core / 8), numa: Some(core / 16), socket: Some(core / 32) }
    });
    let localities = localities.collect();
    let at = |modules| Modules { modules, cores: 64 / modules };
    let hardware = Hardware { l2: at(64), l3: at(8), numa: at(4), socket: at(2), processors: 128 };
    let uppers = (0..ranks.div_ceil(64)).map(|node| vec![node / 32, node / 512]).collect();
    World { hosts, uppers, localities, hardware, levels: LevelSpec::Auto }
}

#[test]
fn large_jobs() {
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
    // Without optimisation the larger job takes ten seconds.
    let sizes = if cfg!(debug_assertions) { vec![100_000] } else { vec![100_000, 1_000_000] };
    for ranks in sizes {
        let nodes = ranks / 64;
        let placements: [(&str, World); 3] = [
            ("blocks of 64", world(ranks, |rank| rank / 64)),
            ("round-robin", world(ranks, |rank| rank % nodes)),
            // Each rank anywhere: a permutation, by a multiplier that has no factor in common with 10⁶.
            ("anywhere", world(ranks, |rank| (u64::from(rank) * 387_420_489 % u64::from(ranks)) as u32 / 64)),
        ];
        for (name, world) in placements {
            let local = world.local(world.hosts[0]);
            let cores = vec![None; local.len()];
            let job = placement::Job { cores: &cores, ..world.job(1, &local) };
            let words = job.words().unwrap();
            let begun = Instant::now();
            let store = store(words, 64);
            placement::put(&store, &job).unwrap();
            let (put, mut reader) = (begun.elapsed(), store.reader(0).unwrap());
            // The lowest rank of the node has groups above it; the first look checks the sum.
            let mut longest = [Duration::ZERO; 2];
            for (i, me) in [local[0].0, local[local.len() - 1].0].into_iter().enumerate() {
                let begun = Instant::now();
                let groups = placement::groups(&mut reader, 1, me, &world.levels).unwrap();
                longest[i] = begun.elapsed();
                assert!(!groups.is_empty());
            }
            assert_eq!(placement::groups(&mut reader, 1, local[0].0, &world.levels), Ok(world.groups(local[0].0)));
            let members: Vec<Rank> = (0..ranks).collect();
            let begun = Instant::now();
            let placed = placement::placement(&mut reader, 1, &members, local[0].0 as usize).unwrap();
            let whole = begun.elapsed();
            // What a communicator of the whole job does in the component.
            let begun = Instant::now();
            let before = (memory::reset(), memory::calls());
            assert_eq!(placement::seats(&mut reader, 1, &members).unwrap().nodes.len(), members.len());
            let seats = begun.elapsed();
            let (sat, before) = (memory::peak() - before.0, (memory::reset(), memory::calls()));
            let begun = Instant::now();
            assert!(!Hierarchy::build(&placed, &world.levels, false).groups(None).is_empty());
            let hierarchy = begun.elapsed();
            let (built, calls) = (memory::peak() - before.0, memory::calls() - before.1);
            // Not time, which other programs take, too: what is written for each rank, and what is asked of
            // the allocator, which was once for each node.
            let per_rank = |bytes: usize| bytes as f64 / f64::from(ranks);
            assert!(per_rank(sat) <= 9.0, "{ranks} ranks, {name}: the seats take {sat} bytes");
            assert!(per_rank(built) <= 2.0, "{ranks} ranks, {name}: the hierarchy takes {built} bytes");
            assert!(calls <= 200, "{ranks} ranks, {name}: the hierarchy asks {calls} times for memory");
            let bytes = (2 * words * 8) as f64 / f64::from(ranks);
            println!(
                "{ranks} ranks, {name}: {bytes:.3} bytes a rank, both rooms; put in {put:?}; groups of the lowest rank of the node \
                 in {:?}, of the highest in {:?}; placement of all in {whole:?}; seats of all in {seats:?}, hierarchy in {hierarchy:?}",
                longest[0], longest[1]
            );
            assert!(longest.iter().all(|time| *time < limit), "{ranks} ranks, {name}: {longest:?}");
            assert!(bytes <= 32.0, "{ranks} ranks, {name}: {bytes} bytes a rank");
        }
    }
}
