// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast, reduction and barrier along a tree of groups of the members (such as those of a NUMA node
//! each): what is between two groups crosses once, and whoever leads a group waits for few.
//!
//! Each member has its line and its slots as in the other operations; it reads its parent's and its
//! children's only. For what is bound by latency: long data go without a tree, which copies them once more at
//! each level ([`suits_bcast`], [`suits_reduction`]).

use super::combine::Combine;
use super::pipeline::{self, Cut, Pieces, Plan, To};
use super::{facts, is_within, tally, wrote_alike};
use crate::endpoint::{Result, Span, Stream};
use crate::pattern::chunks::Chunks;
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Facts, Groups, Operation, Way};
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::{Near, Turn};
use crate::sync::shared::{will_read, will_write};

/// Groups that nobody has asked for, and of more members, may be made of groups of [`DEGREE`].
const FEW: usize = 16;
/// See there.
const DEGREE: usize = 8;

/// A group that the caller is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Two or more, ascending.
    pub members: Vec<Member>,
    /// The caller's place among them.
    pub me: usize,
    /// The leader's place.
    pub leader: usize,
}

impl Rung {
    /// Groups of up to `degree` of its members, as equal as can be, and groups of their leaders likewise
    /// while `which` says so of as many, until one is left: those that the caller is in.
    fn refined(&self, degree: usize, which: &impl Fn(usize) -> bool) -> Vec<Rung> {
        let (me, leader) = (self.members[self.me], self.members[self.leader]);
        let (mut rungs, mut level) = (Vec::new(), self.members.clone());
        while let Some(at) = level.iter().position(|&member| member == me).filter(|_| level.len() > 1) {
            let count = if which(level.len()) { level.len().div_ceil(degree.max(2)) } else { 1 };
            let cut = Chunks::new(level.len(), count);
            let mut leaders = Vec::with_capacity(count);
            for group in (0..count).map(|i| cut.get(i)) {
                let members = level[group.clone()].to_vec();
                let leads = members.iter().position(|&member| member == leader).unwrap_or(0);
                leaders.push(members[leads]);
                if group.contains(&at) && members.len() > 1 {
                    rungs.push(Rung { members, me: at - group.start, leader: leads });
                }
            }
            level = leaders;
        }
        rungs
    }
}

/// The groups of one member, bottom to top: it leads all of them but perhaps the last, and leaders are the
/// members of the groups above. All members find groups of one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    root: Member,
    rungs: Vec<Rung>,
    near: Near,
    groups: Groups,
}

impl Tree {
    /// `root`: who leads all groups that it is in; the same for all members.
    pub fn new(root: Member, rungs: Vec<Rung>) -> Tree {
        let mut tree = Tree { root, rungs, near: Near::default(), groups: Groups::Given };
        tree.near = Near::new(tree.parent().into_iter().chain(tree.children()).collect());
        tree
    }

    /// The same, but groups of so many members as `which` says are made of groups of up to `degree` of them,
    /// those next to each other, and their leaders. All members do so.
    pub fn refined(&self, degree: usize, which: impl Fn(usize) -> bool) -> Tree {
        let rungs = self.rungs.iter().flat_map(|rung| match which(rung.members.len()) {
            true => rung.refined(degree, &which),
            false => vec![rung.clone()],
        });
        Tree { groups: self.groups, ..Tree::new(self.root, rungs.collect()) }
    }

    /// The same of so many members in all, whose groups nobody has asked for. Large ones are
    /// [refined](Tree::refined), but not those of the leaders of groups that are a third as large or more: by
    /// the clock, 24 groups of eight had better be read by one, but not 24 of four. So had 12 of eight.
    pub fn unasked(self, all: usize) -> Tree {
        Tree { groups: Groups::Unasked, ..self.refined(DEGREE, |len| len > FEW && len * len > 3 * all) }
    }

    /// What groups these are.
    pub fn groups(&self) -> Groups {
        self.groups
    }

    /// Who leads all groups that it is in.
    pub fn root(&self) -> Member {
        self.root
    }

    /// The groups that the caller leads, bottom to top.
    fn led(&self) -> &[Rung] {
        match self.rungs.last() {
            Some(last) if last.me != last.leader => &self.rungs[..self.rungs.len() - 1],
            _ => &self.rungs,
        }
    }

    /// The leader of the group that the caller does not lead.
    fn parent(&self) -> Option<Member> {
        self.rungs.last().filter(|last| last.me != last.leader).map(|last| last.members[last.leader])
    }

    /// Those whose parent the caller is, the topmost group first.
    fn children(&self) -> impl Iterator<Item = Member> {
        let others = |rung: &Rung| (0..rung.members.len()).filter(|&i| i != rung.me).collect::<Vec<_>>();
        self.led().iter().rev().flat_map(move |rung| others(rung).into_iter().map(|i| rung.members[i]))
    }

    fn leads(&self) -> bool {
        !self.led().is_empty()
    }
}

/// Whether so many bytes are broadcast along a tree: longer ones may be read from the root's memory. The same
/// on all members.
pub fn suits_bcast(team: &Team, tree: &Tree, bytes: usize, zero_copy: usize, named: Option<Way>) -> bool {
    goes_along(team, tree, Operation::Bcast, bytes, zero_copy, named)
}

/// Whether so many bytes are combined along a tree: of longer ones all members combine a part, as a rule. The
/// same on all members.
pub fn suits_reduction(team: &Team, tree: &Tree, operation: Operation, bytes: usize, named: Option<Way>) -> bool {
    goes_along(team, tree, operation, bytes, usize::MAX, named)
}

/// Whether a barrier goes along a tree. The same on all members.
pub fn suits_barrier(team: &Team, tree: &Tree, named: Option<Way>) -> bool {
    goes_along(team, tree, Operation::Barrier, 0, usize::MAX, named)
}

fn goes_along(
    team: &Team,
    tree: &Tree,
    operation: Operation,
    bytes: usize,
    zero_copy: usize,
    named: Option<Way>,
) -> bool {
    let facts = facts::of(team, false, operation, zero_copy.into(), named);
    Facts { tree: tree.groups(), ..facts }.way(bytes) == Way::Tree
}

/// Where contents are: in a room, whole, or in slots, step by step.
#[derive(Clone, Copy)]
struct Places<'p, 't> {
    turn: &'p Turn<'t>,
    near: &'p Near,
    bytes: usize,
    short: bool,
}

impl<'p, 't> Places<'p, 't> {
    fn new(turn: &'p Turn<'t>, tree: &'p Tree, bytes: usize) -> Places<'p, 't> {
        turn.goes_near(&tree.near);
        Places { turn, near: &tree.near, bytes, short: is_within(turn.team().config().whole, bytes, usize::MAX) }
    }

    fn at(&self, member: Member, step: u32) -> *mut u8 {
        if self.short { self.turn.room(member, self.bytes) } else { self.turn.slot(member, step) }
    }

    /// Waits until the caller's are free, for the first step.
    async fn free(&self) -> Result<()> {
        let bytes = if self.short { self.bytes } else { usize::MAX };
        self.turn.room_free_near(bytes, self.near).await
    }
}

/// Broadcasts `data` of the tree's root.
pub async fn bcast<S: Stream + ?Sized>(turn: Turn<'_>, tree: &Tree, data: &S) -> Result<()> {
    send_down(turn, tree, data, false).await
}

/// The same of the result that a [reduction](reduce) along the tree has just left at its root: whoever has
/// that knows that all members have begun the reduction.
pub async fn bcast_result<S: Stream + ?Sized>(turn: Turn<'_>, tree: &Tree, result: &S) -> Result<()> {
    send_down(turn, tree, result, true).await
}

async fn send_down<S: Stream + ?Sized>(turn: Turn<'_>, tree: &Tree, data: &S, met: bool) -> Result<()> {
    tally::count(Operation::Bcast, Way::Tree);
    let (me, len, leads) = (turn.me(), data.len(), tree.leads());
    let turn = turn.saying(len);
    let places = Places::new(&turn, tree, len);
    let piece = if places.short { len } else { turn.fragment() };
    let steps = if places.short { 1 } else { turn.steps(len.div_ceil(piece))? };
    let bypass = turn.bypasses(turn.size() - 1, len);
    if leads {
        places.free().await?;
        turn.note_operand(0, len);
    }
    for step in 0..steps {
        if let Some(before) = step.checked_sub(turn.depth()) {
            for child in tree.children() {
                turn.read(child, before + 1).await?;
            }
        }
        let at = step as usize * piece;
        let part = piece.min(len - at);
        let Some(parent) = tree.parent() else {
            if met {
                turn.met_before();
            }
            // SAFETY: the place is free, and holds a piece.
            unsafe { copy::pack(data, at, part, places.at(me, step)) }?;
            turn.publish(step + 1);
            continue;
        };
        wrote_alike(&turn, parent, step + 1, len).await?;
        if met && step == 0 {
            turn.met_before();
        }
        let from = places.at(parent, step);
        if leads {
            let to = places.at(me, step);
            will_read(from, part);
            will_write(to, part);
            // SAFETY: published; the caller's place is free, and holds a piece.
            unsafe { copy::bytes(from, to, part) };
            turn.publish(step + 1);
        }
        // SAFETY: published; the place holds a piece.
        unsafe { copy::unpack(data, at, part, from, bypass && !places.short) }?;
        // Somebody waits for it only where the slot is used again.
        if step + turn.depth() < steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}

/// Combines `input` of all members in `output` of the tree's root, which may be its input: in each group in
/// the order of the members, which is that of all members where groups are of consecutive ones.
pub async fn reduce(turn: Turn<'_>, tree: &Tree, op: &dyn Combine, input: Span, output: Span) -> Result<()> {
    tally::count(Operation::Reduce, Way::Tree);
    let count = input.len();
    let mut plan = Plan::new(match Places::new(&turn, tree, count * op.size()).short {
        true => Cut::Room(count),
        false => Cut::Whole(Pieces::new(&turn, op, count)?),
    });
    plan.readers = tree.parent().into_iter().collect();
    plan.near = Some(&tree.near);
    let groups = tree.led().iter().map(|rung| rung.members.iter().copied().collect()).collect();
    match tree.leads() {
        true => plan.combines = Some((groups, if tree.parent().is_some() { To::Slot } else { To::Output })),
        false => plan.writes = Some(0),
    }
    pipeline::run(turn, plan, op, input, output).await
}

/// Returns when all members have called it.
pub async fn barrier(turn: Turn<'_>, tree: &Tree) -> Result<()> {
    tally::count(Operation::Barrier, Way::Tree);
    come(&turn, tree).await?;
    if let Some(parent) = tree.parent() {
        turn.wrote(parent, 2).await?;
    }
    turn.met();
    if tree.leads() {
        turn.publish(2);
    }
    turn.finish();
    Ok(())
}

/// Returns at the root when all members have called it, elsewhere when those below have.
pub async fn arrive(turn: Turn<'_>, tree: &Tree) -> Result<()> {
    come(&turn, tree).await?;
    turn.finish();
    Ok(())
}

/// Returns when the root has called it.
pub async fn release(turn: Turn<'_>, tree: &Tree) -> Result<()> {
    if let Some(parent) = tree.parent() {
        turn.wrote(parent, 1).await?;
    }
    turn.goes_near(&tree.near);
    if tree.leads() {
        turn.room_free_near(0, &tree.near).await?;
        turn.publish(1);
    }
    turn.finish();
    Ok(())
}

async fn come(turn: &Turn<'_>, tree: &Tree) -> Result<()> {
    turn.goes_near(&tree.near);
    turn.room_free_near(0, &tree.near).await?;
    for child in tree.children() {
        turn.wrote(child, 1).await?;
    }
    if tree.parent().is_some() {
        turn.publish(1);
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn refined_groups_make_one_tree_that_the_root_leads() {
        for (size, degree) in [(2, 4), (5, 4), (16, 4), (17, 4), (72, 8), (192, 8), (65, 64), (9, 2)] {
            for root in [0, 1, size / 2, size - 1] {
                let all = |me| Rung { members: (0..size).collect(), me, leader: root };
                let whole: Vec<_> = (0..size).map(|me| Tree::new(root, vec![all(me)])).collect();
                let trees: Vec<_> = whole.iter().map(|tree| tree.refined(degree, |len| len > degree)).collect();
                assert_eq!(trees == whole, size <= degree, "{size} by {degree}");
                let parents: Vec<_> = trees.iter().map(Tree::parent).collect();
                for (me, tree) in trees.iter().enumerate() {
                    assert_eq!((tree.root(), tree.parent().is_none()), (root, me == root), "{size} by {degree}: {me}");
                    assert!(tree.rungs.iter().all(|rung| (2..=degree).contains(&rung.members.len())));
                    let mut children: Vec<_> = tree.children().collect();
                    children.sort_unstable();
                    let those: Vec<_> = (0..size).filter(|&child| parents[child] == Some(me)).collect();
                    assert_eq!(children, those, "{size} by {degree}, root {root}: {me}");
                }
            }
        }
    }

    #[test]
    fn large_groups_are_refined_but_not_those_of_leaders_of_large_ones() {
        let heights = |groups: usize, each: usize| {
            let own = Rung { members: (0..each).collect(), me: 0, leader: 0 };
            let leaders = Rung { members: (0..groups).map(|i| i * each).collect(), me: 0, leader: 0 };
            let rungs = [own, leaders].into_iter().filter(|rung| rung.members.len() > 1).collect();
            Tree::new(0, rungs).unasked(groups * each).rungs.len()
        };
        assert_eq!(
            [(24, 8), (12, 8), (16, 8), (24, 4), (32, 4)].map(|(groups, each)| heights(groups, each)),
            [2, 2, 2, 3, 3]
        );
        assert_eq!([(1, 12), (1, 24), (2, 56)].map(|(groups, each)| heights(groups, each)), [1, 2, 3]);
    }
}
