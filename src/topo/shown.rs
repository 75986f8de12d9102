// SPDX-License-Identifier: BSD-3-Clause
//! The groups of a tree that is shown, and their ranks as text.

use super::level::Level;
use crate::endpoint::Rank;
use std::fmt::Write;

/// A group, and the groups whose leaders are its members.
#[derive(Debug)]
pub(super) struct Shown {
    pub level: Level,
    /// Ascending.
    pub members: Vec<Rank>,
    pub leader: Rank,
    pub below: Vec<usize>,
}

/// Ascending ranks with runs drawn together: `0-17,36`.
pub(super) fn ranges(ranks: &[Rank]) -> String {
    let mut text = String::new();
    for run in ranks.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            _ => write!(text, "{comma}{}", run[0]),
        };
    }
    text
}

pub(super) fn count(n: usize, one: &str, more: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { more })
}
