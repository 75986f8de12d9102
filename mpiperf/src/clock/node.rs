// SPDX-License-Identifier: BSD-3-Clause
//! Which ranks share a node, a clock and cores.

use super::timer::{Origin, Timer};
use crate::error::Result;
use crate::mpi::Comm;

/// Words of a processor mask: 1024 processors, as in glibc's `cpu_set_t`.
const WORDS: usize = 16;

/// The nodes of a communicator.
pub struct Nodes {
    /// The ranks of this rank's node; its lowest is the leader.
    pub local: Comm,
    /// The leaders of all nodes, rank 0 first; on other ranks, all who are no leaders.
    pub leaders: Comm,
    /// More ranks than cores on any node.
    pub oversubscribed: bool,
    /// All ranks are on one node.
    pub single: bool,
}

impl Nodes {
    /// Looks around. Collective.
    pub fn find(comm: &Comm) -> Result<Nodes> {
        let local = comm.node()?;
        let leaders = comm.split(usize::from(local.rank() != 0))?;
        let crowded = crowded(&local)?;
        let mut most = [f64::from(u8::from(crowded)), -(local.size() as f64)];
        comm.max(&mut most)?;
        Ok(Nodes { oversubscribed: most[0] > 0.0, single: -most[1] as usize == comm.size(), local, leaders })
    }

    /// Whether this rank is its node's leader.
    pub fn leads(&self) -> bool {
        self.local.rank() == 0
    }

    /// Takes over the leader's way to count, where both read the same counter: the change of earlier times,
    /// if so. Collective on the node.
    pub fn share(&self, timer: &mut Timer) -> Result<Option<super::fit::Affine>> {
        let own = timer.origin();
        let kind = timer.source() as u64 + if timer.shareable() { 0 } else { 1 << 8 };
        let mut words = [kind, own.zero, own.period.to_bits()];
        self.local.bcast(&mut words, 0)?;
        if words[0] != kind || !timer.shareable() {
            return Ok(None);
        }
        Ok(Some(timer.adopt(Origin { zero: words[1], period: f64::from_bits(words[2]) })))
    }
}

/// Whether the ranks of a node cannot all have a core of their own. Collective on the node.
fn crowded(node: &Comm) -> Result<bool> {
    let mask = allowed();
    let processors = mask.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    // Less than the mask allows: a quota of the control group.
    let quota = std::thread::available_parallelism().map_or(0, usize::from);
    let quota = if quota < processors { quota } else { usize::MAX };
    let mut words = mask.to_vec();
    words.push(quota as u64);
    let all = node.allgather(&words)?;
    let masks: Vec<&[u64]> = all.chunks(WORDS + 1).map(|words| &words[..WORDS]).collect();
    let quota = all.chunks(WORDS + 1).map(|words| words[WORDS]).max().unwrap_or(u64::MAX);
    Ok(seats(&masks) < node.size() || quota < node.size() as u64)
}

/// The processors this process may run on; all, where the system does not say.
fn allowed() -> [u64; WORDS] {
    let mut mask = [0u64; WORDS];
    // SAFETY: the mask is as long as the size given says; it is laid out as words of processors.
    let code = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if code == 0 { mask } else { [u64::MAX; WORDS] }
}

/// How many ranks can have a processor of their own at once: a maximum matching of ranks with processors.
fn seats(masks: &[&[u64]]) -> usize {
    let processors = masks.iter().map(|mask| mask.len() * 64).max().unwrap_or(0);
    let mut holder = vec![None; processors];
    (0..masks.len()).filter(|rank| place(*rank, masks, &mut holder, &mut vec![false; processors])).count()
}

/// Finds a processor for `rank`, moving others if needed.
fn place(rank: usize, masks: &[&[u64]], holder: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    let may = |processor: usize| masks[rank][processor / 64] >> (processor % 64) & 1 == 1;
    let processors = masks[rank].len() * 64;
    // A free one first: without moves in the usual case.
    let free = (0..processors).find(|p| may(*p) && holder[*p].is_none());
    if let Some(processor) = free {
        holder[processor] = Some(rank);
        return true;
    }
    for processor in 0..processors {
        if !may(processor) || tried[processor] {
            continue;
        }
        tried[processor] = true;
        let moved = holder[processor].is_none_or(|other| place(other, masks, holder, tried));
        if moved {
            holder[processor] = Some(rank);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(masks: &[u64]) -> usize {
        let words: Vec<[u64; 1]> = masks.iter().map(|m| [*m]).collect();
        seats(&words.iter().map(|w| w.as_slice()).collect::<Vec<_>>())
    }

    #[test]
    fn seats_are_a_maximum_matching() {
        assert_eq!(count(&[0b11, 0b11]), 2);
        assert_eq!(count(&[0b11, 0b11, 0b11]), 2);
        assert_eq!(count(&[0b01, 0b01, 0b10]), 2);
        assert_eq!(count(&[0b11, 0b01]), 2);
        assert_eq!(count(&[0b011, 0b110, 0b001]), 3);
        assert_eq!(count(&[0b0111, 0b0011, 0b0001, 0b1000]), 4);
        assert_eq!(count(&[0]), 0);
    }

    #[test]
    fn own_mask_is_not_empty() {
        assert!(allowed().iter().any(|word| *word != 0));
    }
}
