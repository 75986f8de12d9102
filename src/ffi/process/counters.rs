// SPDX-License-Identifier: BSD-3-Clause
//! What was done: per operation the calls handled and passed on, and the messages and bytes sent per level.
//!
//! Read through MPI_T, and reported in MPI_Finalize where `coll_rust_report` says so.

use crate::ffi::base::glue::cr_counter;
use crate::ffi::base::kind::{Kind, Mode};
use crate::report::{Counts, Row};
use crate::shm::group::reading::{Way, counter};
use crate::shm::op::tally::calls;
use crate::shm::policy::{self, Operation};
use crate::topo::Level;
use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counters of one operation. What a call needs is in its first cache line.
#[repr(C, align(64))]
struct Counters {
    /// Whether several threads may count at once (MPI_THREAD_MULTIPLE).
    threads: AtomicBool,
    handled: AtomicU64,
    modes: [AtomicU64; Mode::ALL.len()],
    passed: AtomicU64,
    messages: [AtomicU64; Level::COUNT],
    bytes: [AtomicU64; Level::COUNT],
}

static COUNTERS: [Counters; Kind::COUNT] = [const {
    Counters {
        threads: AtomicBool::new(true),
        handled: AtomicU64::new(0),
        modes: [const { AtomicU64::new(0) }; Mode::ALL.len()],
        passed: AtomicU64::new(0),
        messages: [const { AtomicU64::new(0) }; Level::COUNT],
        bytes: [const { AtomicU64::new(0) }; Level::COUNT],
    }
}; Kind::COUNT];

/// Says whether several threads may count at once.
pub fn set_threads(several: bool) {
    COUNTERS.iter().for_each(|counters| counters.threads.store(several, Ordering::Relaxed));
}

impl Counters {
    /// A locked addition costs more than all the rest of counting, and only several threads need it.
    #[inline(always)]
    fn add<const N: usize>(&self, counts: [(&AtomicU64, u64); N]) {
        if self.threads.load(Ordering::Relaxed) {
            for (counter, more) in counts {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        } else {
            for (counter, more) in counts {
                counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
            }
        }
    }
}

/// A call that the component takes; of a persistent operation, a start.
pub fn handled(kind: Kind, mode: Mode) {
    let counters = &COUNTERS[kind as usize];
    counters.add([(&counters.handled, 1), (&counters.modes[mode as usize], 1)]);
}

/// A call that goes to the component below; of a persistent operation, its initialisation.
pub fn passed(kind: Kind, mode: Mode) {
    let counters = &COUNTERS[kind as usize];
    counters.add([(&counters.passed, 1), (&counters.modes[mode as usize], 1)]);
}

/// A message sent at the level of this index.
pub fn sent(kind: Kind, level: u8, bytes: usize) {
    let counters = &COUNTERS[kind as usize];
    let level = usize::from(level);
    counters.add([(&counters.messages[level], 1), (&counters.bytes[level], bytes as u64)]);
}

/// The table that the shim registers. Every process makes it when MPI starts: so all its texts are one piece
/// of memory.
pub fn table() -> Rows {
    let mut texts: Vec<u8> = Vec::with_capacity(TEXTS);
    let mut rows: Vec<(usize, usize, &'static AtomicU64)> = Vec::with_capacity(ROWS);
    let mut row = |name: Arguments<'_>, help: Arguments<'_>, value| {
        let [name, help] = [name, help].map(|text| {
            let start = texts.len();
            // Nothing that is written to memory fails.
            let _ = texts.write_fmt(text);
            texts.push(0);
            start
        });
        rows.push((name, help, value));
    };
    for kind in Kind::all() {
        let (c, op) = (&COUNTERS[kind as usize], kind.name());
        row(format_args!("{op}_handled"), format_args!("Calls of {op} that coll/rust took"), &c.handled);
        row(format_args!("{op}_passed"), format_args!("Calls of {op} passed to the component below"), &c.passed);
        for mode in Mode::ALL {
            let help = mode.name();
            let help = format_args!("Calls of {op} that were {help}, handled or passed");
            row(format_args!("{op}_{}", mode.name()), help, &c.modes[mode as usize]);
        }
        for level in Level::ALL {
            let (i, l) = (usize::from(level.index()), level.name());
            let messages = format_args!("Messages that this process sent at level {l} for {op}");
            row(format_args!("{op}_{l}_messages"), messages, &c.messages[i]);
            let bytes = format_args!("Bytes that this process sent at level {l} for {op}");
            row(format_args!("{op}_{l}_bytes"), bytes, &c.bytes[i]);
        }
    }
    for (way, name) in WAYS {
        let Some(value) = counter(way) else { continue };
        let help = format_args!("Bytes that this process read from other processes' memory, or wrote there, by {name}");
        row(format_args!("zero_copy_{name}_bytes"), help, value);
    }
    for (operation, way) in ways() {
        let (of, by) = (operation.name(), way.name());
        let help = format_args!(
            "Parts of calls that went within the node as shm:{by} of {of}; such in one step (inline, slot, whole) only \
             where a parameter names the way"
        );
        row(format_args!("shm_{of}_{by}"), help, calls(operation, way));
    }
    let at = |start: usize| texts.as_ptr().wrapping_add(start).cast();
    let row = |(name, help, value): (usize, usize, &AtomicU64)| cr_counter {
        name: at(name),
        help: at(help),
        value: value.as_ptr(),
    };
    Rows { rows: rows.into_iter().map(row).collect(), _texts: texts }
}

/// Counters, and bytes of their texts, for which there is room from the beginning on.
const ROWS: usize = 1024;
const TEXTS: usize = 96 << 10;

/// The rows of the table, with strings of their own.
pub struct Rows {
    rows: Vec<cr_counter>,
    /// Where those point to.
    _texts: Vec<u8>,
}

// SAFETY: the pointers are to strings that belong to the rows, and to statics with atomic contents.
unsafe impl Send for Rows {}

impl Rows {
    /// Where they are, and how many.
    pub fn as_slice(&self) -> &[cr_counter] {
        &self.rows
    }
}

/// Ways of reading other processes' memory.
const WAYS: [(Way, &str); 2] = [(Way::Cma, "cma"), (Way::Smsc, "smsc")];

/// Every operation of the table of ways with every way that it has.
fn ways() -> impl Iterator<Item = (Operation, policy::Way)> {
    let of = |row: &'static policy::Row| row.operations.iter().map(move |&operation| (operation, row.way));
    policy::TABLE.iter().flat_map(of)
}

/// All counters of this process, in an order that [`counts`] knows.
pub fn snapshot() -> Vec<u64> {
    let counters = COUNTERS.iter().flat_map(|c| {
        let levels = c.messages.iter().zip(&c.bytes).flat_map(|(messages, bytes)| [messages, bytes]);
        [&c.handled, &c.passed].into_iter().chain(&c.modes).chain(levels).map(|n| n.load(Ordering::Relaxed))
    });
    let ways = WAYS.iter().map(|&(way, _)| counter(way).map_or(0, |counter| counter.load(Ordering::Relaxed)));
    let calls = self::ways().map(|(operation, way)| calls(operation, way).load(Ordering::Relaxed));
    counters.chain(ways).chain(calls).collect()
}

/// Counters with their names: of a [`snapshot`], or of the sum of several.
pub fn counts(values: &[u64]) -> Counts {
    let width = 2 + Mode::ALL.len() + 2 * Level::COUNT;
    let rows = Kind::all().zip(values.chunks_exact(width)).map(|(kind, values)| {
        let (calls, levels) = values.split_at(2 + Mode::ALL.len());
        let levels = Level::ALL.iter().zip(levels.chunks_exact(2)).map(|(level, n)| (level.name(), n[0], n[1]));
        Row {
            name: kind.name(),
            handled: calls[0],
            passed: calls[1],
            modes: Mode::ALL.iter().zip(&calls[2..]).map(|(mode, n)| (mode.name(), *n)).collect(),
            levels: levels.filter(|(_, messages, _)| *messages > 0).collect(),
        }
    });
    let mut rest = values.iter().skip(Kind::COUNT * width);
    let zero_copy: Vec<_> = WAYS.iter().zip(rest.by_ref()).map(|((_, name), bytes)| (*name, *bytes)).collect();
    let within = ways().zip(rest).map(|((operation, way), calls)| (operation.name(), way.name(), *calls));
    Counts {
        rows: rows.filter(|row| row.handled + row.passed > 0).collect(),
        zero_copy: zero_copy.into_iter().filter(|(_, bytes)| *bytes > 0).collect(),
        within: within.filter(|(.., calls)| *calls > 0).collect(),
    }
}
