// SPDX-License-Identifier: BSD-3-Clause
//! How much time a call is given (δ), and how long the start of a stage is put off.

use super::Plan;

/// The lead of a stage is at most so many times that of the one before …
const STRIDE: f64 = 4.0;
/// … or such a share of the time limit.
const AT_ONCE: f64 = 0.25;

/// The window of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Seconds; 0 in the stage of first calls.
    pub length: f64,
    /// Never less than this afterwards.
    floor: f64,
    /// Stages in a row without one correct call.
    barren: u32,
}

/// A window is cut when so many times longer than a call needs …
const WASTEFUL: f64 = 4.0;
/// … to so many times of it.
const AMPLE: f64 = 2.0;

impl Window {
    /// The window of the stage of first calls.
    pub fn new(floor: f64) -> Window {
        Window { length: 0.0, floor, barren: 0 }
    }

    /// The first length, from how long each of the first calls took. The very first one says nothing, unless
    /// there is no other.
    pub fn begin(&mut self, plan: &Plan, spans: &[f64]) {
        let spans = if spans.len() > 1 { &spans[1..] } else { spans };
        self.length = self.floor.max(plan.growth * needed(spans, 0.5));
    }

    /// The next length, after a stage in which the calls of the case took `spans` and `incorrect` of them did
    /// not count.
    ///
    /// Too many incorrect: γ times what all calls but the tolerated share took, so that one interruption does
    /// not count for all, but at least γ times the old length; doubled for each further stage in a row
    /// without any correct call. Enough correct, and the window many times too long: cut.
    pub fn adapt(&mut self, plan: &Plan, spans: &[f64], incorrect: usize) {
        let calls = spans.len();
        let needed = needed(spans, 1.0 - plan.tolerated);
        self.barren = if incorrect == calls { self.barren + 1 } else { 0 };
        if incorrect as f64 > plan.tolerated * calls as f64 {
            let doubled = f64::from(1u32 << self.barren.saturating_sub(1).min(10));
            self.length = self.floor.max(plan.growth * needed.max(self.length) * doubled);
        } else if self.length > WASTEFUL * needed {
            self.length = self.floor.max(AMPLE * needed);
        }
    }
}

/// What the given share of the spans do not exceed.
fn needed(spans: &[f64], share: f64) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort_by(f64::total_cmp);
    let within = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(within.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

/// How long after rank 0's decision the next stage starts: `lead` was the last one, and the last rank was
/// ready `tardiness` seconds after (negative: before) the start. One that seems to be a minute late, since it
/// was stopped or its clock has jumped, does not make all wait for two: beyond a share of the time limit,
/// `budget`, the lead grows step by step.
pub fn next_lead(lead: f64, tardiness: f64, budget: f64) -> f64 {
    let needed = lead + tardiness;
    if tardiness > 0.0 {
        (2.0 * needed).min((STRIDE * lead).max(AT_ONCE * budget))
    } else {
        (0.7 * lead).max(1.5 * needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_window_ignores_the_first_call() {
        let plan = Plan::default();
        let mut window = Window::new(1.0);
        window.begin(&plan, &[1000.0, 10.0, 20.0, 900.0]);
        assert!((window.length - 22.0).abs() < 1e-9);
        window.begin(&plan, &[1000.0]);
        assert!((window.length - 1100.0).abs() < 1e-9);
        window.begin(&plan, &[5.0, 0.1]);
        assert_eq!(window.length, 1.0);
    }

    #[test]
    fn grows_only_above_the_tolerated_share() {
        let plan = Plan::default();
        let mut window = Window { length: 10.0, floor: 1.0, barren: 0 };
        window.adapt(&plan, &[9.0; 8], 2);
        assert_eq!(window.length, 10.0);
        window.adapt(&plan, &[9.0, 9.0, 9.0, 9.0, 9.0, 30.0, 30.0, 50.0], 3);
        assert!((window.length - 33.0).abs() < 1e-9, "{}", window.length);
        // One interruption that makes its followers late, too: they would have fitted.
        window.adapt(&plan, &[9.0, 9.0, 9e3, 9.0, 9.0, 9.0, 9.0, 9.0], 6);
        assert!((window.length - 1.1 * 33.0).abs() < 1e-9, "{}", window.length);
    }

    #[test]
    fn any_call_fits_at_last() {
        // Calls of 1 s, windows of 1 µs at first; and calls whose duration the stage does not show.
        let plan = Plan::default();
        for shown in [1.0, 0.0] {
            let mut window = Window::new(1e-6);
            window.begin(&plan, &[1e-6; 4]);
            let mut stages = 0;
            while window.length < 1.0 {
                window.adapt(&plan, &[shown; 8], 8);
                stages += 1;
                assert!(stages < 12, "{window:?}");
            }
        }
    }

    #[test]
    fn wasteful_windows_are_cut() {
        let plan = Plan::default();
        let mut window = Window { length: 100.0, floor: 1.0, barren: 0 };
        window.adapt(&plan, &[3.0, 5.0, 4.0, 90.0], 1);
        assert_eq!(window.length, 10.0);
        window.adapt(&plan, &[3.0, 5.0], 0);
        assert_eq!(window.length, 10.0);
    }

    #[test]
    fn lead_follows_what_is_needed() {
        let budget = 30.0;
        assert_eq!(next_lead(1.0, 0.5, budget), 3.0);
        assert_eq!(next_lead(1.0, -0.5, budget), 0.75);
        assert_eq!(next_lead(1.0, -0.9, budget), 0.7);
        // Buffers that take long to be filled, and a rank that was stopped.
        assert_eq!(next_lead(20e-6, 1.5, budget), 2.0 * (1.5 + 20e-6));
        assert_eq!(next_lead(20e-6, 60.0, budget), 7.5);
        assert_eq!(next_lead(7.5, 60.0, budget), 30.0);
        let mut lead = 1.0;
        for _ in 0..50 {
            lead = next_lead(lead, 0.2 - lead, budget);
        }
        assert!((lead - 0.3).abs() < 1e-9);
    }
}
