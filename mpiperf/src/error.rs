// SPDX-License-Identifier: BSD-3-Clause
//! What can go wrong, and the exit status it leads to.

/// A failure that ends the run. Its text says what, where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line, or a file it names, is wrong.
    #[error("{0}")]
    Usage(String),
    /// An MPI function failed.
    #[error("{what} failed: {text}")]
    Mpi {
        /// The function.
        what: &'static str,
        /// The library's own words.
        text: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Its path.
        path: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// A collective gave a wrong result.
    #[error("wrong result: {0}")]
    Wrong(String),
    /// The measurement cannot be done so that its numbers mean anything.
    #[error("{0}")]
    Measure(String),
    /// `check` shows that something takes longer than it did.
    #[error("{0}")]
    Slower(String),
    /// Another rank's failure, told to all by [`crate::mpi::Comm::agree`].
    #[error("{text}")]
    Agreed {
        /// What happened, and on which rank.
        text: String,
        /// The failure's exit status.
        status: i32,
    },
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of usage.
    pub fn usage(text: impl Into<String>) -> Error {
        Error::Usage(text.into())
    }

    /// 2 for wrong usage, 3 for a wrong result, 4 for what `check` shows to be slower, 1 for everything else.
    pub fn status(&self) -> i32 {
        match self {
            Error::Usage(_) => 2,
            Error::Wrong(_) => 3,
            Error::Slower(_) => 4,
            Error::Agreed { status, .. } => *status,
            _ => 1,
        }
    }
}
