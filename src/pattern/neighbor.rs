// SPDX-License-Identifier: BSD-3-Clause
//! Neighbour exchange: an even number of members in a ring, who talk to either neighbour in turn.
//!
//! In step 0 the members 2i and 2i + 1 exchange their blocks; each then has *the pair* of 2i and 2i + 1.
//! In each further step a member gives the neighbour on the other side the pair that it got last, and gets
//! one. (Chen et al.: Performance evaluation of allgather algorithms on terascale Linux cluster with fast
//! Ethernet, HPC Asia 2005.)

/// One step of a member after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whom it exchanges pairs with.
    pub partner: usize,
    /// First block of the pair that comes from there.
    pub pair: usize,
}

/// The partner of step 0.
pub fn first(me: usize) -> usize {
    me ^ 1
}

/// The steps of `me` after the first, among an even number of members. It sends the pair that it got in the
/// step before; in the first of these, its own.
pub fn steps(me: usize, size: usize) -> impl Iterator<Item = Step> {
    let even = me.is_multiple_of(2);
    // Even members find new pairs below in odd steps and above in even ones; odd members the other way round.
    let mut pairs = [me & !1; 2];
    (1..size / 2).map(move |step| {
        let below = even == (step % 2 == 1);
        let pair = &mut pairs[step % 2];
        *pair = if below { (*pair + size - 2) % size } else { (*pair + 2) % size };
        let partner = if below { (me + size - 1) % size } else { (me + 1) % size };
        Step { partner, pair: *pair }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_every_pair_once_from_who_has_it() {
        for size in (2..=64).step_by(2) {
            let all: Vec<Vec<Step>> = (0..size).map(|me| steps(me, size).collect()).collect();
            for me in 0..size {
                assert_eq!(first(first(me)), me);
                let mut had = vec![false; size / 2];
                had[me / 2] = true;
                for (i, step) in all[me].iter().enumerate() {
                    assert_eq!(all[step.partner][i].partner, me, "size {size} step {i}");
                    // what the partner got in the step before
                    let sent = if i == 0 { step.partner & !1 } else { all[step.partner][i - 1].pair };
                    assert_eq!(sent, step.pair, "size {size} member {me} step {i}");
                    assert!(!std::mem::replace(&mut had[step.pair / 2], true));
                }
                assert!(had.iter().all(|&h| h), "size {size} member {me}");
            }
        }
    }
}
