// SPDX-License-Identifier: BSD-3-Clause
//! The way of blocks between all ranks and a root, along the groups: up, to be gathered, or down, to be
//! scattered.
//!
//! It is what gather and scatter share, and what compositions use that gather at leaders or scatter from
//! them. Leaders keep the blocks of the ranks below them by ascending rank ([`super::parts`]), so any
//! placement will do. The processes of a node hand their blocks to its leader, or take them from there,
//! through shared memory, where it has some: which member knows which lengths is the same as with messages.

use super::inside::Bytes;
use super::lanes::{lanes, segments};
use super::parts::{Parts, led};
use super::{Job, Within, phase};
use crate::algo::data::{Block, Grouped, Packed, Plain, Role, numbers, transfer, write};
use crate::algo::{gather, scatter};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::select::Facts;
use crate::shm::op as shm;
use crate::topo::{Group, Level};
use std::iter::repeat_n;
use std::ops::Range;

/// Messages that a leader has under way at a time.
const POSTS: usize = 16;

/// How blocks go to a group's leader, and from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// [`crate::algo::gather::linear`], [`crate::algo::scatter::linear`]
    Linear,
    /// [`crate::algo::gather::knomial`], [`crate::algo::scatter::knomial`] of this radix
    Knomial(u32),
}

impl Tree {
    /// The built-in choice. Within a node a leader takes messages faster than a tree passes them on; between
    /// many leaders, short blocks gain from few steps.
    pub fn auto(facts: &Facts) -> Tree {
        match facts.members {
            9.. if facts.level > Level::Node && facts.bytes <= 64 << 10 => Tree::Knomial(4),
            _ => Tree::Linear,
        }
    }
}

/// How the trees of an operation are chosen.
pub trait Choose: Fn(&Facts) -> Tree + Sync {}

impl<F: Fn(&Facts) -> Tree + Sync> Choose for F {}

/// The same, whatever chooses them.
pub(super) type Chooser<'c> = dyn Fn(&Facts) -> Tree + Sync + 'c;

/// The lengths of blocks by rank.
pub(super) type Known<'k> = dyn Fn(usize) -> usize + Sync + 'k;

/// Which way blocks go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To the leaders.
    Up,
    /// From them.
    Down,
}

/// All of a gather or a scatter but its announcements. `equal`: the length of all blocks, where they have the
/// same one, which all know then; else `told`: those of the ranks that the caller stands for, unless it is
/// the root. A large operation with equal lengths is cut into runs of ranks.
pub(super) async fn rooted<E: Endpoint, S: Stream, B: Blocks>(
    job: &Job<'_, E>,
    parts: &Parts,
    choose: &impl Choose,
    way: Way,
    (equal, told): (Option<usize>, &[usize]),
    role: &Role<'_, S, B>,
) -> Result<()> {
    let size = job.ep.size() as usize;
    let own_len = |place: usize| equal.unwrap_or_else(|| told[place]);
    let len = |_| equal.unwrap_or_default();
    let known = equal.and(Some::<&Known<'_>>(&len));
    // How many ranks make a segment.
    let run = equal.map_or(size, |len| job.segment / len.max(1)).clamp(1, size.max(1));
    let alone = segments(size, run) == 1;
    lanes(size, run, job.window, |lane, range| async move {
        let walk = Walk { job, parts, choose, way, lane, range, known, alone, tells: false };
        let own = match role {
            Role::Root { all, own } => {
                return walk
                    .lead(job.groups, *all, own.map(|own| own as _), |group| parts.ranks(group, &walk.range))
                    .await;
            }
            Role::Other { own } => *own,
        };
        let (below, last) = job.groups.split_at(led(job.groups));
        if below.is_empty() {
            return match walk.range.contains(&(job.ep.rank() as usize)) {
                true => walk.follow(last, own).await,
                false => walk.follow(last, &Plain { ep: job.ep, span: Span::empty() }).await,
            };
        }
        let inside = |(place, rank): (usize, &usize)| if walk.range.contains(rank) { own_len(place) } else { 0 };
        let lengths = Lengths::each(parts.own().iter().enumerate().map(inside));
        let temp = job.ep.temp(lengths.total())?;
        let (all, whole) =
            (Packed { ep: job.ep, span: temp.span(), lengths: &lengths }, Plain { ep: job.ep, span: temp.span() });
        if way == Way::Down {
            walk.follow(last, &whole).await?;
        }
        walk.lead(below, &all, Some(own), |group| parts.places(group, &walk.range)).await?;
        if way == Way::Up { walk.follow(last, &whole).await } else { Ok(()) }
    })
    .await
}

/// The part of a process in a group.
type Led<'r, 'd> = Role<'r, &'d dyn Stream, &'d dyn Blocks>;

/// The way of the blocks of some ranks. What kinds of data these are is told at run time: compiled for each
/// kind, it was a twelfth of the component's code.
pub(super) struct Walk<'j, 'a, E> {
    pub job: &'j Job<'a, E>,
    pub parts: &'j Parts,
    pub choose: &'j Chooser<'j>,
    pub way: Way,
    pub lane: u8,
    pub range: Range<usize>,
    /// The length of each rank's block, where all ranks know them.
    pub known: Option<&'j Known<'j>>,
    /// Whether nothing else of the operation is under way meanwhile: where one of several lanes fails, the
    /// others end, and nobody waits for those who read the caller's memory.
    pub alone: bool,
    /// Whether the blocks are numbers that are [told](Endpoint::tell), which goes on after an error.
    pub tells: bool,
}

impl<'j, 'a, E: Endpoint> Walk<'j, 'a, E> {
    /// That of all ranks at once, in the first lane.
    pub fn whole(
        job: &'j Job<'a, E>,
        parts: &'j Parts,
        choose: &'j impl Choose,
        way: Way,
        known: Option<&'j Known<'j>>,
    ) -> Walk<'j, 'a, E> {
        Walk { job, parts, choose, way, lane: 0, range: 0..job.ep.size() as usize, known, alone: true, tells: false }
    }

    /// Collects, or hands out, along `groups`, which the caller leads, what `members` says: the blocks of
    /// each member of a group in `all`.
    pub async fn lead<'m>(
        &self,
        groups: &'a [Group],
        all: &dyn Blocks,
        own: Option<&dyn Stream>,
        members: impl Fn(usize) -> Vec<&'m [usize]>,
    ) -> Result<()> {
        let mine = self.range.contains(&(self.job.ep.rank() as usize));
        for turn in 0..groups.len() {
            let i = if self.way == Way::Up { turn } else { groups.len() - 1 - turn };
            let members = members(i);
            let grouped: &dyn Blocks = &Grouped { ep: self.job.ep, blocks: &all, groups: &members };
            // Above the lowest group the own block is one of those in `all`.
            let own = if i == 0 && mine { own.as_ref() } else { None };
            self.run(i, &groups[i], Role::Root { all: &grouped, own }).await?;
        }
        Ok(())
    }

    /// Hands `own`, the blocks below the caller, to the leader of the last of its groups, or takes them from
    /// there, if it does not lead that.
    pub async fn follow(&self, last: &'a [Group], own: &dyn Stream) -> Result<()> {
        let Some(group) = last.first() else { return Ok(()) };
        self.run(led(self.job.groups), group, Role::Other { own: &own }).await
    }

    /// In group number `i` of the caller's.
    async fn run(&self, i: usize, group: &'a Group, role: Led<'_, '_>) -> Result<()> {
        if self.run_in_node(i, group, &role).await? {
            return Ok(());
        }
        let phase = if self.way == Way::Up { phase::UP } else { phase::DOWN };
        let (stage, leader) = (self.job.stage(group, self.lane, phase).telling(self.tells), group.leader);
        match ((self.choose)(&self.job.facts(group, 1)), self.way) {
            (Tree::Linear, Way::Up) => gather::linear::linear(&stage, leader, role, POSTS).await,
            (Tree::Linear, Way::Down) => scatter::linear::linear(&stage, leader, role, POSTS).await,
            (Tree::Knomial(radix), way) => {
                let lengths = self.known.map(|len| self.totals(i, len));
                let lengths = lengths.as_ref();
                match way {
                    Way::Up => gather::knomial::knomial(&stage, leader, role, lengths, radix).await,
                    Way::Down => scatter::knomial::knomial(&stage, leader, role, lengths, radix).await,
                }
            }
        }
    }

    /// The same through shared memory; false: the group has none.
    async fn run_in_node(&self, i: usize, group: &Group, role: &Led<'_, '_>) -> Result<bool> {
        let Some(node) = self.job.shared(group) else { return Ok(false) };
        let (unit, leader, way) = (node.unit(), group.leader, self.way);
        // Where not all know the lengths, only the leader and the member do.
        let longest = self.known.map_or(usize::MAX, |len| {
            let totals = self.totals(i, len);
            (0..totals.count()).map(|member| totals.len(member) * unit).max().unwrap_or(0)
        });
        if longest == 0 {
            return Ok(true);
        }
        let bytes = match way {
            Way::Up => longest,
            // Each has a share of the leader's line.
            Way::Down if longest <= shm::line_share(node.size()) => 0,
            Way::Down => usize::MAX,
        };
        let node = node.reading_if(self.alone);
        let part = async {
            let opened = match self.tells {
                true => node.open(self.lane, bytes).await?,
                false => self.job.open(&node, self.lane, bytes).await?,
            };
            let Some(turn) = opened else { return Ok(None) };
            let (up, down) = (node.zero_copy().gather, node.zero_copy().scatter);
            match role {
                Role::Root { all, own } => {
                    let (all, own) = (Bytes { of: *all, unit }, own.map(|of| Bytes { of, unit }));
                    match way {
                        Way::Up => shm::gather::receive(turn, own.as_ref(), &all, up).await?,
                        Way::Down => shm::scatter::send(turn, &all, own.as_ref(), down).await?,
                    }
                }
                Role::Other { own } => {
                    let own = Bytes { of: *own, unit };
                    match way {
                        Way::Up => shm::gather::send(turn, leader, &own, up).await?,
                        Way::Down => shm::scatter::receive(turn, leader, &own, down).await?,
                    }
                }
            }
            Ok(Some(()))
        };
        match (self.job.within(&node, part).await, role) {
            (Within::Messages, _) => return Ok(false),
            (Within::Failed, Role::Root { all, own }) if self.tells => self.unknown(group, all, own.copied())?,
            _ => {}
        }
        Ok(true)
    }

    /// Assumes numbers that nobody could tell, none of which is 0: for each of those there may be a message.
    #[cold]
    fn unknown(&self, group: &Group, all: &dyn Blocks, own: Option<&dyn Stream>) -> Result<()> {
        let ep = self.job.ep;
        for member in 0..group.members.len() {
            let block = Block { blocks: &all, member };
            if member != group.me {
                let ones = numbers(ep, repeat_n(1, block.len() / size_of::<u64>()))?;
                write(ep, &block, 0, ones.span())?;
            } else if let Some(own) = own {
                transfer(ep, &own, &block)?;
            }
        }
        Ok(())
    }

    /// The lengths of what the members of a group stand for.
    fn totals(&self, group: usize, len: &Known<'_>) -> Lengths {
        let of = |part: &&[usize]| part.iter().map(|&rank| len(rank)).sum();
        Lengths::each(self.parts.ranks(group, &self.range).iter().map(of))
    }
}
