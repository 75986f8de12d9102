// SPDX-License-Identifier: BSD-3-Clause
//! Why memory could not be shared: for one line at verbose level, never for a decision.

use std::fmt;
use std::io;

/// What failed, where, and what the system said.
#[derive(Debug)]
pub struct Failure {
    what: String,
    system: Option<io::Error>,
}

impl Failure {
    /// A failure that the system has no error for.
    pub fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), system: None }
    }

    /// A failed system call.
    pub fn of(what: impl Into<String>, error: impl Into<io::Error>) -> Failure {
        Failure { what: what.into(), system: Some(error.into()) }
    }

    /// The same, and what it is about.
    pub fn about(mut self, whom: impl fmt::Display) -> Failure {
        self.what = format!("{whom}: {}", self.what);
        self
    }

    /// The system's error number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        self.system.as_ref().and_then(io::Error::raw_os_error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.system {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
