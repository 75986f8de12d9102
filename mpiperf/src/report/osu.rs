// SPDX-License-Identifier: BSD-3-Clause
//! Rows in the columns of the OSU Micro-Benchmarks, for what reads those: microseconds; MB of 10⁶ bytes.

use super::Row;
use crate::op::{Setting, find};
use crate::stats::Summary;

/// Where the first column ends, and each further one.
const SIZE: usize = 10;
const FIELD: usize = 18;
const CALLS: usize = 12;

/// The MPI function, or what is done, in words.
fn title(setting: &Setting) -> String {
    match setting.operation.as_str() {
        "pingpong" => "latency".to_owned(),
        "stream" => "bandwidth and message rate".to_owned(),
        "exchange" => "bidirectional bandwidth and message rate".to_owned(),
        name => {
            let mut chars = name.chars();
            let first: String = chars.next().iter().flat_map(|c| c.to_uppercase()).collect();
            format!("MPI_{first}{} latency", chars.as_str())
        }
    }
}

/// The lines above an operation's rows.
pub fn heading(setting: &Setting, processes: usize) -> String {
    let sized = find(&setting.operation).is_ok_and(|operation| operation.sized);
    let size = if sized { "# Size" } else { "#" };
    let fields: &[&str] = match setting.operation.as_str() {
        "pingpong" => &["Latency (us)"],
        "stream" | "exchange" => &["MB/s", "Messages/s"],
        _ => &["Avg Latency(us)", "Min Latency(us)", "Max Latency(us)"],
    };
    let mut line = format!("{size:<SIZE$}");
    line.extend(fields.iter().map(|field| format!("{field:>FIELD$}")));
    if fields.len() == 3 {
        line += &format!("{:>CALLS$}", "Iterations");
    }
    let version = env!("CARGO_PKG_VERSION");
    format!("\n# mpiperf {version}, columns as of OSU Micro-Benchmarks: {}, {processes} ranks\n{line}", title(setting))
}

/// A row; `ranks` are each rank's own times. A row without a valid call is a remark.
pub fn row(row: &Row, ranks: &[Summary]) -> String {
    let Some(summary) = &row.summary else {
        return format!("# {} bytes: no valid call of {}", row.setting.bytes, row.calls);
    };
    let sized = find(&row.setting.operation).is_ok_and(|operation| operation.sized);
    let size = if sized { row.setting.bytes.to_string() } else { String::new() };
    let fields = |numbers: &[f64]| -> String { numbers.iter().map(|number| format!("{number:>FIELD$.2}")).collect() };
    let line = format!("{size:<SIZE$}");
    if let Some(rate) = &row.rate {
        let streams = rate.bytes_per_second.zip(rate.messages_per_second);
        return line
            + &match (rate.latency, streams) {
                (Some(latency), _) => fields(&[latency * 1e6]),
                (None, Some((bytes, messages))) => fields(&[bytes / 1e6, messages]),
                (None, None) => String::new(),
            };
    }
    let means = || ranks.iter().map(|rank| rank.mean * 1e6);
    let mean = means().sum::<f64>() / ranks.len().max(1) as f64;
    let times = [mean, means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max)];
    line + &fields(&times) + &format!("{:>CALLS$}", summary.correct)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, row as made};
    use super::*;
    use crate::op::pairs::rate;
    use crate::stats::summarise;

    #[test]
    fn collectives_have_the_ranks_mean_least_and_most() {
        let one = made("x", "bcast", 8, 2e-6);
        let ranks: Vec<Summary> = [1e-6, 3e-6].map(|time| summarise(&[time], 0.25, 0.95).unwrap()).to_vec();
        let text = format!("{}\n{}", heading(&one.setting, 2), row(&one, &ranks));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("Benchmarks: MPI_Bcast latency, 2 ranks"), "{text}");
        assert_eq!(lines[2], "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations");
        assert_eq!(lines[3], "8                       2.00              1.00              3.00          40");
        assert!(row(&empty("x", "bcast", 8), &[]).starts_with("# 8 bytes: no valid call"));
    }

    #[test]
    fn pairs_have_their_rates() {
        for (name, time, want) in [
            ("pingpong", 3e-6, "8                       1.50"),
            ("stream", 64e-6, "8                       8.00        1000000.00"),
        ] {
            let mut one = made("x", name, 8, time);
            one.setting.window = 64;
            one.rate = rate(&one.setting, 2, time);
            assert_eq!(row(&one, &[]), want);
        }
    }
}
