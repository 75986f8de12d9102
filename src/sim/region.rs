// SPDX-License-Identifier: BSD-3-Clause
//! Which memory of a rank is in flight.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// Number of a post in a run.
pub(super) type PostId = usize;

/// The memory that a rank's posts in flight use, as ranges of addresses.
#[derive(Default)]
pub(super) struct Regions {
    /// Receives: first address to (end, post). They never overlap.
    recvs: BTreeMap<usize, (usize, PostId)>,
    /// Sends: (first address, post) to end. They may overlap.
    sends: BTreeMap<(usize, PostId), usize>,
    /// Length of the longest send so far: how far left of a range one must look.
    longest: usize,
}

impl Regions {
    /// A receive in flight that uses memory of `low..high`.
    pub(super) fn recv_at(&self, (low, high): (usize, usize)) -> Option<PostId> {
        if low >= high {
            return None;
        }
        let (_, &(end, post)) = self.recvs.range(..high).next_back()?;
        (end > low).then_some(post)
    }

    /// A send in flight that uses memory of `low..high`.
    pub(super) fn send_at(&self, (low, high): (usize, usize)) -> Option<PostId> {
        if low >= high {
            return None;
        }
        let from = (low.saturating_sub(self.longest), 0);
        self.sends.range(from..(high, 0)).find(|&(_, &end)| end > low).map(|(&(_, post), _)| post)
    }

    /// Any post in flight that uses memory of `low..high`.
    pub(super) fn any_at(&self, range: (usize, usize)) -> Option<PostId> {
        self.recv_at(range).or_else(|| self.send_at(range))
    }

    /// Adds the memory of a receive, which overlaps nothing.
    pub(super) fn add_recv(&mut self, (low, high): (usize, usize), post: PostId) {
        if low < high {
            self.recvs.insert(low, (high, post));
        }
    }

    /// Adds the memory of a send.
    pub(super) fn add_send(&mut self, (low, high): (usize, usize), post: PostId) {
        if low < high {
            self.longest = self.longest.max(high - low);
            self.sends.insert((low, post), high);
        }
    }

    /// Forgets the memory of a receive.
    pub(super) fn remove_recv(&mut self, (low, high): (usize, usize)) {
        if low < high {
            self.recvs.remove(&low);
        }
    }

    /// Forgets the memory of a send.
    pub(super) fn remove_send(&mut self, (low, _): (usize, usize), post: PostId) {
        self.sends.remove(&(low, post));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_those_of_a_list() {
        let mut rng = crate::sim::Rng::new(1);
        let (mut regions, mut recvs, mut sends) = (Regions::default(), Vec::new(), Vec::new());
        for post in 0..3000 {
            let low = rng.below(2000);
            let range = (low, low + rng.below(30));
            let hits = |list: &[((usize, usize), PostId)]| {
                list.iter()
                    .filter(|((a, b), _)| a < b && range.0 < range.1 && *a < range.1 && range.0 < *b)
                    .map(|&(_, p)| p)
                    .collect::<Vec<_>>()
            };
            let (r, s) = (hits(&recvs), hits(&sends));
            assert!(regions.recv_at(range).map_or(r.is_empty(), |p| r.contains(&p)), "{post}");
            assert!(regions.send_at(range).map_or(s.is_empty(), |p| s.contains(&p)), "{post}");
            match rng.below(3) {
                0 if r.is_empty() && s.is_empty() => {
                    regions.add_recv(range, post);
                    recvs.push((range, post));
                }
                1 if r.is_empty() => {
                    regions.add_send(range, post);
                    sends.push((range, post));
                }
                _ => {
                    if !recvs.is_empty() {
                        let (range, _) = recvs.swap_remove(rng.below(recvs.len()));
                        regions.remove_recv(range);
                    }
                    if !sends.is_empty() {
                        let (range, post) = sends.swap_remove(rng.below(sends.len()));
                        regions.remove_send(range, post);
                    }
                }
            }
        }
    }
}
