// SPDX-License-Identifier: BSD-3-Clause
//! The members of one group over the pools of real processes: how it comes to be, and the [`Memory`] it is.
//!
//! The way of a group; messages are the caller's business:
//!
//! 1. `draft = pool.prepare(ways)`, or [`Hello::UNABLE`] where that fails;
//! 2. every member sends `draft.hello()` to all others;
//! 3. `draft.attach(me, &hellos)` maps what is new; `draft.probe_cma()` and `.probe_smsc(..)` try to read;
//! 4. the members agree: all have attached, or not; all have probed successfully, or not;
//! 5. `draft.confirm(way)` makes the [`Group`] on all of them, or `draft.give_up()` ends it on all of them.
//!
//! A draft that is dropped (after an error of a message) keeps its page for ever, which says that the member
//! has failed, to those that may have confirmed.

pub mod reading;

use std::io;
use std::sync::Arc;

use self::reading::{Way, Ways};
use crate::endpoint::{Error, Result};
use crate::shm::copy::cma;
use crate::shm::copy::smsc::Endpoint;
use crate::shm::memory::layout::Control;
use crate::shm::memory::layout::SLEEPERS;
use crate::shm::memory::{Contents, Member, Memory, PAGE, Page};
use crate::shm::os::failure::Failure;
use crate::shm::pool::locator::{HELLO_BYTES, Hello};
use crate::shm::pool::mailbox::GroupId;
use crate::shm::pool::peer::Peer;
use crate::shm::pool::{Outcome, Pool};
use crate::sync::shared::Ordering;

/// A group that is being made.
#[derive(Debug)]
pub struct Draft {
    pool: Arc<Pool>,
    hello: Hello,
    ways: Ways,
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
    /// process_vm_readv reads its memory.
    readable: bool,
}

// SAFETY: the address of a mapping that `peer`, or the group's pool, keeps; accesses follow `Memory`'s rules.
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

impl Pool {
    /// Begins a group: leases the control block. The others may try these `ways` of reading private memory.
    pub fn prepare(self: &Arc<Pool>, ways: Ways) -> std::result::Result<Draft, Failure> {
        let (group, control) = self.begin_group()?;
        let secret = if ways.cma || ways.smsc.is_some() { cma::secret() } else { None };
        let smsc = secret.is_some() && ways.smsc.is_some();
        let hello = Hello { locator: self.locator().clone(), control, group, secret, smsc };
        Ok(Draft { pool: self.clone(), hello, ways, attached: None, outcome: Outcome::Unknown })
    }
}

impl Draft {
    /// What the other members need to know.
    pub fn hello(&self) -> [u8; HELLO_BYTES] {
        self.hello.encode()
    }

    /// Maps the pools of all members, by their hellos in the order of the group; the caller's is number `me`.
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
                true => Ok(Seat { hello, start, peer: None, readable: false }),
                false => Err(Failure::new("the caller's own hello has been changed on its way")),
            };
        }
        let peer = self.pool.attach(&hello.locator)?;
        if !self.pool.has(hello.control, hello.group) {
            return Err(Failure::new(format!("page {} and number {} cannot be", hello.control, hello.group)));
        }
        peer.map.open(hello.control, 1).map_err(|e| Failure::of("cannot map a control block", e))?;
        Ok(Seat { hello, start: peer.map.start(), peer: Some(peer), readable: false })
    }

    /// Tries to read all other members' private memory by process_vm_readv.
    pub fn probe_cma(&mut self) -> std::result::Result<(), Failure> {
        if !self.ways.cma {
            return Err(Failure::new("process_vm_readv is not wanted"));
        }
        self.probe(|seat, _, address, secret| {
            let Some(peer) = &seat.peer else { return Ok(()) };
            // Once is enough, for however many groups: two system calls for each member.
            if !peer.readable.load(Ordering::Relaxed) {
                cma::probe(seat.hello.locator.pid, address, secret)?;
                peer.readable.store(true, Ordering::Relaxed);
            }
            seat.readable = true;
            Ok(())
        })
    }

    /// Tries to read all other members' private memory by the component, by the endpoints that `find` gives.
    pub fn probe_smsc(&mut self, find: impl Fn(Member) -> Option<Endpoint>) -> std::result::Result<(), Failure> {
        if !self.hello.smsc {
            return Err(Failure::new("smsc: no component can be used here"));
        }
        self.probe(|seat, member, address, secret| {
            if !seat.hello.smsc {
                return Err(Failure::new("smsc: it has no component"));
            }
            let Some(peer) = &seat.peer else { return Ok(()) };
            if peer.smsc.get().is_none() {
                let endpoint =
                    find(member).ok_or_else(|| Failure::new("smsc: the component cannot reach the process"))?;
                endpoint.probe(address, secret)?;
                let _ = peer.smsc.set(endpoint);
                return Ok(());
            }
            peer.smsc.get().map_or(Ok(()), |endpoint| endpoint.probe(address, secret))
        })
    }

    /// Tries something on all other members, with the address and contents of their numbers.
    fn probe(
        &mut self,
        mut one: impl FnMut(&mut Seat, Member, u64, [u8; cma::SECRET]) -> std::result::Result<(), Failure>,
    ) -> std::result::Result<(), Failure> {
        let Some(Attached { me, seats }) = &mut self.attached else {
            return Err(Failure::new("the members' pools are not attached"));
        };
        let size = seats.len();
        for (member, seat) in seats.iter_mut().enumerate().filter(|(member, _)| member != me) {
            let tried = match seat.hello.secret {
                Some((address, secret)) => one(seat, member, address, secret),
                None => Err(Failure::new("it does not want others at its private memory")),
            };
            tried.map_err(|failure| failure.about(format_args!("member {member} of {size}")))?;
        }
        Ok(())
    }

    /// Makes the group, because all members have attached. `way`: one that all members' probes found to work.
    pub fn confirm(mut self, way: Way) -> std::result::Result<Group, Failure> {
        let Some(Attached { me, seats }) = self.attached.take() else {
            return Err(Failure::new("a group was confirmed whose members' pools are not attached"));
        };
        self.outcome = Outcome::Confirmed;
        Ok(Group { pool: self.pool.clone(), me, seats: seats.into(), id: self.hello.group, way })
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

/// The memory that the members of a group share. Who drops it is through with it, and waits for nobody.
#[derive(Debug)]
pub struct Group {
    pool: Arc<Pool>,
    me: Member,
    seats: Box<[Seat]>,
    id: GroupId,
    way: Way,
}

impl Group {
    /// The pool of the caller's side.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// How the members read each other's private memory.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Reads by the component, or by process_vm_readv where it reaches further: not all memory can be mapped.
    ///
    /// # Safety
    /// As for [`Memory::fetch`].
    unsafe fn fetch_smsc(&self, member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        let seat = &self.seats[member];
        let endpoint = seat.peer.as_ref().and_then(|peer| peer.smsc.get());
        // SAFETY: by the caller's promise.
        if endpoint.is_some_and(|endpoint| unsafe { endpoint.read(from, to, bytes) }) {
            reading::count(Way::Smsc, bytes);
            return Ok(());
        }
        match seat.readable {
            // SAFETY: by the caller's promise.
            true => unsafe { self.fetch_cma(member, from, to, bytes) },
            false if self.is_dead(member) => Err(Error::Peer),
            false => Err(Error::Fetch(libc::EFAULT)),
        }
    }

    /// The number of a member's process, if that is still its own.
    fn pid(&self, member: Member) -> Result<i32> {
        let seat = &self.seats[member];
        match &seat.peer {
            Some(peer) if !peer.is_itself() => Err(Error::Peer),
            _ => Ok(seat.hello.locator.pid),
        }
    }

    /// Reads by process_vm_readv.
    /// # Safety
    /// As for [`Memory::fetch`].
    unsafe fn fetch_cma(&self, member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        let pid = self.pid(member)?;
        // SAFETY: by the caller's promise.
        let read = unsafe { cma::read(pid, from, to, bytes) };
        reading::count(Way::Cma, bytes);
        read.map_err(refused)
    }
}

// SAFETY: leases are pages of the caller's own pool, reserved and (but where anything may lie) zeroed by
// `Pool::ready`; views are bounded by the pool's length; both are aligned to a page, and so is page 0 of the
// first member's pool, where sleepers are counted; all are mapped as long as the group's `Pool` and `Peer`s,
// which it holds. An owner hands pages out again only after all members have dropped the group (`mailbox`).
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

    fn sleepers(&self) -> *mut u8 {
        let first = &self.seats[0].peer;
        first.as_ref().map_or(self.pool.address(0), |peer| peer.map.start()).wrapping_add(SLEEPERS)
    }

    fn lease(&self, bytes: usize, contents: Contents) -> Option<(Page, *mut u8)> {
        self.pool.lease(self.id, bytes, contents)
    }

    fn map(&self, member: Member, page: Page, bytes: usize) {
        let count = bytes.div_ceil(PAGE) as u32;
        match &self.seats[member].peer {
            _ if !self.pool.is_generous() => {}
            None => self.pool.map(page, count),
            Some(peer) => peer.map.map_ahead(page, count),
        }
    }

    fn view(&self, member: Member, page: Page, bytes: usize) -> *const u8 {
        let seat = &self.seats[member];
        let at = seat.at(page, bytes);
        let opened = seat.peer.as_ref().map_or(Ok(()), |peer| peer.map.open(page, bytes.div_ceil(PAGE) as u32));
        assert!(opened.is_ok(), "cannot map pages of {member}: {opened:?}");
        at
    }

    fn zero_copy(&self) -> bool {
        self.way != Way::Nothing
    }

    fn stores(&self) -> bool {
        self.way == Way::Cma
    }

    unsafe fn fetch(&self, member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        match self.way {
            // SAFETY: by the caller's promise.
            Way::Smsc => unsafe { self.fetch_smsc(member, from, to, bytes) },
            // SAFETY: by the caller's promise.
            Way::Cma | Way::Nothing => unsafe { self.fetch_cma(member, from, to, bytes) },
        }
    }

    unsafe fn store(&self, member: Member, from: *const u8, to: u64, bytes: usize) -> Result<()> {
        let pid = self.pid(member)?;
        // SAFETY: the caller's promise.
        let written = unsafe { cma::write(pid, from, to, bytes) };
        reading::count(Way::Cma, bytes);
        written.map_err(refused)
    }

    fn is_dead(&self, member: Member) -> bool {
        self.seats[member].peer.as_ref().is_some_and(|peer| peer.is_dead())
    }
}

/// The error of an operation that could not read or write another process' memory.
fn refused(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ESRCH) | None => Error::Peer,
        Some(errno) => Error::Fetch(errno),
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let others = self.seats.iter().filter(|seat| seat.peer.is_some());
        self.pool.leave(self.id, others.map(|seat| (seat.hello.locator.place.local, seat.hello.group)));
    }
}
