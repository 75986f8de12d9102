// SPDX-License-Identifier: BSD-3-Clause
//! Whether a call counts, and its time.

use super::schedule::Slot;
use super::{Arrival, Sample, Verdict};

/// Numbers that a rank reports for each call.
pub const MOMENTS: usize = 4;

/// What one rank reports of one call, on the global clock, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Prepared, before waiting.
    pub ready: f64,
    /// The call begins.
    pub start: f64,
    /// It is back.
    pub end: f64,
    /// And verified.
    pub done: f64,
}

/// By how much a rank may miss its start, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Being ready to wait.
    pub ready: f64,
    /// Beginning the call; infinite where ranks share cores, since not all of them can run at one moment.
    pub start: f64,
}

/// All ranks' reports of a stage.
pub struct Stage<'a> {
    /// The start of the stage, on the global clock.
    pub tau: f64,
    /// Its calls.
    pub slots: &'a [Slot],
    /// Rank by rank, call by call, four numbers.
    pub reports: &'a [f64],
    /// Where ranks start.
    pub arrival: &'a Arrival,
}

impl Stage<'_> {
    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.reports.len() / (self.slots.len() * MOMENTS).max(1)
    }

    /// What `rank` reports of call `slot`.
    pub fn moments(&self, rank: usize, slot: usize) -> Moments {
        let at = (rank * self.slots.len() + slot) * MOMENTS;
        let [ready, start, end, done] = [0, 1, 2, 3].map(|i| self.reports[at + i]);
        Moments { ready, start, end, done }
    }

    /// The largest over the ranks of something about call `slot`.
    fn latest(&self, slot: usize, what: impl Fn(Moments) -> f64) -> f64 {
        (0..self.ranks()).map(|rank| what(self.moments(rank, slot))).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The sample of call `slot`.
    pub fn sample(&self, slot: usize, allowance: &Allowance) -> Sample {
        let Slot { case, call, begin, window } = self.slots[slot];
        let due: Vec<f64> =
            self.arrival.offsets(call, self.ranks()).into_iter().map(|offset| self.tau + begin + offset).collect();
        let moments: Vec<Moments> = (0..self.ranks()).map(|rank| self.moments(rank, slot)).collect();
        let verdict = judge(&due, self.tau + begin + window, &moments, allowance);
        timed(case, call, &due, &moments, verdict)
    }

    /// The sample of one of the first calls: those after the very first are not scheduled, they start when
    /// the last rank does; so does the very first if a rank took longer to be ready than anybody could know.
    pub fn first_sample(&self, slot: usize) -> Sample {
        let Slot { case, call, .. } = self.slots[slot];
        let moments: Vec<Moments> = (0..self.ranks()).map(|rank| self.moments(rank, slot)).collect();
        let due = if slot == 0 {
            let start = self.tau.max(self.latest(0, |m| m.ready));
            self.arrival.offsets(call, self.ranks()).into_iter().map(|offset| start + offset).collect()
        } else {
            vec![self.latest(slot, |m| m.start); self.ranks()]
        };
        timed(case, call, &due, &moments, Verdict::First)
    }

    /// How long each call kept the ranks: from its moment, or from when the call before was over if that was
    /// later, until all ranks were ready for the next one.
    pub fn spans(&self) -> Vec<f64> {
        let mut spans = Vec::with_capacity(self.slots.len());
        let mut free = f64::NEG_INFINITY;
        for (i, slot) in self.slots.iter().enumerate() {
            let begin = free.max(self.tau + slot.begin);
            let over = self.latest(i, |m| m.done);
            free = if i + 1 < self.slots.len() { over.max(self.latest(i + 1, |m| m.ready)) } else { over };
            spans.push(free - begin);
        }
        spans
    }

    /// How long after the moment of the first call the last rank was ready for it (negative: before),
    /// seconds.
    pub fn tardiness(&self) -> f64 {
        self.latest(0, |m| m.ready) - self.tau
    }
}

/// Late: a rank was not ready at its moment, or began too long after it. Long: a rank was back after the
/// window.
fn judge(due: &[f64], deadline: f64, moments: &[Moments], allowance: &Allowance) -> Verdict {
    let late = |(due, m): (&f64, &Moments)| m.ready - due > allowance.ready || m.start - due > allowance.start;
    if due.iter().zip(moments).any(late) {
        Verdict::Late
    } else if moments.iter().any(|m| m.end > deadline) {
        Verdict::Long
    } else {
        Verdict::Correct
    }
}

fn timed(case: usize, call: u64, due: &[f64], moments: &[Moments], verdict: Verdict) -> Sample {
    let fold = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let (early, late) = fold(&mut due.iter().zip(moments).map(|(due, m)| m.start - due));
    let last_due = fold(&mut due.iter().copied()).1;
    let last_end = fold(&mut moments.iter().map(|m| m.end)).1;
    let ranks = due.iter().zip(moments).map(|(due, m)| m.end - due).collect();
    Sample { case, call, time: last_end - last_due, spread: late - early, ranks, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Allowance = Allowance { ready: 0.1, start: 0.1 };
    const LOOSE: Allowance = Allowance { ready: 0.1, start: f64::INFINITY };

    fn slots(windows: &[f64]) -> Vec<Slot> {
        super::super::schedule::slots(0, windows.len() as u32, &[windows[0]])
    }

    /// Two ranks, one call due at 100 with a window of 10.
    fn one(reports: [f64; 8], allowance: &Allowance, arrival: &Arrival) -> Sample {
        Stage { tau: 100.0, slots: &slots(&[10.0]), reports: &reports, arrival }.sample(0, allowance)
    }

    #[test]
    fn time_is_the_last_end_minus_the_moment() {
        let sample = one([99.0, 100.0, 104.0, 105.0, 98.0, 100.05, 103.0, 104.0], &STRICT, &Arrival::Together);
        assert_eq!((sample.time, sample.verdict), (4.0, Verdict::Correct));
        assert_eq!(sample.ranks, [4.0, 3.0]);
        assert!((sample.spread - 0.05).abs() < 1e-9);
    }

    #[test]
    fn late_and_long_calls_are_found() {
        let not_ready = [99.0, 100.0, 104.0, 105.0, 100.2, 100.2, 104.0, 105.0];
        assert_eq!(one(not_ready, &STRICT, &Arrival::Together).verdict, Verdict::Late);
        assert_eq!(one(not_ready, &LOOSE, &Arrival::Together).verdict, Verdict::Late);
        let slow_start = [99.0, 100.0, 104.0, 105.0, 99.0, 100.2, 104.0, 105.0];
        assert_eq!(one(slow_start, &STRICT, &Arrival::Together).verdict, Verdict::Late);
        assert_eq!(one(slow_start, &LOOSE, &Arrival::Together).verdict, Verdict::Correct);
        let long = [99.0, 100.0, 104.0, 105.0, 99.0, 100.0, 110.1, 111.0];
        assert_eq!(one(long, &STRICT, &Arrival::Together).verdict, Verdict::Long);
    }

    #[test]
    fn arrival_moves_starts_and_the_reference() {
        let sample = one([99.0, 100.0, 104.0, 105.0, 101.5, 102.0, 105.0, 106.0], &STRICT, &Arrival::Linear(2.0));
        assert_eq!((sample.time, sample.verdict), (3.0, Verdict::Correct));
        assert_eq!(sample.ranks, [4.0, 3.0]);
        assert_eq!(sample.spread, 0.0);
    }

    #[test]
    fn spans_reach_to_the_next_readiness() {
        let slots = super::super::schedule::slots(0, 3, &[10.0]);
        #[rustfmt::skip]
        let reports = [
            99.0, 100.0, 104.0, 105.0,  106.0, 110.0, 125.0, 126.0,  127.0, 127.0, 128.0, 129.0,
            99.5, 100.0, 103.0, 104.0,  107.0, 110.0, 124.0, 125.0,  127.5, 127.5, 129.0, 130.0,
        ];
        let stage = Stage { tau: 100.0, slots: &slots, reports: &reports, arrival: &Arrival::Together };
        assert_eq!(stage.spans(), [7.0, 17.5, 2.5]);
        assert_eq!(stage.tardiness(), -0.5);
        assert_eq!(stage.sample(1, &STRICT).verdict, Verdict::Long);
        assert_eq!(stage.sample(2, &STRICT).verdict, Verdict::Late);
        assert_eq!(stage.first_sample(2).time, 1.5);
        assert_eq!(stage.first_sample(0).time, 4.0);
        let tardy = Stage { tau: 99.2, ..stage };
        assert_eq!(tardy.first_sample(0).time, 4.5);
    }
}
