//! The members of one group over the pools of real processes: how a group comes to be, and the [`Memory`] it is then.
//!
//! The way of a group; messages are the caller's business:
//!
//! 1. `draft = pool.prepare(zero_copy)`, or [`Hello::UNABLE`] where that fails;
//! 2. every member sends `draft.hello()` to all others;
//! 3. `draft.attach(me, &hellos)` maps what is new, and `draft.probe_zero_copy()` tries to read the others' private memory;
//! 4. the members agree: all have attached, or not; all have probed successfully, or not;
//! 5. `draft.confirm(zero_copy)` makes the [`Group`] on all of them, or `draft.give_up()` ends it on all of them.
//!
//! A draft that is dropped (an error of a message, after which nobody knows what the others do) keeps its page for ever; the page says
//! that the member has failed, to those that may have confirmed.

use std::sync::Arc;

use super::cma;
use super::failure::Failure;
use super::layout::Control;
use super::locator::{HELLO_BYTES, Hello};
use super::mailbox::GroupId;
use super::memory::{Member, Memory, Page};
use super::peer::Peer;
use super::pool::{Outcome, PAGE, Pool};
use crate::endpoint::{Error, Result};
use crate::sync::shared::Ordering;

/// A group that is being made.
#[derive(Debug)]
pub struct Draft {
    pool: Arc<Pool>,
    hello: Hello,
    attached: Option<Attached>,
    outcome: Outcome,
}

#[derive(Debug)]
struct Attached {
    me: Member,
    seats: Vec<Seat>,
}

/// A member.
#[derive(Debug)]
struct Seat {
    hello: Hello,
    /// Start of its pool, as the caller has it.
    start: *mut u8,
    /// Its process; `None`: the caller.
    peer: Option<Arc<Peer>>,
}

// SAFETY: `start` is the address of a mapping that `peer`, or the group's pool, keeps; accesses follow `Memory`'s rules.
unsafe impl Send for Seat {}
// SAFETY: as above.
unsafe impl Sync for Seat {}

impl Seat {
    /// The address of a page, and of so many bytes from there on.
    fn at(&self, page: Page, bytes: usize) -> *mut u8 {
        let offset = page as usize * PAGE;
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end as u64 <= self.hello.locator.length),
            "page {page}, {bytes} bytes: outside the pool"
        );
        self.start.wrapping_add(offset)
    }
}

impl Draft {
    pub(super) fn new(pool: Arc<Pool>, hello: Hello) -> Draft {
        Draft { pool, hello, attached: None, outcome: Outcome::Unknown }
    }

    /// What the other members need to know.
    pub fn hello(&self) -> [u8; HELLO_BYTES] {
        self.hello.encode()
    }

    /// Maps the pools of all members, whose hellos are given in the order of the group; the caller's is number `me`.
    pub fn attach(&mut self, me: Member, hellos: &[[u8; HELLO_BYTES]]) -> std::result::Result<(), Failure> {
        let mut seats = Vec::with_capacity(hellos.len());
        for (member, bytes) in hellos.iter().enumerate() {
            let seat = Hello::decode(bytes).and_then(|hello| self.seat(member == me, hello));
            seats.push(seat.map_err(|failure| failure.about(format_args!("member {member} of {}", hellos.len())))?);
        }
        let others = seats.iter().filter(|seat| seat.peer.is_some());
        let locals: Vec<u32> = others.map(|seat| seat.hello.locator.place.local).collect();
        if locals.len() + 1 != seats.len() || (1..locals.len()).any(|i| locals[i..].contains(&locals[i - 1])) {
            return Err(Failure::new(format!(
                "the {} members are not as many processes, and the caller one of them",
                seats.len()
            )));
        }
        self.pool.expect(self.hello.group, locals);
        self.attached = Some(Attached { me, seats });
        Ok(())
    }

    fn seat(&self, mine: bool, hello: Hello) -> std::result::Result<Seat, Failure> {
        if mine {
            let start = self.pool.address(0);
            return match hello == self.hello {
                true => Ok(Seat { hello, start, peer: None }),
                false => Err(Failure::new("the caller's own hello has been changed on its way")),
            };
        }
        let peer = self.pool.attach(&hello.locator)?;
        if !self.pool.has(hello.control, hello.group) {
            return Err(Failure::new(format!("page {} and number {} cannot be", hello.control, hello.group)));
        }
        Ok(Seat { hello, start: peer.map.start(), peer: Some(peer) })
    }

    /// Tries to read all other members' private memory.
    pub fn probe_zero_copy(&self) -> std::result::Result<(), Failure> {
        let Some(Attached { me, seats }) = &self.attached else {
            return Err(Failure::new("the members' pools are not attached"));
        };
        for (member, seat) in seats.iter().enumerate().filter(|(member, _)| member != me) {
            let tried = match seat.hello.secret {
                Some((address, secret)) => cma::probe(seat.hello.locator.pid, address, secret),
                None => Err(Failure::new("it does not want its private memory to be read")),
            };
            tried.map_err(|failure| failure.about(format_args!("member {member} of {}", seats.len())))?;
        }
        Ok(())
    }

    /// Makes the group, because all members have attached. `zero_copy`: all members' probes were successful.
    pub fn confirm(mut self, zero_copy: bool) -> std::result::Result<Group, Failure> {
        let Some(Attached { me, seats }) = self.attached.take() else {
            return Err(Failure::new("a group was confirmed whose members' pools are not attached"));
        };
        self.outcome = Outcome::Confirmed;
        Ok(Group { pool: self.pool.clone(), me, seats: seats.into(), id: self.hello.group, zero_copy })
    }

    /// Ends it, because some member has not attached: no member uses the group.
    pub fn give_up(mut self) {
        self.outcome = Outcome::GivenUp;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.outcome == Outcome::Unknown {
            let control = self.pool.address(self.hello.control).cast::<Control>();
            // SAFETY: the caller's control block: leased, zeroed, and only accessed through shared words.
            unsafe { &*control }.failed.store(1, Ordering::Release);
        }
        self.pool.settled(self.outcome, self.hello.group);
    }
}

/// The memory that the members of a group share. Dropping it announces that the caller is through with it, and waits for nobody.
#[derive(Debug)]
pub struct Group {
    pool: Arc<Pool>,
    me: Member,
    seats: Box<[Seat]>,
    id: GroupId,
    zero_copy: bool,
}

impl Group {
    /// The pool of the caller's side.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

// SAFETY: leases are pages of the caller's own pool, reserved and zeroed by `Pool::ready`; views are bounded by the pool's length;
// both are aligned to a page, and mapped as long as the group's `Pool` and `Peer`s, which it holds. An owner hands pages out again
// only after all members have dropped the group (see `mailbox`).
unsafe impl Memory for Group {
    fn me(&self) -> Member {
        self.me
    }

    fn size(&self) -> usize {
        self.seats.len()
    }

    fn control(&self, member: Member) -> *mut u8 {
        let seat = &self.seats[member];
        seat.at(seat.hello.control, PAGE)
    }

    fn lease(&self, bytes: usize) -> Option<(Page, *mut u8)> {
        self.pool.lease(self.id, bytes)
    }

    fn view(&self, member: Member, page: Page, bytes: usize) -> *const u8 {
        self.seats[member].at(page, bytes)
    }

    fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    unsafe fn fetch(&self, member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        let read = unsafe { cma::read(self.seats[member].hello.locator.pid, from, to, bytes) };
        read.map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) | None => Error::Peer,
            Some(errno) => Error::Fetch(errno),
        })
    }

    fn is_dead(&self, member: Member) -> bool {
        self.seats[member].peer.as_ref().is_some_and(|peer| peer.is_dead())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let others = self.seats.iter().filter(|seat| seat.peer.is_some());
        self.pool.leave(self.id, others.map(|seat| (seat.hello.locator.place.local, seat.hello.group)));
    }
}
