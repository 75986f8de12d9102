// SPDX-License-Identifier: BSD-3-Clause
//! How the values of options are read.

pub use crate::sizes::Sizes;

/// Sizes of data, which are numbers of eight bytes.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let all = crate::sizes::sizes(text)?;
    if all.0.contains(&0) {
        return Err("0: sizes begin at 8 bytes".to_owned());
    }
    match all.0.iter().find(|n| !n.is_multiple_of(8)) {
        Some(n) => Err(format!("{n} is no multiple of 8: data are numbers of eight bytes")),
        None => Ok(all),
    }
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
        assert_eq!([8, 1024, 1536, 3 << 20].map(shown), ["8", "1k", "1536", "3m"]);
    }

    #[test]
    fn bad_sizes_are_told() {
        for (text, told) in [
            ("12", "12 is no multiple of 8: data are numbers of eight bytes"),
            ("8q", "'8q': unknown unit 'q' (k, m or g: powers of 1024)"),
            ("16,8", "8 comes after 16: sizes must ascend"),
            ("0", "0: sizes begin at 8 bytes"),
        ] {
            assert_eq!(sizes(text), Err(told.to_owned()));
        }
    }
}
