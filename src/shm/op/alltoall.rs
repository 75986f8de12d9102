// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall, with blocks of any lengths and types: each slot is shared by the destinations.
//!
//! A block that fits its destination's share of the line, or of the short slot, travels there. Of others,
//! round k brings the k-th part, as much as a share of a slot holds; with the first one come an address to
//! read the block at instead, or 0, and its length. Only the two members concerned need to know the length of
//! a block.

pub(super) mod places;

use super::block::{Block, Rooms, Shares, all_lengths, longest, sum_lengths, transfer};
use super::peers::{Everybody, Peers};
use super::short::{self, exchange::Alltoall};
use super::unequal::fits;
use super::{address_in, fetch, get, put, tally, told};
use crate::endpoint::{Blocks, Error, Result};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Facts, Operation, Way, forced_limit};
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::Reads;
use smallvec::SmallVec;

/// Where what travels: [`Shares`] are those of the writer.
#[derive(Clone, Copy)]
struct Plan<'t> {
    team: &'t Team,
    fragment: usize,
    zero_copy: Reads,
    limit: usize,
    /// All blocks are known to be short, and to lie still.
    still: bool,
}

impl<'t> Plan<'t> {
    #[inline(always)]
    fn new(turn: &Turn<'t>, zero_copy: Reads) -> Plan<'t> {
        let limit = turn.limit(Operation::Alltoall, zero_copy.from);
        Plan { team: turn.team(), fragment: turn.fragment(), zero_copy, limit, still: turn.is_still() }
    }

    #[inline(always)]
    fn rooms(self, writer: Member) -> Rooms {
        Rooms::new(self.team, self.still, writer, self.limit)
    }

    fn slot(self, writer: Member) -> Shares {
        Shares::new(self.fragment, self.team.size(), writer, 64)
    }

    #[inline(always)]
    fn is_short(self, len: usize) -> bool {
        self.rooms(0).hold(len)
    }

    /// Bytes of a block that travel in a round.
    fn part(self) -> usize {
        self.slot(0).part()
    }

    /// Bytes before it in a share.
    fn head(self) -> usize {
        self.slot(0).head()
    }

    fn rounds(self, len: usize) -> usize {
        if self.is_short(len) { len.min(1) } else { len.div_ceil(self.part()) }
    }
}

/// Whether all these blocks travel at once where they are not short: in a share of a set, where members take
/// turns on the cores.
#[inline(never)]
pub(super) fn in_one_round(
    turn: &Turn<'_>,
    zero_copy: Reads,
    peers: impl Peers,
    out: &dyn Blocks,
    into: &dyn Blocks,
) -> bool {
    if !turn.shares_cores() {
        return false;
    }
    let facts = turn.facts(Operation::Alltoall, zero_copy);
    let fits = |len| facts.way(len).is_short();
    all_lengths(out, peers.to(), fits) && all_lengths(into, peers.from(), fits)
}

/// Sends block i of `out` to member i, and receives block i of `into` from there. Without `out` the blocks of
/// `into` are sent; then so it is for all members. Blocks of so many bytes as `zero_copy` says (a number: and
/// more) others may read directly.
pub fn alltoall<O: Blocks, I: Blocks>(
    turn: Turn<'_>,
    out: Option<&O>,
    into: &I,
    zero_copy: impl Into<Reads>,
) -> impl Future<Output = Result<()>> {
    let peers = Everybody::of(turn.team());
    short::run(turn, among(peers, out, into, zero_copy.into()))
}

/// The same where a member has blocks for and from some others only. Whom it has none from need not call.
#[inline(always)]
pub fn among<O: Blocks, I: Blocks, P: Peers>(peers: P, out: Option<O>, into: I, zero_copy: Reads) -> Alltoall<O, I, P> {
    Alltoall { out, into, peers, zero_copy }
}

/// Not all blocks are short, or there are none to send.
pub(super) async fn long(
    turn: Turn<'_>,
    peers: impl Peers,
    out: Option<&dyn Blocks>,
    into: &dyn Blocks,
    zero_copy: Reads,
) -> Result<()> {
    let turn = wide(turn);
    let Some(out) = out else {
        // What is to be sent does not stay unchanged.
        let facts = || Facts { in_place: true, ..turn.facts(Operation::Alltoall, usize::MAX) };
        let limit = turn.named().map_or(usize::MAX, |_| forced_limit(&facts(), usize::MAX));
        let plan = Plan { limit, ..Plan::new(&turn, usize::MAX.into()) };
        return exchange(turn, plan, peers, into, into, false).await;
    };
    let plan = Plan::new(&turn, zero_copy);
    exchange(turn, plan, peers, out, into, true).await
}

/// With fragments as long as they should be: as few rounds as can be where each costs all members a turn.
fn wide(turn: Turn<'_>) -> Turn<'_> {
    if turn.shares_cores() { turn.in_whole_sets() } else { turn.widened_for_parts() }
}

async fn exchange(
    turn: Turn<'_>,
    plan: Plan<'_>,
    peers: impl Peers,
    out: &dyn Blocks,
    into: &dyn Blocks,
    own_left: bool,
) -> Result<()> {
    let word = told::word_of(&turn, out, peers.to(), |len| plan.is_short(len));
    let turn = turn.saying_as(word);
    let facts = Facts { in_place: !own_left, ..turn.facts(Operation::Alltoall, plan.zero_copy) };
    tally::count(Operation::Alltoall, facts.way(longest(out, peers.to())));
    let away = |m: Member| match facts.way(out.len(m)).reads_peers() {
        true => address_in(plan.team, &Block::new(out, m)),
        false => 0,
    };
    let exchanged = rounds(&turn, plan, &facts, peers, (out, into), own_left, away).await;
    let readers = peers.to().filter(|&m| away(m) != 0);
    if readers.clone().next().is_some() {
        turn.end_with(exchanged.map(drop), readers).await?;
        return fits(exchanged?);
    }
    let whole = exchanged?;
    turn.finish();
    fits(whole)
}

/// All rounds. `away(i)`: where member i may read its block, or 0. Returns whether no block was longer than
/// the place for it.
async fn rounds(
    turn: &Turn<'_>,
    plan: Plan<'_>,
    facts: &Facts,
    peers: impl Peers,
    (out, into): (&dyn Blocks, &dyn Blocks),
    mut own_left: bool,
    away: impl Fn(Member) -> u64 + Copy,
) -> Result<bool> {
    let (me, size) = (turn.me(), turn.size());
    let rounds_out = |m| if away(m) != 0 { 1 } else { plan.rounds(out.len(m)) };
    let to_send = turn.steps(peers.to().map(rounds_out).max().unwrap_or(0))?;
    let rounds = turn.steps(peers.from().map(|m| plan.rounds(into.len(m))).max().unwrap_or(0))?.max(to_send);
    let is_queued = |len| matches!(facts.way(len), Way::Whole | Way::Pipeline);
    let queued = sum_lengths(into, peers.from(), is_queued);
    let bypass = turn.nearly_bypass(queued.saturating_mul(size));
    let ahead = u32::from(turn.depth() > 1);
    let mut fetched: SmallVec<[u64; 2]> = SmallVec::from_elem(0, size.div_ceil(64));
    let (mut next, mut whole) = (0, true);
    for round in 0..rounds {
        while next < to_send.min(round + 1 + ahead) {
            send(turn, plan, peers, out, next, away).await?;
            next += 1;
        }
        if std::mem::take(&mut own_left) {
            // The others have something to read meanwhile.
            transfer(&Block::new(out, me), &Block::new(into, me))?;
        }
        for member in peers.from() {
            let (block, len) = (Block::new(into, member), into.len(member));
            if round as usize >= plan.rounds(len) || fetched[member / 64] >> (member % 64) & 1 != 0 {
                continue;
            }
            turn.wrote(member, round + 1).await?;
            if round == 0 && told::differs(turn, member, len, plan.is_short(len)) {
                if !peers.is_one_block(member) {
                    return Err(Error::Lengths);
                }
                whole &= told::take(**turn, member, &block)?;
                fetched[member / 64] |= 1 << (member % 64);
                continue;
            }
            if plan.is_short(len) {
                // SAFETY: published, and a share holds so much.
                unsafe { copy::unpack(&block, 0, len, plan.rooms(member).at(turn, me, len), false) }?;
                continue;
            }
            let from = turn.slot(member, round).wrapping_add(plan.slot(member).at(me));
            let at = round as usize * plan.part();
            if round == 0 && get(from.wrapping_add(places::LENGTH)) != len as u64 {
                return Err(Error::Lengths);
            }
            if round == 0 && get(from) != 0 {
                fetched[member / 64] |= 1 << (member % 64);
                fetch(turn, member, get(from), &block, 0..len)?;
                continue;
            }
            // SAFETY: published, and a share holds so much.
            unsafe { copy::unpack(&block, at, plan.part().min(len - at), from.wrapping_add(plan.head()), bypass) }?;
        }
        if round == 0 && peers.from().filter(|&m| into.len(m) > 0).count() + 1 == size {
            turn.met();
        }
        // Others may write in more rounds than one knows of.
        if round + 1 < rounds {
            turn.acknowledge(round + 1);
        }
    }
    if own_left {
        transfer(&Block::new(out, me), &Block::new(into, me))?;
    }
    Ok(whole)
}

/// Publishes the part of round `round` of all blocks.
async fn send(
    turn: &Turn<'_>,
    plan: Plan<'_>,
    peers: impl Peers,
    out: &dyn Blocks,
    round: u32,
    away: impl Fn(Member) -> u64,
) -> Result<()> {
    let me = turn.me();
    if round > 0 || peers.to().any(|m| !plan.is_short(out.len(m))) {
        turn.slot_free(round).await?;
    } else {
        turn.room_free(plan.rooms(me).want(plan.team, longest(out, peers.to()))).await?;
    }
    if round == 0 {
        told::note(turn, out, peers.to(), |len| plan.is_short(len));
    }
    for member in peers.to() {
        let (block, len) = (Block::new(out, member), out.len(member));
        if plan.is_short(len) {
            if round == 0 {
                // SAFETY: free, and a share holds so much.
                unsafe { copy::pack(&block, 0, len, plan.rooms(me).at(turn, member, len)) }?;
            }
            continue;
        }
        let to = turn.slot(me, round).wrapping_add(plan.slot(me).at(member));
        let from = away(member);
        if round == 0 {
            put(to, from);
            put(to.wrapping_add(places::LENGTH), len as u64);
        }
        let at = round as usize * plan.part();
        if from == 0 && at < len {
            let part = plan.part().min(len - at);
            let to = to.wrapping_add(plan.head());
            // SAFETY: the slot is free, and a share holds so much.
            unsafe { copy::pack(&block, at, part, to) }?;
        }
    }
    turn.publish(round + 1);
    Ok(())
}
