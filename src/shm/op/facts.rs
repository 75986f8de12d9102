// SPDX-License-Identifier: BSD-3-Clause
//! What is known where the way of an operation is chosen: gathered for the [table](crate::shm::policy).

use super::block::Shares;
use crate::shm::memory::layout::LINE;
use crate::shm::policy::{Choice, Cores, Facts, Groups, Limits, Mode, Operation, Rooms, Way, choose, forced_limit};
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::View;
use crate::shm::thresholds::Reads;

impl View<'_> {
    /// The facts of an operation. From `reads` on, members may read each other's memory.
    #[inline(always)]
    pub(super) fn facts(&self, operation: Operation, reads: impl Into<Reads>) -> Facts {
        of(self.team(), self.is_blocking(), operation, reads.into(), self.named())
    }

    /// The way of so many bytes, in elements of `element` bytes where it is a reduction. For short ways,
    /// which had better not have the facts in their memory.
    #[inline(always)]
    pub(super) fn way(&self, operation: Operation, bytes: usize, element: usize, reads: usize) -> Way {
        way(self.team(), (self.is_blocking(), self.named()), operation, bytes, element, reads)
    }

    /// From how many bytes on (but not in a line) an operation goes another way than in one step. `usual`:
    /// where no parameter [names](View::named) a way.
    #[inline(always)]
    pub(super) fn limit(&self, operation: Operation, usual: usize) -> usize {
        match self.named() {
            None => usual,
            named => limit_of(self.team(), self.is_blocking(), operation, named, usual),
        }
    }

    /// The way that a parameter names for an operation, if what that needs is there.
    #[inline(always)]
    pub(super) fn forced(&self, operation: Operation) -> Option<Way> {
        match self.named() {
            None => None,
            _ => self.facts(operation, usize::MAX).forced(),
        }
    }
}

/// As [`View::limit`].
#[cold]
#[inline(never)]
fn limit_of(team: &Team, blocking: bool, operation: Operation, named: Option<Way>, usual: usize) -> usize {
    forced_limit(&of(team, blocking, operation, usize::MAX.into(), named), usual)
}

/// The same for a team. (Not a part of operations, which had better keep their view in registers.)
#[inline(never)]
pub(super) fn of(team: &Team, blocking: bool, operation: Operation, reads: Reads, named: Option<Way>) -> Facts {
    let config = team.config();
    Facts {
        operation,
        bytes: None,
        element: 1,
        members: team.size(),
        cores: if config.waiting.crowded { Cores::Shared } else { Cores::Dedicated },
        mode: if blocking { Mode::Blocking } else { Mode::Nonblocking },
        access: team.reading(),
        rooms: rooms(team, operation),
        limits: Limits {
            reads_from: reads.from,
            reads_end: reads.end,
            shared_work: config.shared_work_min,
            divided: config.divided_min as usize,
        },
        tree: Groups::None,
        in_place: false,
        forced: named,
    }
}

/// The choice for an operation of a team on so many bytes, for those who want to know. `blocking`, and the
/// way that a parameter names. `element`: bytes of an element; `tree`: there is a tree; `in_place`: an
/// alltoall is.
pub fn choice(
    team: &Team,
    (blocking, named): (bool, Option<Way>),
    operation: Operation,
    bytes: Option<usize>,
    reads: Reads,
    (element, tree, in_place): (usize, Groups, bool),
) -> Choice {
    choose(&Facts { bytes, element, tree, in_place, ..of(team, blocking, operation, reads, named) })
}

/// As [`View::way`].
#[inline(never)]
fn way(
    team: &Team,
    (blocking, named): (bool, Option<Way>),
    operation: Operation,
    bytes: usize,
    element: usize,
    reads: usize,
) -> Way {
    Facts { element, ..of(team, blocking, operation, reads.into(), named) }.way(bytes)
}

/// What has room for the data of an operation, or for a block of it.
fn rooms(team: &Team, operation: Operation) -> Rooms {
    let (config, [line, slot]) = (team.config(), team.short_shares());
    match operation {
        Operation::Barrier => Rooms { line: LINE, slot: 0, whole: 0 },
        Operation::Scatter => Rooms { line, slot, whole: 0 },
        Operation::Alltoall if config.waiting.crowded => {
            let set = config.fragment * (team.fragment_mask() as usize + 1);
            Rooms { line, slot, whole: Shares::new(set, team.size(), 0, 64).part() }
        }
        Operation::Alltoall => Rooms { line, slot, whole: 0 },
        Operation::Gather | Operation::Allgather => {
            Rooms { line: LINE, slot: config.short, whole: config.whole_gathered as usize }
        }
        _ => Rooms { line: LINE, slot: config.short, whole: config.whole as usize },
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use crate::shm::config::{self, Config};
    use crate::shm::memory::heap::Heap;
    use crate::shm::memory::layout::SHORT;
    use crate::shm::op::{allreduce, is_short, is_short_gathered, is_within, line_share, reduce};
    use crate::shm::policy::Rule;
    use crate::shm::policy::choose::PASSED_ON;
    use crate::shm::policy::table::TABLE;
    use crate::shm::protocol::turn::Turn;
    use crate::shm::thresholds::{ByMode, Thresholds};
    use std::fmt::Write;
    use std::task::{Context, Poll, Waker};

    const OPERATIONS: [(Operation, &str); 10] = [
        (Operation::Barrier, "Barrier"),
        (Operation::Bcast, "Bcast"),
        (Operation::Gather, "Gather, block"),
        (Operation::Scatter, "Scatter, block"),
        (Operation::Allgather, "Allgather, block"),
        (Operation::Alltoall, "Alltoall, block"),
        (Operation::Reduce, "Reduce"),
        (Operation::Allreduce, "Allreduce"),
        (Operation::ReduceScatter, "Reduce_scatter"),
        (Operation::Scan, "Scan, Exscan"),
    ];

    /// Runs `with` in an operation of so many members, all on the heap. `slot`: 0 blocks.
    fn in_turn<R>(members: usize, cores: config::Cores, slot: usize, with: impl FnOnce(&Turn<'_>) -> R) -> R {
        let mut config = Config::built_in(members, cores).rotating_among(members, cores);
        config.waiting.crowded = cores != config::Cores::Own;
        let heap = Heap::new(members, usize::MAX, true);
        let teams: Vec<_> = (0..members).map(|me| Team::new(heap.member(me), config)).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut opening: Vec<_> = teams.iter().map(|team| Box::pin(team.open(slot, 0, true))).collect();
        // The directories first, then the queues.
        let mut turns: Vec<Option<Turn<'_>>> = (0..members).map(|_| None).collect();
        while turns.iter().any(Option::is_none) {
            for (future, turn) in opening.iter_mut().zip(&mut turns).filter(|(_, turn)| turn.is_none()) {
                if let Poll::Ready(opened) = future.as_mut().poll(&mut context) {
                    *turn = Some(opened.unwrap().unwrap());
                }
            }
        }
        let result = with(turns[0].as_ref().unwrap());
        turns.into_iter().flatten().for_each(Turn::finish);
        result
    }

    /// From how many bytes on an operation reads, by such thresholds.
    fn reads(of: &Thresholds, operation: Operation) -> Reads {
        match operation {
            Operation::Bcast => of.bcast.into(),
            Operation::Gather => of.gather.into(),
            Operation::Scatter => of.scatter.into(),
            Operation::Allgather => of.allgather.into(),
            Operation::Alltoall => of.alltoall,
            Operation::Allreduce => of.allreduce.into(),
            _ => usize::MAX.into(),
        }
    }

    /// The choice for so many bytes, of elements of eight.
    fn chosen(turn: &Turn<'_>, operation: Operation, bytes: usize, thresholds: &Thresholds) -> Choice {
        let facts = turn.facts(operation, reads(thresholds, operation));
        choose(&Facts { bytes: Some(bytes), element: 8, ..facts })
    }

    /// What the quick paths take for short, they and the table see alike.
    #[test]
    fn the_table_and_the_quick_paths_agree_about_what_is_short() {
        for cores in [config::Cores::Own, config::Cores::Lent, config::Cores::Shared] {
            for members in [2, 3, 8, 9] {
                in_turn(members, cores, 0, |turn| {
                    let lengths = [
                        0, 1, 8, 27, 28, 29, 56, 57, 512, 1023, 1024, 1025, 4096, 4097, 65536, 65537, 262_144, 262_145,
                    ];
                    for (len, limit) in
                        lengths.iter().flat_map(|&len| [0, 1000, 4096, usize::MAX].map(|limit| (len, limit)))
                    {
                        let all = Thresholds::all(limit);
                        let is = |operation| {
                            matches!(chosen(turn, operation, len, &all).way, Way::Inline | Way::Slot | Way::Whole)
                        };
                        assert_eq!(is(Operation::Bcast), is_short(turn, Operation::Bcast, len, limit), "{len} {limit}");
                        for operation in [Operation::Gather, Operation::Allgather] {
                            assert_eq!(is(operation), is_short_gathered(turn, operation, len, limit), "{len} {limit}");
                        }
                        let least = allreduce::other_ways(turn, 8, limit);
                        assert_eq!(
                            is(Operation::Allreduce),
                            is_short(turn, Operation::Allreduce, len, least),
                            "{len} {limit}"
                        );
                        let shared = reduce::shares_work(turn);
                        assert_eq!(
                            is(Operation::Reduce),
                            is_short(turn, Operation::Reduce, len, shared),
                            "{len} {limit}"
                        );
                        assert_eq!(is(Operation::Scan), is_short(turn, Operation::Scan, len, PASSED_ON), "{len}");
                        assert_eq!(
                            is(Operation::ReduceScatter),
                            is_short(turn, Operation::ReduceScatter, len, usize::MAX),
                            "{len}"
                        );
                        // What lies still is short whatever the limits.
                        let still = turn.team().lies_still(len);
                        let never = Thresholds::all(usize::MAX);
                        for operation in [Operation::Bcast, Operation::Gather, Operation::Reduce, Operation::Allreduce]
                        {
                            let way = chosen(turn, operation, len, &never).way;
                            assert!(!still || matches!(way, Way::Inline | Way::Slot), "{operation:?} {len}: {way:?}");
                        }
                        let share = turn.team().share_lies_still(len);
                        for operation in [Operation::Scatter, Operation::Alltoall] {
                            let way = chosen(turn, operation, len, &never).way;
                            assert!(!share || matches!(way, Way::Inline | Way::Slot), "{operation:?} {len}: {way:?}");
                        }
                    }
                });
            }
        }
    }

    /// The same of what is short where a parameter names a way.
    #[test]
    fn the_table_and_the_operations_agree_about_what_a_name_makes_short() {
        for (cores, slot) in [(config::Cores::Own, 0), (config::Cores::Shared, 0), (config::Cores::Shared, 1)] {
            for members in [2, 3, 9] {
                in_turn(members, cores, slot, |turn| {
                    let (team, config) = (turn.team(), turn.team().config());
                    for (row, operation) in TABLE.iter().flat_map(|row| row.operations.iter().map(move |&of| (row, of)))
                    {
                        for (len, from) in [0, 56, 57, 1023, 1024, 4096, 4097, 65536, 65537, 262_144, 262_145]
                            .into_iter()
                            .flat_map(|len| [0, 4096, usize::MAX].map(|from| (len, from)))
                        {
                            let usual = match operation {
                                Operation::Bcast | Operation::Gather | Operation::Allgather => from,
                                Operation::Reduce => reduce::shares_work(turn),
                                Operation::Allreduce => allreduce::other_ways(turn, 8, from),
                                Operation::Scan => PASSED_ON,
                                Operation::ReduceScatter => usize::MAX,
                                // Their blocks have shares.
                                Operation::Barrier | Operation::Scatter | Operation::Alltoall => continue,
                            };
                            let whole = match operation {
                                Operation::Gather | Operation::Allgather => config.whole_gathered,
                                _ => config.whole,
                            };
                            let named = Some(row.way);
                            let facts = of(team, turn.is_blocking(), operation, from.into(), named);
                            let way = choose(&Facts { bytes: Some(len), element: 8, ..facts }).way;
                            let limit = limit_of(team, turn.is_blocking(), operation, named, usual);
                            let short = is_within(whole, len, limit);
                            assert_eq!(
                                way.is_short(),
                                short,
                                "{operation:?} {len} from {from} by {}: {way:?}",
                                row.name
                            );
                        }
                    }
                });
            }
        }
    }

    fn size(bytes: usize) -> String {
        match bytes {
            _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
            _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
            _ => format!("{bytes} B"),
        }
    }

    /// The ways of an operation by length, as a cell of a table.
    fn ranges(way: impl Fn(usize) -> Way) -> String {
        let (mut text, mut start, most) = (String::new(), 1, 8 << 20);
        while start <= most {
            let now = way(start);
            // The last length with the same way: no way is passed over that has a quarter of an octave.
            let (mut same, mut other) = (start, start);
            while other <= most && way(other) == now {
                (same, other) = (other, other + (other / 4).max(1));
            }
            if other > most {
                write!(text, "{}`{}`", if text.is_empty() { "" } else { ", then " }, now.name()).unwrap();
                break;
            }
            while other - same > 1 {
                let middle = same.midpoint(other);
                if way(middle) == now { same = middle } else { other = middle }
            }
            let separator = if text.is_empty() { "" } else { ", " };
            write!(text, "{separator}`{}` up to {}", now.name(), size(same)).unwrap();
            start = other;
        }
        text
    }

    const INTRODUCTION: &str = "# Ways inside a node\n\n\
        Made from the table in `src/shm/policy/`, and from what it chooses. A way is how the bytes of an operation \
        get from their writer to their readers inside a node.\n\n\
        In the forms in which only two members know a length (Gatherv, Scatterv, Allgatherv, Alltoallv, Alltoallw, \
        neighbourhoods) the choice is made for each block. Where the data are not in one \
        run of bytes, the two could see it otherwise. There the sender chooses, and announces it with the first step.\n\n\
        A way is named by `coll_rust_<operation>_algorithm` = `shm:WAY`, such as `shm:pipeline`. What fits the flag's line goes \
        inline all the same; where a way is not possible, another one is chosen as if none had been named, and \
        `coll_rust_show` = `decisions` says so. With `slot` and `whole`, what is too long for them goes as if none had been \
        named. With `two_sided`, what has no part that is worth it goes by `single_copy`. On several nodes the name is for \
        the operation's parts within them that have such a way; those that are a Bcast or a Reduce (as of an Allreduce) go as the \
        parameters of these say.\n\n\
        | way | what happens | needs | parameters | gain | operations |\n|---|---|---|---|---|---|\n";

    const CHOSEN: &str = "\nGains are times relative to Open MPI's coll/tuned, unless they say otherwise. \
        [Long messages](../design/long-messages.md) and [More ranks than cores](../design/oversubscribed.md) say \
        how they came about.\n\n\
        ## What is chosen\n\n\
        With built-in sizes, where no times are known, and with memory that others can read and write. Where \
        members have a core each, it follows from times from how many bytes on reading pays \
        (coll_rust_shm_times, coll_rust_shm_zero_copy_min). A column for members that take turns holds for calls of up to eight members \
        where writes cannot go past the caches; where they can, nothing is read in an Alltoall.\n";

    fn documentation() -> String {
        let mut text = String::from(INTRODUCTION);
        for row in TABLE {
            let names = OPERATIONS.iter().filter(|(operation, _)| row.way.serves(*operation));
            let names: Vec<_> = names.map(|(_, name)| name.trim_end_matches(", block")).collect();
            let names = if names.len() == OPERATIONS.len() { "all".to_owned() } else { names.join(", ") };
            let (name, what, needs, parameters, gain) = (row.name, row.what, row.needs, row.parameters, row.gain);
            writeln!(text, "| `{name}` | {what} | {needs} | {parameters} | {gain} | {names} |").unwrap();
        }
        text += CHOSEN;
        for (title, members, cores, slot) in [
            ("Two members with a core each, blocking", 2, config::Cores::Own, 0),
            ("Six members with a core each, blocking", 6, config::Cores::Own, 0),
            ("Six members with a core each, nonblocking", 6, config::Cores::Own, 1),
            ("Six members that take turns, blocking", 6, config::Cores::Shared, 0),
            ("Six members that take turns, nonblocking", 6, config::Cores::Shared, 1),
        ] {
            write!(text, "\n### {title}\n\n| operation | way |\n|---|---|\n").unwrap();
            in_turn(members, cores, slot, |turn| {
                let by_mode: ByMode = match cores {
                    config::Cores::Own => Thresholds::UNKNOWN.into(),
                    config::Cores::Lent => Thresholds::LENT.into(),
                    config::Cores::Shared => Thresholds::crowded(members, false).into(),
                };
                let thresholds = if slot == 0 { by_mode.blocking } else { by_mode.others };
                for (operation, name) in OPERATIONS {
                    let way = |bytes| chosen(turn, operation, bytes, &thresholds).way;
                    writeln!(text, "| {name} | {} |", ranges(way)).unwrap();
                }
            });
        }
        text += "\n## Rules\n\nWhat `coll_rust_show=decisions` gives as reasons:\n\n";
        Rule::ALL.iter().for_each(|rule| writeln!(text, "* {}", rule.text()).unwrap());
        text
    }

    /// The page in docs/ is the one made from the table; `UPDATE_DOCS=1 cargo test` writes it.
    #[test]
    fn the_page_of_ways_is_up_to_date() {
        assert_eq!((line_share(2), SHORT), (LINE, 4096), "as the table's text says");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/ways.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(written, documentation(), "run UPDATE_DOCS=1 cargo test --lib facts");
    }
}
