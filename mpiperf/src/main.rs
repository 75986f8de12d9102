// SPDX-License-Identifier: BSD-3-Clause
//! The command line of `mpiperf`.

fn main() {
    std::process::exit(mpiperf::cmd::main());
}
