// SPDX-License-Identifier: BSD-3-Clause
//! Real processes that share memory: each test starts this program again, once per process, and carries their
//! messages. What a process does is a function of `cases`, by name. A process that is late is killed, and its
//! test fails.

mod processes {
    mod cases;
    mod component;
    mod job;

    mod blocked;
    mod faults;
    mod life;
    mod load;
    mod placement;
    mod secret;
    mod zero_copy;
}
