// SPDX-License-Identifier: BSD-3-Clause
//! What goes over the network: docs/reference/traffic.md, and whether it is still true.
//!
//! `UPDATE_DOCS=1 cargo test --release --test traffic` writes the page. Otherwise the small job is counted
//! anew, and of the large one the hierarchical forms: with the others it takes minutes. The counts of the
//! small job are checked against the simulator too.
#![forbid(unsafe_code)]

mod traffic {
    mod page;
    mod runs;
}
