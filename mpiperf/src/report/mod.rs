// SPDX-License-Identifier: BSD-3-Clause
//! Rows as table, CSV, JSON, pictures.
//!
//! * [`results`]: what one run of the program found, as it is written to JSON, as [`schema`] says.
//! * [`about`]: where and how it was found: everything needed to repeat it.
//! * [`table`]: aligned text; [`osu`]: the columns of other benchmarks; [`tidy`]: CSV; [`units`]: times and
//!   sizes for people.
//! * [`output`]: the files and the terminal of one run, opened before anything is measured.
//! * [`groups`]: several results files brought together; [`changes`]: two of them compared, now and before;
//!   [`junit`]: that for CI systems. [`plot`]: pictures; [`whole`]: tables that are written at once.

pub mod about;
pub mod changes;
pub mod groups;
pub mod junit;
pub mod osu;
pub mod output;
pub mod plot;
pub mod results;
pub mod schema;
pub mod table;
pub mod tidy;
pub mod units;
pub mod whole;

pub use about::{About, Rank};
pub use output::Output;
pub use results::{Comparison, Ordinary, Overlapped, Results, Row};
