// SPDX-License-Identifier: BSD-3-Clause
//! Properties of the algorithms and of their compositions, over the simulator: random groups, placements,
//! layouts of memory, parameters and schedules, against oracles of a few lines.
//!
//! The runs are the same every time. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` make others and more.
#![forbid(unsafe_code)]

mod properties {
    mod allgather;
    mod allreduce;
    mod alltoall;
    mod barrier;
    mod bcast;
    mod blocks;
    mod bundles;
    mod composed;
    mod composition;
    mod data;
    mod disagree;
    mod gather;
    mod hier_allgather;
    mod hier_allreduce;
    mod hier_alltoall;
    mod hier_barrier;
    mod hier_bcast;
    mod hier_gather;
    mod hier_reduce;
    mod hier_reduce_scatter;
    mod hier_scan;
    mod hier_scatter;
    mod job;
    mod neighbor;
    mod pieces;
    mod random;
    mod reduce;
    mod reduce_scatter;
    mod reproducible;
    mod scan;
    mod scatter;
    mod team;
}
