// SPDX-License-Identifier: BSD-3-Clause
//! The reader–writer locks among real processes: each test forks. Readers see the old or the new value of a
//! record of 4 KiB, never a mixture; and whoever is killed, at whatever step, keeps nobody waiting.
#![cfg(not(any(loom, miri)))]

mod locks {
    mod family;
    mod killed;
    mod together;
}
