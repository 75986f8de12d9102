// SPDX-License-Identifier: BSD-3-Clause
//! The k-nomial tree over members 0..size, rooted at 0.
//!
//! Write a member in base k. Its parent is the member with the lowest non-zero digit cleared; it is the root
//! of the members that differ from it only in the digits below that one, a run of consecutive members. Depth
//! ⌈log_k size⌉.

/// A k-nomial tree (k = 2: binomial).
#[derive(Clone, Copy, Debug)]
pub struct Knomial {
    size: usize,
    radix: usize,
}

impl Knomial {
    /// The tree over `size` members; a `radix` below 2 counts as 2.
    pub fn new(size: usize, radix: u32) -> Knomial {
        Knomial { size, radix: (radix as usize).max(2) }
    }

    /// The weight of the lowest non-zero digit of `member`; for member 0, a power of the radix that is at
    /// least `size`.
    fn weight(&self, member: usize) -> usize {
        let mut weight = 1;
        while weight < self.size && (member / weight).is_multiple_of(self.radix) {
            weight = weight.saturating_mul(self.radix);
        }
        weight
    }

    /// Whom `member` hears from; `None` for the root.
    pub fn parent(&self, member: usize) -> Option<usize> {
        if member == 0 {
            return None;
        }
        let weight = self.weight(member);
        Some(member - (member / weight) % self.radix * weight)
    }

    /// Whom `member` speaks to, the largest subtree first.
    pub fn children(&self, member: usize) -> impl Iterator<Item = usize> + use<> {
        let Knomial { size, radix } = *self;
        let mut weight = self.weight(member);
        let mut digit = radix;
        std::iter::from_fn(move || {
            loop {
                if digit == radix {
                    if weight <= 1 {
                        return None;
                    }
                    weight /= radix;
                    digit = 1;
                }
                let child = member + digit * weight;
                if child < size {
                    digit += 1;
                    return Some(child);
                }
                digit = radix;
            }
        })
    }

    /// One past the last member of the subtree of `member`, which begins at `member`.
    pub fn subtree_end(&self, member: usize) -> usize {
        self.size.min(member.saturating_add(self.weight(member)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_one_parent_and_subtrees_are_runs() {
        for size in 1..=64 {
            for radix in 2..=9 {
                let tree = Knomial::new(size, radix);
                let mut parents = vec![None; size];
                for m in 0..size {
                    let mut next = tree.subtree_end(m);
                    for c in tree.children(m) {
                        assert_eq!(tree.parent(c), Some(m), "size {size} radix {radix} child {c}");
                        assert_eq!(parents[c].replace(m), None);
                        assert!(tree.subtree_end(c) <= next && c > m);
                        next = next.max(tree.subtree_end(c));
                    }
                    // the subtrees of the children tile the own one
                    let covered: usize = tree.children(m).map(|c| tree.subtree_end(c) - c).sum();
                    assert_eq!(covered + 1, tree.subtree_end(m) - m, "size {size} radix {radix} member {m}");
                }
                assert_eq!(parents.iter().filter(|p| p.is_none()).count(), 1);
            }
        }
    }

    #[test]
    fn depth_is_logarithmic() {
        for size in 1..=257_usize {
            for radix in [2, 3, 4, 8] {
                let tree = Knomial::new(size, radix);
                let depth = (0..size).map(|m| std::iter::successors(tree.parent(m), |&p| tree.parent(p)).count()).max();
                let bound = (0..).find(|&d| (radix as usize).pow(d) >= size).map(|d| d as usize);
                assert!(depth <= bound, "size {size} radix {radix}: {depth:?} > {bound:?}");
            }
        }
    }
}
