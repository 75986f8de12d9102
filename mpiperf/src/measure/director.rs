// SPDX-License-Identifier: BSD-3-Clause
//! What rank 0 decides: when the next stage starts, how long its windows are, and when it is enough.

use super::judge::{Allowance, Stage};
use super::window::{Window, next_lead};
use super::{Plan, Sample, Stop, Verdict};

/// With fewer correct calls than rule 2 wants, rule 1's limit of calls made is exceeded up to this factor.
const PERSEVERANCE: u32 = 4;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// So many rounds.
    Stage(u32),
    /// Nothing: enough, or over budget.
    End,
}

/// The state of a measurement.
pub struct Director<'a> {
    plan: &'a Plan,
    windows: Vec<Window>,
    /// How long after the decision the next stage starts, seconds.
    pub lead: f64,
    /// Rounds made, without the first calls.
    made: u32,
    /// Rounds in which all cases were correct.
    correct: u32,
    started: bool,
    /// All calls so far.
    pub samples: Vec<Sample>,
    over_budget: bool,
}

impl<'a> Director<'a> {
    /// At the beginning: `cases` alternate, windows are never shorter than `floor`, and the first stage
    /// starts `lead` after the decision.
    pub fn new(plan: &'a Plan, cases: usize, floor: f64, lead: f64) -> Director<'a> {
        let windows = vec![Window::new(floor); cases];
        let started = plan.first_calls == 0;
        Director { plan, windows, lead, made: 0, correct: 0, started, samples: Vec::new(), over_budget: false }
    }

    /// The windows of the next stage.
    pub fn windows(&self) -> Vec<f64> {
        self.windows.iter().map(|window| window.length).collect()
    }

    /// What comes next, `elapsed` seconds after the beginning.
    pub fn next(&mut self, elapsed: f64) -> Next {
        if !self.started {
            return Next::Stage(self.plan.first_calls);
        }
        let times = |case| {
            let of_case = move |s: &&Sample| s.case == case && s.verdict == Verdict::Correct;
            self.samples.iter().filter(of_case).map(|s| s.time)
        };
        if self.plan.stop.reached(self.made, self.correct, (0..self.windows.len()).map(times)) {
            return Next::End;
        }
        let left = self.plan.budget - elapsed;
        if left <= 0.0 {
            self.over_budget = true;
            return Next::End;
        }
        let round: f64 = self.windows().iter().sum();
        let fitting = if round > 0.0 { (left / round).clamp(1.0, 1e6) as u32 } else { u32::MAX };
        Next::Stage(self.plan.stage_calls.min(fitting))
    }

    /// Takes a stage in.
    pub fn digest(&mut self, stage: &Stage, allowance: &Allowance) {
        let spans = stage.spans();
        let of = |case: usize| -> Vec<f64> {
            let zip = stage.slots.iter().zip(&spans);
            zip.filter(|(slot, _)| slot.case == case).map(|(_, span)| *span).collect()
        };
        self.lead = next_lead(self.lead, stage.tardiness(), self.plan.budget);
        if !self.started {
            self.started = true;
            self.samples.extend((0..stage.slots.len()).map(|slot| stage.first_sample(slot)));
            for (case, window) in self.windows.iter_mut().enumerate() {
                window.begin(self.plan, &of(case));
            }
            return;
        }
        let new: Vec<Sample> = (0..stage.slots.len()).map(|slot| stage.sample(slot, allowance)).collect();
        for (case, window) in self.windows.iter_mut().enumerate() {
            let incorrect = new.iter().filter(|s| s.case == case && s.verdict != Verdict::Correct).count();
            window.adapt(self.plan, &of(case), incorrect);
        }
        for round in new.chunks(self.windows.len()) {
            self.made += 1;
            self.correct += u32::from(round.iter().all(|s| s.verdict == Verdict::Correct));
        }
        self.samples.extend(new);
    }

    /// What the reader must know.
    pub fn notes(&self, oversubscribed: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let (made, correct) = (self.made, self.correct);
        if self.over_budget {
            let budget = self.plan.budget;
            notes
                .push(format!("stopped by the time limit of {budget} s after {made} calls, {correct} of them correct"));
        }
        if correct == 0 {
            let count = |verdict| self.samples.iter().filter(|s| s.verdict == verdict).count();
            let (late, long) = (count(Verdict::Late), count(Verdict::Long));
            notes.push(format!(
                "no valid call out of {made}: {late} started late, {long} ended after their window; too much else runs on this machine, or \
                 the time limit is too short"
            ));
        } else if correct < self.plan.stop.least.min(self.plan.stop.correct) {
            notes.push(format!("only {correct} valid calls out of {made}"));
        }
        let mut spreads: Vec<f64> =
            self.samples.iter().filter(|s| s.verdict == Verdict::Correct).map(|s| s.spread * 1e6).collect();
        spreads.sort_by(f64::total_cmp);
        if let (true, Some(last)) = (oversubscribed, spreads.len().checked_sub(1)) {
            let (middle, high) = (spreads[last / 2], spreads[last * 19 / 20]);
            notes.push(format!(
                "more ranks than cores: starts were not simultaneous, {middle:.1} µs apart in half of the calls, {high:.1} µs in 95 %"
            ));
        }
        notes
    }
}

impl Stop {
    /// Whether it is enough after `made` calls, `correct` of them correct with these times for each case.
    pub fn reached<T>(&self, made: u32, correct: u32, times: impl Iterator<Item = T>) -> bool
    where
        T: Iterator<Item = f64>,
    {
        if correct >= self.correct {
            return true;
        }
        if made >= self.calls && (correct >= self.least || made >= PERSEVERANCE.saturating_mul(self.calls)) {
            return true;
        }
        let Some(limit) = self.relative_error else { return false };
        let mut times = times;
        correct >= self.least.max(2) && times.all(|times| relative_error(times) <= limit)
    }
}

/// Standard error of the mean over the mean.
fn relative_error(times: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for time in times {
        n += 1.0;
        let off = time - mean;
        mean += off / n;
        squares += off * (time - mean);
    }
    if n < 2.0 {
        return f64::INFINITY;
    }
    let error = (squares / (n - 1.0) / n).sqrt();
    if error == 0.0 { 0.0 } else { error / mean.abs() }
}

#[cfg(test)]
mod tests {
    use super::super::judge::MOMENTS;
    use super::super::schedule::{Slot, slots};
    use super::super::{Arrival, Wait};
    use super::*;

    /// Two ranks whose calls of case c take `time(c, number of the call)`, and who need `overhead` between
    /// calls.
    fn simulate(slots: &[Slot], tau: f64, overhead: f64, mut time: impl FnMut(usize, u64) -> f64) -> Vec<f64> {
        let mut reports = vec![0.0; 2 * slots.len() * MOMENTS];
        let mut free = tau - 1e-6;
        for (i, slot) in slots.iter().enumerate() {
            let (ready, start) = (free, free.max(tau + slot.begin));
            let end = start + time(slot.case, slot.call);
            free = end + overhead;
            for rank in 0..2 {
                let at = (rank * slots.len() + i) * MOMENTS;
                reports[at..at + MOMENTS].copy_from_slice(&[ready, start, end, end]);
            }
        }
        reports
    }

    fn run(plan: &Plan, cases: usize, time: impl Fn(usize, u64) -> f64) -> (Vec<Sample>, Vec<String>, Vec<f64>) {
        let mut director = Director::new(plan, cases, 1e-6, 1e-4);
        let allowance = Allowance { ready: 1e-7, start: 1e-7 };
        let (mut now, mut call) = (0.0, 0);
        while let Next::Stage(rounds) = director.next(now) {
            let slots = slots(call, rounds, &director.windows());
            call += u64::from(rounds);
            let tau = now + director.lead;
            let reports = simulate(&slots, tau, 1e-6, &time);
            now = reports.iter().copied().fold(0.0, f64::max);
            director.digest(&Stage { tau, slots: &slots, reports: &reports, arrival: &Arrival::Together }, &allowance);
        }
        let notes = director.notes(false);
        let windows = director.windows();
        (director.samples, notes, windows)
    }

    fn correct(samples: &[Sample], case: usize) -> Vec<&Sample> {
        samples.iter().filter(|s| s.case == case && s.verdict == Verdict::Correct).collect()
    }

    #[test]
    fn steady_calls_are_all_correct() {
        let (samples, notes, windows) = run(&Plan::default(), 1, |_, call| if call == 0 { 1e-2 } else { 5e-5 });
        let good = correct(&samples, 0);
        assert_eq!((samples.len(), good.len()), (4 + 32, 32));
        assert!(good.iter().all(|s| (s.time - 5e-5).abs() < 1e-9));
        assert!((samples[0].time - 1e-2).abs() < 1e-9 && samples[0].verdict == Verdict::First);
        assert!(notes.is_empty(), "{notes:?}");
        assert!(windows[0] > 5e-5 && windows[0] < 6e-5, "{windows:?}");
    }

    #[test]
    fn windows_grow_until_calls_fit() {
        // After the first calls everything takes a thousand times longer.
        let (samples, notes, _) = run(&Plan::default(), 1, |_, call| if call < 4 { 1e-6 } else { 1e-3 });
        assert!(correct(&samples, 0).len() >= 30 && notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn cases_alternate_in_pairs() {
        let (samples, _, windows) = run(&Plan::default(), 2, |case, _| if case == 0 { 1e-5 } else { 1e-3 });
        let (a, b) = (correct(&samples, 0), correct(&samples, 1));
        assert!(a.len() >= 30 && b.len() >= 30);
        assert!(a.iter().zip(&b).all(|(a, b)| a.call == b.call && b.time > 90.0 * a.time));
        assert!(windows[1] > 10.0 * windows[0], "{windows:?}");
    }

    #[test]
    fn no_valid_call_is_said() {
        // After quick first calls, one stage takes all the time there is.
        let plan = Plan { budget: 10.0, ..Plan::default() };
        let (samples, notes, _) = run(&plan, 1, |_, call| if call < 4 { 1e-6 } else { 3.0 });
        assert!(correct(&samples, 0).is_empty());
        assert!(notes.iter().any(|note| note.starts_with("no valid call out of ")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("time limit of 10 s")), "{notes:?}");
    }

    #[test]
    fn rule_one_and_rule_two() {
        let stop = Stop::default();
        let none = || std::iter::empty::<std::vec::IntoIter<f64>>();
        assert!(stop.reached(30, 30, none()) && !stop.reached(99, 29, none()) && stop.reached(100, 29, none()));
        // Too few correct ones for an interval: go on for a while.
        assert!(!stop.reached(100, 9, none()) && stop.reached(400, 0, none()));
        let both = Stop { relative_error: Some(0.05), ..stop };
        let steady = || [1.0, 1.01].repeat(5).into_iter();
        let wild = || [1.0, 9.0].repeat(5).into_iter();
        assert!(both.reached(10, 10, [steady()].into_iter()));
        assert!(!both.reached(10, 9, [steady()].into_iter()));
        assert!(!both.reached(10, 10, [steady(), wild()].into_iter()));
        assert!(!stop.reached(10, 10, [steady()].into_iter()));
    }

    #[test]
    fn relative_error_is_that_of_the_mean() {
        // Deviations ±1 around 4: σ² = 8/7, SE = √(8/7/8), over 4.
        let times = [3.0, 5.0, 3.0, 5.0, 3.0, 5.0, 3.0, 5.0];
        assert!((relative_error(times.into_iter()) - (1.0f64 / 7.0).sqrt() / 4.0).abs() < 1e-12);
        assert_eq!(relative_error([0.0, 0.0].into_iter()), 0.0);
        assert_eq!(relative_error([1.0].into_iter()), f64::INFINITY);
    }

    #[test]
    fn budget_shortens_stages() {
        let plan = Plan { budget: 2.0, wait: Some(Wait::Spin), ..Plan::default() };
        let (samples, notes, _) = run(&plan, 1, |_, _| 0.3);
        let made = samples.iter().filter(|s| s.verdict != Verdict::First).count();
        assert!((2..8).contains(&made), "{made}");
        assert!(notes[0].contains("time limit of 2 s"), "{notes:?}");
    }
}
