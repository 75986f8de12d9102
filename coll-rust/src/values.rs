// SPDX-License-Identifier: BSD-3-Clause
//! How the values of options are read: sizes as mpiperf reads them.

/// Sizes in bytes, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

/// A size with a binary unit: `64`, `4k`, `1m`, `2g`.
fn size(text: &str) -> Result<usize, String> {
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
        let (from, to, factor) = match parts[..] {
            [one] => (size(one)?, size(one)?, 2),
            [from, to] => (size(from)?, size(to)?, 2),
            [from, to, factor] => {
                let factor = factor.parse().ok().filter(|f| *f >= 2);
                (size(from)?, size(to)?, factor.ok_or_else(|| format!("'{item}': the factor must be 2 or more"))?)
            }
            _ => return Err(format!("'{item}' is no range of sizes (FROM:TO or FROM:TO:FACTOR)")),
        };
        if from > to {
            return Err(format!("'{item}': the range ends before it begins"));
        }
        if from == 0 {
            return Err(format!("'{item}': sizes begin at 8 bytes"));
        }
        for n in std::iter::successors(Some(from), |n| n.checked_mul(factor)).take_while(|n| *n <= to) {
            if n % 8 != 0 {
                return Err(format!("{n} is no multiple of 8: data are numbers of eight bytes"));
            }
            if all.last().is_some_and(|last| *last >= n) {
                return Err(format!("{n} comes after {}: sizes must ascend", all[all.len() - 1]));
            }
            all.push(n);
        }
    }
    Ok(Sizes(all))
}

/// A size as sizes are written.
pub fn shown(bytes: usize) -> String {
    [(30, "g"), (20, "m"), (10, "k")]
        .into_iter()
        .find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift))
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(sizes("8,64,1k,1m").expect("sizes").0, [8, 64, 1024, 1 << 20]);
        assert_eq!(sizes("8:1k:8").expect("sizes").0, [8, 64, 512]);
        assert_eq!([8, 1024, 1536, 3 << 20].map(shown), ["8", "1k", "1536", "3m"]);
    }

    #[test]
    fn bad_sizes_are_told() {
        for (text, told) in [
            ("12", "12 is no multiple of 8: data are numbers of eight bytes"),
            ("8q", "'8q': unknown unit 'q' (k, m or g: powers of 1024)"),
            ("16,8", "8 comes after 16: sizes must ascend"),
            ("64:8", "'64:8': the range ends before it begins"),
            ("0", "'0': sizes begin at 8 bytes"),
        ] {
            assert_eq!(sizes(text), Err(told.to_owned()));
        }
    }
}
