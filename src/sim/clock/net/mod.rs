// SPDX-License-Identifier: BSD-3-Clause
//! Messages under the clock.
//!
//! * [`network`]: what a network is, and where ranks are in it
//! * `links`: what messages share
//! * [`fabric`]: matching, and when each message is there
//! * [`events`]: what happens next
//! * [`endpoint`]: what the algorithms run over
//! * `told`: the messages of those whose shared memory is under the clock too; `pool`: their buffers
//! * [`many`]: very many processes, by messages alone
//!
//! What it leaves out: packets, and their order on a link of several messages that come at once; routes, of
//! which there is one between two nodes; credits, lost packets and retransmission. A process sees what
//! arrives for it as soon as it looks, and an adapter fetches data without it.

pub mod endpoint;
pub mod events;
pub mod fabric;
mod links;
pub mod many;
pub mod network;
pub(super) mod pool;
mod told;

pub use endpoint::ClockEndpoint;
pub use network::{Inside, Layer, Messages, Network, Places};
