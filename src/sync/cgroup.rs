// SPDX-License-Identifier: BSD-3-Clause
//! The control groups of a process (cgroups(7)), of both versions.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the control groups by which `controller` may limit the caller, each after those above it.
/// None where the system has none.
pub fn folders(controller: &str) -> Vec<PathBuf> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    folders_in(controller, &read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// The same, by what these two files say.
fn folders_in(controller: &str, groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for group in groups.lines() {
        let mut fields = group.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if !controllers.is_empty() && !controllers.split(',').any(|c| c == controller) {
            continue;
        }
        for mount in mounts.lines() {
            let Some((place, system)) = mount.split_once(" - ") else { continue };
            let (place, system): (Vec<_>, Vec<_>) = (place.split(' ').collect(), system.split(' ').collect());
            let (&[_, _, _, root, point, ..], &[kind, _, options, ..]) = (&place[..], &system[..]) else { continue };
            let is_it = match controllers.is_empty() {
                true => kind == "cgroup2",
                false => kind == "cgroup" && options.split(',').any(|o| o == controller),
            };
            if is_it {
                // What is mounted may be a part of the tree (containers).
                let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
                let mut chain: Vec<_> = below.ancestors().map(|part| Path::new(point).join(part)).collect();
                chain.reverse();
                folders.extend(chain);
                break;
            }
        }
    }
    folders
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn control_groups_are_found() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 23 0:27 /docker/ab /cg/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                      32 23 0:28 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n";
        let paths =
            |groups| folders_in("cpu", groups, mounts).iter().map(|f| f.display().to_string()).collect::<Vec<_>>();
        assert_eq!(paths("0::/a/b\n"), ["/sys/fs/cgroup/", "/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b"]);
        assert_eq!(paths("5:cpuset:/x\n4:cpu,cpuacct:/docker/ab/c\n"), ["/cg/cpu,cpuacct/", "/cg/cpu,cpuacct/c"]);
        let memory = folders_in("memory", "0::/a\n3:memory:/b\n", "9 8 0:1 / /cg/m rw - cgroup cgroup rw,memory\n");
        assert_eq!(memory, [PathBuf::from("/cg/m/"), "/cg/m/b".into()]);
        assert_eq!(paths("4:cpu,cpuacct:/elsewhere\n"), ["/cg/cpu,cpuacct/"]);
    }
}
