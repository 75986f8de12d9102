//! The values of the parameters `coll_rust_<operation>_algorithm`: one algorithm, or one per level.

use super::table::{Argument, Family, Known, Row};
use super::{Choice, Operation, Whole};
use crate::topo::Level;

/// A parsed algorithm parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<A> {
    levels: [Option<A>; Level::COUNT],
    below: bool,
    /// The processes of a node share memory, because the parameter says so.
    shm: bool,
}

/// The name of shared memory among the algorithms.
const SHM: &str = "shm";

impl<A: Family> Spec<A> {
    /// The built-in choice everywhere.
    pub const AUTO: Spec<A> = Spec { levels: [None; Level::COUNT], below: false, shm: false };

    /// This algorithm everywhere.
    pub fn everywhere(algorithm: A) -> Spec<A> {
        Spec { levels: [Some(algorithm); Level::COUNT], below: false, shm: false }
    }

    /// What is accepted for an operation of the family, for help and messages.
    pub fn accepted(operation: Operation) -> String {
        let rows: Vec<&Row> = A::ROWS.iter().filter(|row| row.serves(operation)).collect();
        let mut text = String::from("auto, fallback (the component of the next lower priority)");
        rows.iter().for_each(|row| text += &format!(", {}", row.form()));
        if Self::may_share() {
            text += ", shm (within nodes: shared memory where there is some)";
        }
        if A::PER_LEVEL {
            text += ", or a list such as node:ALGORITHM,switch:ALGORITHM";
        } else if Self::may_share() {
            text += ", or node:shm and another one for the rest, after a comma";
        }
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

    /// Whether the operations of the family can go through shared memory within each of several nodes.
    fn may_share() -> bool {
        matches!(A::OPERATIONS, [Operation::Bcast | Operation::Reduce | Operation::Allreduce | Operation::Barrier])
            || A::OPERATIONS.iter().all(|operation| operation.is_neighbor())
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
        let spec = Self::parse(text)?;
        for row in spec.levels.iter().flatten().filter_map(A::row) {
            if !row.serves(operation) {
                return Err(format!("\"{}\" is no algorithm of {}", row.name, operation.name()));
            }
        }
        Ok(spec)
    }

    /// Parses a value that some operation of the family accepts.
    pub fn parse(text: &str) -> Result<Spec<A>, String> {
        let mut spec = Self::AUTO;
        let text = text.trim();
        match text {
            "auto" => return Ok(spec),
            // "below": its name in earlier releases.
            "fallback" | "below" => return Ok(Spec { below: true, ..spec }),
            _ => {}
        }
        let (mut default, mut elsewhere, mut node) = (None, false, None);
        for item in text.split(',').map(str::trim) {
            let Some((level, name)) = item.split_once(':') else {
                let choice = if item == SHM && Self::may_share() { None } else { Some(algorithm::<A>(item)?) };
                if std::mem::replace(&mut elsewhere, true) {
                    return Err(format!("\"{item}\" is a second algorithm without a level"));
                }
                default = choice;
                continue;
            };
            if name.trim() == SHM && Self::may_share() {
                if level.trim() != Level::Node.name() {
                    return Err(format!(
                        "\"{item}\": shm is for all processes of a node, so accepted for level node only"
                    ));
                }
                node = Some(true);
                continue;
            }
            if !A::PER_LEVEL {
                return Err(format!("\"{item}\": this operation has one algorithm, not one per level"));
            }
            let choice = match name.trim() {
                "auto" => None,
                name => Some(algorithm::<A>(name)?),
            };
            let level = level.trim();
            let mut known = false;
            for l in
                Level::ALL.iter().filter(|l| l.name() == level || (level == "switch" && matches!(l, Level::Switch(_))))
            {
                known = true;
                if *l == Level::Node {
                    node = Some(false);
                }
                spec.levels[usize::from(l.index())] = choice;
            }
            if !known {
                return Err(format!("\"{level}\" is not a level"));
            }
        }
        for slot in &mut spec.levels {
            *slot = slot.or(default);
        }
        // Without a level it means the level where it is accepted.
        spec.shm = node.unwrap_or(elsewhere && default.is_none());
        if spec.shm {
            spec.levels[usize::from(Level::Node.index())] = None;
        }
        Ok(spec)
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
        let auto = Level::ALL.iter().filter(|&&level| level <= Level::Node).all(|&level| self.at(level).is_none());
        self.shm || (auto && !self.below)
    }

    fn names_shm(&self) -> bool {
        self.shm
    }

    fn names_algorithm(&self) -> bool {
        self.levels.iter().any(Option::is_some)
    }

    fn choice(&self, whole: &Whole) -> Option<Choice> {
        A::Facts::of(whole).map(|facts| self.choose(facts).into())
    }
}

fn algorithm<A: Family>(text: &str) -> Result<A, String> {
    match text.split_once('/') {
        None => A::named(text, None),
        Some((name, number)) => A::named(name, Some(number)),
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
        for text in ["node:shm,switch:flat", "flat,node:shm", "switch:flat, shm", "numa:chain,switch:flat,node:shm"] {
            assert_eq!(shared(text), (true, true, None, Some(Bcast::Flat)), "{text}");
        }
        for text in ["flat", "node:flat,shm,switch:flat", "numa:chain,switch:flat"] {
            assert!(!shared(text).0, "{text}");
        }
        assert!(Spec::<crate::select::Allreduce>::parse("node:shm,ring").unwrap().names_shm());
        for text in ["numa:shm", "switch:shm", "shm,flat", "flat,shm", "shm/2", "nod:shm"] {
            assert!(Spec::<Bcast>::parse(text).is_err(), "{text}");
        }
        assert!(Spec::<Bcast>::parse("switch:shm").unwrap_err().contains("level node"));
        assert!(Spec::<crate::select::Gather>::parse("shm").is_err());
        let spec = Spec::<crate::select::Neighbor>::parse("node:shm,aggregated").unwrap();
        assert!(spec.names_shm() && spec.at(Level::Cluster) == Some(crate::select::Neighbor::Aggregated(32)));
        assert!(Spec::<crate::select::Neighbor>::parse("node:direct").is_err());
    }

    #[test]
    fn switch_means_every_layer() {
        let spec = Spec::<Bcast>::parse("switch:flat,switch2:chain").unwrap();
        assert_eq!(spec.at(Level::Switch(1)), Some(Bcast::Flat));
        assert_eq!(spec.at(Level::Switch(2)), Some(Bcast::Chain));
        assert_eq!(spec.at(Level::Node), None);
    }
}
