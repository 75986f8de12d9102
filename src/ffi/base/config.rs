// SPDX-License-Identifier: BSD-3-Clause
//! The parameters in force.

use crate::params::Config;
use std::sync::OnceLock;

/// The parsed parameters, or the message that says what is wrong with them.
static CONFIG: OnceLock<Result<Config, String>> = OnceLock::new();

/// The parameters, or the message about them.
pub fn config() -> Result<&'static Config, &'static str> {
    match CONFIG.get() {
        Some(Ok(config)) => Ok(config),
        Some(Err(message)) => Err(message),
        None => Err("coll/rust was asked to work before it was initialised"),
    }
}

/// Puts them there, once.
pub fn parse(parse: impl FnOnce() -> Result<Config, String>) {
    CONFIG.get_or_init(parse);
}
