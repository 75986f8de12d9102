// SPDX-License-Identifier: BSD-3-Clause
//! Reader–writer locks measured: the three of `coll_rust::sync::rwlock`, and others beside them.
//!
//! * [`guards`]: the locks, each behind one interface;
//! * [`contest`]: readers that read without pause until the writer has done its writes;
//! * [`profile`]: where the cycles of one read of the placement store go, and what PMIx_Get takes.
//!
//! The contest is that of K. Pavsky et al. (Avtometriya 57(5), 2021), figures 6 and 7; the profile that of
//! their table 1.

pub mod contest;
pub mod guards;
pub mod profile;
