// SPDX-License-Identifier: BSD-3-Clause
//! Algorithms for powers of two, on any number of members.
//!
//! With p = 2^q + r members (r < 2^q), the first 2r form r neighbouring pairs; of each pair one is the
//! *proxy*, which takes part for both, the other is the *extra*. Proxies and the members without a pair, in
//! order, are the 2^q *players*. Players stand for consecutive members, in order. (Thakur, Rabenseifner,
//! Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 2005.)

/// The part of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Player number `id`; as a proxy it stands for `extra` too.
    Player {
        /// Number among the players.
        id: usize,
        /// The member it stands for besides itself.
        extra: Option<usize>,
    },
    /// Represented by member `proxy`.
    Extra {
        /// Its proxy.
        proxy: usize,
    },
}

/// Which of a pair is the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// The lower member: member 0 is always a player.
    Lower,
    /// The upper member.
    Upper,
}

/// The players among `size` members.
#[derive(Clone, Copy, Debug)]
pub struct Players {
    count: usize,
    pairs: usize,
    proxy: Proxy,
}

impl Players {
    /// `size` is at least 1.
    pub fn new(size: usize, proxy: Proxy) -> Players {
        let count = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        Players { count, pairs: size - count, proxy }
    }

    /// Number of players, a power of two.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What `member` is.
    pub fn part(&self, member: usize) -> Part {
        if member >= 2 * self.pairs {
            return Part::Player { id: member - self.pairs, extra: None };
        }
        let partner = member ^ 1;
        let lower = member.is_multiple_of(2);
        if lower == (self.proxy == Proxy::Lower) {
            Part::Player { id: member / 2, extra: Some(partner) }
        } else {
            Part::Extra { proxy: partner }
        }
    }

    /// The members that player `id` stands for, itself included.
    pub fn members(&self, id: usize) -> std::ops::Range<usize> {
        if id < self.pairs { 2 * id..2 * id + 2 } else { id + self.pairs..id + self.pairs + 1 }
    }

    /// The member that is player `id`.
    pub fn member(&self, id: usize) -> usize {
        if id >= self.pairs {
            return id + self.pairs;
        }
        match self.proxy {
            Proxy::Lower => 2 * id,
            Proxy::Upper => 2 * id + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_a_power_of_two_in_order_and_everybody_is_represented() {
        for size in 1..=130 {
            for proxy in [Proxy::Lower, Proxy::Upper] {
                let players = Players::new(size, proxy);
                assert!(players.count().is_power_of_two() && players.count() <= size && 2 * players.count() > size);
                let mut represented = 0;
                let mut last = None;
                for id in 0..players.count() {
                    let m = players.member(id);
                    assert!(last < Some(m));
                    last = Some(m);
                    let Part::Player { id: back, extra } = players.part(m) else { panic!("member {m} of {size}") };
                    assert_eq!(back, id);
                    assert_eq!(players.members(id).start, represented, "players stand for runs of members, in order");
                    assert!(players.members(id).contains(&m) && extra.is_none_or(|e| players.members(id).contains(&e)));
                    assert_eq!(players.members(id).len(), 1 + usize::from(extra.is_some()));
                    represented += 1;
                    if let Some(e) = extra {
                        assert_eq!(players.part(e), Part::Extra { proxy: m });
                        represented += 1;
                    }
                }
                assert_eq!(represented, size);
                if proxy == Proxy::Lower {
                    assert_eq!(players.member(0), 0);
                }
            }
        }
    }
}
