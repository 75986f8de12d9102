// SPDX-License-Identifier: BSD-3-Clause
//! How a run schedules: the adversary's policy.

#![forbid(unsafe_code)]

use super::Rng;
use crate::endpoint::Rank;

/// Which of the enabled actions the scheduler prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// None: all are equally likely.
    Random,
    /// The oldest, mostly.
    Fifo,
    /// The newest, mostly.
    Lifo,
    /// What concerns this rank comes last: it is polled, and gets its messages, when hardly anything else can
    /// happen.
    Starve(Rank),
    /// This rank starts when nothing else can happen.
    Late(Rank),
}

/// The policy of a run. Chances are of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Chance that a send is eager: its data leave at posting. Otherwise they are read at delivery
    /// (rendezvous).
    pub eager: u16,
    /// Chance that a send whose data left is reported done only later.
    pub lazy_done: u16,
    /// Chance, per step, to poll a rank that was not woken, as an executor may.
    pub spurious: u16,
    /// Preferred actions.
    pub bias: Bias,
    /// The run fails after so many steps.
    pub max_steps: u64,
    /// Whether a message of another length than its receiver has room for is an error of the program, which
    /// its receiver notes, and not one of the algorithm, which ends the run.
    pub lengths_may_differ: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            eager: 128,
            lazy_done: 64,
            spurious: 0,
            bias: Bias::Random,
            max_steps: 20_000_000,
            lengths_may_differ: false,
        }
    }
}

impl Config {
    /// Every send is eager.
    pub fn eager() -> Config {
        Config { eager: 256, ..Config::default() }
    }

    /// Every send is rendezvous.
    pub fn rendezvous() -> Config {
        Config { eager: 0, ..Config::default() }
    }

    /// This policy with another bias.
    pub fn bias(self, bias: Bias) -> Config {
        Config { bias, ..self }
    }

    /// A policy drawn from `seed`, for `size` ranks: all of them come up.
    pub fn from_seed(seed: u64, size: u32) -> Config {
        let mut rng = Rng::new(seed ^ 0x636f_6e66_6967);
        let rank = rng.below(size.max(1) as usize) as Rank;
        let bias = [Bias::Random, Bias::Fifo, Bias::Lifo, Bias::Starve(rank), Bias::Late(rank)][rng.below(5)];
        let eager = [0, 128, 256][rng.below(3)];
        let lazy_done = [0, 64, 256][rng.below(3)];
        let spurious = [0, 0, 16][rng.below(3)];
        Config { eager, lazy_done, spurious, bias, ..Config::default() }
    }
}
