// SPDX-License-Identifier: BSD-3-Clause
//! Who sends what to whom: for one operation, the contents of every buffer before and after a call. The
//! oracle of the verification, and the source of the counts and displacements of the call.

use std::ops::Range;
use std::os::raw::c_int;

use crate::error::{Error, Result};
use crate::mpi::ffi::MPI_Aint;

use super::Counts;
use super::call::Arguments;
use super::content::mix;
use super::table::{Kind, operations};

/// Whose contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// This rank's.
    Rank(usize),
    /// Those of the root of the call.
    Root,
}

/// The contents of a piece of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Block `slot` of what somebody sends.
    Block(Who, usize),
    /// The reduction over ranks of their vectors from an element on. Of one rank: its vector.
    Fold(Range<usize>, usize),
}

/// A piece of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its contents.
    pub what: What,
    /// Its elements.
    pub count: usize,
    /// Its first element's place in the buffer.
    pub at: usize,
}

/// What a rank has in its buffers, as root or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    /// Before the call, in the send buffer.
    pub input: Vec<Piece>,
    /// The input is in the receive buffer instead (`MPI_IN_PLACE`, and the one buffer of a broadcast).
    pub in_recv: bool,
    /// After the call, in the receive buffer.
    pub output: Vec<Piece>,
    /// MPI leaves the rest of the receive buffer undefined; otherwise it must not change.
    pub undefined: bool,
    /// Elements of the send buffer.
    pub sends: usize,
    /// Elements of the receive buffer.
    pub receives: usize,
}

/// Neighbours of this rank, in the topology's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// Who sends to this rank.
    pub sources: Vec<usize>,
    /// To whom this rank sends.
    pub targets: Vec<usize>,
}

/// How many elements each has.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// The distribution.
    pub counts: Counts,
    /// The mean.
    pub mean: usize,
    /// Of the random counts.
    pub seed: u64,
    /// The number of ranks.
    pub size: usize,
}

impl Spread {
    /// The count of a rank.
    pub fn one(&self, rank: usize) -> usize {
        match self.counts {
            Counts::Regular => self.mean,
            Counts::Random => self.random(rank, self.size),
            Counts::Linear => 2 * self.mean * rank / (self.size - 1).max(1),
            Counts::Spike => self.spike(rank),
        }
    }

    /// The count from one rank to another; the same in both directions, but for a spike.
    pub fn two(&self, from: usize, to: usize) -> usize {
        match self.counts {
            Counts::Regular => self.mean,
            Counts::Random => self.random(from.min(to), from.max(to)),
            Counts::Linear => self.mean * (from + to) / (self.size - 1).max(1),
            Counts::Spike => self.spike(to),
        }
    }

    fn random(&self, a: usize, b: usize) -> usize {
        let x = mix(mix(mix(self.seed ^ 0xc0) ^ a as u64) ^ b as u64);
        ((u128::from(x) * (2 * self.mean as u128 + 1)) >> 64) as usize
    }

    /// All at the last rank: with the default root it has to travel.
    fn spike(&self, rank: usize) -> usize {
        if rank + 1 == self.size { self.mean * self.size } else { 0 }
    }
}

/// The shape of an operation on one rank.
pub struct Shape {
    roles: Vec<Role>,
    sent: Vec<usize>,
    received: Vec<usize>,
    single: (usize, usize),
}

/// Where blocks of these counts start, one after the other, and where the last ends.
fn starts(counts: &[usize]) -> (Vec<usize>, usize) {
    let mut end = 0;
    let mut starts = Vec::with_capacity(counts.len());
    for n in counts {
        starts.push(end);
        end += n;
    }
    (starts, end)
}

/// Pieces of these counts and contents, one after the other.
fn row(counts: &[usize], what: impl Fn(usize) -> What) -> (Vec<Piece>, usize) {
    let (at, end) = starts(counts);
    let piece = |i: usize| Piece { what: what(i), count: counts[i], at: at[i] };
    ((0..counts.len()).map(piece).collect(), end)
}

impl Shape {
    /// The shape of `kind` on rank `me`.
    pub fn new(kind: Kind, in_place: bool, spread: &Spread, me: usize, neighbors: &Neighbors) -> Shape {
        let mut shape = Self::of(kind, in_place, spread, me, neighbors);
        // Without arrays there is no displacement that could be too large for MPI.
        if !operations().iter().any(|operation| operation.kind == kind && operation.vector) {
            (shape.sent, shape.received) = (Vec::new(), Vec::new());
        }
        shape
    }

    fn of(kind: Kind, in_place: bool, spread: &Spread, me: usize, neighbors: &Neighbors) -> Shape {
        let (n, size) = (spread.mean, spread.size);
        let mine = |count| row(&[count], |_| What::Block(Who::Rank(me), 0));
        let all: Vec<usize> = (0..size).map(|rank| spread.one(rank)).collect();
        let role = |(input, sends): (Vec<Piece>, usize), (output, receives): (Vec<Piece>, usize)| Role {
            input,
            output,
            sends,
            receives,
            ..Role::default()
        };
        let none = || (Vec::new(), 0);
        let shape = |roles, sent: &[usize], received: &[usize], single| Shape {
            roles,
            sent: sent.to_vec(),
            received: received.to_vec(),
            single,
        };
        match kind {
            Kind::Barrier
            | Kind::CommDup
            | Kind::CommSplit
            | Kind::CommCreate
            | Kind::CommFree
            | Kind::PingPong
            | Kind::Stream
            | Kind::Exchange => shape(vec![Role::default()], &[], &[], (0, 0)),
            Kind::Bcast => {
                let message = || row(&[n], |_| What::Block(Who::Root, 0));
                let root = Role { in_recv: true, sends: 0, ..role(message(), message()) };
                shape(vec![role(none(), message()), root], &[], &[], (0, n))
            }
            Kind::Gather | Kind::Gatherv | Kind::Allgather | Kind::Allgatherv => {
                let gathered = row(&all, |rank| What::Block(Who::Rank(rank), 0));
                let whole = Self::place(role(mine(all[me]), gathered), in_place, starts(&all).0[me]);
                let every = matches!(kind, Kind::Allgather | Kind::Allgatherv);
                let roles = if every { vec![whole] } else { vec![role(mine(all[me]), none()), whole] };
                shape(roles, &[], &all, (all[me], n))
            }
            Kind::Scatter | Kind::Scatterv => {
                let scattered = row(&all, |rank| What::Block(Who::Root, rank));
                let received = || row(&all[me..=me], |_| What::Block(Who::Root, me));
                let root = role(scattered, if in_place { none() } else { received() });
                shape(vec![role(none(), received()), root], &all, &[], (n, all[me]))
            }
            Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => {
                let ranks: Vec<usize> = (0..size).collect();
                Self::exchange(spread, me, &ranks, &ranks, in_place)
            }
            Kind::NeighborAllgather | Kind::NeighborAllgatherv => {
                let received: Vec<usize> = neighbors.sources.iter().map(|rank| all[*rank]).collect();
                let output = row(&received, |i| What::Block(Who::Rank(neighbors.sources[i]), 0));
                shape(vec![role(mine(all[me]), output)], &[], &received, (all[me], n))
            }
            Kind::NeighborAlltoall | Kind::NeighborAlltoallv | Kind::NeighborAlltoallw => {
                Self::exchange(spread, me, &neighbors.sources, &neighbors.targets, false)
            }
            _ => Self::reduction(kind, in_place, spread, me, &all),
        }
    }

    fn reduction(kind: Kind, in_place: bool, spread: &Spread, me: usize, all: &[usize]) -> Shape {
        let (n, size) = (spread.mean, spread.size);
        let scatters = matches!(kind, Kind::ReduceScatter | Kind::ReduceScatterBlock);
        let (at, total) = if scatters { starts(all) } else { (vec![0; size], n) };
        let ranks = match kind {
            Kind::Scan => 0..me + 1,
            Kind::Exscan => 0..me,
            _ => 0..size,
        };
        let input = row(&[total], |_| What::Fold(me..me + 1, 0));
        let (mut output, receives) = row(&[if scatters { all[me] } else { n }], |_| What::Fold(ranks.clone(), at[me]));
        output.retain(|_| !ranks.is_empty());
        let whole = Role {
            input: input.0.clone(),
            sends: input.1,
            output,
            receives,
            undefined: ranks.is_empty(),
            in_recv: false,
        };
        let mut whole = Self::place(whole, in_place, 0);
        if in_place && scatters {
            (whole.receives, whole.undefined) = (total, true);
        }
        let other = Role { input: input.0, sends: input.1, ..Role::default() };
        let roles = if kind == Kind::Reduce { vec![other, whole] } else { vec![whole] };
        Shape { roles, sent: Vec::new(), received: all.to_vec(), single: (n, n) }
    }

    /// A block to each of `targets`, one from each of `sources`. Between two ranks all blocks are alike: with
    /// several ways between them (a ring of two) libraries differ in which block goes which way.
    fn exchange(spread: &Spread, me: usize, sources: &[usize], targets: &[usize], in_place: bool) -> Shape {
        let sent: Vec<usize> = targets.iter().map(|to| spread.two(me, *to)).collect();
        let received: Vec<usize> = sources.iter().map(|from| spread.two(*from, me)).collect();
        let (input, sends) = row(&sent, |i| What::Block(Who::Rank(me), targets[i]));
        let (output, receives) = row(&received, |i| What::Block(Who::Rank(sources[i]), me));
        let role = Role { input, sends, output, receives, in_recv: false, undefined: false };
        Shape { roles: vec![Self::place(role, in_place, 0)], sent, received, single: (spread.mean, spread.mean) }
    }

    /// Moves the input to the receive buffer.
    fn place(mut role: Role, in_place: bool, at: usize) -> Role {
        if in_place {
            (role.in_recv, role.sends) = (true, 0);
            role.input.iter_mut().for_each(|piece| piece.at += at);
        }
        role
    }

    /// The role of a rank that is the root, or is not.
    pub fn role(&self, root: bool) -> &Role {
        &self.roles[usize::from(root).min(self.roles.len() - 1)]
    }

    /// The arguments of the call. `extent`: the unit of displacements is the byte, and elements have so many.
    pub fn arguments(&self, extent: Option<usize>) -> Result<Arguments> {
        let unit = extent.unwrap_or(1);
        let places = |counts: &[usize]| starts(counts).0.iter().map(|at| at * unit).collect::<Vec<_>>();
        let (sds, rds) = (places(&self.sent), places(&self.received));
        let aints = |places: &[usize]| places.iter().map(|at| *at as MPI_Aint).collect();
        Ok(Arguments {
            sn: int(self.single.0)?,
            rn: int(self.single.1)?,
            sns: ints(&self.sent)?,
            rns: ints(&self.received)?,
            sdas: aints(&sds),
            rdas: aints(&rds),
            sds: ints(&sds)?,
            rds: ints(&rds)?,
            types: Vec::new(),
        })
    }
}

fn ints(values: &[usize]) -> Result<Vec<c_int>> {
    values.iter().map(|value| int(*value)).collect()
}

fn int(value: usize) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| {
        Error::usage(format!(
            "the message is too large: a count or displacement would be {value}, and MPI takes at most {}",
            c_int::MAX
        ))
    })
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
