// SPDX-License-Identifier: BSD-3-Clause
//! Two gateways, with clients that speak the frames of processes, and what may go wrong between them.

#[path = "gateways/support.rs"]
mod support;

#[path = "gateways/faults.rs"]
mod faults;
#[path = "gateways/fuzz.rs"]
mod fuzz;
#[path = "gateways/hostile.rs"]
mod hostile;
#[path = "gateways/memory.rs"]
mod memory;
#[path = "gateways/program.rs"]
mod program;
#[path = "gateways/traffic.rs"]
mod traffic;
