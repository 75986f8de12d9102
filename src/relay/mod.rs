// SPDX-License-Identifier: BSD-3-Clause
//! What a process and the gateway of its cluster say to each other, as bytes.
//!
//! `coll-rust-gateway` relays the messages of collectives between clusters whose nodes do not reach each
//! other. A process has one TCP connection to the gateway of its own cluster, on which both send
//! [frames](frame). They begin so:
//!
//! | from | frame | says |
//! |---|---|---|
//! | process | HELLO | [who it is](hello::Hello): job, process, cluster, all clusters, name of the key, a nonce |
//! | gateway | CHALLENGE | a nonce of its own, and the [proof] that it has the key |
//! | process | PROOF | the proof that the process has the key |
//! | gateway | WELCOME | DATA may go both ways from here on |
//!
//! Instead of any of its own the gateway may send REFUSED, whose text says why and what to do; then it
//! closes the connection. The key comes from [a file](key), which both have.
//!
//! What the component makes of DATA is in [`mail`], and its side of the connection in [`session`].
//!
//! All of it is pure: no sockets, no files, no `unsafe`. The component and the gateway bring these.

pub mod frame;
pub mod hello;
pub mod key;
pub mod mail;
pub mod proof;
pub mod session;

#[cfg(test)]
mod tests;
