// SPDX-License-Identifier: BSD-3-Clause
//! A call as the levels of a communicator see it.

use crate::algo::Stage;
use crate::ffi::call::arguments::Call;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::state::Comm;
use crate::hier::Job;
use crate::hier::plans::Plan;
use crate::shm::exec::node::Node;

/// How much data, and how it may be treated.
#[derive(Clone, Copy)]
pub struct Amount {
    pub bytes: usize,
    pub segment: usize,
    pub commutative: bool,
    pub divisible: bool,
}

impl Amount {
    /// No data.
    pub const NONE: Amount = Amount { bytes: 0, segment: 1, commutative: true, divisible: true };
}

pub fn job<'a>(ep: &'a HostEndpoint, plan: &'a Plan, comm: &Comm, amount: Amount) -> Job<'a, HostEndpoint> {
    let Amount { bytes, segment, commutative, divisible } = amount;
    Job {
        ep,
        groups: &plan.groups,
        bytes,
        segment,
        window: comm.config().window,
        commutative,
        divisible,
        crowded: plan.shape.crowded,
        node: None,
    }
}

/// A call, and what it runs on.
pub struct Run<'a> {
    pub comm: &'a Comm,
    pub call: &'a Call<'a>,
    /// What happens on the caller's node, where its processes share memory.
    pub node: Option<Node<'a>>,
    /// All ranks.
    pub stage: &'a Stage<'a, HostEndpoint>,
}
