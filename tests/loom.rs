// SPDX-License-Identifier: BSD-3-Clause
//! The protocols under the model checker: interleavings with few preemptions, and every value that the memory
//! model lets a load return.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release --test loom
#![cfg(loom)]

mod loom {
    mod mailbox;
    mod memory;
    mod protocol;
    mod rwlock;
}
