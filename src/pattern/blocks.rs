// SPDX-License-Identifier: BSD-3-Clause
//! Reduction in rank order with any root and no extra hop.
//!
//! Members are merged in *blocks* of radix^i consecutive members. A block's *owner* holds its value: the root
//! where the root is in the block, else the block's first member. At step i the sub-blocks of a block of
//! radix^(i+1) send their values to that block's owner, which folds them from left to right. So the
//! expression that is computed depends on size and radix only, not on the root (which only moves where it is
//! computed), and the root ends with the result after ⌈log_radix size⌉ steps. With root 0 this is the
//! k-nomial tree.

/// What one member does at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It sends its value to this member and is done.
    Send(usize),
    /// It owns the merged block: sub-block `mine` is its own, the others' values come from their owners.
    Merge {
        /// The sub-blocks, `mine` included: block j begins at `first + j · width`.
        first: usize,
        /// Members in a sub-block (the last may have fewer).
        width: usize,
        /// How many sub-blocks there are, at least 2.
        count: usize,
        /// Which of them is the member's own.
        mine: usize,
    },
}

/// The blocks over `size` members with a given root.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    size: usize,
    radix: usize,
    root: usize,
}

impl Blocks {
    /// `root` is below `size`; a `radix` below 2 counts as 2.
    pub fn new(size: usize, radix: u32, root: usize) -> Blocks {
        Blocks { size, radix: (radix as usize).max(2), root }
    }

    /// The owner of the block of `width` members that begins at `first`.
    pub fn owner(&self, first: usize, width: usize) -> usize {
        if self.root >= first && self.root - first < width { self.root } else { first }
    }

    /// The steps of `member`, in order. The last one is a `Send`, but for the root.
    pub fn steps(&self, member: usize) -> impl Iterator<Item = Step> + use<> {
        let this = *self;
        let mut width = 1_usize;
        let mut done = false;
        std::iter::from_fn(move || {
            while !done && width < this.size {
                let whole = width.saturating_mul(this.radix);
                let first = member / whole * whole;
                let sub = width;
                width = whole;
                let end = this.size.min(first.saturating_add(whole));
                let count = (end - first).div_ceil(sub);
                if count < 2 {
                    continue;
                }
                let owner = this.owner(first, whole);
                if owner == member {
                    return Some(Step::Merge { first, width: sub, count, mine: (member - first) / sub });
                }
                done = true;
                return Some(Step::Send(owner));
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the steps with intervals as values and records the expression as text.
    fn evaluate(size: usize, radix: u32, root: usize) -> String {
        let blocks = Blocks::new(size, radix, root);
        let mut value: Vec<Option<(usize, usize, String)>> =
            (0..size).map(|m| Some((m, m + 1, m.to_string()))).collect();
        let mut steps: Vec<Vec<Step>> = (0..size).map(|m| blocks.steps(m).collect()).collect();
        // by width: all Sends of a level happen before the Merge that wants them
        while steps.iter().any(|s| !s.is_empty()) {
            let mut moved = false;
            for m in 0..size {
                let Some(&Step::Merge { first, width, count, mine }) = steps[m].first() else { continue };
                let owners: Vec<usize> = (0..count).map(|j| blocks.owner(first + j * width, width)).collect();
                assert_eq!(owners[mine], m);
                if owners.iter().all(|&o| o == m || steps[o].first() == Some(&Step::Send(m))) {
                    let parts: Vec<_> = owners.iter().map(|&o| value[o].take().expect("sent once")).collect();
                    assert!(parts.windows(2).all(|w| w[0].1 == w[1].0), "in rank order");
                    let text = format!("({})", parts.iter().map(|p| p.2.clone()).collect::<Vec<_>>().join("+"));
                    value[m] = Some((parts[0].0, parts[count - 1].1, text));
                    for o in owners {
                        steps[o].remove(0);
                    }
                    moved = true;
                }
            }
            assert!(moved, "stuck: size {size} radix {radix} root {root} {steps:?}");
        }
        let (from, to, text) = value[root].take().expect("the root has the result");
        assert_eq!((from, to), (0, size));
        text
    }

    #[test]
    fn the_root_gets_all_in_order_and_the_expression_ignores_the_root() {
        for size in 1..=64 {
            for radix in 2..=5 {
                let expression = evaluate(size, radix, 0);
                for root in 1..size {
                    assert_eq!(evaluate(size, radix, root), expression, "size {size} radix {radix} root {root}");
                }
            }
        }
    }

    #[test]
    fn nobody_takes_more_than_a_logarithm_of_steps() {
        for size in 2..=64_usize {
            for root in 0..size {
                let blocks = Blocks::new(size, 2, root);
                let most = (0..size).map(|m| blocks.steps(m).count()).max();
                assert_eq!(most, Some(size.next_power_of_two().trailing_zeros() as usize));
            }
        }
    }
}
