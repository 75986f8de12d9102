// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf list`: what can be measured.

use crate::error::Result;
use crate::op::{DATATYPES, Mode, REDUCTIONS, operations};
use crate::report::output::say;

/// Prints operations, datatypes and reductions.
pub fn run() -> Result<()> {
    let width = operations().iter().map(|o| o.name.len()).max().unwrap_or(0);
    for (mode, heading) in
        [(Mode::Blocking, "Blocking"), (Mode::Nonblocking, "Nonblocking"), (Mode::Persistent, "Persistent")]
    {
        say(&format!("{heading}:"))?;
        for operation in operations().iter().filter(|o| o.mode == mode) {
            say(&format!("  {:width$}  {}", operation.name, operation.about))?;
        }
    }
    say(&format!("Datatypes (--datatype): {DATATYPES}"))?;
    say(&format!("Reductions (--op): {}", REDUCTIONS.join(", ")))
}
