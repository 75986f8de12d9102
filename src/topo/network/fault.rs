// SPDX-License-Identifier: BSD-3-Clause
//! Places in a file, and what is wrong there.

use super::NetworkError;

/// The place of a word: found out only when an error names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// An offset in the file.
    Byte(u32),
    /// So many bytes behind a line and a column (in characters).
    Mark {
        /// From 1.
        line: u32,
        /// From 1.
        column: u32,
        /// On the same line.
        plus: u32,
    },
}

impl At {
    /// The start of the file.
    pub const START: At = At::Byte(0);

    /// The place `bytes` further on.
    pub fn plus(self, bytes: usize) -> At {
        let more = |from: u32| from.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        match self {
            At::Byte(at) => At::Byte(more(at)),
            At::Mark { line, column, plus } => At::Mark { line, column, plus: more(plus) },
        }
    }

    /// Line and column, from 1, of this place in the text of its file.
    pub fn find(self, text: &str) -> (usize, usize) {
        match self {
            At::Byte(at) => {
                let before = text.get(..at as usize).unwrap_or(text);
                let line = before.rsplit('\n').next().unwrap_or_default();
                (before.matches('\n').count() + 1, line.chars().count() + 1)
            }
            // The end of the file may be counted as a line of its own.
            At::Mark { line, .. } if line as usize > text.lines().count().max(1) => {
                At::Byte(text.trim_end_matches(['\n', '\r']).len() as u32).find(text)
            }
            At::Mark { line, column, plus } => {
                let skipped = text.lines().nth((line as usize).saturating_sub(1)).and_then(|line| {
                    let from = line.char_indices().nth((column as usize).saturating_sub(1))?.0;
                    Some(line.get(from..from + plus as usize)?.chars().count())
                });
                (line as usize, column as usize + skipped.unwrap_or(0))
            }
        }
    }
}

/// What is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub at: At,
    pub message: String,
    /// The place that the message ends in, as ` on line N`.
    pub other: Option<At>,
}

impl Fault {
    pub fn new(at: At, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into(), other: None }
    }

    /// The same as everybody sees it: of this file, with this text.
    pub fn locate(self, file: &str, text: &str) -> NetworkError {
        let (line, column) = self.at.find(text);
        let other = self.other.map_or(String::new(), |at| format!(" on line {}", at.find(text).0));
        NetworkError { file: file.to_string(), line, column, message: self.message + &other }
    }

    pub fn and(self, other: At) -> Fault {
        Fault { other: Some(other), ..self }
    }
}

/// The start of a text that may be long, for messages.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_characters() {
        let text = "é=1\r\nab éc";
        assert_eq!([0, 2, 6, 8, 11].map(|at| At::Byte(at).find(text)), [(1, 1), (1, 2), (2, 1), (2, 3), (2, 5)]);
        assert_eq!(At::Byte(900).find(text), (2, 6));
        let mark = |column, plus| At::Mark { line: 2, column, plus };
        assert_eq!([mark(1, 0), mark(4, 2), mark(9, 5)].map(|at| at.find(text)), [(2, 1), (2, 5), (2, 9)]);
        assert_eq!(At::Mark { line: 7, column: 3, plus: 1 }.find(text), (2, 6));
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(short("abc"), "abc");
        assert_eq!(short(&"é".repeat(61)), "é".repeat(60) + "...");
    }
}
