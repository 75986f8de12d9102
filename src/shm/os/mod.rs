// SPDX-License-Identifier: BSD-3-Clause
//! What the system is asked for that has no state.

pub mod allowance;
pub mod budget;
pub mod failure;
pub mod lifelock;

use crate::shm::os::failure::Failure;
use nix::errno::Errno;
use nix::unistd::{SysconfVar, sysconf};

/// Sixteen random bytes.
pub fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0u8; 16];
    let mut done = 0;
    while done < bytes.len() {
        // nix has no getrandom.
        // SAFETY: the rest of `bytes` starts there and is so long.
        let got = unsafe { libc::getrandom(bytes[done..].as_mut_ptr().cast(), bytes.len() - done, 0) };
        match got {
            0.. => done += got as usize,
            _ => match Errno::last() {
                Errno::EINTR => {}
                error => return Err(Failure::of("getrandom", error)),
            },
        }
    }
    Ok(bytes)
}

/// Bytes of a page of the system.
pub fn system_page() -> u64 {
    asked(SysconfVar::PAGE_SIZE).unwrap_or(4096)
}

/// Pages of the machine's memory.
pub fn machine_pages() -> Option<u64> {
    asked(SysconfVar::_PHYS_PAGES)
}

fn asked(what: SysconfVar) -> Option<u64> {
    u64::try_from(sysconf(what).ok()??).ok()
}
