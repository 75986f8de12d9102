//! Whom a member exchanges blocks with.

use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// The other members that one sends to and receives from, in the order in which it turns to them: not everybody to the same one first.
pub(super) trait Peers: Copy + Send + Sync {
    /// Whom it sends to.
    fn to(self) -> impl Iterator<Item = Member> + Clone;
    /// Whom it receives from.
    fn from(self) -> impl Iterator<Item = Member> + Clone;
}

/// All others, both ways.
#[derive(Clone, Copy)]
pub(super) struct Everybody {
    me: Member,
    size: usize,
}

impl Everybody {
    /// All but the caller.
    #[inline(always)]
    pub fn of(turn: &Turn<'_>) -> Everybody {
        Everybody { me: turn.me(), size: turn.size() }
    }
}

impl Peers for Everybody {
    #[inline(always)]
    fn to(self) -> impl Iterator<Item = Member> + Clone {
        (self.me + 1..self.size).chain(0..self.me)
    }

    #[inline(always)]
    fn from(self) -> impl Iterator<Item = Member> + Clone {
        self.to()
    }
}
