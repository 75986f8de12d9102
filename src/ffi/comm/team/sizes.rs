// SPDX-License-Identifier: BSD-3-Clause
//! How large what a team uses is.

use crate::ffi::process::pool;
use crate::params::Shm;
use crate::shm::config::{Cores, ROTATING_SHARE};
use crate::shm::copy;
use crate::shm::protocol::team::Config;
use crate::sync::wait::{Mode, Waiting};

/// The sizes and ways of a team; `among` other nodes, or all there is; how its processes have cores, and
/// whether the caller's progress gives the core away and cannot be told not to; and whether slots may rotate.
pub fn config(shm: &Shm, members: usize, among: bool, (cores, yields): (Cores, bool), rotates: bool) -> Config {
    let (built_in, crowded) = (Config::built_in(members, cores), cores != Cores::Own);
    let built_in = if rotates { built_in.rotating_among(members, cores) } else { built_in };
    // Whoever waits for what comes from other nodes waits long: to sleep at once leaves the core to those
    // that bring it.
    let mode = if shm.wait == Mode::Auto && crowded && among { Mode::Block } else { shm.wait };
    Config {
        fragment: shm.fragment_size.unwrap_or(built_in.fragment),
        fragments: shm.fragments.unwrap_or(built_in.fragments),
        sets: shm.sets.map_or(built_in.sets, |sets| sets as u8),
        waiting: Waiting { mode, crowded, yields, ..built_in.waiting },
        past: copy::may_go_past(),
        ..built_in
    }
}

/// Whether slots may rotate, as far as this process knows: it [pays](copy::rotation_pays), nobody has said
/// how long queues are, and its share of the limit for the node holds several that are so long.
pub fn rotates_here(shm: &Shm) -> bool {
    let says = shm.fragment_size.is_some() || shm.fragments.is_some() || shm.sets.is_some();
    !says && pool::share(shm) >= ROTATING_SHARE && copy::rotation_pays()
}
