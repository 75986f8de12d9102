// SPDX-License-Identifier: BSD-3-Clause
//! How a caller waits that has its thread for itself.

use crate::endpoint::Result;
use crate::shm::protocol::reach::Reach;

/// Runs futures to their ends.
pub trait Runs: Copy {
    /// Runs what `late` returns to its end.
    fn run<F: Future>(self, late: impl FnOnce() -> F) -> F::Output;

    /// The same of the wait for one word, which has been [looked at](Reach::late) in vain: what is waited for
    /// most.
    fn reach(self, late: Reach<'_>) -> Result<()> {
        self.run(move || late).map(drop)
    }
}
