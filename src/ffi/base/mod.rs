// SPDX-License-Identifier: BSD-3-Clause
//! What everything else stands on: the shim's declarations, messages, errors, and futures in memory of their
//! own.
//!
//! Layers of `ffi` that it may import: none.
//!
//! # Words
//!
//! * *shim*: the C half, in `ompi-glue/`; what both halves know of each other is in [`glue`].
//! * *kind*: the operation of a call ([`kind::Kind`]); *mode*: blocking, nonblocking or persistent.
//! * *guard*: where a panic becomes an error code ([`guard`]).
//! * *apart*: a future that is not a part of who awaits it, but has memory of its own ([`apart`]).

pub mod apart;
pub mod config;
pub mod error;
pub mod glue;
pub mod guard;
pub mod kind;
pub mod messages;
pub mod name;
pub mod text;
