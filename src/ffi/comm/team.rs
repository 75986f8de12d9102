// SPDX-License-Identifier: BSD-3-Clause
//! The team of a communicator: its processes on the caller's node, with shared memory.
//!
//! It is made by the communicator's first operation that could use it, whichever that is: a handshake over
//! point-to-point with tags of its own, so that it does not matter which operation the other processes meet
//! it in. What can fail on one process alone is tried first: all of the node use the team, or none does.

mod sizes;

use self::sizes::{config, rotates_here};
use crate::endpoint::{Endpoint, Error, Rank, Result, Span, Tag, TempBuffer};
use crate::ffi::base::apart::apart;
use crate::ffi::base::glue::{self, CR_ERR_INTERN};
use crate::ffi::base::messages;
use crate::ffi::comm::core::{Core, due};
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::slot::{NONBLOCKING, Slot, nonblocking};
use crate::ffi::mpi::data::Datatype;
use crate::ffi::mpi::smsc;
use crate::ffi::process::times::{self, TIMES_BYTES};
use crate::ffi::process::{pool, version};
use crate::params::{Shm, ZeroCopy};
use crate::shm::config::{Cores, ROTATING};
use crate::shm::copy;
use crate::shm::copy::smsc::Endpoint as SmscEndpoint;
use crate::shm::group::reading::{Way, Ways};
use crate::shm::group::{Draft, Group};
use crate::shm::pool::locator::{HELLO_BYTES, Hello};
use crate::shm::protocol::team::Team;
use crate::shm::rates::Rates;
use crate::sync::cores::{ROOM_BYTES, Room, take_turns};
use crate::topo::Level;
use std::future::poll_fn;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

/// A communicator's team, from nothing on. The team itself, which short calls need, comes first.
#[derive(Default)]
#[repr(C)]
pub struct Maker {
    /// How the handshake ended: `Ok(None)` when the processes do without.
    made: OnceLock<Result<Option<Team>>>,
    /// Whether it has begun.
    begun: AtomicBool,
    /// Number of the kind of teams whose times are to be measured, plus one; 0: nothing is.
    untimed: AtomicUsize,
    /// Nonblocking operations that take their turns: called so far, and finished of each slot.
    next: AtomicU64,
    finished: [AtomicU64; NONBLOCKING as usize],
    /// Rooted operations without shared memory, for flow control: blocking ones, nonblocking ones by slot.
    refused: [AtomicU32; 1 + NONBLOCKING as usize],
}

/// A nonblocking operation's turn; over when dropped.
pub struct Turn<'m> {
    maker: &'m Maker,
    number: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let finished = &self.maker.finished[(self.number % NONBLOCKING) as usize];
        finished.store(self.number / NONBLOCKING + 1, Ordering::Release);
    }
}

impl Maker {
    /// The team, where the handshake is over and there is one.
    #[inline]
    pub fn get(&self) -> Option<&Team> {
        match self.made.get() {
            Some(Ok(Some(team))) => Some(team),
            _ => None,
        }
    }

    /// The number of the nonblocking operation that is being called: all ranks call them in the same order.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The same, if it may have that slot.
    pub fn number_for(&self, may_have: impl FnOnce(usize) -> bool) -> Option<u64> {
        let number = self.next.load(Ordering::Relaxed);
        // All who get one are called in order: nobody else takes it meanwhile. Else the call goes otherwise.
        let take = || self.next.compare_exchange(number, number + 1, Ordering::Relaxed, Ordering::Relaxed);
        (may_have(nonblocking(number)) && take().is_ok()).then_some(number)
    }

    /// Counts a rooted operation that there is no shared memory for: whether it synchronises first. Within a
    /// slot all ranks find the same operations without. (A persistent operation counts its starts itself.)
    pub fn refuse(&self, slot: Slot, flow_limit: u32) -> bool {
        !matches!(slot, Slot::Persistent { .. }) && due(&self.refused[slot.number()], flow_limit)
    }

    /// Waits until the operation before in the same slot is over here.
    pub async fn turn(&self, number: u64) -> Turn<'_> {
        let finished = &self.finished[(number % NONBLOCKING) as usize];
        poll_fn(|_| match finished.load(Ordering::Acquire) == number / NONBLOCKING {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        Turn { maker: self, number }
    }

    /// Whether the times of reading others' memory have been measured: in a blocking operation, by all ranks.
    pub fn has_learned(&self) -> bool {
        self.get().is_some_and(Team::has_learned)
    }

    /// Whether there is nothing to measure (any more).
    pub fn is_settled(&self) -> bool {
        self.untimed.load(Ordering::Acquire) == 0
    }

    /// The team, for a blocking operation or another one; the first caller makes it, others wait for that.
    ///
    /// The first blocking operation measures, where the parameter says so. In one that is not blocking,
    /// members come from step to step when their program calls MPI, and times would say little.
    pub async fn team(&self, comm: &Core, blocking: bool) -> Result<Option<&Team>> {
        if self.made.get().is_none() && !self.begun.swap(true, Ordering::AcqRel) {
            let _begun = Begun(self);
            let ep = HostEndpoint::new(comm, None, Datatype::BYTES, ptr::null_mut(), comm.identities.handshake());
            let _ = self.made.set(apart(|| ep.settled(make(&ep, comm, &self.untimed))).await);
        }
        let made = poll_fn(|_| self.made.get().map_or(Poll::Pending, Poll::Ready)).await;
        if blocking
            && let Ok(Some(team)) = made
            && let Some(number) = self.untimed.load(Ordering::Acquire).checked_sub(1)
        {
            let learned = apart(|| times::measure(team, number)).await;
            self.untimed.store(0, Ordering::Release);
            learned?;
        }
        made.as_ref().map(Option::as_ref).map_err(|&error| error)
    }
}

/// The making of a team. If it ends without a result (in a panic), that is an error: others wait for it.
struct Begun<'m>(&'m Maker);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        // Kept where there is a result.
        let _ = self.0.made.set(Err(Error::Mpi(CR_ERR_INTERN as i32)));
    }
}

/// The processes of the team that is being made, as one of them sees them.
struct Members<'c> {
    comm: &'c Core,
    ep: &'c HostEndpoint,
    /// Ascending; the first one leads.
    ranks: Vec<Rank>,
    me: usize,
}

/// Makes the team of the communicator's processes on the caller's node. `untimed`: as in [`Maker`].
async fn make(ep: &HostEndpoint, comm: &Core, untimed: &AtomicUsize) -> Result<Option<Team>> {
    let shm = &comm.config().shm;
    // Known already. An error between the handshake and the team would leave the others alone.
    let place = comm.place().map_err(Error::Mpi)?;
    let ranks: Vec<Rank> = place.local().iter().map(|&(rank, _)| rank).collect();
    let Ok(me) = ranks.binary_search(&ep.rank()) else { return Err(Error::Mpi(CR_ERR_INTERN as i32)) };
    if ranks.len() < 2 {
        return Ok(None);
    }
    let members = Members { comm, ep, ranks, me };
    for attempt in 0..pool::attempts(shm) {
        if let Some(Made { group, take_turns, yields, rotates, known }) = handshake(&members, shm, attempt).await? {
            let size = members.ranks.len();
            let among = place.nodes() > 1;
            let cores = match take_turns {
                true => Cores::Shared,
                false if among && yields => Cores::Lent,
                false => Cores::Own,
            };
            if cores == Cores::Shared {
                copy::set_crowded();
            }
            if me == 0 {
                let how = if cores == Cores::Own { "with as many" } else { "which take turns on fewer" };
                messages::remark(&format!("shared memory: {size} processes, {how} processors"));
            }
            let way = group.way();
            if me == 0 && shm.zero_copy != ZeroCopy::Off {
                messages::remark(match way {
                    Way::Cma => "shared memory: the processes can read each other's by cross memory attach",
                    Way::Smsc => "shared memory: the processes can read each other's by smsc",
                    Way::Nothing => "shared memory: the processes cannot read each other's (each says why)",
                });
            }
            let team = Team::new(Box::new(group), config(shm, size, among, (cores, progress_yields()), rotates));
            if team.config().rotates {
                copy::set_rotating();
            }
            let missing = times::begin(&team, shm, cores, (way, known));
            untimed.store(missing.map_or(0, |number| number + 1), Ordering::Release);
            return Ok(Some(team));
        }
    }
    if me == 0 {
        messages::remark(
            "no shared memory on this node: point-to-point messages take over (each process says why at verbose level 2)",
        );
    }
    Ok(None)
}

/// What a process has tried: whether it has attached the others, and can read their memory: by
/// process_vm_readv, by a component, by one that maps it.
const ATTACHED: u8 = 1;
const BY_CMA: u8 = 2;
const BY_SMSC: u8 = 8;
const MAPS: u8 = 16;
/// And whether it was told to give its core away when idle: another node of the machine may need that.
const YIELDS: u8 = 4;
/// And whether it may use [slots that rotate](rotates_here): all do, or none.
const ROTATES: u8 = 32;

/// What a process reports besides: what it may use of the processors, and what it knows of times.
const REPORT: usize = 1 + ROOM_BYTES + TIMES_BYTES;

/// What a handshake gives.
struct Made {
    group: Group,
    /// Whether its processes have to take turns on the processors that they may use.
    take_turns: bool,
    /// Whether one of them yields when idle.
    yields: bool,
    /// Whether slots may rotate.
    rotates: bool,
    /// The times that the first member knows that knows any.
    known: Option<Rates>,
}

/// Whether this process yields when idle.
fn yields_here() -> bool {
    // Found by its name, which takes longer than a message: once, after MPI_Init has settled it.
    static YIELDS: OnceLock<bool> = OnceLock::new();
    // SAFETY: reads a parameter of Open MPI's.
    *YIELDS.get_or_init(|| unsafe { glue::cr_yields() != 0 })
}

/// Whether its progress then gives the core away whether one likes it or not.
fn progress_yields() -> bool {
    // SAFETY: tells a constant.
    yields_here() && unsafe { glue::cr_hushes() == 0 }
}

/// The group, if all have attached all.
async fn handshake(members: &Members<'_>, shm: &Shm, attempt: usize) -> Result<Option<Made>> {
    let ways = ways(shm.zero_copy);
    let mut draft = pool::get(shm, attempt).and_then(|pool| said(pool.prepare(ways)));
    let hello = draft.as_ref().map_or(Hello::UNABLE, Draft::hello);
    let phase = 4 * attempt as u8;
    let hellos = version::alike(allgather::<HELLO_BYTES>(members, phase, hello).await?)?;

    let mut status = if yields_here() { YIELDS } else { 0 };
    if rotates_here(shm) {
        status |= ROTATES;
    }
    if let Some(draft) = &mut draft
        && said(draft.attach(members.me, &hellos)).is_some()
    {
        status |= ATTACHED;
        if ways.cma && said(draft.probe_cma()).is_some() {
            status |= BY_CMA;
        }
        let find = |member: usize| smsc_endpoint(members.comm, ways, members.ranks[member]);
        if let Some(component) = ways.smsc
            && said(draft.probe_smsc(find)).is_some()
        {
            status |= if component.maps() { BY_SMSC | MAPS } else { BY_SMSC };
        }
    }
    let mut report = [0; REPORT];
    report[0] = status;
    report[1..=ROOM_BYTES].copy_from_slice(&Room::own().encode());
    report[1 + ROOM_BYTES..].copy_from_slice(&times::known(shm));
    let reports = allgather(members, phase + 2, report).await?;
    let agreed = reports.iter().fold(u8::MAX, |all, report| all & report[0]);
    let Some(draft) = draft else { return Ok(None) };
    if agreed & ATTACHED == 0 {
        draft.give_up();
        return Ok(None);
    }
    // It is attached, so this cannot fail.
    let way = Way::choose(agreed & BY_CMA != 0, agreed & BY_SMSC != 0, agreed & MAPS != 0);
    let group = draft.confirm(way).map_err(|_| Error::Mpi(CR_ERR_INTERN as i32))?;
    let room = |report: &[u8; REPORT]| report[1..].first_chunk().map(Room::decode);
    let rooms: Vec<_> = reports.iter().filter_map(room).collect();
    let yields = reports.iter().any(|report| report[0] & YIELDS != 0);
    // What is measured is used where each has a core only, and then they do.
    let rotates = agreed & ROTATES != 0 && members.ranks.len() <= ROTATING;
    let known =
        reports.iter().filter_map(|report| report.last_chunk()).find_map(|known| times::of(way, rotates, known));
    Ok(Some(Made { group, take_turns: take_turns(&rooms), yields, rotates, known }))
}

/// The ways of reading others' memory that the parameter allows here.
fn ways(wanted: ZeroCopy) -> Ways {
    match (wanted, smsc::component()) {
        (ZeroCopy::Auto, smsc) => Ways { cma: true, smsc },
        (ZeroCopy::Smsc, smsc @ Some(_)) => Ways { cma: false, smsc },
        (ZeroCopy::Smsc, None) => {
            smsc::tell_why_none();
            Ways::NONE
        }
        (ZeroCopy::Cma, _) => Ways::CMA,
        (ZeroCopy::Off, _) => Ways::NONE,
    }
}

/// The endpoint of a component of smsc for a process of the caller's node.
fn smsc_endpoint(comm: &Core, ways: Ways, rank: Rank) -> Option<SmscEndpoint> {
    let component = ways.smsc?;
    // SAFETY: the communicator is alive, and the rank is in it.
    let at = unsafe { glue::cr_smsc_endpoint(comm.handle(), rank as i32) };
    // SAFETY: new, and the component's.
    NonNull::new(at.cast()).map(|at| unsafe { SmscEndpoint::new(component, at) })
}

/// What succeeded; a failure is told at verbose level 2.
fn said<T>(result: std::result::Result<T, crate::shm::os::failure::Failure>) -> Option<T> {
    result.map_err(|failure| messages::remark(&format!("shared memory: {failure}"))).ok()
}

/// Everybody's bytes, everywhere, in the order of the members: gathered by the first, which sends all of them
/// to all. Two phases. Cost: 2 (p − 1) messages; (p − 1) · n bytes up, (p − 1) · p · n down.
async fn allgather<const N: usize>(members: &Members<'_>, phase: u8, mine: [u8; N]) -> Result<Vec<[u8; N]>> {
    let Members { ep, ranks, me, .. } = members;
    let size = ranks.len();
    let level = Level::Node.index();
    let [up, down] = [phase, phase + 1].map(|phase| Tag { lane: 0, phase, level });
    let all = ep.temp(size * N)?;
    let part = |member: usize| all.span().slice(member * N..(member + 1) * N);
    write(part(*me), &mine);
    if *me == 0 {
        let receives: Vec<_> = (1..size).map(|member| ep.recv(ranks[member], up, part(member))).collect();
        crate::algo::join(receives).await?;
        let sends: Vec<_> = (1..size).map(|member| ep.send(ranks[member], down, all.span())).collect();
        crate::algo::join(sends).await?;
    } else {
        ep.send(ranks[0], up, part(*me)).await?;
        ep.recv(ranks[0], down, all.span()).await?;
    }
    // SAFETY: a temporary buffer of that length; everything posted on it is complete.
    let bytes = unsafe { std::slice::from_raw_parts(all.span().ptr(), size * N) };
    Ok(bytes.as_chunks().0.to_vec())
}

fn write(to: Span, bytes: &[u8]) {
    // SAFETY: a part of a temporary buffer of that length, with nothing posted on it.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.ptr(), bytes.len()) };
}
