// SPDX-License-Identifier: BSD-3-Clause
//! The choice.

use super::{Access, Cores, Facts, Groups, Mode, Operation, Way};

/// From so many bytes on members of a scan pass on what those before them have combined.
pub const PASSED_ON: usize = 1 << 10;

/// What a member's note takes in the root's eager slot, where blocks of a scatter go round a ring.
pub const NOTE: usize = 32;

/// What a member's loan takes in the root's eager slot, where both sides of a gather copy.
pub const LOAN: usize = 16;

/// A way, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The way.
    pub way: Way,
    /// The rule that chose it.
    pub rule: Rule,
}

/// Why a way was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The flag says all.
    NoData,
    /// Only two members know a length: the sender chooses for each block, and announces what it has chosen.
    SenderChooses,
    /// There is a tree, and the data are short enough for it.
    ShortForTree,
    /// They fit the flag's cache line.
    FitsLine,
    /// They fit an eager slot.
    FitsSlot,
    /// They fit a set, and whoever has a core had better do all its part at once.
    FitsSet,
    /// They are long enough to be read from the peer's memory.
    ReadPays,
    /// The same, and the writer would be idle.
    WriterHelps,
    /// Members share cores: a block each needs one turn.
    OneTurnEach,
    /// There is enough to combine for all members.
    SharesWork,
    /// Members share cores: shared work is done no sooner.
    TakesTurns,
    /// The same, but a second core has time for a half.
    SecondCore,
    /// Every member's result is another part.
    OwnPart,
    /// Everyone combines what the one before has left.
    PassesOn,
    /// What is sent does not stay unchanged, so nobody may read it in its place.
    InPlace,
    /// A parameter names the way.
    Named,
    /// None of the other rules holds.
    Rest,
}

impl Rule {
    /// Every rule, in the order in which they are looked at.
    pub const ALL: [Rule; 17] = [
        Rule::SenderChooses,
        Rule::ShortForTree,
        Rule::NoData,
        Rule::FitsLine,
        Rule::Named,
        Rule::FitsSlot,
        Rule::FitsSet,
        Rule::ReadPays,
        Rule::WriterHelps,
        Rule::OneTurnEach,
        Rule::InPlace,
        Rule::SharesWork,
        Rule::SecondCore,
        Rule::TakesTurns,
        Rule::OwnPart,
        Rule::PassesOn,
        Rule::Rest,
    ];

    /// In a sentence's part that follows "because".
    pub const fn text(self) -> &'static str {
        match self {
            Rule::NoData => "the flag says all",
            Rule::SenderChooses => {
                "only two members know a length: the sender chooses for each block, and announces it"
            }
            Rule::ShortForTree => "the levels inside the node make a tree, and the data are short enough for it",
            Rule::FitsLine => "the data fit the flag's cache line",
            Rule::FitsSlot => "the data fit an eager slot, and no other way is wanted",
            Rule::FitsSet => "the data fit a set, and members that share cores do all their part at once",
            Rule::ReadPays => "from this length on reading the peer's memory pays",
            Rule::WriterHelps => "from this length on reading the peer's memory pays, and its owner can copy a part",
            Rule::OneTurnEach => "members that share cores need one turn each this way",
            Rule::SharesWork => "there is enough to combine for all members",
            Rule::TakesTurns => "members share cores, where shared work is done no sooner",
            Rule::SecondCore => "members share cores, and a second core has time for one half",
            Rule::OwnPart => "each member's result is another part",
            Rule::PassesOn => "each member needs what those before it have combined",
            Rule::InPlace => "what is sent is overwritten, so nobody may read it where it lies",
            Rule::Named => "the algorithm parameter names it",
            Rule::Rest => "no other rule holds",
        }
    }
}

/// What a member does besides that could copy a part of others' blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Nothing.
    Idle,
    /// It has a block of its own to copy, within its memory, which takes about a quarter of the time.
    HasOwn,
}

/// Bytes of a block of `len` that its writer copies, among so many members that can write to each other's
/// memory. `least`: the smallest part that is worth it. 0: the reader copies all.
pub const fn share_among(members: usize, len: usize, writer: Writer, least: usize) -> usize {
    let even = len / if members == 0 { 1 } else { members };
    let part = match writer {
        Writer::Idle => even,
        Writer::HasOwn => even - even / 4,
    };
    let part = part / 64 * 64;
    if part == 0 || part < least { 0 } else { part }
}

/// Chooses the way of an operation, or of one block of it.
#[inline]
pub fn choose(facts: &Facts) -> Choice {
    let choice = |way, rule| Choice { way, rule };
    let Some(bytes) = facts.bytes else { return choice(Way::Pipeline, Rule::SenderChooses) };
    let forced = facts.forced();
    if facts.tree != Groups::None && forced.is_none_or(|way| way == Way::Tree) && suits_tree(facts, bytes) {
        return choice(Way::Tree, Rule::ShortForTree);
    }
    if facts.operation == Operation::Barrier {
        return choice(Way::Inline, Rule::NoData);
    }
    if let Some(short) = short(facts, bytes) {
        return short;
    }
    if let Some(way) = forced.and_then(|way| forced_long(facts, way, bytes)) {
        return choice(way, Rule::Named);
    }
    match facts.operation {
        Operation::Barrier => choice(Way::Inline, Rule::NoData),
        Operation::Bcast => rooted(facts, bytes, Writer::Idle),
        Operation::Gather => rooted(facts, bytes, Writer::HasOwn),
        Operation::Scatter => scatter(facts, bytes),
        Operation::Allgather if reads(facts, bytes) && facts.access.reads() => choice(Way::SingleCopy, Rule::ReadPays),
        Operation::Alltoall if facts.in_place => choice(Way::Pipeline, Rule::InPlace),
        Operation::Alltoall if reads(facts, bytes) && facts.access.reads() => choice(Way::SingleCopy, Rule::ReadPays),
        Operation::Allgather | Operation::Alltoall => choice(Way::Pipeline, Rule::Rest),
        Operation::Reduce => reduce(facts, bytes),
        Operation::Allreduce => allreduce(facts, bytes),
        Operation::ReduceScatter => choice(Way::Split, Rule::OwnPart),
        Operation::Scan => choice(Way::Chain, Rule::PassesOn),
    }
}

/// Whether what a way needs is there, whatever the length of the data.
pub(super) fn is_available(facts: &Facts, way: Way) -> bool {
    let Facts { rooms, members, .. } = *facts;
    let (dedicated, alone) = (facts.cores == Cores::Dedicated, members <= 1);
    way.serves(facts.operation)
        && match way {
            Way::Inline | Way::Slot | Way::Pipeline | Way::Chain => true,
            Way::Whole => rooms.whole > rooms.slot,
            Way::SingleCopy => facts.access.reads() && !facts.in_place && !alone,
            Way::TwoSided => can_write(facts),
            Way::Ring => deals(facts),
            Way::Split if facts.operation == Operation::ReduceScatter => true,
            Way::Split if facts.operation == Operation::Reduce => dedicated && members > 2,
            Way::Split => dedicated && !alone,
            Way::ReduceBcast => !dedicated && !alone,
            Way::Relay => facts.is_crowded() && members > 2,
            Way::Tree => facts.tree != Groups::None,
        }
}

/// From how many bytes on (but not in the line) an operation goes another way than in one step. `usual`:
/// where no parameter names a way.
pub fn forced_limit(facts: &Facts, usual: usize) -> usize {
    match facts.forced() {
        None | Some(Way::Inline | Way::Tree) => usual,
        Some(Way::Slot) => usual.max(facts.rooms.slot.saturating_add(1)),
        Some(Way::Whole) => usual.max(facts.rooms.whole.saturating_add(1)),
        Some(_) => 0,
    }
}

/// The way of so many bytes that are not short, where a parameter names one whose needs are met; `None`: as
/// if none did.
fn forced_long(facts: &Facts, way: Way, bytes: usize) -> Option<Way> {
    let writer = if facts.operation == Operation::Bcast { Writer::Idle } else { Writer::HasOwn };
    match way {
        Way::Inline | Way::Slot | Way::Whole | Way::Tree => None,
        // Each member reads a part, which has an element or more.
        Way::SingleCopy if facts.operation == Operation::Allreduce => {
            (bytes >= facts.element.saturating_mul(facts.members)).then_some(way)
        }
        Way::TwoSided if writers_part(facts, bytes, writer) == 0 => Some(Way::SingleCopy),
        way => Some(way),
    }
}

/// From how many members on an operation on so many bytes goes along groups that nobody has asked for.
/// Predicted by the simulated clock for several machines (docs/design/many-cores.md): from there on a tree
/// took less time than any other way.
pub fn members_for_tree(operation: Operation, bytes: usize) -> usize {
    match operation {
        Operation::Barrier => 120,
        Operation::Bcast if bytes <= FLAG => 24,
        Operation::Bcast if bytes <= 1 << 10 => 48,
        Operation::Bcast if bytes <= 4 << 10 => 160,
        Operation::Reduce => 8,
        Operation::Allreduce if bytes <= FLAG => 64,
        Operation::Allreduce => 32,
        _ => usize::MAX,
    }
}

/// The same of whatever length has the least.
pub fn least_members_for_tree(operation: Operation) -> usize {
    members_for_tree(operation, FLAG).min(members_for_tree(operation, FLAG + 1))
}

/// Bytes in the line of the flag: [`layout::LINE`](crate::shm::memory::layout::LINE).
const FLAG: usize = 56;

/// Whether so many bytes go along the tree: a tree copies them once more at each level.
fn suits_tree(facts: &Facts, bytes: usize) -> bool {
    let too_few = facts.members < members_for_tree(facts.operation, bytes) || facts.cores == Cores::Shared;
    if facts.tree == Groups::Unasked && facts.forced().is_none() && too_few {
        return false;
    }
    match facts.operation {
        Operation::Barrier => true,
        Operation::Bcast => bytes < facts.limits.reads_from || !facts.access.reads(),
        Operation::Reduce | Operation::Allreduce => bytes < facts.limits.shared_work,
        _ => false,
    }
}

/// What is published with the first step, if all of it is.
fn short(facts: &Facts, bytes: usize) -> Option<Choice> {
    let Facts { rooms, .. } = *facts;
    if bytes <= rooms.line {
        return Some(Choice { way: Way::Inline, rule: Rule::FitsLine });
    }
    if bytes >= shortest_other(facts) {
        return None;
    }
    let (way, rule) = match bytes {
        _ if bytes <= rooms.slot => (Way::Slot, Rule::FitsSlot),
        _ if bytes <= rooms.whole => (Way::Whole, Rule::FitsSet),
        _ => return None,
    };
    Some(Choice { way, rule: if facts.forced == Some(way) { Rule::Named } else { rule } })
}

/// From how many bytes on another way is wanted for what would fit one step, but not the line.
fn shortest_other(facts: &Facts) -> usize {
    let Facts { limits, .. } = *facts;
    let usual = match facts.operation {
        Operation::Alltoall if facts.in_place => usize::MAX,
        Operation::Bcast | Operation::Gather | Operation::Scatter | Operation::Allgather | Operation::Alltoall => {
            limits.reads_from
        }
        Operation::Reduce => shares_reduction(facts),
        Operation::Allreduce => limits.shared_work.min(reads_operands(facts)),
        Operation::Scan => PASSED_ON,
        Operation::Barrier | Operation::ReduceScatter => usize::MAX,
    };
    forced_limit(facts, usual)
}

/// Whether a block of so many bytes is one that had better be read.
fn reads(facts: &Facts, bytes: usize) -> bool {
    (facts.limits.reads_from..facts.limits.reads_end).contains(&bytes)
}

/// Of one member's data for all others, or of a block for one.
fn rooted(facts: &Facts, bytes: usize, writer: Writer) -> Choice {
    if !(reads(facts, bytes) && facts.access.reads()) {
        return Choice { way: Way::Pipeline, rule: Rule::Rest };
    }
    match writers_part(facts, bytes, writer) {
        0 => Choice { way: Way::SingleCopy, rule: Rule::ReadPays },
        _ => Choice { way: Way::TwoSided, rule: Rule::WriterHelps },
    }
}

/// Bytes that the writer copies of a block that had better be read. Of calls that do not block a writer that
/// computes would hold up its readers, who can do all the work.
pub fn writers_part(facts: &Facts, bytes: usize, writer: Writer) -> usize {
    let divides = can_write(facts) && facts.forced() != Some(Way::SingleCopy);
    if divides { share_among(facts.members, bytes, writer, facts.limits.divided) } else { 0 }
}

/// Whether the writer can copy a part to its readers' memory.
fn can_write(facts: &Facts) -> bool {
    let has_room = facts.operation != Operation::Gather || facts.members * LOAN <= facts.rooms.slot;
    has_room && facts.access == Access::Writes && facts.cores == Cores::Dedicated && facts.mode == Mode::Blocking
}

/// Whether the blocks of a scatter can go round a ring.
fn deals(facts: &Facts) -> bool {
    facts.cores == Cores::Shared && facts.rooms.slot >= NOTE
}

fn scatter(facts: &Facts, bytes: usize) -> Choice {
    if reads(facts, bytes) && facts.access.reads() {
        return rooted(facts, bytes, Writer::HasOwn);
    }
    match deals(facts) {
        true => Choice { way: Way::Ring, rule: Rule::OneTurnEach },
        false => Choice { way: Way::Pipeline, rule: Rule::Rest },
    }
}

/// From how many bytes on others than the root combine, too.
fn shares_reduction(facts: &Facts) -> usize {
    match facts.members {
        ..=2 => usize::MAX,
        _ if facts.is_crowded() => facts.rooms.whole,
        _ if facts.cores == Cores::Shared => usize::MAX,
        _ => facts.limits.shared_work,
    }
}

fn reduce(facts: &Facts, bytes: usize) -> Choice {
    match bytes >= shares_reduction(facts) {
        true if facts.cores == Cores::Shared => Choice { way: Way::Relay, rule: Rule::SecondCore },
        true => Choice { way: Way::Split, rule: Rule::SharesWork },
        false => Choice { way: Way::Pipeline, rule: Rule::Rest },
    }
}

/// From how many bytes on members read each other's operands: each its part, which has an element or more.
fn reads_operands(facts: &Facts) -> usize {
    facts.limits.reads_from.max(facts.element.saturating_mul(facts.members))
}

fn allreduce(facts: &Facts, bytes: usize) -> Choice {
    if facts.members > 1 && bytes >= reads_operands(facts) && facts.access.reads() {
        return Choice { way: Way::SingleCopy, rule: Rule::ReadPays };
    }
    match facts.members > 1 && bytes >= facts.limits.shared_work {
        true if facts.cores == Cores::Shared => Choice { way: Way::ReduceBcast, rule: Rule::TakesTurns },
        true => Choice { way: Way::Split, rule: Rule::SharesWork },
        false => Choice { way: Way::Pipeline, rule: Rule::Rest },
    }
}
