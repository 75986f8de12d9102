// SPDX-License-Identifier: BSD-3-Clause
//! How much memory there is, and how much the caches hold.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::mpi::Comm;

/// Bytes that this process could still have without swapping: `MemAvailable`, and what its control group
/// leaves.
pub fn available() -> Option<u64> {
    let system = meminfo(&fs::read_to_string("/proc/meminfo").ok()?);
    let group =
        fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| cgroup(&text, Path::new("/sys/fs/cgroup")));
    system.into_iter().chain(group).min()
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// What the tightest of a process's control groups (its own and those above it) leaves. `text`:
/// `/proc/self/cgroup`.
fn cgroup(text: &str, root: &Path) -> Option<u64> {
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut least: Option<u64> = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, usage) = match controllers {
            "" => (root.to_path_buf(), "memory.max", "memory.current"),
            list if list.split(',').any(|c| c == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        let inside = root.join(group.trim_start_matches('/'));
        for folder in inside.ancestors().take_while(|folder| folder.starts_with(&root)) {
            if let (Some(limit), Some(usage)) = (number(&folder.join(limit)), number(&folder.join(usage))) {
                let left = limit.saturating_sub(usage);
                least = Some(least.map_or(left, |least| least.min(left)));
            }
        }
    }
    least
}

/// Bytes of all ranks together that need no look at the node.
const LITTLE: f64 = 64e6;

/// Refuses to allocate what this node does not have: `wanted` bytes here, and what the other ranks of the
/// node want. Collective.
pub fn enough(comm: &Comm, wanted: usize, hint: &str) -> Result<()> {
    let mut most = [wanted as f64];
    comm.max(&mut most)?;
    if most[0] * (comm.size() as f64) < LITTLE {
        return Ok(());
    }
    let node = comm.node()?;
    let all: f64 = node.allgather(&[wanted as f64])?.iter().sum();
    let there = available();
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    comm.agree(match there {
        // A tenth is left for the MPI library and everything else.
        Some(there) if all > 0.9 * there as f64 => Err(Error::usage(format!(
            "the buffers need {:.2} GiB on this node ({:.2} GiB on this rank, {} ranks), there are {:.2} GiB: {hint}",
            gib(all),
            gib(wanted as f64),
            node.size(),
            gib(there as f64)
        ))),
        _ => Ok(()),
    })
}

/// Bytes of the largest cache of a core, by sysfs.
pub fn last_level_cache() -> Option<usize> {
    let folder = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    folder.flatten().filter_map(|entry| cache_size(fs::read_to_string(entry.path().join("size")).ok()?.trim())).max()
}

/// Bytes, as the files of the kernel have them: `512K`.
pub fn cache_size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "" => 1,
        _ => return None,
    };
    digits.parse::<usize>().ok().map(|n| n * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel() {
        assert_eq!(meminfo("MemTotal:  24 kB\nMemAvailable:   10 kB\nBuffers: 3 kB\n"), Some(10240));
        assert_eq!(meminfo("MemTotal:  24 kB\n"), None);
        assert_eq!(
            [cache_size("32768K"), cache_size("1M"), cache_size("7"), cache_size("x")],
            [Some(1 << 25), Some(1 << 20), Some(7), None]
        );
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = std::env::temp_dir().join(format!("mpiperf-cgroup-{}", std::process::id()));
        let inner = root.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        for (folder, max, current) in [(&root, "max", "1"), (&root.join("a"), "1000", "900"), (&inner, "500", "100")] {
            fs::write(folder.join("memory.max"), max).unwrap();
            fs::write(folder.join("memory.current"), current).unwrap();
        }
        assert_eq!(cgroup("0::/a/b\n", &root), Some(100));
        assert_eq!(cgroup("0::/c\n", &root), None);
        assert_eq!(cgroup("4:cpu:/a\n", &root), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
