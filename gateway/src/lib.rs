// SPDX-License-Identifier: BSD-3-Clause
//! The gateway of a cluster: relays the messages of collectives between processes of different clusters whose
//! nodes do not reach each other.
//!
//! | module | knows |
//! |---|---|
//! | [`inside`] | connections of processes of this cluster (the frames of [`coll_rust::relay`]) |
//! | [`job`] | jobs, their processes, and what waits for each of them |
//! | [`link`] | the way of one job to one other gateway: the numbers of frames, losses, the end |
//! | [`outgoing`], [`incoming`] | what a link may send and hold: credits and acknowledgements, as plain numbers |
//! | [`dial`], [`session`], [`noise`], [`wire`] | connections between gateways, from the outside in |
//! | [`config`], [`keys`], [`counters`], [`server`] | what surrounds it |
//!
//! A frame's way: `inside` reads its header, asks the link for credit of its receiver and a part of the job's
//! memory, and waits where there is none, so that its sender waits too. Then it reads the payload and hands
//! the frame to the link. A `session` sends it, and the link keeps it until the other gateway acknowledges
//! it. There it goes into the queue of its receiver; once written, its credit goes back.

pub mod config;
pub mod counters;
pub mod dial;
pub mod incoming;
pub mod inside;
pub mod job;
pub mod keys;
pub mod link;
pub mod noise;
pub mod outgoing;
pub mod server;
pub mod session;
pub(crate) mod state;
pub mod stream;
pub mod wire;
