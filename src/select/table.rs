// SPDX-License-Identifier: BSD-3-Clause
//! The table of algorithms: which operation has which, what each needs, and what stands in where that is not
//! given.
//!
//! Everything else is made from it: the values of the parameters `coll_rust_<operation>_algorithm` and their
//! help, the choice where a requirement is not met, the table of the docs, and the list of what the tests
//! under `mpiexec` run. A new algorithm is a row here, and an arm where its family is run (the compiler tells
//! where).

use super::{Choice, Facts, Operation, Whole, auto};
use crate::topo::Level;

/// A number that an algorithm takes, after a `/` in the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What stands for it in the help.
    pub letter: char,
    /// Its smallest value.
    pub least: u32,
    /// Its largest value.
    pub most: u32,
    /// Its value where it is left out.
    pub default: u32,
}

/// The radix of a tree, or of a numbering.
const RADIX: Argument = Argument { letter: 'k', least: 2, most: 64, default: 2 };
/// Messages that a rank has under way at a time, each way.
const POSTS: Argument = Argument { letter: 'b', least: 1, most: 1024, default: 8 };

/// The same, for those with a message per neighbour.
const EDGES: Argument = Argument { letter: 'b', least: 1, most: 1024, default: 32 };

/// What an algorithm may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Operands may be exchanged.
    Commutative,
    /// All ranks cut the data alike: not so with a user-defined operation, whose elements may differ in size.
    Divisible,
    /// The number of members is even.
    Even,
    /// Results may depend on the placement.
    Placed,
    /// The number of members is a power of two.
    PowerOfTwo,
}

impl Need {
    /// In words, after "unless".
    pub fn text(self) -> &'static str {
        match self {
            Need::Commutative => "the operation commutes",
            Need::Divisible => "it is predefined",
            Need::Placed => "coll_rust_reproducible is 0",
            Need::Even => "there is an even number of processes",
            Need::PowerOfTwo => "processes are a power of two",
        }
    }
}

/// What is known where an algorithm is chosen. The same on all members.
pub trait Known: Sized {
    /// The facts, where algorithms are for whole operations.
    fn of(whole: &Whole) -> Option<&Self>;
    /// The level of the group.
    fn level(&self) -> Level;
    /// Whether a requirement is met.
    fn meets(&self, need: Need) -> bool;
}

/// An algorithm in the table.
#[derive(Debug)]
pub struct Row {
    /// The value of the parameter.
    pub name: &'static str,
    /// Operations that have it; empty: all of the family.
    pub only: &'static [Operation],
    /// The number that it takes.
    pub argument: Option<Argument>,
    /// What it needs.
    pub needs: &'static [Need],
    /// What stands in, with its default number, where a requirement is not met; itself without requirements.
    /// Empty where there are none.
    pub instead: &'static str,
}

impl Row {
    /// Whether an operation of the family has it.
    pub fn serves(&self, operation: Operation) -> bool {
        self.only.is_empty() || self.only.contains(&operation)
    }

    /// As in the help.
    pub fn form(&self) -> String {
        self.argument.map_or_else(|| self.name.to_owned(), |argument| format!("{}/{}", self.name, argument.letter))
    }
}

/// A family: the algorithms that some operations have in common.
pub trait Family: Copy + Into<Choice> + 'static {
    /// What the choice depends on.
    type Facts: Known;
    /// The operations.
    const OPERATIONS: &'static [Operation];
    /// The algorithms, in the order of the documentation.
    const ROWS: &'static [Row];
    /// Whether levels may have algorithms of their own.
    const PER_LEVEL: bool;
    /// The algorithm of a row, with this number if it takes one.
    fn make(row: &Row, argument: u32) -> Option<Self>;
    /// The row of an algorithm.
    fn row(&self) -> Option<&'static Row>;
    /// The built-in choice.
    fn auto(facts: &Self::Facts) -> Self;

    /// The algorithm of this name, with a number or its default one; else what is wrong.
    fn named(name: &str, number: Option<&str>) -> Result<Self, String> {
        let (row, number) = picked(Self::ROWS, name, number)?;
        Self::make(row, number).ok_or_else(|| format!("\"{name}\" is not an algorithm"))
    }
}

/// An algorithm, of whichever family, with its number.
pub type Picked = (&'static Row, u32);

/// The algorithm of this name among some, with a number or its default one; else what is wrong.
pub fn picked(rows: &'static [Row], name: &str, number: Option<&str>) -> Result<Picked, String> {
    let row = rows.iter().find(|row| row.name == name).ok_or_else(|| format!("\"{name}\" is not an algorithm"))?;
    let number = match (row.argument, number) {
        (Some(argument), Some(text)) => match text.parse::<u32>() {
            Ok(number) if (argument.least..=argument.most).contains(&number) => number,
            _ => return Err(format!("\"{text}\" is not a number from {} to {}", argument.least, argument.most)),
        },
        (Some(argument), None) => argument.default,
        (None, Some(text)) => return Err(format!("\"{name}/{text}\": {name} takes no number")),
        (None, None) => 0,
    };
    Ok((row, number))
}

macro_rules! family {
    ($(#[$doc:meta])* $family:ident of [$($operation:ident),+], per_level: $per_level:literal, auto: $auto:path, of $facts:ty;
     $($(#[$about:meta])* $name:literal => $variant:ident $(($number:ty = $argument:ident))?
       $(, only [$($only:ident),+])? $(, needs [$($need:ident),+] else $instead:literal)?;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $family {
            $($(#[$about])* $variant $(($number))?),+
        }

        impl From<$family> for Choice {
            fn from(algorithm: $family) -> Choice {
                Choice::$family(algorithm)
            }
        }

        impl Family for $family {
            type Facts = $facts;
            const OPERATIONS: &'static [Operation] = &[$(Operation::$operation),+];
            const ROWS: &'static [Row] = &[$(Row {
                name: $name,
                only: &[$($(Operation::$only),+)?],
                argument: family!(@argument $($argument)?),
                needs: &[$($(Need::$need),+)?],
                instead: concat!($($instead)?),
            }),+];
            const PER_LEVEL: bool = $per_level;

            #[allow(unused_variables)] // a family whose algorithms take no number
            fn make(row: &Row, number: u32) -> Option<Self> {
                match row.name {
                    $($name => Some($family::$variant $((number as $number))?),)+
                    _ => None,
                }
            }

            fn row(&self) -> Option<&'static Row> {
                let name = match self {
                    $($family::$variant { .. } => $name),+
                };
                Self::ROWS.iter().find(|row| row.name == name)
            }

            fn auto(facts: &$facts) -> Self {
                $auto(facts)
            }
        }
    };
    (@argument) => { None };
    (@argument $argument:ident) => { Some($argument) };
}

family! {
    /// Broadcast within a group.
    Bcast of [Bcast], per_level: true, auto: auto::bcast, of Facts;
    /// [`crate::algo::bcast::flat`]
    "flat" => Flat;
    /// [`crate::algo::bcast::knomial`] of this radix
    "knomial" => Knomial(u32 = RADIX);
    /// [`crate::algo::bcast::scatter_allgather`]
    "scatter_allgather" => ScatterAllgather;
    /// [`crate::algo::bcast::chain`]
    "chain" => Chain;
}

family! {
    /// Reduction within a group.
    Reduce of [Reduce], per_level: true, auto: auto::reduce, of Facts;
    /// [`crate::algo::reduce::flat`]
    "flat" => Flat;
    /// [`crate::algo::reduce::knomial`] of this radix
    "knomial" => Knomial(u32 = RADIX);
    /// [`crate::algo::reduce::chain`]
    "chain" => Chain;
    /// [`crate::algo::reduce::reduce_scatter_gather`]
    "reduce_scatter_gather" => ReduceScatterGather, needs [Commutative, Divisible] else "knomial";
}

family! {
    /// How an allreduce is composed, and what runs in the topmost group.
    Allreduce of [Allreduce], per_level: false, auto: auto::allreduce, of Facts;
    /// A hierarchical reduce to rank 0, then a hierarchical broadcast.
    "reduce_bcast" => ReduceBcast;
    /// reduce_allreduce_bcast with [`crate::algo::allreduce::recursive_doubling`] on top
    "recursive_doubling" => RecursiveDoubling;
    /// reduce_allreduce_bcast with [`crate::algo::allreduce::rabenseifner`] on top
    "rabenseifner" => Rabenseifner, needs [Commutative, Divisible] else "recursive_doubling";
    /// reduce_allreduce_bcast with [`crate::algo::allreduce::ring`] on top
    "ring" => Ring, needs [Commutative, Divisible] else "recursive_doubling";
}

family! {
    /// Barrier within a group.
    Barrier of [Barrier], per_level: true, auto: auto::barrier, of Facts;
    /// [`crate::algo::barrier::dissemination`]
    "dissemination" => Dissemination;
    /// [`crate::algo::barrier::tree`] of this radix
    "tree" => Tree(u32 = RADIX);
}

family! {
    /// Gather and Gatherv.
    Gather of [Gather, Gatherv], per_level: false, auto: auto::gather, of Whole;
    /// [`crate::algo::gather::linear`], so many messages at a time
    "linear" => Linear(usize = POSTS);
    /// [`crate::algo::gather::knomial`] of this radix
    "knomial" => Knomial(u32 = RADIX);
    /// [`crate::hier::gather`]
    "hierarchical" => Hierarchical;
}

family! {
    /// Scatter and Scatterv.
    Scatter of [Scatter, Scatterv], per_level: false, auto: auto::scatter, of Whole;
    /// [`crate::algo::scatter::linear`], so many messages at a time
    "linear" => Linear(usize = POSTS);
    /// [`crate::algo::scatter::knomial`] of this radix
    "knomial" => Knomial(u32 = RADIX);
    /// [`crate::hier::scatter`]
    "hierarchical" => Hierarchical;
}

family! {
    /// Allgather and Allgatherv.
    Allgather of [Allgather, Allgatherv], per_level: false, auto: auto::allgather, of Whole;
    /// [`crate::algo::allgather::linear`], so many messages at a time
    "linear" => Linear(usize = POSTS);
    /// [`crate::algo::allgather::ring`]
    "ring" => Ring;
    /// [`crate::algo::allgather::neighbor_exchange`]
    "neighbor_exchange" => NeighborExchange, needs [Even] else "ring";
    /// [`crate::algo::allgather::recursive_doubling`]
    "recursive_doubling" => RecursiveDoubling, needs [PowerOfTwo] else "bruck";
    /// [`crate::algo::allgather::bruck`]
    "bruck" => Bruck;
    /// [`crate::hier::allgather`]
    "hierarchical" => Hierarchical;
}

family! {
    /// Alltoall, Alltoallv and Alltoallw.
    Alltoall of [Alltoall, Alltoallv, Alltoallw], per_level: false, auto: auto::alltoall, of Whole;
    /// [`crate::algo::alltoall::linear`], so many messages at a time
    "linear" => Linear(usize = POSTS);
    /// [`crate::algo::alltoall::pairwise`]
    "pairwise" => Pairwise;
    /// [`crate::algo::alltoall::bruck`] of this radix; its blocks have one length
    "bruck" => Bruck(u32 = RADIX), only [Alltoall];
    /// [`crate::hier::alltoall::spread`]
    "spread" => Spread;
    /// [`crate::hier::alltoall`]
    "hierarchical" => Hierarchical;
}

family! {
    /// Reduce_scatter and Reduce_scatter_block.
    ReduceScatter of [ReduceScatter, ReduceScatterBlock], per_level: false, auto: auto::reduce_scatter, of Whole;
    /// [`crate::algo::reduce_scatter::pairwise`]
    "pairwise" => Pairwise;
    /// [`crate::algo::reduce_scatter::reduce_scatterv`] of this radix
    "reduce_scatterv" => ReduceScatterv(u32 = RADIX);
    /// [`crate::algo::reduce_scatter::recursive_halving`]
    "recursive_halving" => RecursiveHalving, needs [Commutative] else "pairwise";
    /// [`crate::algo::reduce_scatter::ring`]
    "ring" => Ring, needs [Commutative] else "pairwise";
    /// [`crate::hier::reduce_scatter`]
    "hierarchical" => Hierarchical, needs [Placed] else "pairwise";
}

family! {
    /// Scan and Exscan.
    Scan of [Scan, Exscan], per_level: false, auto: auto::scan, of Whole;
    /// [`crate::algo::scan::linear`]
    "linear" => Linear;
    /// [`crate::algo::scan::recursive_doubling`]
    "recursive_doubling" => RecursiveDoubling;
    /// [`crate::hier::scan`]
    "hierarchical" => Hierarchical, needs [Placed] else "recursive_doubling";
}

family! {
    /// The neighbourhood operations.
    Neighbor of [NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw], per_level: false,
        auto: auto::neighbor, of Whole;
    /// [`crate::algo::neighbor::direct`], so many messages at a time
    "direct" => Direct(usize = EDGES);
    /// [`crate::algo::neighbor::aggregated`]; so many messages at a time to neighbours without bundles
    "aggregated" => Aggregated(usize = EDGES);
}

/// Calls a function that has a family as its only type parameter, for each of them.
macro_rules! for_each_family {
    ($call:ident ($($argument:expr)?)) => {{
        use $crate::select::*;
        $call::<Bcast>($($argument)?);
        $call::<Reduce>($($argument)?);
        $call::<Allreduce>($($argument)?);
        $call::<Barrier>($($argument)?);
        $call::<Gather>($($argument)?);
        $call::<Scatter>($($argument)?);
        $call::<Allgather>($($argument)?);
        $call::<Alltoall>($($argument)?);
        $call::<ReduceScatter>($($argument)?);
        $call::<Scan>($($argument)?);
        $call::<Neighbor>($($argument)?);
    }};
}
pub(super) use for_each_family;
