// SPDX-License-Identifier: BSD-3-Clause
//! Random dimensions.

use coll_rust::select::{Family, Spec};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The sizes of groups and communicators: around powers of two, primes, one of several hundred.
pub const SIZES: [usize; 9] = [1, 2, 3, 7, 8, 11, 16, 64, 257];

/// The number of cases, of which a plain run takes a quarter, and fixed seeds; the environment overrides
/// both.
pub fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases.div_ceil(4) },
        rng_seed: if default.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { default.rng_seed },
        failure_persistence: None,
        ..default
    }
}

/// How a message is cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Units of the whole message.
    pub units: usize,
    /// Units of a segment.
    pub segment: usize,
    /// Segments in flight.
    pub window: u8,
    /// What the choice of algorithms believes that the message has, in bytes.
    pub bytes: usize,
}

/// Counts 0, 1, primes, and around the segment size.
pub fn cut() -> impl Strategy<Value = Cut> {
    let segment = prop_oneof![Just(1usize), Just(4), Just(16), 1..40usize, Just(usize::MAX)];
    let cut = (segment, 1..=8u8, prop_oneof![Just(64), Just(40 << 10), Just(1usize << 20)]);
    cut.prop_flat_map(|(segment, window, bytes)| {
        let s = segment.min(50);
        let units = prop_oneof![
            1 => Just(0),
            1 => Just(1),
            2 => Just(13),
            1 => Just(if s == 1 { 19 } else { 101 }),
            1 => Just(s - 1),
            1 => Just(s),
            1 => Just(s + 1),
            1 => Just(3 * s + 1),
            1 => Just(9 * s + s / 2),
        ];
        units.prop_map(move |units| Cut { units, segment, window, bytes })
    })
}

/// A value of an algorithm parameter, out of all that it accepts but "below".
pub fn spec<A: Family + std::fmt::Debug + PartialEq>() -> impl Strategy<Value = Spec<A>> {
    let algorithm = (0..A::ROWS.len(), prop_oneof![2..=5u32, Just(9), Just(64)]).prop_map(|(i, number)| {
        let row = &A::ROWS[i];
        row.argument.map_or_else(|| row.name.to_string(), |_| format!("{}/{number}", row.name))
    });
    let levels = ["l2", "l3", "numa", "socket", "node", "switch1", "switch2", "cluster"];
    let per_level = proptest::collection::vec(prop_oneof![1 => Just("auto".to_string()), 5 => algorithm.clone()], 8)
        .prop_map(move |names| levels.iter().zip(names).map(|(l, n)| format!("{l}:{n}")).collect::<Vec<_>>().join(","));
    let weight = if A::PER_LEVEL { 6 } else { 0 };
    let text = prop_oneof![1 => Just("auto".to_string()), 3 => algorithm, weight => per_level];
    text.prop_map(|text| parse(&text))
}

/// A parameter's value, written as the user does.
pub fn parse<A: Family>(text: &str) -> Spec<A> {
    Spec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
