// SPDX-License-Identifier: BSD-3-Clause
//! Where the processes of the job sit, once for each node: the [placement store](crate::store).
//!
//! The lowest rank of the job on a node writes the store, when a communicator of its own first needs to know
//! of many processes. The others there read it. Nobody sends a message for that: the writer's card says at
//! which address of its memory it tells how far it is (one word, which others read by process_vm_readv), and
//! a store that is there is opened through the writer's descriptor.
//!
//! What the store says is what the runtime has told the writer, so a process that does without finds the
//! same: one that may not read the writer's memory, that comes before the writer has begun, or whose writer
//! has died or takes too long. It asks the runtime for each process, as all do where they are few. Processes
//! of other jobs (MPI_Comm_spawn) are not in the store: each job has its own.

use super::{Places, ask, known};
use crate::endpoint::Rank;
use crate::ffi::base::config::config;
use crate::ffi::base::glue::{self, cr_proc};
use crate::ffi::base::messages::{print, remark};
use crate::ffi::base::name::own_name;
use crate::ffi::process::card::{card, settings};
use crate::shm::copy::cma;
use crate::store::placement::{Job, Seats, names, put_by, ranks, seats};
use crate::store::{Error, Store};
use crate::sync::segment::Segment;
use crate::topo::{Hardware, LevelSpec, Locality};
use nix::sys::signal::{Signal, raise};
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// In a card: the writer's number for the system, and where it tells how far it is.
pub const STORE: &str = "@store";
/// Who knows of a job's processes on its node that only one in so many is asked for leaves all to the
/// runtime: to write the store takes a question for each process of the job.
const PART: usize = 8;
/// How long a reader waits for a writer that has begun: at least, and for each process of the job. It is
/// several times what the writer needs for that.
const WAIT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_micros(100));
/// Between two looks at the writer.
const PAUSE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));

/// What a writer tells: who it is, and how far it is.
static TOLD: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// How far: nothing yet; it has begun; there will be none; the store is there, in its descriptor of this
/// number less `THERE`.
const NOTHING: u64 = 0;
const BEGUN: u64 = 1;
const NEVER: u64 = 2;
const THERE: u64 = 3;

/// Ranks of the job; 0 while that is not known.
static SIZE: AtomicU32 = AtomicU32::new(0);

/// The store as this process has it; `None`: it does without.
static HELD: OnceLock<Option<There>> = OnceLock::new();

/// A store of this node.
struct There {
    store: Store,
    /// The number in this process's table of names of every node.
    hosts: Vec<u32>,
    /// The caller's number on its node: its slot of the lock.
    slot: usize,
}

/// The writer, as its card tells.
struct Writer {
    name: cr_proc,
    pid: i32,
    address: u64,
}

/// The ranks of the job are known from now on.
pub fn set_size(size: u32) {
    SIZE.store(size, Ordering::Relaxed);
}

/// The line of this process's card, if it is the one that writes.
pub fn card_line() -> String {
    let own = own_name();
    let (number, count, _) = local();
    if number != 0 || count < 2 {
        return String::new();
    }
    TOLD[0].store(mark(&own), Ordering::Relaxed);
    format!("{STORE}={}:{:x}\n", std::process::id(), TOLD.as_ptr().addr())
}

/// By which others see that it is this process's memory that they read.
fn mark(name: &cr_proc) -> u64 {
    (u64::from(name.job) << 32 | u64::from(name.rank)) ^ 0x706c_6163_656d_656e
}

/// This process's number on its node, how many those are, the lowest rank.
fn local() -> (u32, u32, Rank) {
    let (mut number, mut count, mut first) = (0, 0, 0);
    // SAFETY: fills in ours.
    unsafe { glue::cr_local(&mut number, &mut count, &mut first) };
    (number, count, first)
}

/// Fills in where those processes sit whose places are in `which`, all of the own job, from the store. False:
/// there is none (yet), or it does not pay.
pub fn fill(processes: &[cr_proc], which: &[usize], places: &mut Places) -> bool {
    let Some(there) = held(which.len()) else { return false };
    let ranks: Vec<Rank> = which.iter().map(|&at| processes[at].rank).collect();
    let Ok(found) = there.seats(&ranks) else { return false };
    step();
    if found.nodes.iter().any(|&node| node as usize >= there.hosts.len()) {
        return false;
    }
    which.iter().zip(&found.nodes).for_each(|(&at, &node)| places.hosts[at] = there.hosts[node as usize]);
    found.here.iter().for_each(|&(at, seat)| places.seat_at(which[at], seat));
    true
}

impl There {
    /// A store that this process has made, or attached; its nodes get numbers of this process.
    fn new(store: Store, own: &cr_proc, slot: u32) -> Result<There, Error> {
        let mut there = There { store, hosts: Vec::new(), slot: slot as usize };
        let names = names(&mut there.store.reader(there.slot)?, own.job)?;
        let mut guard = known();
        let known = guard.get_or_insert_default();
        there.hosts = names.iter().map(|name| known.number(name)).collect();
        Ok(there)
    }

    fn seats(&self, ranks: &[Rank]) -> Result<Seats, Error> {
        seats(&mut self.store.reader(self.slot)?, own_name().job, ranks)
    }
}

/// The store, where so many processes are asked for. Waits for a writer that has begun, but not for long.
fn held(asked: usize) -> Option<&'static There> {
    static FINDING: Mutex<()> = Mutex::new(());
    if let Some(held) = HELD.get() {
        return held.as_ref();
    }
    // Another thread is at it, or this one, whom the runtime has let in while it was asked: not to wait for.
    let _finding = FINDING.try_lock().ok()?;
    let found = find(asked)?;
    match &found {
        Some(there) if there.slot == 0 => {
            let steps = STEPS.load(Ordering::Relaxed);
            remark(&format!("placement: the store of the node; this process is the writer, after {steps} steps"));
        }
        Some(_) => remark("placement: the store of the node"),
        None => remark("placement: without the store of the node"),
    }
    HELD.get_or_init(|| found).as_ref()
}

/// Makes the store, or attaches it. The inner `None`: never; the outer one: not yet.
fn find(asked: usize) -> Option<Option<There>> {
    let least = config().map_or(usize::MAX, |config| config.tests.store_from);
    let size = SIZE.load(Ordering::Relaxed);
    let (number, count, first) = local();
    if asked < least || count < 2 || size == 0 {
        return None;
    }
    let own = own_name();
    if own.rank == first {
        return (asked >= size as usize / PART).then(|| make(&own, size, count));
    }
    let writer = writer(&cr_proc { job: own.job, rank: first });
    let Some(writer) = writer else { return Some(None) };
    step();
    let begun = Instant::now();
    let limit = WAIT.0.max(WAIT.1 * size);
    let mut pause = PAUSE.0;
    loop {
        match writer.told() {
            Some(NOTHING) => return None,
            Some(BEGUN) if begun.elapsed() < limit => {}
            Some(there @ THERE..) => return Some(writer.attach(there - THERE, &own, number)),
            // There will be none, or it has died, may not be read, or takes too long.
            _ => return Some(None),
        }
        std::thread::sleep(pause);
        pause = PAUSE.1.min(2 * pause);
    }
}

/// The writer of the caller's node.
fn writer(name: &cr_proc) -> Option<Writer> {
    let card = card(name).ok()?;
    let (_, line) = settings(&card).find(|(key, _)| *key == STORE)?;
    let (pid, address) = line.split_once(':')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    Some(Writer { name: *name, pid: pid.parse().ok().filter(|pid| *pid > 0)?, address })
}

impl Writer {
    /// What it tells; `None` where its memory cannot be read, or is another process's.
    fn told(&self) -> Option<u64> {
        let mut told = [[0; 8]; TOLD.len()];
        cma::peek(self.pid, self.address, told.as_flattened_mut()).ok()?;
        let [name, what] = told.map(u64::from_ne_bytes);
        (name == mark(&self.name)).then_some(what)
    }

    /// The store in its descriptor of this number. What lies there may be anything.
    fn attach(&self, descriptor: u64, own: &cr_proc, slot: u32) -> Option<There> {
        let path = format!("/proc/{}/fd/{descriptor}", self.pid);
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).ok()?;
        step();
        let store = Store::attach(Arc::new(Segment::of(&file).ok()?)).ok()?;
        step();
        let there = There::new(store, own, slot).ok()?;
        // It knows this process, as one of its own node: so it is this node's store of this job.
        let node = there.seats(&[own.rank]).ok()?.nodes.pop()?;
        let local = there.store.reader(there.slot).and_then(|mut reader| ranks(&mut reader, own.job)).ok()?;
        let is_here = local.binary_search(&own.rank).is_ok();
        (is_here && (node as usize) < there.hosts.len()).then_some(there)
    }
}

/// Says that there will be no store, unless there is one: however the writing ends.
struct Telling;

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = TOLD[1].compare_exchange(BEGUN, NEVER, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Writes the store.
fn make(own: &cr_proc, size: u32, readers: u32) -> Option<There> {
    step();
    TOLD[1].store(BEGUN, Ordering::Relaxed);
    let _telling = Telling;
    step();
    let mut found: Vec<(u32, Locality, Option<u32>)> = Vec::with_capacity(size as usize);
    let (mut names, mut numbers) = (Vec::new(), HashMap::new());
    for rank in 0..size {
        // Whom the runtime does not tell of, others have to ask.
        let (host, locality) = ask(&cr_proc { job: own.job, rank }).ok().filter(|(host, _)| !host.is_empty())?;
        let node = *numbers.entry(host).or_insert_with_key(|host| {
            names.push(host.clone());
            names.len() as u32 - 1
        });
        found.push((node, Locality::parse(&locality), Locality::core(&locality)));
    }
    step();
    let home = found.get(own.rank as usize)?.0;
    let here = || (0..).zip(&found).filter(|(_, at)| at.0 == home);
    let local: Vec<(Rank, Locality)> = here().map(|(rank, at)| (rank, at.1)).collect();
    let cores: Vec<Option<u32>> = here().map(|(_, at)| at.2).collect();
    let hosts: Vec<u32> = found.iter().map(|at| at.0).collect();
    let hardware = Hardware::seen(here().map(|(_, at)| *at));
    // The switches depend on the communicator: each finds them.
    let (uppers, levels) = (&[], &LevelSpec::Auto);
    let job =
        Job { number: own.job, hosts: &hosts, uppers, local: &local, cores: &cores, names: &names, hardware, levels };
    let room = job.words().ok()?;
    let (segment, file) = Segment::create(Store::<crate::sync::rwlock::Mcs>::words(room, readers as usize)).ok()?;
    let store = Store::create(Arc::new(segment), room, readers as usize).ok()?;
    put_by(&store, |_| step(), &job).ok()?;
    let there = There::new(store, own, 0).ok()?;
    step();
    // Kept until the process ends: others open it by this number.
    let descriptor = file.into_raw_fd();
    // Release: in this process only. Others read the file by system calls.
    TOLD[1].store(THERE + u64::try_from(descriptor).ok()?, Ordering::Release);
    step();
    Some(there)
}

/// Steps so far, where a test counts them.
static STEPS: AtomicU32 = AtomicU32::new(0);

/// Where a test may end this process, or have it pause.
fn step() {
    static AT: OnceLock<(Option<u32>, Option<u32>)> = OnceLock::new();
    let &(kill, pause) = AT.get_or_init(|| match config() {
        Ok(config) => (config.tests.store_kill, config.tests.store_pause),
        Err(_) => (None, None),
    });
    if kill.is_none() && pause.is_none() {
        return;
    }
    let number = STEPS.fetch_add(1, Ordering::Relaxed);
    if kill == Some(number) {
        print(&format!("coll/rust: rank {} kills itself at step {number} of the store", own_name().rank));
        let _ = raise(Signal::SIGKILL);
    }
    if pause == Some(number) {
        std::thread::sleep(Duration::from_secs(1));
    }
}
