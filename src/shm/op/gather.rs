//! Gather, with blocks of any lengths: every member writes its own queue, the root reads them all.
//!
//! Up to 56 bytes travel in the line, up to 4 KiB in a short slot, and where members take turns on the cores
//! up to 64 KiB, or 256 KiB among few, as a whole in the set. Of more, the root takes piece k of every
//! member, then k + 1: the members copy in while it copies out. Where few members take turns, and are all
//! within the call, it takes what is in use of one's set, then of the next one's. Its progress as a reader
//! counts (piece, member) pairs in this order, so each member knows when its slot is free. Only the root and
//! the member need to know the length of a block.

use super::block::{Block, index, sum_lengths, transfer};
use super::divided::{self, LOAN};
use super::lent::{Lent, ask_for_blocks, copy_part, get_part, is_read};
use super::short::rooted::{Collect, Give};
use super::unequal::{Odd, Of, fits};
use super::{address, announce, announced, fetch, short, tally};
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Facts, Operation, Way, Writer, writers_part};
use crate::shm::turn::asking::Nothing;
use crate::shm::turn::{Travel, Turn};

/// Where the part begins that the member itself writes to the root's memory; `len` without one.
fn middle(facts: &Facts, len: usize) -> usize {
    match writers_part(facts, len, Writer::HasOwn) {
        0 => len,
        share => share,
    }
}

/// Where the root says where a member's block is.
fn entry(turn: &Turn<'_>, root: Member, member: Member) -> *mut u8 {
    turn.room(root, turn.size() * LOAN).wrapping_add(member * LOAN)
}

/// Sends `own` to `root`. From `zero_copy` bytes on, the root may read it directly.
pub fn send<S: Stream>(turn: Turn<'_>, root: Member, own: &S, zero_copy: usize) -> impl Future<Output = Result<()>> {
    short::run(turn, Give { root, own, zero_copy })
}

/// As the root, receives every member's block in `all`; `own` is its own data, if they are not in its block.
pub fn receive<S: Stream, B: Blocks>(
    turn: Turn<'_>,
    own: Option<&S>,
    all: &B,
    zero_copy: usize,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Collect { own, all, zero_copy })
}

/// In which order the root takes pieces: so many of one member, then as many of the next one, and so on.
#[derive(Clone, Copy)]
struct Order {
    at_once: u32,
    others: u32,
}

impl Order {
    /// One of each, as they copy at the same time; or, where few take turns on the cores, all that one can
    /// have written before it waits: among four and eight on two cores, with fragments of 32 KiB, blocks of
    /// 128 KiB to 1 MiB took 0.86 to 1.00 of what they took otherwise.
    fn of(turn: &Turn<'_>) -> Order {
        let at_once = if turn.gathers_in_halves() { turn.depth() } else { 1 };
        Order { at_once, others: turn.size() as u32 - 1 }
    }

    /// So many pieces of each, if they can be counted.
    fn pieces(self, turn: &Turn<'_>, pieces: usize) -> Result<u32> {
        let counted = pieces.next_multiple_of(self.at_once as usize);
        turn.steps(counted.saturating_mul(self.others as usize)).map(|_| pieces as u32)
    }

    /// So many pieces of each of these members, in order.
    fn all(self, members: impl Iterator<Item = Member> + Clone, pieces: u32) -> impl Iterator<Item = (Member, u32)> {
        (0..pieces).step_by(self.at_once as usize).flat_map(move |first| {
            let end = pieces.min(first + self.at_once);
            members.clone().flat_map(move |member| (first..end).map(move |piece| (member, piece)))
        })
    }

    /// How far the root has come when it has taken this piece of the member at that [index].
    fn count(self, piece: u32, place: usize) -> u32 {
        let (run, step) = (piece / self.at_once, piece % self.at_once);
        (run * self.others + place as u32) * self.at_once + step + 1
    }
}

/// The block is not short.
pub(super) async fn send_long(turn: Turn<'_>, root: Member, own: &dyn Stream, zero_copy: usize) -> Result<()> {
    let (me, len, piece) = (turn.me(), own.len(), turn.piece(own.len()));
    let facts = turn.facts(Operation::Gather, zero_copy);
    let way = facts.way(len);
    tally::count(Operation::Gather, way);
    turn.set_free().await?;
    let turn = turn.saying(len);
    if way.reads_peers() {
        let from = address(&turn, own);
        announce(&turn, from);
        if from != 0 {
            let divided = middle(&facts, len) < len;
            turn.note_length(len, if divided { Travel::LentBothWays } else { Travel::Lent });
            turn.publish(1);
            let stored = write(&turn, &facts, root, own).await;
            let told = stored.map(|all| divided::tell(&turn, if all { turn.size() } else { 0 }));
            let lent = Lent { readers: || vec![root], copy: |_, part, room| copy_part(own, part, room) };
            turn.over_with(told, std::iter::once(root), &lent).await?;
            turn.finish();
            return Ok(());
        }
    }
    turn.note_length(len, Travel::InPieces);
    let order = Order::of(&turn);
    let past = turn.writes_past(len.saturating_mul(turn.size() - 1));
    for step in 0..order.pieces(&turn, len.div_ceil(piece))? {
        if let Some(before) = step.checked_sub(turn.depth()) {
            turn.read(root, order.count(before, index(root, me))).await?;
        }
        let at = step as usize * piece;
        let part = piece.min(len - at);
        // SAFETY: the set is free, and the root is through with what the slot held before; it holds a piece.
        unsafe { copy::pack_past(own, at, part, turn.slot_of(me, step, piece), past) }?;
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

/// Writes the caller's part of its block to the root's memory, where possible.
async fn write(turn: &Turn<'_>, facts: &Facts, root: Member, own: &dyn Stream) -> Result<bool> {
    let at = middle(facts, own.len());
    if at == own.len() {
        return Ok(false);
    }
    turn.wrote(root, 1).await?;
    divided::store(turn, root, own, entry(turn, root, turn.me()), at)
}

/// Not all blocks are short.
pub(super) async fn receive_long(
    turn: Turn<'_>,
    own: Option<&dyn Stream>,
    all: &dyn Blocks,
    zero_copy: usize,
) -> Result<()> {
    let me = turn.me();
    let facts = turn.facts(Operation::Gather, zero_copy);
    turn.others().take(1).for_each(|m| tally::count(Operation::Gather, facts.way(all.len(m))));
    let divides = |m: Member| facts.way(all.len(m)) == Way::TwoSided;
    let to = |m: Member| if divides(m) { address(&turn, &Block::new(all, m)) } else { 0 };
    let divided = turn.others().any(divides);
    if divided {
        turn.room_free(turn.size() * LOAN).await?;
        for member in turn.others() {
            divided::lend(&turn, entry(&turn, me, member), to(member), all.len(member));
        }
        turn.publish(1);
    }
    let kept = own.map_or(Ok(()), |own| transfer(own, &Block::new(all, me)));
    let mut odd = Odd::default();
    let received = match kept.and(receive_all(&turn, &facts, all, to, &mut odd).await) {
        Ok(missing) if !missing.is_empty() => ask_for_blocks(&turn, &Nothing, missing, all).await,
        received => received.map(drop),
    };
    if divided {
        // In any case: they write to the caller's memory.
        turn.outlast(received, turn.others().filter(|&m| to(m) != 0)).await?;
        for member in turn.others().filter(|&m| to(m) != 0 && !odd.members.contains(&m)) {
            let (from, block) = (announced(&turn, member), Block::new(all, member));
            if from != 0 && !divided::is_served(&turn, member) {
                let part = middle(&facts, block.len())..block.len();
                get_part(&turn, member, from, &block, part).await?;
            }
        }
    } else {
        received?;
    }
    turn.finish();
    fits(!odd.cut)
}

/// Receives all others' blocks. `to(i)`: where member i writes a part of its block, or 0. Returns whose
/// blocks could not be read, and how much of each the caller should have.
async fn receive_all(
    turn: &Turn<'_>,
    facts: &Facts,
    all: &dyn Blocks,
    to: impl Fn(Member) -> u64,
    odd: &mut Odd,
) -> Result<Vec<(Member, usize)>> {
    let me = turn.me();
    let is_short = |len| facts.way(len).is_short();
    let rounds_of = |len: usize| if is_short(len) { len.min(1) } else { len.div_ceil(turn.piece(len)) };
    let most = turn.others().map(|m| rounds_of(all.len(m))).max().unwrap_or(0);
    let order = Order::of(turn);
    let rounds = order.pieces(turn, most)?;
    let queued = sum_lengths(all, turn.others(), |len| facts.way(len) == Way::Pipeline);
    let bypass = turn.bypasses(1, queued);
    let mut missing = Vec::new();
    for (member, round) in order.all(turn.others(), rounds) {
        let block = Block::new(all, member);
        let len = block.len();
        let piece = turn.piece(len);
        let at = round as usize * piece;
        let way = facts.way(len);
        let (is_short, may_fetch) = (way.is_short(), way.reads_peers());
        if round as usize >= rounds_of(len)
            || odd.members.contains(&member)
            || (may_fetch && round > 0 && announced(turn, member) != 0)
        {
            continue;
        }
        if is_short {
            turn.wrote_room(member, len).await?;
        } else {
            turn.wrote(member, round + 1).await?;
        }
        if round == 0 && turn.differs_anyhow(member, len) {
            odd.take(**turn, member, &block, Of::Gather).await?;
            continue;
        }
        if may_fetch && round == 0 && announced(turn, member) != 0 {
            let part = if to(member) != 0 { middle(facts, len) } else { len };
            if !is_read(fetch(turn, member, announced(turn, member), &block, 0..part))? {
                missing.push((member, part));
            }
            continue;
        }
        if is_short {
            // SAFETY: published, and it holds so much.
            unsafe { copy::unpack(&block, 0, len, turn.room(member, len), false) }?;
            continue;
        }
        // SAFETY: published; a slot holds a piece.
        unsafe { copy::unpack(&block, at, piece.min(len - at), turn.slot_of(member, round, piece), bypass) }?;
        if at + turn.depth() as usize * piece < len {
            turn.acknowledge(order.count(round, index(me, member)));
        }
    }
    Ok(missing)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::config::{Config, Cores};
    use crate::shm::heap::Heap;
    use crate::shm::team::Team;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn only_few_crowded_members_are_read_in_runs() {
        let at_once = |cores: Cores, slot| {
            let mut config = Config::built_in(4, cores);
            config.waiting.crowded = cores != Cores::Own;
            let team = Team::new(Heap::new(1, usize::MAX, true).member(0), config);
            let opened = pin!(team.open(slot, 0, true)).poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(turn) = opened else { panic!("alone, it waits for nobody") };
            let turn = turn.unwrap().unwrap().narrowed().halved();
            let order = Order::of(&turn);
            turn.finish();
            order.at_once
        };
        assert_eq!([at_once(Cores::Shared, 0), at_once(Cores::Shared, 1)], [2, 1]);
        assert_eq!([Cores::Own, Cores::Lent].map(|cores| at_once(cores, 0)), [1, 1]);
    }

    #[test]
    fn what_the_root_counts_grows_with_every_piece_that_it_takes() {
        for (at_once, taken) in [(1, 5 * 3), (4, 4 * 3 + 4 * 2 + 1)] {
            let order = Order { at_once, others: 3 };
            let counts: Vec<u32> =
                order.all([0, 2, 3].into_iter(), 5).map(|(m, piece)| order.count(piece, index(1, m))).collect();
            assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
            assert_eq!((counts.len(), counts[0], counts.last()), (15, 1, Some(&taken)));
        }
    }

    #[test]
    fn the_root_takes_runs_of_one_member() {
        let all = |at_once| Order { at_once, others: 2 }.all([0, 2].into_iter(), 3).collect::<Vec<_>>();
        assert_eq!(all(1), [(0, 0), (2, 0), (0, 1), (2, 1), (0, 2), (2, 2)]);
        assert_eq!(all(2), [(0, 0), (0, 1), (2, 0), (2, 1), (0, 2), (2, 2)]);
    }
}
