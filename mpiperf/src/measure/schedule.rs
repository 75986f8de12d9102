// SPDX-License-Identifier: BSD-3-Clause
//! Which case is called when, and where each rank starts. Equal on all ranks, from the number of the call
//! alone.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::Arrival;
use crate::error::{Error, Result};

/// Different draws for the same number of a call.
const ORDER: u64 = 0x6f72_6465_7200_0000;
const SKEW: u64 = 0x736b_6577_0000_0000;

/// One call's place in a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Which of the alternating cases.
    pub case: usize,
    /// The number of the call, equal for all cases of a round.
    pub call: u64,
    /// Its moment after the start of the stage, seconds.
    pub begin: f64,
    /// How long it may take, seconds.
    pub window: f64,
}

/// The calls of a stage of `rounds` rounds from call number `first` on: in each round every case once, in an
/// order drawn for the round, each in a window of its own length.
pub fn slots(first: u64, rounds: u32, windows: &[f64]) -> Vec<Slot> {
    let mut begin = 0.0;
    let mut slots = Vec::with_capacity(rounds as usize * windows.len());
    for call in first..first + u64::from(rounds) {
        let mut order: Vec<usize> = (0..windows.len()).collect();
        order.shuffle(&mut StdRng::seed_from_u64(ORDER ^ call));
        for case in order {
            slots.push(Slot { case, call, begin, window: windows[case] });
            begin += windows[case];
        }
    }
    slots
}

impl Arrival {
    /// When each rank starts in call number `call`: seconds after the scheduled moment.
    pub fn offsets(&self, call: u64, ranks: usize) -> Vec<f64> {
        match self {
            Arrival::Together => vec![0.0; ranks],
            Arrival::Linear(time) => (0..ranks).map(|i| time * i as f64 / (ranks.max(2) - 1) as f64).collect(),
            Arrival::Random(time) => {
                let mut rng = StdRng::seed_from_u64(SKEW ^ call);
                (0..ranks).map(|_| time * rng.random::<f64>()).collect()
            }
            Arrival::Replayed(lines) => {
                let line = &lines[(call % lines.len() as u64) as usize];
                line.iter().take(ranks).map(|micros| micros * 1e-6).collect()
            }
        }
    }

    /// Refuses patterns that say nothing for some of `ranks` processes, or that lie before the scheduled
    /// moment.
    pub(super) fn check(&self, ranks: usize) -> Result<()> {
        let good = |time: f64| time.is_finite() && time >= 0.0;
        match self {
            Arrival::Together => Ok(()),
            Arrival::Linear(time) | Arrival::Random(time) if good(*time) => Ok(()),
            Arrival::Linear(time) | Arrival::Random(time) => {
                Err(Error::Usage(format!("arrival pattern: {time} s; must be a time from 0 on")))
            }
            Arrival::Replayed(lines) if lines.is_empty() => {
                Err(Error::usage("replayed arrival pattern: no lines; one line for each call is needed"))
            }
            Arrival::Replayed(lines) => {
                for (i, line) in lines.iter().enumerate() {
                    let number = i + 1;
                    if line.len() < ranks {
                        let text = format!("{} numbers for {ranks} ranks", line.len());
                        return Err(Error::Usage(format!("replayed arrival pattern, line {number}: {text}")));
                    }
                    if let Some(bad) = line.iter().find(|time| !good(**time)) {
                        let text = format!("{bad}; must be microseconds from 0 on");
                        return Err(Error::Usage(format!("replayed arrival pattern, line {number}: {text}")));
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hold_every_case_once_in_changing_order() {
        let slots = slots(7, 40, &[1.0, 2.0, 4.0]);
        assert_eq!(slots.len(), 120);
        let mut orders = std::collections::HashSet::new();
        let mut end = 0.0;
        for (i, round) in slots.chunks(3).enumerate() {
            let mut cases: Vec<usize> = round.iter().map(|slot| slot.case).collect();
            orders.insert(cases.clone());
            cases.sort_unstable();
            assert_eq!(cases, [0, 1, 2]);
            for slot in round {
                assert_eq!((slot.call, slot.begin, slot.window), (7 + i as u64, end, [1.0, 2.0, 4.0][slot.case]));
                end += slot.window;
            }
        }
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn order_of_two_is_balanced() {
        let slots = slots(0, 1000, &[1.0, 1.0]);
        let first = slots.chunks(2).filter(|round| round[0].case == 0).count();
        assert!((440..560).contains(&first), "{first}");
    }

    #[test]
    fn arrivals() {
        assert_eq!(Arrival::Together.offsets(3, 2), [0.0, 0.0]);
        assert_eq!(Arrival::Linear(3.0).offsets(3, 4), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(Arrival::Linear(3.0).offsets(3, 1), [0.0]);
        let random = Arrival::Random(1e-3);
        assert_eq!(random.offsets(5, 8), random.offsets(5, 8));
        assert_ne!(random.offsets(5, 8), random.offsets(6, 8));
        assert!(random.offsets(5, 8).iter().all(|t| (0.0..1e-3).contains(t)));
        let replayed = Arrival::Replayed(vec![vec![0.0, 5.0], vec![7.0, 0.0]]);
        assert_eq!(replayed.offsets(3, 2), [7e-6, 0.0]);
        assert_eq!(replayed.offsets(4, 2)[1], 5.0 * 1e-6);
    }

    #[test]
    fn bad_patterns_are_refused() {
        let bad = [
            Arrival::Linear(-1.0),
            Arrival::Random(f64::NAN),
            Arrival::Replayed(vec![]),
            Arrival::Replayed(vec![vec![0.0, 1.0], vec![0.0]]),
            Arrival::Replayed(vec![vec![0.0, -1.0]]),
        ];
        for pattern in bad {
            assert!(pattern.check(2).is_err_and(|error| error.status() == 2), "{pattern:?}");
        }
        assert!(Arrival::Replayed(vec![vec![0.0, 1.0, 2.0]]).check(2).is_ok());
    }
}
