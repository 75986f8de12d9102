// SPDX-License-Identifier: BSD-3-Clause
//! Whether the members of a group can all run at the same time: what the processes of one node may use of its
//! processors.
//!
//! A process may run on the processors of its affinity mask, and so long as its control group's quota of time
//! lasts (cgroups(7)). Ranks that are bound to a core each have small masks, and still a processor each; so
//! what counts is whether the members can be given different ones.

use super::cgroup;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Processors that a mask can name.
const PROCESSORS: usize = 1024;
const WORDS: usize = PROCESSORS / 64;

/// Bytes of an encoded [`Room`].
pub const ROOM_BYTES: usize = 8 * (WORDS + 4);

/// What one process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The processors that it may run on, as bits.
    mask: [u64; WORDS],
    /// Processors' worth of time that the processes of its control group have together, in thousandths;
    /// `u64::MAX`: no limit.
    quota: u64,
    /// Which control group that is: device and inode.
    group: [u64; 2],
    /// Processors of one core, of which the mask may hold some.
    threads: u64,
}

impl Room {
    /// All there is: where nothing is known.
    pub const ANY: Room = Room { mask: [u64::MAX; WORDS], quota: u64::MAX, group: [0; 2], threads: 1 };

    /// The caller's process: the mask of its first thread, and the tightest quota of its control group and
    /// those above, as it was when that was first asked.
    pub fn own() -> Room {
        static QUOTA: OnceLock<Option<(u64, [u64; 2])>> = OnceLock::new();
        static THREADS: OnceLock<u64> = OnceLock::new();
        let (quota, group) = QUOTA.get_or_init(quota).unwrap_or((u64::MAX, [0; 2]));
        let mask = mask();
        let threads = *THREADS.get_or_init(|| mask.as_ref().map_or(1, threads));
        Room { mask: mask.unwrap_or(Room::ANY.mask), quota, group, threads }
    }

    /// As bytes, for others of the same node.
    pub fn encode(&self) -> [u8; ROOM_BYTES] {
        let mut bytes = [0; ROOM_BYTES];
        let words = self.mask.iter().chain([&self.quota]).chain(&self.group).chain([&self.threads]);
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; ROOM_BYTES]) -> Room {
        let mut words = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word));
        let mut next = || words.next().unwrap_or(0);
        let (mask, quota, group) = (std::array::from_fn(|_| next()), next(), [next(), next()]);
        Room { mask, quota, group, threads: next().max(1) }
    }
}

/// Whether processes with these rooms have to take turns: they cannot be given a processor each, or those of
/// one control group are more than its quota lasts for, or all together are more than the cores that their
/// processors belong to. The same wherever the same rooms are known in the same order.
pub fn take_turns(rooms: &[Room]) -> bool {
    let sharing = |room: &Room| rooms.iter().filter(|other| other.group == room.group).count() as u64;
    rooms.iter().any(|room| room.quota != u64::MAX && sharing(room).saturating_mul(1000) > room.quota)
        || !have_each_one(rooms)
        || cores_of(rooms) < rooms.len()
}

/// Cores that all together may run on: processors, where some core has one only.
fn cores_of(rooms: &[Room]) -> usize {
    let all = |word: usize| rooms.iter().fold(0, |all, room| all | room.mask[word]);
    let processors: u32 = (0..WORDS).map(|word| u64::count_ones(all(word))).sum();
    let threads = rooms.iter().map(|room| room.threads).min().unwrap_or(1);
    (u64::from(processors) / threads.max(1)) as usize
}

/// How many processors the caller's process may run on; 0 where that is not known. Without looking into
/// files.
pub fn processors() -> u32 {
    mask().map_or(0, |mask| mask.iter().map(|word| word.count_ones()).sum())
}

/// Processors of one core, by the first and the last one that the mask holds (some machines have cores of two
/// kinds): the smaller number.
fn threads(mask: &[u64; WORDS]) -> u64 {
    let first = mask.iter().position(|&word| word != 0).map(|at| at * 64 + mask[at].trailing_zeros() as usize);
    let last = mask.iter().rposition(|&word| word != 0).map(|at| at * 64 + mask[at].ilog2() as usize);
    let of = |processor: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
        fs::read_to_string(path).map_or(1, |text| listed(&text))
    };
    let ends = if first == last { [first, None] } else { [first, last] };
    ends.into_iter().flatten().map(of).min().unwrap_or(1).max(1)
}

/// How many numbers a list of the kernel's names, such as `0-1,64`; 1 where it cannot be read.
fn listed(text: &str) -> u64 {
    let parts = text.trim().split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    parts.sum::<Option<u64>>().unwrap_or(1)
}

/// Whether there is a processor for each: a matching, by augmenting paths (Kuhn 1955). At most rooms ·
/// processors steps for each room; one step for each where masks are all alike or have nothing in common.
fn have_each_one(rooms: &[Room]) -> bool {
    let mut owners: Vec<Option<usize>> = vec![None; PROCESSORS];
    rooms.len() <= PROCESSORS && (0..rooms.len()).all(|new| place(rooms, &mut owners, new))
}

/// Gives room `new` a processor, for which others may have to move on.
fn place(rooms: &[Room], owners: &mut [Option<usize>], new: usize) -> bool {
    let mask = |room: usize| (0..PROCESSORS).filter(move |p| rooms[room].mask[p / 64] >> (p % 64) & 1 != 0);
    // Breadth first: who wants this processor of its owner's.
    let mut wanted_by: Vec<Option<usize>> = vec![None; PROCESSORS];
    let mut queue = vec![(new, None)];
    let mut at = 0;
    while let Some(&(mut room, mut held)) = queue.get(at) {
        at += 1;
        if let Some(mut free) = mask(room).find(|&p| owners[p].is_none()) {
            // Everybody on the way here moves on.
            loop {
                owners[free] = Some(room);
                let Some(left) = held else { return true };
                let Some(next) = wanted_by[left] else { return true };
                free = left;
                room = next;
                held = queue.iter().find(|&&(queued, _)| queued == room).and_then(|&(_, held)| held);
            }
        }
        for processor in mask(room) {
            if let (None, Some(owner)) = (wanted_by[processor], owners[processor]) {
                wanted_by[processor] = Some(room);
                queue.push((owner, Some(processor)));
            }
        }
    }
    false
}

/// The affinity mask of the process' first thread.
fn mask() -> Option<[u64; WORDS]> {
    // A machine with more processors than a set has is an error.
    let set = sched_getaffinity(Pid::this()).ok()?;
    let word = |at: usize| {
        let bits = (0..64).map(|bit| u64::from(set.is_set(64 * at + bit) == Ok(true)) << bit);
        bits.fold(0, |word, bit| word | bit)
    };
    let mask: [u64; WORDS] = std::array::from_fn(word);
    mask.iter().any(|&word| word != 0).then_some(mask)
}

/// The tightest quota of the caller's control groups, and which has it: of equal ones, the outermost.
fn quota() -> Option<(u64, [u64; 2])> {
    let limits = cgroup::folders("cpu").into_iter().filter_map(|folder| {
        let quota = limit(|name| fs::read_to_string(folder.join(name)).ok())?;
        let data = fs::metadata(&folder).ok()?;
        Some((quota, [data.dev(), data.ino()]))
    });
    limits.min_by_key(|&(quota, _)| quota)
}

/// Thousandths of a processor that a control group has, by its files (version 2, then version 1).
fn limit(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (number(quota)?, number(period)?)
        }
        None => (number(&read("cpu.cfs_quota_us")?)?, number(&read("cpu.cfs_period_us")?)?),
    };
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn on(processors: &[usize]) -> Room {
        let mut room = Room { mask: [0; WORDS], ..Room::ANY };
        processors.iter().for_each(|&p| room.mask[p / 64] |= 1 << (p % 64));
        room
    }

    fn within(quota: u64, group: u64) -> Room {
        Room { quota, group: [1, group], ..Room::ANY }
    }

    #[test]
    fn bound_to_a_core_each_is_not_crowded() {
        assert!(!take_turns(&[on(&[0]), on(&[1]), on(&[700])]));
        assert!(take_turns(&[on(&[0]), on(&[1]), on(&[0])]));
        assert!(!take_turns(&[Room::ANY; 64]));
        assert!(take_turns(&[on(&[3, 4]); 3]));
        assert!(!take_turns(&[on(&[3, 4]); 2]));
    }

    #[test]
    fn the_union_may_be_large_enough_and_still_two_share_a_core() {
        assert!(take_turns(&[on(&[0]), on(&[0]), on(&[1, 2, 3])]));
        // The first would take what the others need.
        assert!(!take_turns(&[on(&[0, 1, 2]), on(&[0, 1]), on(&[0])]));
        assert!(!take_turns(&[on(&[0, 1]), on(&[0, 2]), on(&[0, 3]), on(&[0]), on(&[3, 4])]));
        assert!(take_turns(&[on(&[0, 1]), on(&[0, 2]), on(&[1, 2]), on(&[0, 1, 2]), on(&[3, 4])]));
    }

    /// Against Hall's condition: any set of rooms has as many processors as rooms.
    #[test]
    fn as_hall_says() {
        let mut state = 7_u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut crowded = 0;
        for _ in 0..2000 {
            let rooms: Vec<_> = (0..1 + random(6))
                .map(|_| Room {
                    mask: std::array::from_fn(|w| if w == 0 { random(64) & random(64) | 1 << random(6) } else { 0 }),
                    ..Room::ANY
                })
                .collect();
            let hall = (1..1_usize << rooms.len()).all(|set| {
                let union = (0..rooms.len()).filter(|i| set >> i & 1 != 0).fold(0, |all, i| all | rooms[i].mask[0]);
                union.count_ones() >= set.count_ones()
            });
            assert_eq!(take_turns(&rooms), !hall, "{rooms:?}");
            crowded += usize::from(!hall);
        }
        assert!((100..1900).contains(&crowded), "{crowded}");
    }

    #[test]
    fn quotas_are_shared_by_those_of_one_control_group() {
        assert!(take_turns(&[within(1500, 1); 2]));
        assert!(!take_turns(&[within(2000, 1); 2]));
        assert!(!take_turns(&[within(1000, 1), within(1000, 2)]));
        assert!(take_turns(&[within(500, 1), Room::ANY]));
    }

    #[test]
    fn limits_are_read_in_both_versions() {
        let two = |text: &'static str| move |name: &str| (name == "cpu.max").then(|| text.to_owned());
        assert_eq!(limit(two("150000 100000\n")), Some(1500));
        assert_eq!(limit(two("max 100000\n")), None);
        let one = |quota: &'static str| {
            move |name: &str| match name {
                "cpu.cfs_quota_us" => Some(quota.to_owned()),
                "cpu.cfs_period_us" => Some("50000\n".to_owned()),
                _ => None,
            }
        };
        assert_eq!(limit(one("100000\n")), Some(2000));
        assert_eq!(limit(one("-1\n")), None);
        assert_eq!(limit(|_| None), None);
    }

    #[test]
    fn two_processors_of_a_core_are_one_core() {
        let halves = |processors: &[usize]| Room { threads: 2, ..on(processors) };
        assert!(take_turns(&[halves(&[0]), halves(&[1])]));
        assert!(!take_turns(&[halves(&[0, 64]), halves(&[1, 65])]), "a whole core each");
        assert!(take_turns(&[halves(&[0, 1, 64, 65]); 3]));
        assert!(!take_turns(&[halves(&[0, 1, 64, 65]); 2]));
        assert!(!take_turns(&[halves(&[0]), on(&[1])]), "cores of two kinds");
        assert_eq!(["0", "0-1\n", "0,64", "0-3,64-67", "", "3-1", "x"].map(listed), [1, 2, 2, 8, 1, 1, 1]);
    }

    #[test]
    fn rooms_travel() {
        for room in [Room::ANY, on(&[5, 1023]), within(777, 9), Room { threads: 4, ..Room::ANY }] {
            assert_eq!(Room::decode(&room.encode()), room);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system")]
    fn the_caller_has_room() {
        assert!(Room::own().mask.iter().any(|&word| word != 0));
    }
}
