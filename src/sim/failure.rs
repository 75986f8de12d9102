// SPDX-License-Identifier: BSD-3-Clause
//! What a run can fail with.

#![forbid(unsafe_code)]

use super::Config;
use crate::endpoint::{Error, MAX_LANES, PHASES, Rank, Tag};
use std::fmt;

/// How many posts a message about a failure lists.
const LISTED: usize = 64;

/// Which side of a message a post is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It sends.
    Send,
    /// It receives.
    Recv,
}

/// A posted message, as failures name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Who posted it.
    pub rank: Rank,
    /// Send or receive.
    pub side: Side,
    /// Destination or source.
    pub peer: Rank,
    /// Its tag.
    pub tag: Tag,
    /// Its length.
    pub units: usize,
    /// Whether the peer posted the other side.
    pub matched: bool,
}

impl fmt::Display for Posted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, way) = match self.side {
            Side::Send => ("send", "to"),
            Side::Recv => ("receive", "from"),
        };
        let Tag { lane, phase, level } = self.tag;
        let matched = if self.matched { "matched" } else { "unmatched" };
        write!(f, "rank {}: {verb} of {} units {way} rank {}", self.rank, self.units, self.peer)?;
        write!(f, " (lane {lane}, phase {phase}, level {level}; {matched})")
    }
}

/// What an algorithm did to memory in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Posted a send of it.
    Send,
    /// Posted a receive into it.
    Recv,
    /// Reduced from it.
    ReduceLeft,
    /// Reduced into it.
    ReduceRight,
    /// Copied from it.
    CopyFrom,
    /// Copied to it.
    CopyTo,
}

impl Access {
    /// Whether the memory is written.
    pub(super) fn writes(self) -> bool {
        matches!(self, Access::Recv | Access::ReduceRight | Access::CopyTo)
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A send and the receive that it matched have different lengths.
    Length {
        /// The send.
        send: Posted,
        /// The receive.
        recv: Posted,
    },
    /// No rank can run and no message can be delivered.
    Deadlock {
        /// The ranks that have not returned.
        ranks: Vec<Rank>,
        /// All posts in flight, by rank in the order of posting.
        pending: Vec<Posted>,
        /// Sends that are done for their sender, and that nobody received.
        unreceived: Vec<Posted>,
    },
    /// All ranks returned, and these messages were never received. (A receive never sent is a deadlock, or a
    /// post that was dropped.)
    Unmatched {
        /// The sends.
        sends: Vec<Posted>,
    },
    /// A post was dropped before it was seen done.
    Dropped {
        /// The post.
        post: Posted,
    },
    /// A rank returned with posts in flight, which were neither awaited nor dropped.
    Forgotten {
        /// The rank.
        rank: Rank,
        /// The posts.
        posts: Vec<Posted>,
    },
    /// A rank returned an error.
    Rank {
        /// The rank.
        rank: Rank,
        /// Its error.
        error: Error,
    },
    /// A rank panicked.
    Panic {
        /// The rank.
        rank: Rank,
        /// What it said.
        message: String,
    },
    /// A rank accessed memory of a post in flight.
    Race {
        /// The rank.
        rank: Rank,
        /// What it did.
        access: Access,
        /// The post.
        post: Posted,
    },
    /// Memory of a receive was written before its message came, past the endpoint: by a stream, or directly.
    Overwritten {
        /// The receive.
        post: Posted,
    },
    /// A temporary buffer was given back with a post in flight on it.
    TempInFlight {
        /// The post.
        post: Posted,
    },
    /// A rank wrote outside the units of a temporary buffer, or into the gaps between them.
    GapWritten {
        /// The rank.
        rank: Rank,
    },
    /// A message to or from oneself.
    ToSelf {
        /// The message.
        post: Posted,
    },
    /// A message between ranks that must not have any with each other.
    Apart {
        /// The message.
        post: Posted,
    },
    /// A message to or from a rank that does not exist.
    RankRange {
        /// The message.
        post: Posted,
        /// Number of ranks.
        size: u32,
    },
    /// A tag whose lane or phase is too high.
    TagRange {
        /// The message.
        post: Posted,
    },
    /// A span whose extent is not that of the operation's unit.
    Extent {
        /// The rank.
        rank: Rank,
        /// Extent of the span.
        extent: isize,
        /// Extent of the unit.
        unit: isize,
    },
    /// `reduce` or `copy` of spans with different lengths.
    LocalLength {
        /// The rank.
        rank: Rank,
        /// Units of the first operand.
        left: usize,
        /// Units of the second.
        right: usize,
    },
    /// `reduce` or `copy` of spans that overlap each other.
    LocalOverlap {
        /// The rank.
        rank: Rank,
    },
    /// The run did not end within the steps allowed.
    StepLimit {
        /// Steps allowed.
        steps: u64,
        /// The ranks that have not returned.
        ranks: Vec<Rank>,
    },
}

/// Some of `posts`, one per line.
fn list(f: &mut fmt::Formatter<'_>, posts: &[Posted]) -> fmt::Result {
    for post in posts.iter().take(LISTED) {
        write!(f, "\n  {post}")?;
    }
    if posts.len() > LISTED {
        write!(f, "\n  and {} more", posts.len() - LISTED)?;
    }
    Ok(())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Length { send, recv } => {
                write!(f, "a message of {} units met a receive of {}:\n  {send}\n  {recv}", send.units, recv.units)
            }
            Failure::Deadlock { ranks, pending, unreceived } => {
                write!(f, "deadlock: ranks {ranks:?} wait, for")?;
                list(f, pending)?;
                let idle = ranks.iter().filter(|&&rank| pending.iter().all(|post| post.rank != rank));
                for rank in idle.take(LISTED) {
                    write!(f, "\n  rank {rank}: nothing that it posted")?;
                }
                if !unreceived.is_empty() {
                    write!(f, "\nsent and not received:")?;
                    list(f, unreceived)?;
                }
                Ok(())
            }
            Failure::Unmatched { sends } => {
                write!(f, "all ranks returned, {} messages were never received:", sends.len())?;
                list(f, sends)
            }
            Failure::Dropped { post } => write!(f, "a post was dropped before it was done:\n  {post}"),
            Failure::Forgotten { rank, posts } => {
                write!(f, "rank {rank} returned with posts in flight:")?;
                list(f, posts)
            }
            Failure::Rank { rank, error } => write!(f, "rank {rank} returned an error: {error:?}"),
            Failure::Panic { rank, message } => write!(f, "rank {rank} panicked: {message}"),
            Failure::Race { rank, access, post } => {
                write!(f, "rank {rank} used memory in flight ({access:?}):\n  {post}")
            }
            Failure::Overwritten { post } => write!(f, "memory of a receive in flight was written:\n  {post}"),
            Failure::TempInFlight { post } => write!(f, "a temporary buffer was returned in flight:\n  {post}"),
            Failure::GapWritten { rank } => write!(f, "rank {rank} wrote outside the units of a temporary buffer"),
            Failure::ToSelf { post } => write!(f, "a message to oneself:\n  {post}"),
            Failure::Apart { post } => write!(f, "a message between ranks that must not have any:\n  {post}"),
            Failure::RankRange { post, size } => write!(f, "a peer out of range, of {size} ranks:\n  {post}"),
            Failure::TagRange { post } => {
                write!(f, "a tag out of range, of {MAX_LANES} lanes and {PHASES} phases:\n  {post}")
            }
            Failure::Extent { rank, extent, unit } => {
                write!(f, "rank {rank} used a span of extent {extent}, the operation's unit has {unit}")
            }
            Failure::LocalLength { rank, left, right } => {
                write!(f, "rank {rank} combined {left} units with {right}")
            }
            Failure::LocalOverlap { rank } => write!(f, "rank {rank} combined spans that overlap"),
            Failure::StepLimit { steps, ranks } => write!(f, "no end after {steps} steps, ranks {ranks:?} still run"),
        }
    }
}

/// A failed run. Running again with the same seed and policy fails in the same way.
#[derive(Clone, PartialEq, Eq)]
pub struct Failed {
    /// Seed of the run.
    pub seed: u64,
    /// Its policy.
    pub config: Config,
    /// The step at which it failed.
    pub step: u64,
    /// Why; boxed because results carry it along.
    pub failure: Box<Failure>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, step {}, {:?}: {}", self.seed, self.step, self.config, self.failure)
    }
}

impl fmt::Debug for Failed {
    /// The readable text, since `unwrap` prints this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failed {}
