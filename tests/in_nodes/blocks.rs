// SPDX-License-Identifier: BSD-3-Clause
//! The operations with a block for each rank, and the prefix reductions, beside the others in one sequence.

use super::operations::{Call, Kind, Run};
use crate::data::{bytes, hash, stream};
use coll_rust::algo::Stage;
use coll_rust::algo::data::Role;
use coll_rust::algo::scan::Scan;
use coll_rust::endpoint::{Endpoint, Rank, Result, Span, Tag};
use coll_rust::hier::allgather::{Exchange, Specs, allgather};
use coll_rust::hier::gather::Tree;
use coll_rust::hier::parts::Parts;
use coll_rust::hier::reduce_scatter::{self, Halves};
use coll_rust::hier::scan::Prefix;
use coll_rust::hier::{self, Job, alltoall, inside};
use coll_rust::pattern::lengths::Lengths;
use coll_rust::select::{Facts, Spec};
use coll_rust::sim::{Rng, SimBlocks, SimStream, UnitBuffer, UnitType};
use coll_rust::topo::Level;

/// Messages under way at a time.
const POSTS: usize = 2;

impl Call {
    /// Whether all blocks have one length.
    fn has_equal_blocks(&self) -> bool {
        self.pick(0, 2) == 0
    }

    /// A number below `count` that all ranks agree on.
    fn pick(&self, what: usize, count: usize) -> usize {
        hash(&[self.id, 77, what]) as usize % count
    }

    /// The length of the block from one rank to another.
    fn len(&self, from: usize, to: usize) -> usize {
        let which = if self.has_equal_blocks() { [0, 0] } else { [from, to] };
        let lens = [0, 1, 7, 8, 28, 41, 57, 150];
        match hash(&[self.id, 5, which[0], which[1]]) as usize % 10 {
            8.. if !self.has_equal_blocks() => 0,
            i => lens[i % lens.len()],
        }
    }

    fn equal(&self) -> Option<usize> {
        self.has_equal_blocks().then(|| self.len(0, 0))
    }

    /// The block from one rank to another.
    fn block(&self, from: usize, to: usize) -> Vec<u8> {
        bytes(&[self.id, from, to], self.len(from, to))
    }

    fn tree(&self) -> impl Fn(&Facts) -> Tree + Sync + use<> {
        let call = *self;
        move |facts| match call.pick(10 + usize::from(facts.level.index()), 4) {
            0 => Tree::Knomial(2),
            1 => Tree::Knomial(3),
            _ => Tree::Linear,
        }
    }

    /// Blocks of these bytes, or with room for as many, in a layout of the rank's own.
    fn blocks(&self, rank: usize, contents: &[Vec<u8>]) -> SimBlocks {
        match hash(&[self.id, 6, rank]) % 2 {
            0 => SimBlocks::run(contents),
            _ => SimBlocks::scattered(&mut Rng::new(hash(&[self.id, 7, rank])), contents),
        }
    }

    fn stream(&self, rank: usize, content: &[u8]) -> SimStream {
        stream(content, &mut Rng::new(hash(&[self.id, 8, rank])))
    }
}

/// Other bytes, as many.
fn noise(contents: &[Vec<u8>]) -> Vec<Vec<u8>> {
    contents.iter().map(|content| bytes(&[1], content.len())).collect()
}

/// Room for blocks of these bytes; of the caller, its own one in place.
fn room(contents: &[Vec<u8>], own: Option<usize>) -> Vec<Vec<u8>> {
    let mut room = noise(contents);
    if let Some(own) = own {
        room[own] = contents[own].clone();
    }
    room
}

fn check(blocks: &SimBlocks, expected: &[Vec<u8>], call: &Call, rank: Rank) {
    for (member, block) in expected.iter().enumerate() {
        assert_eq!(blocks.contents(member), *block, "block {member} of {call:?} at rank {rank}");
    }
    assert!(blocks.gaps_intact(), "bytes outside the blocks of {call:?} at rank {rank}");
}

impl Run<'_> {
    /// What a rank's groups stand for.
    fn parts(&self, rank: Rank, call: &Call) -> Parts {
        let hierarchy = self.hierarchy(rank, call);
        match call.root() {
            Some(root) => Parts::rooted(&hierarchy, &hierarchy.groups(Some(root)), rank, root),
            None => Parts::joined(&hierarchy, &hierarchy.groups(None), rank),
        }
    }

    /// An operation that moves blocks.
    pub async fn move_blocks<E: Endpoint>(&self, job: &Job<'_, E>, call: Call) -> Result<()> {
        let (ep, me, size) = (job.ep, job.ep.rank() as usize, self.machine.size());
        let parts = &self.parts(ep.rank(), &call);
        let (ranks, tree) = (0..size as Rank, &call.tree());
        let ranks: Vec<Rank> = ranks.collect();
        let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
        let stage = &Stage::new(ep, &ranks, me, tag);
        let root = call.root as usize;
        match call.kind {
            Kind::Gather | Kind::GatherAtOnce => {
                let contents: Vec<_> = (0..size).map(|from| call.block(from, root)).collect();
                let own = &call.stream(me, &contents[me]);
                let all = call.blocks(me, &room(&contents, call.in_place.then_some(root)));
                let role = match me == root {
                    true => Role::Root { all: &all, own: (!call.in_place).then_some(own) },
                    false => Role::Other { own },
                };
                match call.kind {
                    Kind::Gather => {
                        hier::gather::gather(job, parts, tree, call.equal(), call.root, &role).await?;
                    }
                    _ => inside::gather(job, stage, call.root, role, call.equal(), POSTS).await?,
                }
                if me == root {
                    check(&all, &contents, &call, ep.rank());
                }
                assert_eq!(own.contents(), contents[me], "what is gathered of {call:?} has changed at rank {me}");
            }
            Kind::Scatter | Kind::ScatterAtOnce => {
                let contents: Vec<_> = (0..size).map(|to| call.block(root, to)).collect();
                let own = &call.stream(me, &noise(&contents)[me]);
                let all = call.blocks(me, &contents);
                let role = match me == root {
                    true => Role::Root { all: &all, own: (!call.in_place).then_some(own) },
                    false => Role::Other { own },
                };
                match call.kind {
                    Kind::Scatter => hier::scatter::scatter(job, parts, tree, call.equal(), &role).await?,
                    _ => inside::scatter(job, stage, call.root, role, call.equal(), POSTS).await?,
                }
                check(&all, &contents, &call, ep.rank());
                if me != root || !call.in_place {
                    assert_eq!(own.contents(), contents[me], "{call:?} at rank {me}");
                }
                assert!(own.gaps_intact());
            }
            Kind::Allgather => {
                let contents: Vec<_> = (0..size).map(|from| call.block(from, 0)).collect();
                let own = &call.stream(me, &contents[me]);
                let all = call.blocks(me, &room(&contents, call.in_place.then_some(me)));
                let exchange = |_: &Facts| [Exchange::Ring, Exchange::Linear, Exchange::Bruck][call.pick(2, 3)];
                let specs = Specs { trees: tree, exchange: &exchange, bcast: &Spec::AUTO, order: &[] };
                allgather(job, parts, &specs, (!call.in_place).then_some(own), &all).await?;
                check(&all, &contents, &call, ep.rank());
            }
            _ => self.alltoall(job, parts, call).await?,
        }
        Ok(())
    }

    async fn alltoall<E: Endpoint>(&self, job: &Job<'_, E>, parts: &Parts, call: Call) -> Result<()> {
        let (me, size) = (job.ep.rank() as usize, self.machine.size());
        // In place each block takes the place of one of the same length.
        let pair = |a: usize, b: usize| match call.in_place {
            true => bytes(&[call.id, a, b], call.len(a.min(b), a.max(b))),
            false => call.block(a, b),
        };
        let leaves: Vec<_> = (0..size).map(|to| pair(me, to)).collect();
        let comes: Vec<_> = (0..size).map(|from| pair(from, me)).collect();
        let out = call.blocks(me, &leaves);
        let into = call.blocks(size + me, &if call.in_place { leaves.clone() } else { noise(&comes) });
        let sent = (!call.in_place).then_some(&out);
        match call.kind {
            Kind::Alltoall => alltoall::alltoall(job, parts, &call.tree(), call.equal(), sent, &into).await?,
            _ => alltoall::spread(job, parts, call.equal(), sent, &into).await?,
        }
        check(&into, &comes, &call, job.ep.rank());
        check(&out, &leaves, &call, job.ep.rank());
        Ok(())
    }

    /// Reduce_scatter.
    pub async fn reduce_scatter<E: Endpoint>(&self, job: &Job<'_, E>, call: Call) -> Result<()> {
        let (rank, size) = (job.ep.rank(), self.machine.size());
        let len = |rank: usize| match call.has_equal_blocks() {
            true => call.units % 40,
            false => [0, 1, 5, 40][hash(&[call.id, 9, rank]) as usize % 4],
        };
        let lengths = Lengths::each((0..size).map(len));
        let call = Call { units: lengths.total(), ..call };
        let (input, output) = self.operands(rank, &call);
        let own = lengths.get(rank as usize);
        let target = if call.in_place { input.span() } else { output.span() }.slice(0..own.len());
        let halves = |_: &Facts| [Halves::Pairwise, Halves::ReduceScatterv, Halves::Ring][call.pick(3, 3)];
        let specs = reduce_scatter::Specs { reduce: &Spec::AUTO, halves: &halves, trees: &call.tree() };
        reduce_scatter::reduce_scatter(job, &self.parts(rank, &call), &specs, input.span(), &lengths, target).await?;
        let sum = self.sum(&call, 0..size);
        let result = if call.in_place { input.data() } else { output.data() };
        let expected = &sum[own.start * self.affine.size..own.end * self.affine.size];
        assert_eq!(&result[..expected.len()], expected, "{call:?} at rank {rank}");
        Ok(())
    }

    /// Scan or Exscan.
    pub async fn scan<E: Endpoint>(&self, job: &Job<'_, E>, call: Call) -> Result<()> {
        let rank = job.ep.rank();
        let (input, output) = self.operands(rank, &call);
        let before = if call.in_place { input.data() } else { output.data() };
        let target: Span = if call.in_place { input.span() } else { output.span() };
        let kind = if call.kind == Kind::Scan { Scan::Inclusive } else { Scan::Exclusive };
        let prefix = |_: &Facts| [Prefix::Linear, Prefix::RecursiveDoubling][call.pick(4, 2)];
        hier::scan::scan(job, &prefix, 2 + call.pick(5, 3) as u32, kind, input.span(), target).await?;
        let last = rank as usize + usize::from(kind == Scan::Inclusive);
        let expected = if last == 0 { before } else { self.sum(&call, 0..last) };
        let result = if call.in_place { input.data() } else { output.data() };
        assert_eq!(result, expected, "{call:?} at rank {rank}");
        assert!(call.in_place || input.data() == self.operand(&call, rank as usize), "the input has changed");
        Ok(())
    }

    /// A rank's operand of so many elements, and as much room.
    fn operands(&self, rank: Rank, call: &Call) -> (UnitBuffer, UnitBuffer) {
        let unit = UnitType::plain(self.affine.size);
        (UnitBuffer::with(unit, &self.operand(call, rank as usize)), UnitBuffer::new(unit, call.units))
    }
}
