// SPDX-License-Identifier: BSD-3-Clause
//! Every combination of small facts, and the neighbourhood of every limit.

use super::choose::{LOAN, NOTE, PASSED_ON};
use super::*;
use std::collections::BTreeSet;

const MODES: [Mode; 3] = [Mode::Blocking, Mode::Nonblocking, Mode::Persistent];
const ACCESS: [Access; 3] = [Access::Nobody, Access::Reads, Access::Writes];
const MEMBERS: [usize; 10] = [1, 2, 3, 8, 23, 32, 64, 119, 129, 300];
/// From how many bytes on to read, and which are not read.
const READS: [(usize, usize); 5] =
    [(0, usize::MAX), (100, usize::MAX), (32 << 10, 1 << 20), (1 << 20, usize::MAX), (usize::MAX, usize::MAX)];

/// The rooms of an operation, as a queue of built-in sizes has them.
fn rooms(operation: Operation, members: usize, cores: Cores) -> Rooms {
    let share = |room: usize| if members > 2 { room / (members - 1) / 8 * 8 } else { room };
    let whole = if cores == Cores::Shared { 64 << 10 } else { 4096 };
    match operation {
        Operation::Barrier => Rooms { line: 56, slot: 0, whole: 0 },
        Operation::Scatter => Rooms { line: share(56), slot: share(4096), whole: 0 },
        Operation::Alltoall => {
            let whole = if cores == Cores::Shared { share(256 << 10) - 64 } else { 0 };
            Rooms { line: share(56), slot: share(4096), whole }
        }
        Operation::Gather | Operation::Allgather => Rooms { line: 56, slot: 4096, whole: 2 * whole },
        _ => Rooms { line: 56, slot: 4096, whole },
    }
}

/// Calls `each` with all combinations.
fn all(mut each: impl FnMut(Facts)) {
    for operation in Operation::ALL {
        for members in MEMBERS {
            for cores in [Cores::Dedicated, Cores::Shared] {
                for access in ACCESS {
                    for (reads_from, reads_end) in READS {
                        for (shared_work, divided, element) in [(8192, 8192, 8), (32 << 10, 1, 1), (0, 0, 4096)] {
                            let limits = Limits { reads_from, reads_end, shared_work, divided };
                            let rooms = rooms(operation, members, cores);
                            for mode in MODES {
                                for (tree, in_place) in variants(operation) {
                                    let bytes = None;
                                    let facts = Facts {
                                        operation,
                                        bytes,
                                        element,
                                        members,
                                        cores,
                                        mode,
                                        access,
                                        rooms,
                                        limits,
                                        tree,
                                        in_place,
                                        forced: None,
                                    };
                                    each(facts);
                                    lengths(&facts)
                                        .into_iter()
                                        .for_each(|len| each(Facts { bytes: Some(len), ..facts }));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// With a tree or not, in place or not, where an operation can be so.
fn variants(operation: Operation) -> impl Iterator<Item = (Groups, bool)> {
    let tree = Way::Tree.serves(operation);
    let in_place = operation == Operation::Alltoall;
    let each = [(Groups::None, false), (Groups::Given, false), (Groups::Unasked, false), (Groups::None, true)];
    each.into_iter().filter(move |&(t, i)| (tree || t == Groups::None) && (in_place || !i))
}

/// What lies beside each limit, and powers of two.
fn lengths(facts: &Facts) -> BTreeSet<usize> {
    let Facts { rooms, limits, members, element, .. } = *facts;
    let parts = [64, limits.divided, limits.divided * 4 / 3].map(|part| part * members);
    let limits = [
        rooms.line,
        rooms.slot,
        rooms.whole,
        limits.reads_from,
        limits.reads_end,
        limits.shared_work,
        PASSED_ON,
        members * element,
    ];
    let beside = |len: &usize| [len.saturating_sub(1), *len, len.saturating_add(1)];
    let mut all: BTreeSet<usize> = limits.iter().chain(&parts).flat_map(beside).collect();
    all.extend([0, 16 << 10, 256 << 10, 4 << 20]);
    // No data are as long as that: it stands for "never".
    all.remove(&usize::MAX);
    all
}

#[test]
fn the_choice_is_total_and_the_operation_has_the_way() {
    let mut seen = BTreeSet::new();
    all(|facts| {
        let Choice { way, rule } = choose(&facts);
        let vector = facts.bytes.is_none();
        assert!(way.serves(facts.operation) || vector, "{facts:?}: {way:?}");
        assert_eq!(rule == Rule::SenderChooses, vector, "{facts:?}");
        assert!(!rule.text().is_empty());
        seen.insert((way as u8, facts.operation as u8));
    });
    for row in table::TABLE {
        for &operation in row.operations {
            assert!(seen.contains(&(row.way as u8, operation as u8)), "{}: never chosen for {operation:?}", row.name);
        }
    }
}

#[test]
fn a_way_is_chosen_only_where_what_it_needs_is_there() {
    all(|facts| {
        let Facts { rooms, members, cores, mode, access, .. } = facts;
        let Some(bytes) = facts.bytes else { return };
        let fine = match choose(&facts).way {
            Way::Inline => bytes <= rooms.line || facts.operation == Operation::Barrier,
            Way::Slot => bytes <= rooms.slot,
            Way::Whole => bytes <= rooms.whole,
            Way::SingleCopy => access != Access::Nobody && bytes >= facts.limits.reads_from,
            Way::TwoSided => access == Access::Writes && mode == Mode::Blocking && cores == Cores::Dedicated,
            Way::Ring => cores == Cores::Shared && rooms.slot >= NOTE,
            Way::Relay => members > 2 && cores == Cores::Shared && mode == Mode::Blocking,
            Way::ReduceBcast => members > 1 && cores == Cores::Shared,
            Way::Split => members > 1 || facts.operation == Operation::ReduceScatter,
            Way::Tree => facts.tree != Groups::None,
            Way::Pipeline | Way::Chain => true,
        };
        assert!(fine, "{facts:?}: {:?}", choose(&facts));
    });
}

#[test]
fn a_persistent_call_goes_as_a_nonblocking_one() {
    all(|facts| {
        let other = Facts { mode: Mode::Nonblocking, ..facts };
        assert!(facts.mode != Mode::Persistent || choose(&facts) == choose(&other));
    });
}

/// Whether a tree is one for so many bytes among so many members.
fn pays(facts: &Facts, len: usize) -> bool {
    let many = match (facts.operation, len) {
        (Operation::Barrier, _) => 120,
        (Operation::Bcast, ..=56) => 24,
        (Operation::Reduce, _) => 8,
        (Operation::Bcast, ..=1024) => 48,
        (Operation::Bcast, ..=4096) => 160,
        (Operation::Allreduce, ..=56) => 64,
        (Operation::Allreduce, _) => 32,
        _ => usize::MAX,
    };
    match facts.tree {
        Groups::None => false,
        Groups::Unasked => facts.cores == Cores::Dedicated && facts.members >= many,
        Groups::Given => true,
    }
}

/// The choice as it was made before there was a table: by predicates in each operation, in their order.
fn by_predicates(facts: &Facts, len: usize) -> Way {
    let Facts { rooms, limits, members, access, .. } = *facts;
    let (crowded, blocking) = (facts.cores == Cores::Shared, facts.mode == Mode::Blocking);
    let (zero_copy, tree) = (access != Access::Nobody, pays(facts, len));
    let from = limits.reads_from;
    let has = (from..limits.reads_end).contains(&len);
    let least = from.max(facts.element * members);
    let shares = match members {
        ..=2 => usize::MAX,
        _ if crowded && blocking => rooms.whole,
        _ if crowded => usize::MAX,
        _ => limits.shared_work,
    };
    let operation = facts.operation;
    let is_short = |limit: usize| len <= rooms.line || (len <= rooms.whole.max(rooms.slot) && len < limit);
    let room = || match len {
        _ if len <= rooms.line => Way::Inline,
        _ if len <= rooms.slot => Way::Slot,
        _ => Way::Whole,
    };
    let divided = |writer, fits: bool| match access {
        Access::Writes if blocking && !crowded && fits => share_among(members, len, writer, limits.divided),
        _ => 0,
    };
    let read = |part| if part == 0 { Way::SingleCopy } else { Way::TwoSided };
    match operation {
        Operation::Barrier if tree => Way::Tree,
        Operation::Barrier => Way::Inline,
        Operation::Bcast if tree && (len < from || !zero_copy) => Way::Tree,
        Operation::Reduce | Operation::Allreduce if tree && len < limits.shared_work => Way::Tree,
        Operation::Reduce if is_short(shares) => room(),
        Operation::Reduce if len >= shares && crowded => Way::Relay,
        Operation::Reduce if len >= shares => Way::Split,
        Operation::Reduce => Way::Pipeline,
        Operation::Allreduce if is_short(limits.shared_work.min(least)) => room(),
        Operation::Allreduce if members > 1 && len >= least && zero_copy => Way::SingleCopy,
        Operation::Allreduce if members > 1 && len >= limits.shared_work && crowded => Way::ReduceBcast,
        Operation::Allreduce if members > 1 && len >= limits.shared_work => Way::Split,
        Operation::Allreduce => Way::Pipeline,
        Operation::ReduceScatter => {
            if is_short(usize::MAX) {
                room()
            } else {
                Way::Split
            }
        }
        Operation::Scan => {
            if is_short(PASSED_ON) {
                room()
            } else {
                Way::Chain
            }
        }
        Operation::Alltoall if facts.in_place => {
            if is_short(usize::MAX) {
                room()
            } else {
                Way::Pipeline
            }
        }
        _ if is_short(from) => room(),
        Operation::Bcast if has && zero_copy => read(divided(Writer::Idle, true)),
        Operation::Gather if has && zero_copy => read(divided(Writer::HasOwn, members * LOAN <= rooms.slot)),
        Operation::Scatter if has && zero_copy => read(divided(Writer::HasOwn, true)),
        Operation::Scatter if crowded && rooms.slot >= 32 => Way::Ring,
        Operation::Allgather if has && zero_copy => Way::SingleCopy,
        Operation::Alltoall if has && zero_copy => Way::SingleCopy,
        _ => Way::Pipeline,
    }
}

#[test]
fn the_table_chooses_as_the_predicates_did() {
    all(|facts| {
        let Some(len) = facts.bytes else { return };
        assert_eq!(choose(&facts).way, by_predicates(&facts, len), "{facts:?}");
    });
}

/// All combinations, with each way that the operation has, by name.
fn all_named(mut each: impl FnMut(Facts, Way)) {
    // One kind of limits: what is named does not depend on the others.
    all(|facts| {
        if facts.bytes.is_some() && facts.limits.shared_work == 8192 && facts.mode != Mode::Persistent {
            let serves = |row: &&table::Row| row.way.serves(facts.operation);
            for row in table::TABLE.iter().filter(serves) {
                each(Facts { forced: Some(row.way), ..facts }, row.way);
            }
        }
    });
}

#[test]
fn what_is_named_is_chosen_where_its_needs_are_met() {
    let mut seen = BTreeSet::new();
    all_named(|facts, named| {
        let (bytes, Choice { way, rule }) = (facts.bytes.unwrap_or_default(), choose(&facts));
        let usual = choose(&Facts { forced: None, ..facts });
        assert!(way.serves(facts.operation), "{facts:?}: {way:?}");
        if rule == Rule::Named {
            seen.insert((way as u8, facts.operation as u8));
            assert!(way == named || (named, way) == (Way::TwoSided, Way::SingleCopy), "{facts:?}: {way:?}");
        }
        let line = facts.operation == Operation::Barrier || bytes <= facts.rooms.line;
        match facts.forced() {
            None => assert_eq!((way, rule), (usual.way, usual.rule), "{facts:?}"),
            Some(Way::Tree) if facts.tree == Groups::Unasked => {
                assert!([usual.way, Way::Tree].contains(&way), "{facts:?}")
            }
            Some(Way::Tree) => assert_eq!(way, usual.way, "{facts:?}"),
            Some(_) if line => assert_eq!(way, Way::Inline, "{facts:?}"),
            Some(Way::Slot) if bytes <= facts.rooms.slot => assert_eq!(way, Way::Slot, "{facts:?}"),
            Some(Way::Whole) if bytes <= facts.rooms.slot => assert_eq!(way, Way::Slot, "{facts:?}"),
            Some(Way::Whole) if bytes <= facts.rooms.whole => assert_eq!(way, Way::Whole, "{facts:?}"),
            Some(Way::Inline | Way::Slot | Way::Whole) => assert!(way == usual.way || way != Way::Tree),
            Some(Way::SingleCopy) if facts.operation == Operation::Allreduce => {
                assert_eq!(way == Way::SingleCopy, bytes >= facts.element * facts.members, "{facts:?}: {way:?}");
            }
            Some(Way::TwoSided) => assert!(way.reads_peers(), "{facts:?}: {way:?}"),
            Some(_) => assert_eq!((way, rule), (named, Rule::Named), "{facts:?}"),
        }
    });
    for row in table::TABLE.iter().filter(|row| !matches!(row.way, Way::Inline | Way::Tree)) {
        for &operation in row.operations {
            assert!(seen.contains(&(row.way as u8, operation as u8)), "{}: never by name for {operation:?}", row.name);
        }
    }
}

#[test]
fn only_one_side_copies_where_that_is_named() {
    all_named(|facts, named| {
        let part = |writer| writers_part(&facts, facts.bytes.unwrap_or_default(), writer);
        assert!(named != Way::SingleCopy || facts.forced().is_none() || part(Writer::Idle) == 0);
    });
}

#[test]
fn operations_have_their_numbers() {
    assert!(Operation::ALL.iter().enumerate().all(|(i, &operation)| operation as usize == i));
}

#[test]
fn names_are_words_and_name_one_way_each() {
    for row in table::TABLE {
        assert_eq!(Way::named(row.name), Some(row.way));
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", row.name);
        assert!(!row.operations.is_empty() && !row.gain.is_empty() && row.what.ends_with('.'), "{}", row.name);
        assert_eq!(row.way.name(), row.name);
    }
    assert_eq!(Way::named("pipelines"), None);
}

#[test]
fn the_writers_part_is_less_where_it_has_a_block_of_its_own() {
    assert_eq!(share_among(2, 64 << 10, Writer::Idle, 8192), 32 << 10);
    assert_eq!(share_among(2, 64 << 10, Writer::HasOwn, 8192), 24 << 10);
    assert_eq!([16383, 16384].map(|len| share_among(2, len, Writer::Idle, 8192)), [0, 8192]);
    assert_eq!(share_among(0, 63, Writer::Idle, 0), 0);
}
