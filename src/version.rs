// SPDX-License-Identifier: BSD-3-Clause
//! Which build of the component this is, and which Open MPI it was built for.
#![forbid(unsafe_code)]

use std::fmt;
use std::hint::black_box;

/// The component's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Number of what processes say to each other, in messages and in shared memory: to be raised with any
/// change.
pub const PROTOCOL: u32 = 4;
/// The build, in hexadecimal digits: another one for other sources, or another compiler (see `build.rs`).
pub const BUILD_TEXT: &str = env!("COLL_RUST_BUILD");
/// Bytes of [`build`].
pub const BUILD_BYTES: usize = 16;

/// The same as [`BUILD_TEXT`], as it goes into messages. Read from the text whenever it is asked for, so that
/// a test can change the text in the file.
pub fn build() -> [u8; BUILD_BYTES] {
    black_box(BUILD_TEXT).as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A release of Open MPI; all zero: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The first number.
    pub major: u32,
    /// The second one: releases that share both are a series.
    pub minor: u32,
    /// The third one.
    pub patch: u32,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self == Release::default() {
            true => write!(f, "an Open MPI that does not tell its version"),
            false => write!(f, "Open MPI {}.{}.{}", self.major, self.minor, self.patch),
        }
    }
}

/// Something about a struct of Open MPI's that the component has compiled in, and what the running library
/// has in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub name: String,
    /// What was compiled in.
    pub built: u64,
    /// What is there.
    pub found: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, not {}", self.name, self.found, self.built)
    }
}

/// How to mend it.
const MEND: &str = "Build it for this one: in its source folder, ./configure MPICC=<the mpicc of this Open MPI> && make && make install \
                    (or scripts/build.sh). The job goes on with Open MPI's own components.";

/// Whether the component may run with this Open MPI: it must be of the same series, no older (what the
/// component calls might be missing there), and its structs the same. A remark where it is another release;
/// else why not.
pub fn judge(built: Release, running: Release, differences: &[Difference]) -> Result<Option<String>, String> {
    let refused = format!("coll/rust is not used. It was built for {built}, and this is");
    if (built.major, built.minor) != (running.major, running.minor) || running.patch < built.patch {
        return Err(format!("{refused} {running}. {MEND}"));
    }
    if let Some((first, more)) = differences.split_first() {
        let another = if built == running { "another build of it" } else { &running.to_string() };
        let more = if more.is_empty() { String::new() } else { format!(" (and {} more differences)", more.len()) };
        return Err(format!("{refused} {another}, with other structs: {first}{more}. {MEND}"));
    }
    let remark =
        || format!("built for {built}, and used with {running}: the same series, and the structs are the same");
    Ok((built != running).then(remark))
}

/// Which build this is, built for that Open MPI.
pub fn identity(built: Release) -> String {
    format!("{VERSION} (build {BUILD_TEXT}, protocol {PROTOCOL}, for {built})")
}

/// How the build is told to others: the start of a line.
const KEY: &str = "build=";

/// The line of a process' card that tells its build.
pub fn card_line(built: Release) -> String {
    format!("{KEY}{}\n", identity(built))
}

fn build_of(card: &str) -> &str {
    card.lines().find_map(|line| line.strip_prefix(KEY)).unwrap_or("an old build that does not tell")
}

/// Compares the builds of two processes, of which rank, host and card are given; a message if they differ.
pub fn compare(one: (u32, &str, &str), other: (u32, &str, &str)) -> Result<(), String> {
    let tell = |(rank, host, card): (u32, &str, &str)| format!("rank {rank} on {host} has {}", build_of(card));
    match build_of(one.2) == build_of(other.2) {
        true => Ok(()),
        false => Err(format!(
            "there are different builds of the component: {}; {}. Install the same one on all nodes, or leave it out: --mca coll ^rust",
            tell(one),
            tell(other)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(major: u32, minor: u32, patch: u32) -> Release {
        Release { major, minor, patch }
    }

    fn difference() -> Difference {
        Difference { name: "sizeof(x)".to_owned(), built: 8, found: 16 }
    }

    #[test]
    fn the_same_release_needs_no_words() {
        assert_eq!(judge(release(5, 0, 7), release(5, 0, 7), &[]), Ok(None));
    }

    #[test]
    fn another_patch_release_needs_the_same_structs() {
        let (built, running) = (release(5, 0, 6), release(5, 0, 7));
        let remark = judge(built, running, &[]).unwrap().unwrap();
        assert!(remark.contains("5.0.6") && remark.contains("5.0.7"), "{remark}");
        let why = judge(built, running, &[difference(), difference()]).unwrap_err();
        for part in
            ["built for Open MPI 5.0.6, and this is Open MPI 5.0.7", "sizeof(x) is 16, not 8", "1 more", "make install"]
        {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn another_build_of_the_same_release_is_refused() {
        let why = judge(release(5, 0, 7), release(5, 0, 7), &[difference()]).unwrap_err();
        assert!(why.contains("another build of it, with other structs: sizeof(x) is 16, not 8. "), "{why}");
    }

    #[test]
    fn another_series_and_an_older_release_are_refused() {
        for running in [release(5, 0, 6), release(4, 1, 7), release(5, 1, 7), release(4, 0, 7), Release::default()] {
            let why = judge(release(5, 0, 7), running, &[]).unwrap_err();
            assert!(why.contains("built for Open MPI 5.0.7") && why.contains(&running.to_string()), "{why}");
        }
    }

    #[test]
    fn builds_are_compared_by_their_cards() {
        let card = |line: &str| format!("host\nplace\n1 2\n{line}window=2\n");
        let own = card(&card_line(release(5, 0, 7)));
        assert_eq!(compare((0, "a", &own), (1, "b", &own)), Ok(()));
        let others = [
            card(&card_line(release(5, 0, 6))),
            card(&card_line(release(5, 0, 7)).replace("build ", "build 0")),
            card(""),
        ];
        for other in others {
            let why = compare((0, "a", &own), (1, "b", &other)).unwrap_err();
            assert!(
                why.contains(BUILD_TEXT) && why.contains("rank 0 on a has 0") && why.contains("rank 1 on b has"),
                "{why}"
            );
        }
    }
}
