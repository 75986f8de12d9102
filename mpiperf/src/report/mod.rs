// SPDX-License-Identifier: BSD-3-Clause
//! Rows as table, CSV, JSON, pictures.
//!
//! * [`results`]: what one run of the program found, as it is written to JSON.
//! * [`about`]: where and how it was found: everything needed to repeat it.
//! * [`table`]: aligned text; [`tidy`]: CSV; [`units`]: times and sizes for people.
//! * [`output`]: the files and the terminal of one run, opened before anything is measured.
//! * [`groups`]: several results files brought together. [`plot`]: pictures.

pub mod about;
pub mod groups;
pub mod output;
pub mod plot;
pub mod results;
pub mod table;
pub mod tidy;
pub mod units;

pub use about::{About, Rank};
pub use output::Output;
pub use results::{Comparison, Ordinary, Overlapped, Results, Row};
