//! The team of a communicator: its processes on the caller's node, with shared memory.
//!
//! It is made by the communicator's first operation that could use it, whichever that is: a handshake over point-to-point with tags
//! of its own, so that it does not matter which operation the other processes meet it in. What can fail on one process
//! alone is tried first and agreed upon afterwards: all processes of the node use the team, or none does. Other nodes need not know.

use super::comm::{Comm, due};
use super::data::Datatype;
use super::glue::{self, CR_ERR_INTERN};
use super::host::HostEndpoint;
use super::{pool, startup};
use crate::endpoint::{Endpoint, Error, Rank, Result, Span, Tag, TempBuffer};
use crate::params::Shm;
use crate::shm::group::{Draft, Group};
use crate::shm::locator::{HELLO_BYTES, Hello};
use crate::shm::rates::{self, RATES_BYTES, Rates, Thresholds};
use crate::shm::team::{Config, Team};
use crate::sync::cores::{ROOM_BYTES, Room, take_turns};
use crate::sync::wait::{Mode, Waiting};
use crate::topo::Level;
use std::future::poll_fn;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Poll;

/// Nonblocking operations that may be under way in shared memory at a time.
pub const NONBLOCKING: u64 = 4;
/// Persistent operations that may use shared memory at a time.
pub const PERSISTENT: u64 = 8;

/// A communicator's team, from nothing on.
#[derive(Default)]
pub struct Maker {
    /// Whether the handshake has begun.
    begun: AtomicBool,
    /// How it ended: `Ok(None)` when the processes do without.
    made: OnceLock<Result<Option<Team>>>,
    /// Nonblocking operations that take their turns: called so far, and finished of each slot.
    next: AtomicU64,
    finished: [AtomicU64; NONBLOCKING as usize],
    /// Rooted operations that there was no shared memory for, for flow control: the blocking ones, and the nonblocking ones of each slot.
    refused: [AtomicU32; 1 + NONBLOCKING as usize],
}

/// Which of the team's streams an operation uses.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// The blocking ones.
    Blocking,
    /// The nonblocking operation of this number.
    Nonblocking(u64),
    /// The persistent operation that has drawn this number.
    Persistent(u64),
}

impl Slot {
    /// Its number in the team.
    pub fn number(self) -> usize {
        match self {
            Slot::Blocking => 0,
            Slot::Nonblocking(number) => 1 + (number % NONBLOCKING) as usize,
            Slot::Persistent(number) => (1 + NONBLOCKING + number) as usize,
        }
    }
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

    /// The number of the nonblocking operation that is being called. All ranks call those that get one in the same order.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a rooted operation that there is no shared memory for: whether it synchronises first. Within a slot all ranks find the same
    /// operations without. (A persistent operation counts its starts itself.)
    pub fn refuse(&self, slot: Slot, flow_limit: u32) -> bool {
        match slot {
            Slot::Blocking | Slot::Nonblocking(_) => due(&self.refused[slot.number()], flow_limit),
            Slot::Persistent(_) => false,
        }
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

    /// The team; the first caller makes it, others wait for that one.
    pub async fn team(&self, comm: &Comm) -> Result<Option<&Team>> {
        if self.made.get().is_none() && !self.begun.swap(true, Ordering::AcqRel) {
            let _begun = Begun(self);
            let ep = HostEndpoint::new(comm, None, Datatype::BYTES, ptr::null_mut(), comm.identities.handshake());
            let made = make(&ep, comm).await;
            if made.is_err() {
                ep.settle().await;
            }
            let _ = self.made.set(made);
        }
        let made = poll_fn(|_| self.made.get().map_or(Poll::Pending, Poll::Ready)).await;
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
    ep: &'c HostEndpoint,
    /// Ascending; the first one leads.
    ranks: Vec<Rank>,
    me: usize,
}

/// Makes the team of all processes of the communicator that are on the caller's node.
async fn make(ep: &HostEndpoint, comm: &Comm) -> Result<Option<Team>> {
    let shm = &comm.config().shm;
    // Known already. An error between the handshake and the team would leave the others alone.
    let place = comm.place().map_err(Error::Mpi)?;
    let ranks: Vec<Rank> = place.local().iter().map(|&(rank, _)| rank).collect();
    let Ok(me) = ranks.binary_search(&ep.rank()) else { return Err(Error::Mpi(CR_ERR_INTERN as i32)) };
    if ranks.len() < 2 {
        return Ok(None);
    }
    let members = Members { ep, ranks, me };
    for attempt in 0..pool::attempts(shm) {
        if let Some(Made { group, take_turns, yields, measured }) = handshake(&members, shm, attempt).await? {
            let (cores, size) = (place.cores(), members.ranks.len());
            let among = place.nodes() > 1;
            let crowded = take_turns || (cores > 0 && size > cores) || (among && yields);
            if me == 0 {
                let how = if crowded { "which take turns on fewer" } else { "with as many" };
                startup::remark(&format!("shared memory: {size} processes, {how} processors"));
            }
            let team = Team::new(Box::new(group), config(shm, size, crowded, among));
            learn(&team, shm, measured).await?;
            return Ok(Some(team));
        }
    }
    if me == 0 {
        startup::remark(
            "no shared memory on this node: point-to-point messages take over (each process says why at verbose level 2)",
        );
    }
    Ok(None)
}

/// The sizes and ways of a team; `among` other nodes, or all there is.
fn config(shm: &Shm, members: usize, crowded: bool, among: bool) -> Config {
    let built_in = Config::default();
    // Many processes have many queues, which come out of one limit for the node.
    let fragments = match members {
        0..=32 => built_in.fragments,
        33..=64 => built_in.fragments / 2,
        _ => built_in.fragments / 4,
    };
    // Whoever waits for what comes from other nodes waits long: to sleep at once leaves the core to those that bring it.
    let mode = if shm.wait == Mode::Auto && crowded && among { Mode::Block } else { shm.wait };
    Config {
        fragment: shm.fragment_size.unwrap_or(built_in.fragment),
        fragments: shm.fragments.unwrap_or(fragments),
        sets: shm.sets.unwrap_or(built_in.sets),
        waiting: Waiting { mode, crowded, ..built_in.waiting },
        ..built_in
    }
}

/// Tells the team what has been `measured` on this node; measures it, if nobody has, and remembers it.
async fn learn(team: &Team, shm: &Shm, measured: Option<Rates>) -> Result<()> {
    if team.size() < 2 || !team.memory().zero_copy() || shm.zero_copy_min.is_some() {
        return Ok(());
    }
    if team.config().waiting.crowded {
        team.set_thresholds(Thresholds::CROWDED);
        return Ok(());
    }
    let rates = match measured {
        None => rates::measure(team).await?,
        known => known,
    };
    if let Some(rates) = rates {
        MEASURED.get_or_init(|| rates);
        team.set_thresholds(rates.thresholds(team.size()));
    }
    Ok(())
}

/// What the first team of the process with zero copy has measured.
static MEASURED: OnceLock<Rates> = OnceLock::new();

/// What a process reports after it has tried: whether it has attached the others, and whether it can read their memory.
const ATTACHED: u8 = 1;
const CAN_READ: u8 = 2;
/// And whether it has been told to give its core away when idle: what it waits for may need that core, on another node of the same machine.
const YIELDS: u8 = 4;

/// What a process reports besides: what it may use of the node's processors, and what it knows of the node's times.
const REPORT: usize = 1 + ROOM_BYTES + RATES_BYTES;

/// What a handshake gives.
struct Made {
    group: Group,
    /// Whether its processes have to take turns on the processors that they may use.
    take_turns: bool,
    /// Whether one of them yields when idle.
    yields: bool,
    /// What the first member knows that knows anything.
    measured: Option<Rates>,
}

/// The group, if all have attached all.
async fn handshake(members: &Members<'_>, shm: &Shm, attempt: usize) -> Result<Option<Made>> {
    let mut draft = pool::get(shm, attempt).and_then(|pool| said(pool.prepare(shm.zero_copy)));
    let hello = draft.as_ref().map_or(Hello::UNABLE, Draft::hello);
    let phase = 4 * attempt as u8;
    let hellos = allgather::<HELLO_BYTES>(members, phase, hello).await?;

    // SAFETY: reads a parameter of Open MPI's.
    let mut status = if unsafe { glue::cr_yields() } != 0 { YIELDS } else { 0 };
    if let Some(draft) = &mut draft
        && said(draft.attach(members.me, &hellos)).is_some()
    {
        status |= ATTACHED;
        if shm.zero_copy && said(draft.probe_zero_copy()).is_some() {
            status |= CAN_READ;
        }
    }
    let mut report = [0; REPORT];
    report[0] = status;
    report[1..=ROOM_BYTES].copy_from_slice(&Room::own().encode());
    report[1 + ROOM_BYTES..].copy_from_slice(&MEASURED.get().copied().unwrap_or_default().encode());
    let reports = allgather(members, phase + 2, report).await?;
    let agreed = reports.iter().fold(ATTACHED | CAN_READ, |all, report| all & report[0]);
    let Some(draft) = draft else { return Ok(None) };
    if agreed & ATTACHED == 0 {
        draft.give_up();
        return Ok(None);
    }
    // It is attached, so this cannot fail.
    let group = draft.confirm(agreed & CAN_READ != 0).map_err(|_| Error::Mpi(CR_ERR_INTERN as i32))?;
    let room = |report: &[u8; REPORT]| report[1..].first_chunk().map(Room::decode);
    let rooms: Vec<_> = reports.iter().filter_map(room).collect();
    let yields = reports.iter().any(|report| report[0] & YIELDS != 0);
    let measured = reports.iter().filter_map(|report| report.last_chunk()).find_map(Rates::decode);
    Ok(Some(Made { group, take_turns: take_turns(&rooms), yields, measured }))
}

/// What succeeded; a failure is told at verbose level 2.
fn said<T>(result: std::result::Result<T, crate::shm::failure::Failure>) -> Option<T> {
    result.map_err(|failure| startup::remark(&format!("shared memory: {failure}"))).ok()
}

/// Everybody's bytes, everywhere, in the order of the members: gathered by the first, which sends all of them to all. Two phases.
/// Cost: 2 (p − 1) messages; (p − 1) · n bytes up, (p − 1) · p · n down.
async fn allgather<const N: usize>(members: &Members<'_>, phase: u8, mine: [u8; N]) -> Result<Vec<[u8; N]>> {
    let Members { ep, ranks, me } = members;
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
