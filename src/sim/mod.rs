// SPDX-License-Identifier: BSD-3-Clause
//! The simulated endpoint: a whole job of ranks as futures in one thread.
//!
//! A [`World`] runs one future per rank. A scheduler, seeded and adversarial, picks at random among what may
//! happen next: a rank that was woken is polled, a matched message is delivered, a send that was delivered is
//! reported done. Every run is a function of its seed, so a failure found once is found again.
//!
//! What the simulator demands of an algorithm is what MPI demands, taken strictly: a post is *in flight* from
//! posting until its future was seen `Ready`, even where the message happened to go early. Whatever breaks a
//! rule ends the run with a [`Failure`] that names ranks, tags and lengths.
//!
//! * `world`: building a world, and the scheduler's loop
//! * `state`: posts, matching, delivery, the set of enabled actions
//! * `host`: [`SimEndpoint`], its posts and temporary buffers
//! * `gateways`: the way of messages between ranks that do not reach each other
//! * `region`: which memory of a rank is in flight
//! * `memory`: unit types with gaps, and buffers that notice when a gap was written
//! * `stream`: [`SimStream`], a user's data as a packed stream
//! * `blocks`: [`SimBlocks`], a user's data as a block per member
//! * `count`: [`count()`], for jobs too large to simulate
//! * `clock` (with the feature of that name): a clock for the processes of a node, by a model of their caches
//! * `conformance`: what any endpoint has to do, simulated or real

mod blocks;
#[cfg(all(feature = "clock", not(loom)))]
pub mod clock;
mod config;
pub mod conformance;
mod count;
mod failure;
mod gateways;
mod host;
mod memory;
mod region;
mod rng;
mod state;
mod stats;
mod stream;
mod world;

pub use blocks::SimBlocks;
pub use config::{Bias, Config};
pub use count::{CountEndpoint, count};
pub use failure::{Access, Failed, Failure, Posted, Side};
pub use host::{SimEndpoint, SimPost, SimTemp};
pub use memory::{UnitBuffer, UnitType};
pub use rng::Rng;
pub use stats::{Stats, Traffic};
pub use stream::SimStream;
pub use world::World;

#[cfg(test)]
mod tests;
