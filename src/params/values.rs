// SPDX-License-Identifier: BSD-3-Clause
//! What values may look like.

use super::{Report, ShmBacking, Times, ZeroCopy};
use crate::sync::cache::Stores;
use crate::sync::wait::Mode;
use crate::topo::LevelSpec;

/// What a parameter is for Open MPI, whose tools show it so. Rust reads the text in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Free text.
    Text,
    /// Yes or no.
    Bool,
    /// A whole number.
    Int {
        /// Or the word auto, as -1.
        auto: bool,
    },
    /// A number of bytes.
    Size {
        /// Or the word auto, as the largest number.
        auto: bool,
    },
    /// One of these words, as its place in the list.
    Choice(&'static [&'static str]),
}

impl Kind {
    /// The number that stands for a value in Open MPI's storage; `None` for text, and for what is no value of
    /// the kind.
    pub fn number(self, text: &str) -> Option<i64> {
        match (self, text.trim()) {
            (Kind::Int { auto: true } | Kind::Size { auto: true }, "auto") => Some(-1),
            (Kind::Text, _) => None,
            (Kind::Bool, text) => boolean(text).ok().map(i64::from),
            (Kind::Int { .. }, text) => integer(text, i64::from(i32::MIN), i64::from(i32::MAX)).ok(),
            (Kind::Size { .. }, text) => bytes(text).ok().and_then(|n| i64::try_from(n).ok()),
            (Kind::Choice(words), text) => {
                words.iter().position(|word| *word == text).and_then(|n| i64::try_from(n).ok())
            }
        }
    }
}

pub(super) fn integer(text: &str, from: i64, to: i64) -> Result<i64, String> {
    match text.trim().parse::<i64>() {
        Ok(n) if (from..=to).contains(&n) => Ok(n),
        Ok(_) => Err("out of range".to_owned()),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" | "false" | "no" => Ok(false),
        "1" | "true" | "yes" => Ok(true),
        _ => Err("neither yes nor no".to_owned()),
    }
}

/// Parses a size such as `64k`; `None` for "auto".
pub(super) fn size(text: &str) -> Result<Option<usize>, String> {
    let text = text.trim();
    if text == "auto" {
        return Ok(None);
    }
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        suffix => return Err(format!("\"{suffix}\" is not k, m or g")),
    };
    let number: usize = digits.parse().map_err(|_| "not a size".to_owned())?;
    number.checked_mul(1 << shift).filter(|&n| n <= isize::MAX as usize).map(Some).ok_or_else(|| "too large".to_owned())
}

pub(super) fn op_levels(text: &str) -> Result<Option<LevelSpec>, String> {
    match text.trim() {
        "inherit" => Ok(None),
        text => LevelSpec::parse(text).map(Some),
    }
}

/// A size that must be one.
fn bytes(text: &str) -> Result<usize, String> {
    size(text)?.ok_or_else(|| "not a size".to_owned())
}

/// A size between two others; `None` for "auto".
pub(super) fn within(text: &str, from: usize, to: usize) -> Result<Option<usize>, String> {
    let size = size(text)?;
    if size.is_some_and(|n| !(from..=to).contains(&n)) { Err("out of range".to_owned()) } else { Ok(size) }
}

pub(super) fn backing(text: &str) -> Result<ShmBacking, String> {
    match text.trim() {
        "auto" => Ok(ShmBacking::Auto),
        "memfd" => Ok(ShmBacking::Memfd),
        path if path.starts_with('/') => Ok(ShmBacking::Folder(path.into())),
        _ => Err("not an absolute path".to_owned()),
    }
}

pub(super) fn report(text: &str) -> Result<Report, String> {
    match text.trim() {
        "none" | "0" | "false" | "no" => Ok(Report::None),
        "ranks" | "1" | "true" | "yes" => Ok(Report::Ranks),
        "sum" => Ok(Report::Sum),
        text => match text.strip_prefix("json:") {
            Some(folder) if !folder.is_empty() => Ok(Report::Json(folder.into())),
            Some(_) => Err("json without a folder".to_owned()),
            None => Err("no such report".to_owned()),
        },
    }
}

pub(super) fn stores(text: &str) -> Result<Stores, String> {
    match text.trim() {
        "auto" => Ok(Stores::Auto),
        "cached" => Ok(Stores::Cached),
        "streaming" => Ok(Stores::Streaming),
        _ => Err("no such way".to_owned()),
    }
}

pub(super) fn wait(text: &str) -> Result<Mode, String> {
    text.trim().parse().map_err(|_| "no way of waiting".to_owned())
}

/// `auto`, `measure`, or five times three numbers, such as `1/2/3,4/5/6,7/8/9,10/11/12,13/14/15`. What is
/// wrong is named by its place.
pub(super) fn times(text: &str) -> Result<Times, String> {
    match text.trim() {
        "auto" => return Ok(Times::Usual),
        "measure" => return Ok(Times::Measured),
        _ => {}
    }
    let mut times = [[0; 3]; 5];
    let ways: Vec<&str> = text.trim().split(',').collect();
    if ways.len() != times.len() {
        return Err(format!("{} ways instead of 5", ways.len()));
    }
    for ((number, way), to) in (1..).zip(ways).zip(&mut times) {
        let sizes: Vec<&str> = way.split('/').collect();
        if sizes.len() != to.len() {
            return Err(format!("way {number} (\"{way}\") has {} times instead of 3", sizes.len()));
        }
        for (size, to) in sizes.iter().zip(to) {
            *to = size
                .trim()
                .parse()
                .ok()
                .filter(|&time| time > 0)
                .ok_or_else(|| format!("\"{size}\" of way {number} is no whole number of nanoseconds above 0"))?;
        }
    }
    Ok(Times::Given(times))
}

pub(super) fn zero_copy(text: &str) -> Result<ZeroCopy, String> {
    match text.trim() {
        "auto" => Ok(ZeroCopy::Auto),
        "cma" => Ok(ZeroCopy::Cma),
        "smsc" => Ok(ZeroCopy::Smsc),
        "off" => Ok(ZeroCopy::Off),
        _ => Err("no such way".to_owned()),
    }
}
