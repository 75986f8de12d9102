// SPDX-License-Identifier: BSD-3-Clause
//! Parameters' values and names.

use crate::random::Random;
use coll_rust::params::{self, TABLE};
use coll_rust::topo::LevelSpec;

const TOKENS: [&str; 60] = [
    "auto",
    "none",
    "shm",
    "flat",
    "knomial",
    "knomial/2",
    "chain",
    "ring",
    "linear/8",
    "bruck/3",
    "below",
    "fallback",
    "hierarchical",
    "scatter_allgather",
    "rabenseifner",
    "l2",
    "l3",
    "numa",
    "socket",
    "node",
    "switch",
    "switch1",
    "switch5",
    "cluster",
    ":",
    "/",
    ",",
    ",,",
    "0",
    "1",
    "-1",
    "64k",
    "1m",
    "2g",
    "99999999999g",
    "18446744073709551615",
    "18446744073709551616k",
    "1.5k",
    "0x10",
    "1e9",
    "true",
    "yes",
    "enabled",
    "spin",
    "yield",
    "block",
    "cma",
    "smsc",
    "memfd",
    "/dev/shm",
    "/",
    "../x",
    "hierarchy",
    "dot",
    "config",
    "json:/tmp",
    "sum",
    "é",
    "\0",
    " ",
];

/// A parameter and a value for it; and a name.
pub fn setting(random: &mut Random) -> Vec<String> {
    let param = &TABLE[random.below(TABLE.len())];
    let start = match random.below(3) {
        0 => param.default,
        1 => random.pick(&TOKENS),
        _ => "numa:shm,node:knomial/4,switch:ring",
    };
    let value = match random.below(4) {
        0 => (0..random.below(12)).map(|_| random.pick(&TOKENS)).collect(),
        _ => random.mutate(start, &TOKENS, &TOKENS),
    };
    let name = random.mutate(param.name, &TOKENS, &TOKENS);
    vec![param.name.to_string(), value, name]
}

pub fn read(texts: &[String]) {
    let [name, value, other] = texts else { return };
    if let Err(why) = params::parse(TABLE.iter().map(|p| if p.name == name { value.as_str() } else { p.default })) {
        assert!(why.contains(name.as_str()), "{why}");
    }
    let _ = LevelSpec::parse(value);
    let _ = params::unknown_names([(format!("coll_rust_{other}"), String::new()), (other.clone(), String::new())]);
}
