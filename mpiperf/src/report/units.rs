// SPDX-License-Identifier: BSD-3-Clause
//! Times and sizes for people.

/// Seconds with a unit of their own and four digits; `-` for what is not a number.
pub fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    for (unit, scale) in [("ns", 1e9), ("µs", 1e6), ("ms", 1e3)] {
        // What rounds to 1000 belongs to the next unit.
        if (seconds * scale).abs() < 999.95 {
            return format!("{} {unit}", digits(seconds * scale));
        }
    }
    format!("{} s", digits(seconds))
}

/// Four digits, at least one and at most three behind the point.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.9995 => format!("{value:.3}"),
        v if v < 99.995 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

/// Bytes with the largest binary unit that leaves a whole number.
pub fn bytes(n: usize) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if n >> shift > 0 && n.trailing_zeros() >= shift {
            return format!("{} {unit}", n >> shift);
        }
    }
    format!("{n} B")
}

/// A confidence (0.95) in percent, without needless digits.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (seconds, want) in [
            (0.0, "0.000 ns"),
            (1.2345e-9, "1.234 ns"),
            (823.44e-9, "823.4 ns"),
            (999.97e-9, "1.000 µs"),
            (12.3456e-6, "12.35 µs"),
            (1.5e-3, "1.500 ms"),
            (-2e-6, "-2.000 µs"),
            (75.0, "75.00 s"),
            (f64::INFINITY, "-"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(time(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn sizes() {
        for (n, want) in
            [(0, "0 B"), (8, "8 B"), (1000, "1000 B"), (1024, "1 KiB"), (1536, "1536 B"), (3 << 20, "3 MiB")]
        {
            assert_eq!(bytes(n), want);
        }
        assert_eq!((percent(0.95), percent(0.999), percent(0.07)), ("95 %".into(), "99.9 %".into(), "7 %".into()));
    }
}
