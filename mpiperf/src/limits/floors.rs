// SPDX-License-Identifier: BSD-3-Clause
//! What operations cannot take less than. Pure.

use serde::Serialize;

use super::ground::CONTENTS;
use super::ways::{Cut, Way};
use crate::stats::Summary;

/// What was found for one way at one size.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Which way.
    pub way: Way,
    /// Bytes of the message.
    pub bytes: usize,
    /// How the message was cut.
    pub cut: Cut,
    /// Calls made, the first ones not counted.
    pub calls: usize,
    /// The numbers, with the timer's time in them; `None` where no call was correct.
    pub summary: Option<Summary>,
    /// Median of how far apart the ranks started, seconds.
    pub spread: Option<f64>,
}

impl Found {
    /// The median; `None` where no call was correct.
    pub fn median(&self) -> Option<f64> {
        self.summary.as_ref().map(Summary::median)
    }

    /// Half of what lies between the quartiles, as a share of the median.
    pub fn scatter(&self) -> Option<f64> {
        let summary = self.summary.as_ref()?;
        let [_, low, median, high, ..] = summary.percentiles;
        (median > 0.0).then(|| (high - low) / 2.0 / median)
    }
}

/// What does not depend on the size. Seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Basics {
    /// Between two readings of the clock, one right after the other.
    pub timer: f64,
    /// A call that does nothing, by scheduled starts.
    pub empty: f64,
    /// One line from core to core, one way, where the reader's core still holds it when it is written.
    pub held: f64,
    /// The same where the writer's core has taken it back before.
    pub owned: f64,
}

impl Basics {
    /// Of what was found, with the time between two readings of the clock.
    pub fn new(timer: f64, found: &[Found]) -> Basics {
        let least = |way, bytes| best(found, way, bytes).and_then(Found::median).unwrap_or(f64::NAN);
        let (empty, held) = (least(Way::Empty, 0), least(Way::PingPong, 0));
        // Where interruptions made the empty call longer than one that does something, nothing is known.
        let owned = Some(least(Way::Owned, CONTENTS) - empty).filter(|time| *time > 0.0).unwrap_or(f64::NAN);
        Basics { timer, empty, held, owned }
    }

    /// The time of a call that hands over one line, as `run` would show it at best.
    pub fn hand_over(&self) -> f64 {
        self.timer + self.held.min(self.owned)
    }
}

/// Operations that need the same to be moved, and the ways to do so.
pub struct Group {
    /// Their names.
    pub operations: &'static str,
    /// Any of these will do.
    pub ways: &'static [Way],
}

/// The operations.
pub const GROUPS: [Group; 3] = [
    Group {
        operations: "bcast, gather, scatter",
        ways: &[Way::OneQueue, Way::OneOwned, Way::OneRead, Way::OneDivided],
    },
    Group { operations: "allgather, alltoall", ways: &[Way::BothQueue, Way::BothOwned, Way::BothRead] },
    Group {
        operations: "allreduce",
        ways: &[Way::CombineAll, Way::CombineOwned, Way::CombineShared, Way::CombineDirect],
    },
];

/// What a group's operations of a size cannot take less than.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// The operations, see [`GROUPS`].
    pub operations: &'static str,
    /// Bytes of the message.
    pub bytes: usize,
    /// Seconds, with the timer's time in it.
    pub time: f64,
    /// The way that takes so long; `None`: handing over one line.
    pub way: Option<Way>,
}

/// The best of what was found for one way at one size, over all cuts and passes.
pub fn best(found: &[Found], way: Way, bytes: usize) -> Option<&Found> {
    let timed = found.iter().filter(|f| f.way == way && f.bytes == bytes && f.summary.is_some());
    timed.min_by(|a, b| a.median().unwrap_or(f64::INFINITY).total_cmp(&b.median().unwrap_or(f64::INFINITY)))
}

/// The floors of a group: of each of the ascending sizes the least of its ways at this size or at a larger
/// one, since a larger message holds a smaller one. What fits into one line takes no longer than handing that
/// over. Sizes without any time have none.
pub fn floors(group: &Group, found: &[Found], basics: &Basics, sizes: &[usize]) -> Vec<Floor> {
    let mut floors: Vec<Floor> = Vec::new();
    for bytes in sizes.iter().rev().copied() {
        let here = group.ways.iter().filter_map(|way| Some((best(found, *way, bytes)?.median()?, Some(*way))));
        let line = (bytes <= CONTENTS).then(|| (basics.hand_over(), None));
        let larger = floors.last().map(|floor| (floor.time, floor.way));
        let least = here.chain(line).chain(larger).filter(|(time, _)| time.is_finite());
        if let Some((time, way)) = least.min_by(|a, b| a.0.total_cmp(&b.0)) {
            floors.push(Floor { operations: group.operations, bytes, time, way });
        }
    }
    floors.reverse();
    floors
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stats::summarise;

    pub const BASICS: Basics = Basics { timer: 20e-9, empty: 50e-9, held: 100e-9, owned: 80e-9 };

    pub fn found(way: Way, bytes: usize, cut: Cut, time: f64) -> Found {
        let times = [time, 0.9 * time, 1.1 * time];
        let summary = if time.is_finite() { summarise(&times, 0.25, 0.95) } else { None };
        Found { way, bytes, cut, calls: 3, summary, spread: None }
    }

    #[test]
    fn the_best_cut_counts() {
        let all = [
            found(Way::OneQueue, 8192, Cut::Pieces(4096), 3e-6),
            found(Way::OneQueue, 8192, Cut::Pieces(8192), 2e-6),
            found(Way::OneQueue, 4096, Cut::Pieces(4096), 1e-6),
            found(Way::OneRead, 8192, Cut::Whole, f64::NAN),
        ];
        assert_eq!(best(&all, Way::OneQueue, 8192).unwrap().cut, Cut::Pieces(8192));
        assert!(best(&all, Way::OneRead, 8192).is_none() && best(&all, Way::OneQueue, 8).is_none());
        assert!((all[0].scatter().unwrap() - 0.05).abs() < 1e-9 && all[3].scatter().is_none());
    }

    #[test]
    fn handing_over_is_what_the_empty_call_does_not_take() {
        let mut all = vec![
            found(Way::Empty, 0, Cut::Whole, 50e-9),
            found(Way::PingPong, 0, Cut::Whole, 100e-9),
            found(Way::Owned, CONTENTS, Cut::Lines, 130e-9),
        ];
        let basics = Basics::new(20e-9, &all);
        assert!((basics.owned - 80e-9).abs() < 1e-12 && (basics.hand_over() - 100e-9).abs() < 1e-12, "{basics:?}");
        all[2] = found(Way::Owned, CONTENTS, Cut::Lines, 40e-9);
        let basics = Basics::new(20e-9, &all);
        assert!(basics.owned.is_nan() && (basics.hand_over() - 120e-9).abs() < 1e-12, "{basics:?}");
    }

    #[test]
    fn the_least_way_is_the_floor() {
        let all = [
            found(Way::OneQueue, 8, Cut::Lines, 0.15e-6),
            found(Way::OneQueue, 64, Cut::Lines, 0.2e-6),
            found(Way::OneRead, 64, Cut::Whole, 1e-6),
            found(Way::OneQueue, 4096, Cut::Lines, 1.1e-6),
            found(Way::OneOwned, 4096, Cut::Pieces(4096), 0.9e-6),
            found(Way::OneQueue, 65536, Cut::Pieces(8192), 9e-6),
            found(Way::OneRead, 65536, Cut::Whole, 8e-6),
            found(Way::OneDivided, 65536, Cut::Whole, 7e-6),
            found(Way::BothQueue, 65536, Cut::Whole, 1e-9),
        ];
        let floors = floors(&GROUPS[0], &all, &BASICS, &[8, 64, 4096, 65536]);
        let got: Vec<(usize, Option<Way>)> = floors.iter().map(|f| (f.bytes, f.way)).collect();
        let expected =
            [(8, None), (64, Some(Way::OneQueue)), (4096, Some(Way::OneOwned)), (65536, Some(Way::OneDivided))];
        assert_eq!(got, expected);
        let times: Vec<f64> = floors.iter().map(|f| (f.time * 1e9).round()).collect();
        assert_eq!(times, [100.0, 200.0, 900.0, 7000.0]);
    }

    #[test]
    fn floors_never_fall_with_the_size() {
        let all = [
            found(Way::CombineAll, 1024, Cut::Lines, 5e-6),
            found(Way::CombineShared, 2048, Cut::Pieces(2048), 2e-6),
            found(Way::CombineAll, 4096, Cut::Pieces(4096), 3e-6),
        ];
        let floors = floors(&GROUPS[2], &all, &BASICS, &[512, 1024, 2048, 4096]);
        let times: Vec<f64> = floors.iter().map(|f| (f.time * 1e6).round()).collect();
        assert_eq!(times, [2.0, 2.0, 2.0, 3.0]);
    }

    #[test]
    fn sizes_without_a_time_have_no_floor() {
        let all = [found(Way::BothQueue, 1024, Cut::Lines, f64::NAN)];
        assert_eq!(floors(&GROUPS[1], &all, &BASICS, &[1024]), []);
        let unknown = Basics { held: f64::NAN, owned: f64::NAN, ..BASICS };
        assert_eq!(floors(&GROUPS[1], &all, &unknown, &[8]), []);
    }
}
