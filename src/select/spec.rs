// SPDX-License-Identifier: BSD-3-Clause
//! The values of the parameters `coll_rust_<operation>_algorithm`: one algorithm, or one per level, and a way
//! within nodes.

use super::table::{self, Argument, Family, Known, Picked, Row};
use super::{Choice, Operation, Whole};
use crate::shm::policy::{TABLE, Way};
use crate::topo::Level;

/// A parsed algorithm parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<A> {
    levels: [Option<A>; Level::COUNT],
    below: bool,
    /// The processes of a node share memory, because the parameter says so.
    shm: bool,
    /// They do not, because the parameter names an algorithm for the node, or for a level within.
    messages: bool,
    /// How their data go there, if the parameter says so.
    way: Option<Way>,
}

/// The name of shared memory among the algorithms.
const SHM: &str = "shm";

impl<A: Family> Spec<A> {
    /// The built-in choice everywhere.
    pub const AUTO: Spec<A> =
        Spec { levels: [None; Level::COUNT], below: false, shm: false, messages: false, way: None };

    /// This algorithm everywhere.
    pub fn everywhere(algorithm: A) -> Spec<A> {
        Spec { levels: [Some(algorithm); Level::COUNT], messages: true, ..Self::AUTO }
    }

    /// What is accepted for an operation of the family, for help and messages.
    pub fn accepted(operation: Operation) -> String {
        accepted(A::ROWS, A::PER_LEVEL, operation)
    }

    /// What the parameter says for a level, if anything.
    pub fn at(&self, level: Level) -> Option<A> {
        self.levels[usize::from(level.index())]
    }

    /// The algorithm for a group: that of the parameter, or what stands in for it where a requirement of it
    /// is not met, or the built-in choice.
    pub fn choose(&self, facts: &A::Facts) -> A {
        let Some(choice) = self.at(facts.level()) else { return A::auto(facts) };
        match choice.row() {
            Some(row) if !row.needs.iter().all(|&need| facts.meets(need)) => {
                A::named(row.instead, None).unwrap_or_else(|_| A::auto(facts))
            }
            _ => choice,
        }
    }

    /// Parses the value of the parameter of an operation of the family; the error says which part is wrong,
    /// not what is accepted.
    pub fn parse_for(operation: Operation, text: &str) -> Result<Spec<A>, String> {
        let spec = parse(A::ROWS, A::PER_LEVEL, text)?;
        spec.check(operation)?;
        Ok(spec.of_family())
    }

    /// Parses a value that some operation of the family accepts.
    pub fn parse(text: &str) -> Result<Spec<A>, String> {
        Ok(parse(A::ROWS, A::PER_LEVEL, text)?.of_family())
    }
}

impl Spec<Picked> {
    /// With the algorithms of the family whose rows they are.
    fn of_family<A: Family>(self) -> Spec<A> {
        let Spec { below, shm, messages, way, .. } = self;
        let levels = self.levels.map(|picked| picked.and_then(|(row, number)| A::make(row, number)));
        Spec { levels, below, shm, messages, way }
    }

    /// Whether an operation has all that it names.
    fn check(&self, operation: Operation) -> Result<(), String> {
        for (row, _) in self.levels.iter().flatten() {
            if !row.serves(operation) {
                return Err(format!("\"{}\" is no algorithm of {}", row.name, operation.name()));
            }
        }
        match self.way {
            Some(way) if !way.serves(operation.of_ways()) => {
                Err(format!("\"{SHM}:{}\" is no way of {}", way.name(), operation.name()))
            }
            _ => Ok(()),
        }
    }
}

/// What is accepted for an operation of a family with these algorithms.
fn accepted(rows: &[Row], per_level: bool, operation: Operation) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.serves(operation)).collect();
    let mut text = String::from("auto, fallback (the component of the next lower priority)");
    rows.iter().for_each(|row| text += &format!(", {}", row.form()));
    let ways: Vec<&str> = TABLE.iter().filter(|row| row.way.serves(operation.of_ways())).map(|row| row.name).collect();
    text += &format!(
        ", shm (within nodes: shared memory where there is some), shm:WAY (the same by this way: {})",
        ways.join(", ")
    );
    text += match per_level {
        true => ", or a list such as node:ALGORITHM,switch:ALGORITHM",
        false => ", or node:ALGORITHM and another one for several nodes, after a comma",
    };
    let mut numbers: Vec<Argument> = Vec::new();
    rows.iter().filter_map(|row| row.argument).for_each(|argument| {
        if !numbers.contains(&argument) {
            numbers.push(argument);
        }
    });
    for (i, Argument { letter, least, most, default }) in numbers.iter().enumerate() {
        let start = if i == 0 { " (" } else { "; " };
        text += &format!("{start}{letter}: {least} to {most}, {default} where it is left out");
    }
    if !numbers.is_empty() {
        text += ")";
    }
    for row in rows.iter().filter(|row| !row.needs.is_empty()) {
        let needs: Vec<&str> = row.needs.iter().map(|need| need.text()).collect();
        text += &format!("; {} stands in for {} unless {}", row.instead, row.name, needs.join(" and "));
    }
    text
}

/// Parses a value that some operation of a family with these algorithms accepts.
fn parse(rows: &'static [Row], per_level: bool, text: &str) -> Result<Spec<Picked>, String> {
    let mut spec = Spec { levels: [None; Level::COUNT], below: false, shm: false, messages: false, way: None };
    let text = text.trim();
    match text {
        "auto" => return Ok(spec),
        // "below": its name in earlier releases.
        "fallback" | "below" => return Ok(Spec { below: true, ..spec }),
        _ => {}
    }
    let (mut default, mut named) = (None, [false; Level::COUNT]);
    for item in text.split(',').map(str::trim) {
        if let Some(way) = shared(item)? {
            (spec.shm, spec.way) = (true, way.or(spec.way));
            continue;
        }
        let Some((level, name)) = item.split_once(':') else {
            if default.replace(picked(rows, item)?).is_some() {
                return Err(format!("\"{item}\" is a second algorithm without a level"));
            }
            continue;
        };
        let (level, name) = (level.trim(), name.trim());
        if !per_level && level != Level::Node.name() {
            return Err(format!("\"{item}\": only for level node may this operation have another algorithm"));
        }
        let choice = if name == "auto" { None } else { Some(picked(rows, name)?) };
        // Where there is one algorithm, it is that of all groups within the node, whatever their names.
        let is_meant = |l: &&Level| {
            l.name() == level
                || (level == "switch" && matches!(l, Level::Switch(_)))
                || (!per_level && **l <= Level::Node)
        };
        let mut levels = Level::ALL.iter().filter(is_meant).peekable();
        if levels.peek().is_none() {
            return Err(format!("\"{level}\" is not a level"));
        }
        for level in levels {
            (named[usize::from(level.index())], spec.levels[usize::from(level.index())]) = (true, choice);
            spec.messages |= *level <= Level::Node && choice.is_some();
        }
    }
    for (slot, _) in spec.levels.iter_mut().zip(named).filter(|(_, named)| !named) {
        *slot = default;
    }
    if spec.shm && per_level {
        spec.levels[usize::from(Level::Node.index())] = None;
    }
    Ok(spec)
}

/// What an item of a value says of shared memory, if it does: perhaps a way.
fn shared(item: &str) -> Result<Option<Option<Way>>, String> {
    let words: Vec<&str> = item.split(':').map(str::trim).collect();
    let Some(at) = words.iter().position(|&word| word == SHM).filter(|&at| at < 2) else { return Ok(None) };
    if at == 1 && words[0] != Level::Node.name() {
        return Err(format!("\"{item}\": shm is for all processes of a node, so accepted for level node only"));
    }
    match words[at + 1..] {
        [] => Ok(Some(None)),
        [name] => Way::named(name).map(|way| Some(Some(way))).ok_or_else(|| format!("\"{name}\" is not a way")),
        _ => Err(format!("\"{item}\" says more than a way")),
    }
}

/// What can be asked of a parsed parameter of any family.
pub trait Setting {
    /// Whether the operation is left to the component below.
    fn below(&self) -> bool;
    /// Whether the processes of a node share memory where they can: the choice there is ours, or the
    /// parameter says so.
    fn is_shared_within_node(&self) -> bool;
    /// Whether the parameter says so.
    fn names_shm(&self) -> bool;
    /// The way of data within nodes, if the parameter names one.
    fn way(&self) -> Option<Way>;
    /// Whether the parameter names an algorithm, of messages, for a level or more.
    fn names_algorithm(&self) -> bool;
    /// The algorithm of the whole operation, where it has one.
    fn choice(&self, whole: &Whole) -> Option<Choice>;
}

impl<A: Family> Setting for Spec<A> {
    fn below(&self) -> bool {
        self.below
    }

    fn is_shared_within_node(&self) -> bool {
        self.shm || !(self.messages || self.below)
    }

    fn names_shm(&self) -> bool {
        self.shm
    }

    fn way(&self) -> Option<Way> {
        self.way
    }

    fn names_algorithm(&self) -> bool {
        self.levels.iter().any(Option::is_some)
    }

    fn choice(&self, whole: &Whole) -> Option<Choice> {
        A::Facts::of(whole).map(|facts| self.choose(facts).into())
    }
}

fn picked(rows: &'static [Row], text: &str) -> Result<Picked, String> {
    match text.split_once('/') {
        None => table::picked(rows, text, None),
        Some((name, number)) => table::picked(rows, name, Some(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Bcast;
    use crate::select::table::for_each_family;

    #[test]
    fn every_name_parses_alone_and_per_level() {
        fn check<A: Family + PartialEq + std::fmt::Debug>() {
            for row in A::ROWS {
                let default = row.argument.map_or(0, |argument| argument.default);
                let made = Spec::<A>::parse(row.name).unwrap().at(Level::Node).unwrap();
                assert_eq!((Some(made), made.row().map(|r| r.name)), (A::make(row, default), Some(row.name)));
                let with_number = format!("{}/3", row.name);
                assert_eq!(Spec::<A>::parse(&with_number).is_ok(), row.argument.is_some(), "{with_number}");
                assert_eq!(Spec::<A>::parse(&format!("numa:{}", row.name)).is_ok(), A::PER_LEVEL);
                let inside = Spec::<A>::parse(&format!("node:{}", row.name)).unwrap();
                assert!(!inside.is_shared_within_node() && inside.at(Level::Node) == Some(made));
                for &operation in A::OPERATIONS {
                    assert_eq!(Spec::<A>::parse_for(operation, row.name).is_ok(), row.serves(operation));
                    let listed = Spec::<A>::accepted(operation).contains(&format!(", {}", row.form()));
                    assert_eq!(listed, row.serves(operation));
                }
            }
        }
        for_each_family!(check());
    }

    #[test]
    fn what_stands_in_needs_nothing_and_serves_the_same_operations() {
        fn check<A: Family>() {
            for row in A::ROWS {
                assert_eq!(row.needs.is_empty(), row.instead.is_empty(), "{}", row.name);
                let Some(other) = A::ROWS.iter().find(|other| other.name == row.instead) else {
                    assert!(row.needs.is_empty(), "{} has nothing that stands in for it", row.name);
                    continue;
                };
                assert!(other.needs.is_empty(), "{} and {}", row.name, other.name);
                assert!(A::OPERATIONS.iter().all(|&operation| other.serves(operation) || !row.serves(operation)));
            }
        }
        for_each_family!(check());
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, part) in [
            ("", "\"\""),
            ("knomail", "knomail"),
            ("knomial/1", "\"1\""),
            ("knomial/x", "\"x\""),
            ("nod:flat", "\"nod\""),
            ("node:flt", "flt"),
            ("flat,chain", "chain"),
            ("node:flat,", "\"\""),
        ] {
            let error = Spec::<Bcast>::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn shm_is_for_nodes() {
        let shared = |text: &str| {
            let spec = Spec::<Bcast>::parse(text).unwrap();
            (spec.is_shared_within_node(), spec.names_shm(), spec.at(Level::Node), spec.at(Level::Switch(1)))
        };
        assert_eq!(shared("auto"), (true, false, None, None));
        assert_eq!(shared("fallback"), (false, false, None, None));
        assert_eq!(shared("below"), shared("fallback"));
        assert_eq!(shared("shm"), (true, true, None, None));
        assert_eq!(shared("switch:flat"), (true, false, None, Some(Bcast::Flat)));
        for text in
            ["node:shm,switch:flat", "flat,node:shm", "switch:flat, shm", "numa:chain,switch:flat,node:shm", "shm,flat"]
        {
            assert_eq!(shared(text), (true, true, None, Some(Bcast::Flat)), "{text}");
        }
        // An algorithm without a level is for messages: within a node where they share no memory.
        assert_eq!(shared("flat"), (true, false, Some(Bcast::Flat), Some(Bcast::Flat)));
        assert_eq!(shared("node:auto,flat"), (true, false, None, Some(Bcast::Flat)));
        for text in ["node:flat", "node:flat,chain", "numa:chain,switch:flat"] {
            assert!(!shared(text).0, "{text}");
        }
        assert!(Spec::<crate::select::Allreduce>::parse("node:shm,ring").unwrap().names_shm());
        for text in ["numa:shm", "switch:shm", "flat,shm,chain", "shm/2", "nod:shm", "shm:", "shm:shm", "shm:slot:slot"]
        {
            assert!(Spec::<Bcast>::parse(text).is_err(), "{text}");
        }
        assert!(Spec::<Bcast>::parse("switch:shm").unwrap_err().contains("level node"));
        let spec = Spec::<crate::select::Gather>::parse("shm").unwrap();
        assert!(spec.names_shm() && spec.is_shared_within_node());
        let spec = Spec::<crate::select::Neighbor>::parse("node:shm,aggregated").unwrap();
        assert!(spec.names_shm() && spec.at(Level::Cluster) == Some(crate::select::Neighbor::Aggregated(32)));
        assert!(Spec::<crate::select::Neighbor>::parse("switch:direct").is_err());
        let spec = Spec::<crate::select::Allreduce>::parse("node:ring").unwrap();
        assert!([Level::L3, Level::Node].iter().all(|&level| spec.at(level) == Some(crate::select::Allreduce::Ring)));
        assert!(spec.at(Level::Cluster).is_none());
        let spec = Spec::<crate::select::Neighbor>::parse("node:direct").unwrap();
        assert!(!spec.is_shared_within_node() && spec.at(Level::Cluster).is_none());
    }

    #[test]
    fn a_way_is_one_that_the_operation_has() {
        for operation in Operation::all() {
            fn check<A: Family>(operation: Operation) {
                if !A::OPERATIONS.contains(&operation) {
                    return;
                }
                for row in TABLE {
                    let texts = ["shm:", "node:shm:", "node : shm : "].map(|start| format!("{start}{}", row.name));
                    let serves = row.way.serves(operation.of_ways());
                    for text in &texts {
                        let spec = Spec::<A>::parse_for(operation, text);
                        assert_eq!(spec.is_ok(), serves, "{operation:?} {text}");
                        assert!(spec.is_err() || spec.unwrap().way() == Some(row.way));
                    }
                    let accepted = Spec::<A>::accepted(operation);
                    let ways = accepted.split_once("by this way: ").unwrap().1.split_once(')').unwrap().0;
                    assert_eq!(ways.split(", ").any(|name| name == row.name), serves, "{accepted}");
                }
            }
            for_each_family!(check(operation));
        }
        let spec = Spec::<Bcast>::parse("knomial/3,shm:pipeline").unwrap();
        assert!(spec.names_shm() && spec.way() == Some(Way::Pipeline) && spec.at(Level::Cluster).is_some());
        let error = Spec::<Bcast>::parse_for(Operation::Bcast, "shm:ring").unwrap_err();
        assert_eq!(error, "\"shm:ring\" is no way of bcast");
        assert_eq!(Spec::<Bcast>::parse("shm:rings").unwrap_err(), "\"rings\" is not a way");
    }

    #[test]
    fn switch_means_every_layer() {
        let spec = Spec::<Bcast>::parse("switch:flat,switch2:chain").unwrap();
        assert_eq!(spec.at(Level::Switch(1)), Some(Bcast::Flat));
        assert_eq!(spec.at(Level::Switch(2)), Some(Bcast::Chain));
        assert_eq!(spec.at(Level::Node), None);
    }
}
