// SPDX-License-Identifier: BSD-3-Clause
//! How the values of options are read.

#[path = "../../../coll-rust/src/sizes.rs"]
mod sizes;

use std::path::PathBuf;

pub(super) use sizes::{Sizes, size, sizes};

use crate::measure::Arrival;
use crate::op::Root;

/// [`Arrival`] on the command line: the file is not read yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// One that is complete.
    Ready(Arrival),
    /// To be read by rank 0.
    File(PathBuf),
}

/// A number of calls, from 1 on.
pub(super) fn count() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1_000_000_000)
}

/// A rank, or a rotating root.
pub(super) fn root(text: &str) -> Result<Root, String> {
    match text {
        "rotate" | "rotating" => Ok(Root::Rotating),
        rank => rank.parse().map(Root::Fixed).map_err(|_| "a rank, or rotate".to_owned()),
    }
}

/// A power of two.
pub(super) fn align(text: &str) -> Result<usize, String> {
    size(text)?
        .checked_next_power_of_two()
        .filter(|n| Ok(*n) == size(text) && *n <= 1 << 30)
        .ok_or_else(|| "must be a power of two up to 1g".to_owned())
}

/// A number with or without a percent sign: `0.05` or `5%`.
fn part(text: &str) -> Option<f64> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |n| (n, 0.01));
    number.trim().parse::<f64>().ok().map(|n| n * scale).filter(|n| n.is_finite())
}

/// A share above 0.
pub(super) fn share(text: &str) -> Result<f64, String> {
    part(text).filter(|s| *s > 0.0 && *s <= 1.0).ok_or_else(|| "must be above 0 and at most 1 (0.05 or 5%)".to_owned())
}

/// A share below one half.
pub(super) fn trim(text: &str) -> Result<f64, String> {
    part(text).filter(|s| (0.0..0.5).contains(s)).ok_or_else(|| "must be from 0 to below 0.5 (0.25 or 25%)".to_owned())
}

/// A share from 0 on.
pub fn tolerance(text: &str) -> Result<f64, String> {
    part(text).filter(|s| (0.0..=100.0).contains(s)).ok_or_else(|| "must be a share from 0 on (0.1 or 10%)".to_owned())
}

/// A confidence: from one half upward, below certainty.
pub fn confidence(text: &str) -> Result<f64, String> {
    let good = part(text).filter(|s| (0.5..=0.9999).contains(s));
    good.ok_or_else(|| "must be from 0.5 to 0.9999 (such as 0.95 or 95%)".to_owned())
}

/// A percentage above 0, with or without its sign: `5` or `5%`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let good = number.filter(|n| *n > 0.0 && *n <= 1000.0);
    good.ok_or_else(|| "must be a percentage above 0, at most 1000 (such as 5 or 5%)".to_owned())
}

/// An arrival pattern.
pub(super) fn arrival(text: &str) -> Result<Pattern, String> {
    let wrong = || "must be together, linear:MICROSECONDS, random:MICROSECONDS or file:PATH".to_owned();
    let micros = |number: &str| {
        let number = number.trim_end_matches("us").trim_end_matches("µs").trim();
        let value = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        value.map(|n| n * 1e-6).ok_or_else(|| format!("'{number}' is no number of microseconds"))
    };
    Ok(match text.split_once(':') {
        None if text == "together" => Pattern::Ready(Arrival::Together),
        Some(("linear", time)) => Pattern::Ready(Arrival::Linear(micros(time)?)),
        Some(("random", time)) => Pattern::Ready(Arrival::Random(micros(time)?)),
        Some(("file", path)) if !path.is_empty() => Pattern::File(path.into()),
        _ => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_percentages() {
        assert_eq!((part("5%"), part("0.25"), part("x"), part("nan")), (Some(0.05), Some(0.25), None, None));
        assert!(trim("0.5").is_err() && trim("0").is_ok() && trim("-1").is_err());
        assert!(confidence("95%").is_ok() && confidence("95").is_err() && confidence("1").is_err());
        assert_eq!(percent("5%"), Ok(5.0));
        assert!(percent("0").is_err() && percent("-5").is_err() && percent("five").is_err());
        assert!(tolerance("0") == Ok(0.0) && tolerance("10%") == Ok(0.1) && tolerance("-1%").is_err());
        assert!(share("0").is_err() && share("1").is_ok());
        assert!(align("48").is_err() && align("0").is_err() && align("4k") == Ok(4096));
    }

    #[test]
    fn arrivals() {
        assert_eq!(arrival("together"), Ok(Pattern::Ready(Arrival::Together)));
        assert_eq!(arrival("linear:10us"), Ok(Pattern::Ready(Arrival::Linear(10.0 * 1e-6))));
        assert_eq!(arrival("random:0.5"), Ok(Pattern::Ready(Arrival::Random(0.5 * 1e-6))));
        assert_eq!(arrival("file:a:b"), Ok(Pattern::File("a:b".into())));
        for wrong in ["", "linear", "linear:", "linear:-1", "linear:x", "file:", "sometimes"] {
            assert!(arrival(wrong).is_err(), "{wrong}");
        }
    }
}
