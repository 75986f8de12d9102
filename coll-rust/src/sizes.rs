// SPDX-License-Identifier: BSD-3-Clause
//! How message sizes are read on command lines. `mpiperf` has this file, too.

/// Sizes in bytes, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

/// A size with a binary unit: `64`, `4k`, `1m`, `2g`.
pub fn size(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_alphabetic());
    let shift = match &lower[digits.len()..] {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        unit => return Err(format!("'{text}': unknown unit '{unit}' (k, m or g: powers of 1024)")),
    };
    let n: usize = digits.parse().map_err(|_| format!("'{text}' is no size (such as 64, 4k, 1m)"))?;
    n.checked_mul(1 << shift).filter(|n| *n <= isize::MAX as usize).ok_or_else(|| format!("{text}: too large a size"))
}

/// Sizes and ranges of them, `8,1k` or `8:1m` (powers of two) or `8:1m:8` (factor 8), strictly ascending.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let mut all: Vec<usize> = Vec::new();
    for item in text.split(',') {
        let parts: Vec<&str> = item.split(':').collect();
        let new = match parts[..] {
            [one] => vec![size(one)?],
            [from, to] => range(size(from)?, size(to)?, 2, item)?,
            [from, to, factor] => {
                let factor = factor.parse().ok().filter(|f| *f >= 2);
                range(
                    size(from)?,
                    size(to)?,
                    factor.ok_or_else(|| format!("'{item}': the factor must be 2 or more"))?,
                    item,
                )?
            }
            _ => return Err(format!("'{item}' is no range of sizes (FROM:TO or FROM:TO:FACTOR)")),
        };
        for n in new {
            match all.last() {
                Some(last) if *last == n => return Err(format!("{n} is there twice")),
                Some(last) if *last > n => return Err(format!("{n} comes after {last}: sizes must ascend")),
                _ => all.push(n),
            }
        }
    }
    Ok(Sizes(all))
}

fn range(from: usize, to: usize, factor: usize, item: &str) -> Result<Vec<usize>, String> {
    if from == 0 || from > to {
        return Err(format!("'{item}': a range goes from 1 or more upward"));
    }
    Ok(std::iter::successors(Some(from), |n| n.checked_mul(factor)).take_while(|n| *n <= to).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_lists() {
        assert_eq!(sizes("8,64,1k,1m").unwrap().0, [8, 64, 1024, 1 << 20]);
        assert_eq!(sizes("8:64").unwrap().0, [8, 16, 32, 64]);
        assert_eq!(sizes("0,8:100:3").unwrap().0, [0, 8, 24, 72]);
        for (text, want) in [
            ("64,8", "8 comes after 64"),
            ("8,8", "8 is there twice"),
            ("8:32,16", "16 comes after 32"),
            ("", "is no size"),
            ("8,,9", "is no size"),
            ("1x", "unknown unit 'x'"),
            ("-1", "is no size"),
            ("64:8", "upward"),
            ("0:8", "upward"),
            ("8:64:1", "factor"),
            ("1:2:3:4", "no range"),
            ("99999999999g", "too large"),
            ("99999999999999999999", "is no size"),
        ] {
            let error = sizes(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
