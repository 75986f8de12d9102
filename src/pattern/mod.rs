// SPDX-License-Identifier: BSD-3-Clause
//! Rank arithmetic of the algorithms: who talks to whom, and about which part. Pure values, tested
//! exhaustively.
//!
//! All functions speak of *members* (indices into a group), never of ranks.
#![forbid(unsafe_code)]

pub mod blocks;
pub mod bruck;
pub mod bundles;
pub mod chunks;
pub mod knomial;
pub mod lengths;
pub mod neighbor;
pub mod neighborhood;
pub mod pof2;
pub mod tournament;

/// Index of a process in a group.
pub type Member = usize;

/// `member`, counted from `root`: the root is 0, members follow in a circle.
#[inline]
pub fn relative(member: Member, root: Member, size: usize) -> usize {
    if member >= root { member - root } else { member + size - root }
}

/// The inverse of [`relative`].
#[inline]
pub fn absolute(relative: usize, root: Member, size: usize) -> Member {
    let m = relative + root;
    if m >= size { m - size } else { m }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_and_absolute_are_inverse() {
        for size in 1..=64 {
            for root in 0..size {
                let mut seen = vec![false; size];
                for m in 0..size {
                    let r = relative(m, root, size);
                    assert!(r < size && !seen[r]);
                    seen[r] = true;
                    assert_eq!(absolute(r, root, size), m);
                }
                assert_eq!(relative(root, root, size), 0);
            }
        }
    }
}
