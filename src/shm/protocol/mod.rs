// SPDX-License-Identifier: BSD-3-Clause
//! How the members of a group tell each other what is there and what has been read.
//!
//! * [`team`]: who works together, on which streams; who sleeps and who wakes whom; failures.
//! * [`turn`]: one operation of a stream, as one member takes part in it: its slots, steps and lengths.
//! * [`reach`]: waiting for the word of another member.

pub mod reach;
pub mod team;
pub mod turn;
