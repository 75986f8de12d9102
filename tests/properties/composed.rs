// SPDX-License-Identifier: BSD-3-Clause
//! Algorithms on blocks that are made of several ranks' blocks, as between the leaders of groups.

use super::allgather::Allgather;
use super::blocks::{check, contents, no_empty_message, send, user_blocks};
use super::data::{UserStream, bytes};
use super::team::Team;
use coll_rust::algo::alltoall::{linear::linear, pairwise::pairwise};
use coll_rust::algo::data::{Block, Grouped, Packed, Plain, Role, read, transfer, write};
use coll_rust::algo::gather::knomial::knomial as gather;
use coll_rust::algo::scatter::knomial::knomial as scatter;
use coll_rust::endpoint::{Blocks, Endpoint, Stream, TempBuffer};
use coll_rust::pattern::lengths::Lengths;
use coll_rust::sim::{Rng, SimBlocks, SimStream, UnitBuffer, UnitType, World};

/// `ranks` ranks in `count` groups: runs of ranks, or any; some may be empty.
fn groups(rng: &mut Rng, ranks: usize, count: usize) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); count];
    let runs = rng.below(2) == 0;
    (0..ranks).for_each(|rank| groups[if runs { rank * count / ranks } else { rng.below(count) }].push(rank));
    groups
}

#[test]
fn leaders_gather_the_blocks_of_their_groups() {
    use Allgather::{Bruck, Linear, NeighborExchange, RecursiveDoubling, Ring};
    for (seed, algorithm) in
        (0..).zip([Linear { posts: 2 }, Ring, NeighborExchange, RecursiveDoubling, Bruck].repeat(12))
    {
        let mut rng = Rng::new(seed);
        let (leaders, ranks) = ([2, 4, 8][rng.below(3)], 1 + rng.below(30));
        let team = Team::new(&mut rng, leaders);
        let groups = groups(&mut rng, ranks, leaders);
        let lens: Vec<usize> = (0..ranks).map(|_| rng.below(4) * rng.below(20)).collect();
        let data = contents(&mut rng, &lens);
        let into: Vec<SimBlocks> = (0..leaders)
            .map(|leader| {
                let mut before = contents(&mut rng, &lens);
                groups[leader].iter().for_each(|&rank| before[rank] = data[rank].clone());
                user_blocks(&mut rng, &before)
            })
            .collect();
        let (team_ref, into_ref, groups_ref) = (&team, &into, &groups);
        let stats = World::new(team.world as u32)
            .run_seed(seed, |ep| async move {
                let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
                let blocks = Grouped { ep: &ep, blocks: &into_ref[stage.me()], groups: groups_ref };
                send(algorithm.run(&stage, None::<&UserStream>, &blocks)).await
            })
            .unwrap();
        into.iter().for_each(|into| check(into, &data, &format!("{algorithm:?} seed {seed} {lens:?} {groups:?}")));
        no_empty_message(&stats);
    }
}

#[test]
fn leaders_exchange_the_blocks_between_their_groups() {
    // Each leader holds what its group sends: blocks of (sender, receiver), by sender. What it gets, by
    // receiver.
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (leaders, each, len) = ([2, 3, 4, 7][rng.below(4)], 1 + rng.below(3), [1, 13][rng.below(2)]);
        let team = Team::new(&mut rng, leaders);
        let ranks = leaders * each;
        let data: Vec<Vec<Vec<u8>>> = (0..ranks).map(|_| contents(&mut rng, &vec![len; ranks])).collect();
        // Group g's block for group h: those of its senders for h's receivers.
        let groups: Vec<Vec<usize>> = (0..leaders)
            .map(|g| (0..each).flat_map(|s| (0..each).map(move |r| s * ranks + g * each + r)).collect())
            .collect();
        let out: Vec<SimBlocks> = data.chunks(each).map(|senders| user_blocks(&mut rng, &senders.concat())).collect();
        let into: Vec<SimBlocks> =
            (0..leaders).map(|_| user_blocks(&mut rng, &vec![vec![0; len]; each * ranks])).collect();
        // The same from the other side: sender s of group g is s-th in its block.
        let from: Vec<Vec<usize>> = (0..leaders)
            .map(|g| (0..each).flat_map(|s| (0..each).map(move |r| r * ranks + g * each + s)).collect())
            .collect();
        let (team_ref, out_ref, into_ref, groups_ref, from_ref) = (&team, &out, &into, &groups, &from);
        World::new(team.world as u32)
            .run_seed(seed, |ep| async move {
                let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
                let out = Grouped { ep: &ep, blocks: &out_ref[stage.me()], groups: groups_ref };
                let into = Grouped { ep: &ep, blocks: &into_ref[stage.me()], groups: from_ref };
                match seed % 2 {
                    0 => send(linear(&stage, Some(&out), &into, 2)).await,
                    _ => send(pairwise(&stage, Some(&out), &into)).await,
                }
            })
            .unwrap();
        for (leader, into) in into.iter().enumerate() {
            let expected: Vec<Vec<u8>> =
                (0..each).flat_map(|r| data.iter().map(move |row| row[leader * each + r].clone())).collect();
            check(into, &expected, &format!("seed {seed}"));
        }
    }
}

#[test]
fn packed_blocks_go_up_and_down() {
    // A leader collects its group in a buffer and hands the blocks out again.
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let size = 1 + rng.below(12);
        let team = Team::new(&mut rng, size);
        let lens: Vec<usize> = (0..size).map(|_| rng.below(4) * rng.below(20)).collect();
        let (data, noise) = (contents(&mut rng, &lens), contents(&mut rng, &lens));
        let mine: Vec<_> = data.iter().map(|block| UserStream::new(&mut rng, block)).collect();
        let back: Vec<_> = noise.iter().map(|block| UserStream::new(&mut rng, block)).collect();
        let (team_ref, mine_ref, back_ref, root) = (&team, &mine, &back, rng.below(size));
        let lengths = &Lengths::each(lens.iter().copied());
        World::new(team.world as u32)
            .run_seed(seed, |ep| async move {
                let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
                let (own, back) = (&mine_ref[stage.me()], &back_ref[stage.me()]);
                let temp = ep.temp(if stage.me() == root { lengths.total() } else { 0 })?;
                let all = Packed { ep: &ep, span: temp.span(), lengths };
                let role = match stage.me() == root {
                    true => Role::Root { all: &all, own: Some(own) },
                    false => Role::Other { own },
                };
                send(gather(&stage, root, role, None, 2)).await?;
                let role = match stage.me() == root {
                    true => Role::Root { all: &all, own: Some(back) },
                    false => Role::Other { own: back },
                };
                send(scatter(&stage, root, role, None, 2)).await
            })
            .unwrap();
        back.iter().zip(&data).for_each(|(stream, block)| stream.check(block));
    }
}

#[test]
fn views_show_the_same_bytes() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let lens: Vec<usize> = (0..9).map(|_| rng.below(3) * rng.below(50)).collect();
        let data = contents(&mut rng, &lens);
        let (groups, blocks) = (groups(&mut rng, 9, 4), user_blocks(&mut rng, &data));
        let (blocks_ref, groups_ref, data_ref) = (&blocks, &groups, &data);
        World::new(1)
            .run_seed(seed, |ep| async move {
                let grouped = Grouped { ep: &ep, blocks: blocks_ref, groups: groups_ref };
                let lengths = Lengths::each((0..4).map(|g| grouped.len(g)));
                let temp = ep.temp(lengths.total())?;
                let packed = Packed { ep: &ep, span: temp.span(), lengths: &lengths };
                for (member, ranks) in groups_ref.iter().enumerate() {
                    let (group, copy) = (Block { blocks: &grouped, member }, Block { blocks: &packed, member });
                    let expected: Vec<u8> = ranks.iter().flat_map(|&m| data_ref[m].clone()).collect();
                    assert_eq!(group.len(), expected.len());
                    transfer(&ep, &group, &copy)?;
                    let span = copy.direct().unwrap();
                    let seen = UnitBuffer::new(UnitType::BYTE, expected.len());
                    ep.copy(span, seen.span());
                    assert_eq!(seen.data(), expected);
                    // Any part, there and back.
                    let (at, len) = (expected.len() / 3, expected.len() / 2);
                    let part = ep.temp(len)?;
                    read(&ep, &group, at, part.span())?;
                    let seen = UnitBuffer::new(UnitType::BYTE, len);
                    ep.copy(part.span(), seen.span());
                    assert_eq!(seen.data(), expected[at..at + len]);
                    write(&ep, &group, at, part.span())?;
                    copy.pack(at, part.span())?;
                    copy.unpack(at, part.span())?;
                    let plain = Plain { ep: &ep, span: span.slice(at..at + len) };
                    plain.pack(0, part.span())?;
                    plain.unpack(0, part.span())?;
                }
                Ok(())
            })
            .unwrap();
        check(&blocks, &data, "after writing what was read");
    }
}

#[test]
fn long_streams_are_copied_in_pieces() {
    // Two layouts, of which neither is one run, and lengths around the size of a piece.
    for (seed, len) in (0..).zip([1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 200_000]) {
        let data = bytes(&mut Rng::new(seed), len);
        let (from, to) = (SimStream::strided(&data, 7, 9), SimStream::strided(&vec![0; len], 30, 31));
        let (from_ref, to_ref) = (&from, &to);
        let stats = World::new(1).run_seed(seed, |ep| async move { transfer(&ep, from_ref, to_ref) }).unwrap();
        assert!(to.contents() == data && from.contents() == data, "{len} bytes");
        assert!(to.gaps_intact());
        assert_eq!(stats.temp_peak, [len.min(64 << 10)]);
    }
}
