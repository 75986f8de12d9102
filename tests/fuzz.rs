// SPDX-License-Identifier: BSD-3-Clause
//! Network files and parameters that nobody meant: no panic, no hang, bounded memory.
//!
//! Cases follow from a seed and their number, so a failure names what reproduces it. `COLL_RUST_FUZZ_CASES`
//! says how many; by default some thousands. A million of each, in a few minutes:
//!
//! ```text
//! COLL_RUST_FUZZ_CASES=1000000 cargo test --release --test fuzz -- --nocapture
//! ```

#[path = "fuzz/files.rs"]
mod files;
#[path = "fuzz/memory.rs"]
#[allow(dead_code)]
mod memory;
#[path = "fuzz/random.rs"]
mod random;
#[path = "fuzz/strings.rs"]
mod strings;

use random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What one case may cost: the limits of a file (8 MiB of text, 32 MiB of names) with what is made of them.
const MOST_BYTES: usize = 128 << 20;
const MOST_SECONDS: f64 = 20.0;

/// Runs the cases `0..count`, each with random numbers of its own.
fn run(what: &str, by_default: u64, make: impl Fn(&mut Random) -> Vec<String>, read: impl Fn(&[String])) {
    let count = std::env::var("COLL_RUST_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(by_default);
    let (mut most_bytes, mut most_seconds, mut bytes) = (0, 0f64, 0);
    for case in 0..count {
        let input = make(&mut Random::new(case));
        bytes += input.iter().map(String::len).sum::<usize>();
        let (start, before) = (memory::thread_seconds(), memory::reset());
        let outcome = catch_unwind(AssertUnwindSafe(|| read(&input)));
        let (cost, seconds) = (memory::peak().saturating_sub(before), memory::thread_seconds() - start);
        let shown: String = format!("{input:?}").chars().take(2000).collect();
        assert!(outcome.is_ok(), "{what}, case {case} panics: {shown}");
        assert!(cost <= MOST_BYTES, "{what}, case {case} takes {cost} bytes: {shown}");
        assert!(seconds <= MOST_SECONDS, "{what}, case {case} takes {seconds} s: {shown}");
        most_bytes = most_bytes.max(cost);
        most_seconds = most_seconds.max(seconds);
    }
    println!(
        "{what}: {count} cases, {} bytes each; at most {} KiB and {:.1} ms",
        bytes as u64 / count.max(1),
        most_bytes >> 10,
        most_seconds * 1e3
    );
}

#[test]
fn network_files() {
    run(
        "network files",
        2_000,
        |random| vec![files::name(random), files::text(random)],
        |input| files::read(&input[0], &input[1]),
    );
}

#[test]
fn addresses() {
    run("addresses", 5_000, files::addresses, files::read_addresses);
}

#[test]
fn parameters() {
    run("parameters", 1_000, strings::setting, strings::read);
}

/// The longest files, of the shapes that cost most.
#[test]
fn large_files() {
    let size = if cfg!(debug_assertions) { 1 << 16 } else { coll_rust::topo::network::FILE_BYTES - 100 };
    let shapes = files::large(size);
    let count = shapes.len() as u64;
    for (number, (name, text)) in (0u64..).zip(&shapes) {
        assert!(text.len() <= size + 100, "{name}");
        let (start, before) = (memory::thread_seconds(), memory::reset());
        files::read(name, text);
        let (cost, seconds) = (memory::peak().saturating_sub(before), memory::thread_seconds() - start);
        println!("large file {number} of {count} ({name}): {} KiB, {seconds:.2} s", cost >> 10);
        assert!(cost <= MOST_BYTES, "{name}: {cost} bytes");
        assert!(seconds <= MOST_SECONDS, "{name}: {seconds} s");
    }
}
