// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall, Alltoallv, Alltoallw: what the ranks below a member of the topmost group send is gathered there,
//! each pair of members exchanges one message, and what came is scattered. With nodes below the topmost
//! group: one message for each pair of nodes.
//!
//! A rank hands in all its blocks, ordered by the member that they go to, so a leader sends runs of them as
//! they are. Only what comes has to be put together anew, by receiver. Where lengths differ, every rank first
//! tells its leaders the lengths of what it sends and of what it receives.
//!
//! For long blocks every byte's extra way through the leaders costs more than the messages that it saves.
//! Then ranks exchange blocks pairwise ([`spread`]), in an order in which the messages that a rank has under
//! way go to different members' ranks. [`crate::select::cost`] tells from the shape which it is.
//!
//! Cost, with P ranks, of which L below a leader, and H members on top: at each level below, twice one
//! message for each member that is no leader, with the P blocks of each rank below it (with different lengths
//! 16 P bytes of them per rank below, in one message more); on top H − 1 messages per member, with the L · L
//! blocks between two of them. `spread`: P − 1 messages per rank, one block each.
//! Memory: at a leader twice the blocks below it.
//! Source: Träff, Rougier: MPI collectives and datatypes for hierarchical all-to-all communication,
//! EuroMPI/ASIA 2014; Kumar et al.: Optimization of all-to-all communication on the Blue Gene/L, ICPP 2008,
//! for spreading.

use super::inside;
use super::parts::{Parts, led, split};
use super::rooted::{Choose, Chooser, Known, Walk, Way};
use super::{Job, phase};
use crate::algo::Stage;
use crate::algo::alltoall::linear::linear;
use crate::algo::data::{Block, Grouped, Members, Packed, Plain, Several, announced, numbers, read, transfer, write};
use crate::endpoint::{Blocks, Endpoint, Rank, Result, Span, Stream, Tag, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::topo::{Group, Level};
use std::ops::Range;

/// Messages that a rank has under way at a time, each way.
const POSTS: usize = 8;

/// Sends block i of `out` to rank i, and receives block i of `into` from there, through leaders. `out` is
/// none where the blocks to send lie in `into`. `job.groups` are led by the lowest ranks; `parts`: of the
/// joined kind. `equal`: the length of all blocks, where they have the same one.
pub async fn alltoall<E: Endpoint, O: Blocks, I: Blocks>(
    job: &Job<'_, E>,
    parts: &Parts,
    choose: &impl Choose,
    equal: Option<usize>,
    out: Option<&O>,
    into: &I,
) -> Result<()> {
    let out = match out {
        _ if job.groups.is_empty() => return alone(job.ep, out, into),
        Some(out) => out as &dyn Blocks,
        None => into,
    };
    through(job, parts, &(choose as &Chooser<'_>), equal, &out, &(into as &dyn Blocks)).await
}

/// All there is to do in a communicator of one.
fn alone<E: Endpoint, O: Blocks, I: Blocks>(ep: &E, out: Option<&O>, into: &I) -> Result<()> {
    out.map_or(Ok(()), |out| transfer(ep, &Block { blocks: out, member: 0 }, &Block { blocks: into, member: 0 }))
}

/// Once for data of any kind.
async fn through<E: Endpoint>(
    job: &Job<'_, E>,
    parts: &Parts,
    choose: &&Chooser<'_>,
    equal: Option<usize>,
    out: &&dyn Blocks,
    into: &&dyn Blocks,
) -> Result<()> {
    let (ep, size) = (job.ep, job.ep.size() as usize);
    let (below, top) = split(job);
    let (inner, last) = below.split_at(led(below));
    let members = Members::List(parts.order());
    let (row, column) = (Several { ep, blocks: out, members }, Several { ep, blocks: into, members });
    let ways = Ways { job, parts, choose, inner, last };
    let lens = match equal {
        Some(len) => Table { equal: len, rows: Vec::new(), size },
        None => ways.tell(out, into).await?,
    };
    let len = |_| size * lens.equal;
    let known = equal.and(Some::<&Known<'_>>(&len));
    if inner.is_empty() && top.is_none() {
        ways.up(known).follow(last, &row).await?;
        return ways.down(known).follow(last, &column).await;
    }

    // A row for each rank below: its blocks, by member of the topmost group.
    let own = parts.own();
    let rows = Lengths::each((0..own.len()).map(|place| lens.sent(place, 0..size, parts)));
    let leaving = ep.temp(rows.total())?;
    let all = Packed { ep, span: leaving.span(), lengths: &rows };
    let up = ways.up(known);
    if inner.is_empty() {
        read(ep, &row, 0, leaving.span())?;
    }
    up.lead(inner, &all, Some(&row), |group| parts.places(group, &up.range)).await?;
    let columns = Lengths::each((0..own.len()).map(|place| lens.received(place, parts)));
    let down = ways.down(known);
    let Some(group) = top else {
        up.follow(last, &Plain { ep, span: leaving.span() }).await?;
        drop(leaving);
        let arriving = ep.temp(columns.total())?;
        down.follow(last, &Plain { ep, span: arriving.span() }).await?;
        let all = Packed { ep, span: arriving.span(), lengths: &columns };
        return down.lead(inner, &all, Some(&column), |group| parts.places(group, &down.range)).await;
    };

    // Chunks: what one rank below sends to the ranks below one member.
    let count = parts.top().len();
    let chunks = Lengths::each((0..own.len() * count).map(|i| {
        let start: usize = parts.top()[..i % count].iter().map(Vec::len).sum();
        lens.sent(i / count, start..start + parts.top()[i % count].len(), parts)
    }));
    let chunk = Packed { ep, span: leaving.span(), lengths: &chunks };
    let out_groups: Vec<Vec<usize>> =
        (0..count).map(|member| (0..own.len()).map(|place| place * count + member).collect()).collect();
    let leaves = Grouped { ep, blocks: &chunk, groups: &out_groups };
    // What comes: by member, in it by sender, of each the blocks for the ranks below.
    let pieces = match equal {
        Some(len) => Lengths::equal(len, size * own.len()),
        None => Lengths::each((0..size * own.len()).map(|i| lens.piece(i % own.len(), parts.order()[i / own.len()]))),
    };
    let mut start = 0;
    let from: Vec<usize> = parts.top().iter().map(Vec::len).collect();
    let messages = Lengths::each(from.iter().map(|senders| {
        let first = start;
        start += senders * own.len();
        pieces.span(first..start).len()
    }));
    let arriving = ep.temp(pieces.total())?;
    let comes = Packed { ep, span: arriving.span(), lengths: &messages };
    linear(&job.stage(group, 0, phase::TOP), Some(&leaves), &comes, POSTS).await?;
    drop(leaving);

    let piece = Packed { ep, span: arriving.span(), lengths: &pieces };
    let all = Columns { ep, pieces: &piece, width: own.len(), senders: size, lengths: &columns };
    if inner.is_empty() {
        return write_stream(ep, &Block { blocks: &all, member: 0 }, &column);
    }
    down.lead(inner, &all, Some(&column), |group| parts.places(group, &down.range)).await
}

fn write_stream<E: Endpoint, S: Stream, T: Stream>(ep: &E, from: &S, to: &T) -> Result<()> {
    let temp = ep.temp(from.len())?;
    read(ep, from, 0, temp.span())?;
    write(ep, to, 0, temp.span())
}

/// The ways up and down below the topmost group.
struct Ways<'j, 'a, E, F> {
    job: &'j Job<'a, E>,
    parts: &'j Parts,
    choose: &'j F,
    /// The groups that the caller leads, and the one that it does not.
    inner: &'a [Group],
    last: &'a [Group],
}

impl<'j, 'a, E: Endpoint, F: Choose> Ways<'j, 'a, E, F> {
    /// The way up of a row per rank; `known`: their lengths.
    fn up(&self, known: Option<&'j Known<'j>>) -> Walk<'j, 'a, E> {
        Walk::whole(self.job, self.parts, self.choose, Way::Up, known)
    }

    /// The way down of a column per rank; `known`: their lengths.
    fn down(&self, known: Option<&'j Known<'j>>) -> Walk<'j, 'a, E> {
        Walk::whole(self.job, self.parts, self.choose, Way::Down, known)
    }

    /// Tells the leaders the lengths of what is sent and received below them.
    async fn tell<O: Blocks, I: Blocks>(&self, out: &O, into: &I) -> Result<Table> {
        let (ep, size) = (self.job.ep, self.job.ep.size() as usize);
        let own = self.parts.own();
        let message = numbers(ep, (0..size).map(|r| out.len(r)).chain((0..size).map(|r| into.len(r))))?;
        let mine = Plain { ep, span: message.span() };
        let record = mine.len();
        let all = announced(ep, 2 * size * own.len())?;
        if self.inner.is_empty() {
            ep.copy(message.span(), all.span());
        }
        let lengths = Lengths::equal(record, own.len());
        let len = |_| record;
        let up = Walk { tells: true, ..Ways { ..*self }.up(Some(&len)) };
        let packed = Packed { ep, span: all.span(), lengths: &lengths };
        up.lead(self.inner, &packed, Some(&mine), |group| self.parts.places(group, &up.range)).await?;
        up.follow(self.last, &Plain { ep, span: all.span() }).await?;
        Ok(Table { equal: 0, rows: all.told().into_vec(), size })
    }
}

/// The lengths of the blocks that the ranks below a leader send and receive.
struct Table {
    /// Of all blocks, where no rows are given.
    equal: usize,
    /// For each rank below: the lengths that it sends to every rank, and those that it receives.
    rows: Vec<usize>,
    size: usize,
}

impl Table {
    /// Bytes that the rank at `place` sends to the ranks at `which` places of [`Parts::order`].
    fn sent(&self, place: usize, which: Range<usize>, parts: &Parts) -> usize {
        if self.rows.is_empty() {
            return which.len() * self.equal;
        }
        let row = &self.rows[2 * place * self.size..][..self.size];
        parts.order()[which].iter().map(|&rank| row[rank]).sum()
    }

    /// Bytes that the rank at `place` receives from `sender`.
    fn piece(&self, place: usize, sender: usize) -> usize {
        self.rows[(2 * place + 1) * self.size + sender]
    }

    /// Bytes that the rank at `place` receives.
    fn received(&self, place: usize, parts: &Parts) -> usize {
        match self.rows.is_empty() {
            true => self.equal * self.size,
            false => parts.order().iter().map(|&sender| self.piece(place, sender)).sum(),
        }
    }
}

/// What came for each of `width` ranks: of every sender's `width` pieces its own.
struct Columns<'b, E> {
    ep: &'b E,
    pieces: &'b Packed<'b, E>,
    width: usize,
    senders: usize,
    lengths: &'b Lengths,
}

impl<'b, E: Endpoint> Columns<'b, E> {
    fn column(&self, member: usize) -> Several<'b, E, Packed<'b, E>> {
        let members = Members::Every { first: member, step: self.width, count: self.senders };
        Several { ep: self.ep, blocks: self.pieces, members }
    }
}

impl<E: Endpoint> Blocks for Columns<'_, E> {
    fn len(&self, member: usize) -> usize {
        self.lengths.len(member)
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        if self.lengths.span(members.clone()).is_empty() {
            return Some(Span::empty());
        }
        if members.len() == 1 { self.column(members.start).direct() } else { None }
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        self.column(member).pack(at, to)
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        self.column(member).unpack(at, from)
    }
}

/// Sends block i of `out` to rank i, and receives block i of `into` from there, each with a message of its
/// own, in an order that takes a rank of every member of the topmost group in turn; but within a node through
/// its shared memory. `out` is none where the blocks to send lie in `into`; `equal`: the length of all
/// blocks, where they have the same one.
pub async fn spread<E: Endpoint, O: Blocks, I: Blocks>(
    job: &Job<'_, E>,
    parts: &Parts,
    equal: Option<usize>,
    out: Option<&O>,
    into: &I,
) -> Result<()> {
    let ep = job.ep;
    let longest = parts.top().iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|i| parts.top().iter().filter_map(move |part| part.get(i)));
    let ranks: Vec<[usize; 1]> = turns.map(|&rank| [rank]).collect();
    let members: Vec<Rank> = ranks.iter().map(|&[rank]| rank as Rank).collect();
    let Some(me) = members.iter().position(|&rank| rank == ep.rank()) else { return alone(ep, out, into) };
    let tag = Tag { lane: 0, phase: phase::TOP, level: Level::Cluster.index() };
    inside::exchange(job, &Stage::new(ep, &members, me, tag), &ranks, (out, into), equal, POSTS).await
}
