// SPDX-License-Identifier: BSD-3-Clause
//! Whom a member exchanges blocks with.

use crate::shm::memory::Member;
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::Circle;

/// The other members that one sends to and receives from, in the order in which it turns to them: not
/// everybody to the same one first.
pub trait Peers: Copy + Send + Sync {
    /// Whom it sends to.
    fn to(self) -> impl Iterator<Item = Member> + Clone + Send;
    /// Whom it receives from.
    fn from(self) -> impl Iterator<Item = Member> + Clone + Send;
    /// Whether what it receives from one of them is one block, and not several one after the other.
    #[inline(always)]
    fn is_one_block(self, from: Member) -> bool {
        let _ = from;
        true
    }
}

/// All others, both ways.
#[derive(Clone, Copy)]
pub struct Everybody {
    me: Member,
    size: usize,
}

impl Everybody {
    /// All but the caller.
    #[inline(always)]
    pub fn of(team: &Team) -> Everybody {
        Everybody { me: team.me(), size: team.size() }
    }
}

impl Peers for Everybody {
    #[inline(always)]
    fn to(self) -> impl Iterator<Item = Member> + Clone {
        Circle::after(self.me, self.size)
    }

    #[inline(always)]
    fn from(self) -> impl Iterator<Item = Member> + Clone {
        self.to()
    }
}
