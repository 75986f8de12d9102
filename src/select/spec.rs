//! The values of the parameters `coll_rust_<op>_algorithm`: one algorithm, or one per level.

use super::{Allreduce, Barrier, Bcast, Reduce};
use crate::topo::Level;

/// An algorithm's name, and what it makes of the radix after a `/` (`None` without one).
pub type Row<A> = (&'static str, fn(Option<u32>) -> Option<A>);

/// An enumeration of algorithms with names, each with or without a radix.
pub trait Named: Copy + 'static {
    /// The algorithms, in the order of the documentation.
    const NAMES: &'static [Row<Self>];
    /// Whether levels may have algorithms of their own.
    const PER_LEVEL: bool;
}

macro_rules! named {
    ($type:ty, per_level: $per_level:expr, $($name:literal => $make:expr),+ $(,)?) => {
        impl Named for $type {
            const NAMES: &'static [Row<Self>] = &[$(($name, $make)),+];
            const PER_LEVEL: bool = $per_level;
        }
    };
}

fn plain<A>(algorithm: A, radix: Option<u32>) -> Option<A> {
    radix.is_none().then_some(algorithm)
}

named!(Bcast, per_level: true,
    "flat" => |r| plain(Bcast::Flat, r),
    "knomial/k" => |r| Some(Bcast::Knomial(r.unwrap_or(2))),
    "scatter_allgather" => |r| plain(Bcast::ScatterAllgather, r),
    "chain" => |r| plain(Bcast::Chain, r),
);
named!(Reduce, per_level: true,
    "flat" => |r| plain(Reduce::Flat, r),
    "knomial/k" => |r| Some(Reduce::Knomial(r.unwrap_or(2))),
    "chain" => |r| plain(Reduce::Chain, r),
    "reduce_scatter_gather" => |r| plain(Reduce::ReduceScatterGather, r),
);
named!(Allreduce, per_level: false,
    "reduce_bcast" => |r| plain(Allreduce::ReduceBcast, r),
    "recursive_doubling" => |r| plain(Allreduce::RecursiveDoubling, r),
    "rabenseifner" => |r| plain(Allreduce::Rabenseifner, r),
    "ring" => |r| plain(Allreduce::Ring, r),
);
named!(Barrier, per_level: true,
    "dissemination" => |r| plain(Barrier::Dissemination, r),
    "tree/k" => |r| Some(Barrier::Tree(r.unwrap_or(2))),
);

/// A parsed algorithm parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<A> {
    levels: [Option<A>; Level::COUNT],
    below: bool,
}

impl<A: Named> Spec<A> {
    /// The built-in choice everywhere.
    pub const AUTO: Spec<A> = Spec { levels: [None; Level::COUNT], below: false };

    /// This algorithm everywhere.
    pub fn everywhere(algorithm: A) -> Spec<A> {
        Spec { levels: [Some(algorithm); Level::COUNT], below: false }
    }

    /// What is accepted, for help and messages.
    pub fn accepted() -> String {
        let names: Vec<&str> = A::NAMES.iter().map(|(name, _)| *name).collect();
        let per_level = if A::PER_LEVEL { ", or a list such as node:ALGORITHM,switch:ALGORITHM" } else { "" };
        let radix = if names.iter().any(|n| n.ends_with("/k")) { " (k: 2 to 64, 2 where it is left out)" } else { "" };
        format!("auto, below (the component below ours), {}{per_level}{radix}", names.join(", "))
    }

    /// Whether the operation is left to the component below.
    pub fn below(&self) -> bool {
        self.below
    }

    /// What the parameter says for a level, if anything.
    pub fn at(&self, level: Level) -> Option<A> {
        self.levels[usize::from(level.index())]
    }

    /// Whether the choice within a node is ours.
    pub fn is_auto_within_node(&self) -> bool {
        !self.below && Level::ALL.iter().filter(|&&level| level <= Level::Node).all(|&level| self.at(level).is_none())
    }

    /// Parses a parameter's value; the error says which part is wrong, not what is accepted.
    pub fn parse(text: &str) -> Result<Spec<A>, String> {
        let mut spec = Self::AUTO;
        let text = text.trim();
        match text {
            "auto" => return Ok(spec),
            "below" => return Ok(Spec { below: true, ..spec }),
            _ => {}
        }
        let mut default = None;
        for item in text.split(',').map(str::trim) {
            let Some((level, name)) = item.split_once(':') else {
                if default.replace(algorithm::<A>(item)?).is_some() {
                    return Err(format!("\"{item}\" is a second algorithm without a level"));
                }
                continue;
            };
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
                spec.levels[usize::from(l.index())] = choice;
            }
            if !known {
                return Err(format!("\"{level}\" is not a level"));
            }
        }
        for slot in &mut spec.levels {
            *slot = slot.or(default);
        }
        Ok(spec)
    }
}

fn algorithm<A: Named>(text: &str) -> Result<A, String> {
    let (name, radix) = match text.split_once('/') {
        None => (text, None),
        Some((name, radix)) => match radix.parse::<u32>() {
            Ok(k @ 2..=64) => (name, Some(k)),
            _ => return Err(format!("\"{radix}\" is not a radix from 2 to 64")),
        },
    };
    A::NAMES
        .iter()
        .find(|(known, _)| known.trim_end_matches("/k") == name)
        .and_then(|(_, make)| make(radix))
        .ok_or_else(|| format!("\"{text}\" is not an algorithm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_alone_and_per_level() {
        fn check<A: Named + PartialEq + std::fmt::Debug>() {
            for (name, make) in A::NAMES {
                let plain = name.trim_end_matches("/k");
                assert_eq!(Spec::<A>::parse(plain).unwrap().at(Level::Node), make(None));
                let with_radix = format!("{plain}/3");
                assert_eq!(Spec::<A>::parse(&with_radix).is_ok(), name.ends_with("/k"), "{with_radix}");
                assert_eq!(Spec::<A>::parse(&format!("numa:{plain}")).is_ok(), A::PER_LEVEL);
                assert!(Spec::<A>::accepted().contains(plain));
            }
        }
        check::<Bcast>();
        check::<Reduce>();
        check::<Allreduce>();
        check::<Barrier>();
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
    fn switch_means_every_layer() {
        let spec = Spec::<Bcast>::parse("switch:flat,switch2:chain").unwrap();
        assert_eq!(spec.at(Level::Switch(1)), Some(Bcast::Flat));
        assert_eq!(spec.at(Level::Switch(2)), Some(Bcast::Chain));
        assert_eq!(spec.at(Level::Node), None);
    }
}
