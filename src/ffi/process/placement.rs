// SPDX-License-Identifier: BSD-3-Clause
//! Where every process sits: looked up once and kept, since placement never changes.
//!
//! Processes of the own job are known to the runtime (PMIx). Where they are many, one process of each node
//! asks it, for all of them ([`store`]); where they are few, each asks for itself. Processes of other jobs
//! (MPI_Comm_spawn) are asked for the card that each process publishes: host, locality string, parameters.

mod store;

use crate::ffi::base::glue::{self, cr_proc};
use crate::ffi::base::name::own_name;
use crate::ffi::process::card::{self, CARD_LINES};
use crate::store::placement::Seat;
use crate::sync::cores;
use crate::topo::{Hardware, Locality};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use store::{card_line, set_size};

/// So many processes are asked for before a process looks again whether the store is there.
const PORTION: usize = 32;

/// Where some processes sit, in their order.
#[derive(Default)]
pub struct Places {
    /// The number of each one's host's name in this process's table of names.
    hosts: Vec<u32>,
    /// Those that are known to be bound to something, by their places, ascending: processes of this node. No
    /// more is kept of others, of which there may be a million.
    bound: Vec<(usize, Seat)>,
}

impl Places {
    fn seat_at(&mut self, place: usize, seat: Seat) {
        if seat != Seat::default() {
            self.bound.push((place, seat));
        }
    }

    /// Where on its node the process at this place sits.
    pub fn seat(&self, place: usize) -> Seat {
        let at = self.bound.binary_search_by_key(&place, |bound| bound.0);
        at.map_or_else(|_| Seat::default(), |at| self.bound[at].1)
    }
}

#[derive(Default)]
struct Known {
    places: HashMap<(u32, u32), (u32, Seat)>,
    /// That other processes may run on.
    processors: HashMap<(u32, u32), u32>,
    hosts: Vec<String>,
    numbers: HashMap<String, u32>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    fn number(&mut self, host: &str) -> u32 {
        if let Some(&number) = self.numbers.get(host) {
            return number;
        }
        let number = self.hosts.len() as u32;
        self.hosts.push(host.to_owned());
        self.numbers.insert(host.to_owned(), number);
        number
    }
}

/// Asks the runtime for host, locality string and "on this node" of a process of the own job.
fn ask(name: &cr_proc) -> Result<(String, String), i32> {
    let (mut host, mut locality): ([c_char; 512], [c_char; 1024]) = ([0; 512], [0; 1024]);
    let mut local = 0;
    // SAFETY: both buffers are ours, with their sizes; the shim terminates what it writes.
    let (code, host, locality) = unsafe {
        let code =
            glue::cr_place(name, host.as_mut_ptr(), host.len(), locality.as_mut_ptr(), locality.len(), &mut local);
        (code, CStr::from_ptr(host.as_ptr()), CStr::from_ptr(locality.as_ptr()))
    };
    if code != 0 {
        return Err(code);
    }
    Ok((host.to_string_lossy().into_owned(), locality.to_string_lossy().into_owned()))
}

/// The first lines of this process's card. Without a host where the runtime does not tell it: then nobody can
/// place this process, and [`places`] says so.
pub fn own_card() -> String {
    let (host, locality) = ask(&own_name()).unwrap_or_default();
    let shape = cores::processors();
    format!("{host}\n{locality}\n{shape}\n")
}

/// The name of this process's host, as its card says.
pub fn own_host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| own_card().lines().next().unwrap_or_default().to_owned())
}

/// Host and locality string of any process, from its card.
pub fn from_card(name: &cr_proc) -> Result<(String, String), i32> {
    let card = card::card(name)?;
    let mut lines = card.lines();
    let (host, locality) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    Ok((host.to_owned(), locality.to_owned()))
}

/// Looks up one process. Every rank must find the same host for it, so an unknown one is an error, not a
/// guess.
fn look_up(name: &cr_proc, own_job: u32) -> Result<(String, String), String> {
    let answer = if name.job == own_job { ask(name) } else { from_card(name) };
    // The runtime may not have told us the hosts of other nodes: the process itself has.
    let answer = match answer {
        Ok((host, _)) if host.is_empty() => from_card(name),
        answer => answer,
    };
    match answer {
        Ok((host, _)) if host.is_empty() => {
            Err(format!("rank {} of job {} does not know which host it runs on", name.rank, name.job))
        }
        Ok(found) => Ok(found),
        Err(code) => Err(format!("cannot find out where rank {} of job {} runs (error {code})", name.rank, name.job)),
    }
}

/// Where the processes sit, in their order.
pub fn places(names: &[cr_proc]) -> Result<Places, String> {
    let own = own_name();
    let (mut places, missing) = from_memory(names);
    // The lock is not held while others are asked: that may take time, and may run progress.
    let (mine, others): (Vec<usize>, Vec<usize>) = missing.into_iter().partition(|&i| names[i].job == own.job);
    for (number, portion) in mine.chunks(PORTION).enumerate() {
        if store::fill(names, &mine[number * PORTION..], &mut places) {
            break;
        }
        ask_for(names, portion, &mut places)?;
    }
    ask_for(names, &others, &mut places)?;
    places.bound.sort_unstable_by_key(|bound| bound.0);
    Ok(places)
}

/// The places that this process knows, and which ones it does not.
fn from_memory(names: &[cr_proc]) -> (Places, Vec<usize>) {
    let mut places = Places { hosts: vec![0; names.len()], bound: Vec::new() };
    let guard = known();
    let Some(known) = guard.as_ref().filter(|known| !known.places.is_empty()) else {
        return (places, (0..names.len()).collect());
    };
    let mut missing = Vec::new();
    for (i, name) in names.iter().enumerate() {
        match known.places.get(&(name.job, name.rank)) {
            Some(&(host, seat)) => {
                places.hosts[i] = host;
                places.seat_at(i, seat);
            }
            None => missing.push(i),
        }
    }
    (places, missing)
}

/// Asks for some of the processes, one by one, and keeps what is told.
fn ask_for(names: &[cr_proc], which: &[usize], places: &mut Places) -> Result<(), String> {
    let own = own_name();
    for &i in which {
        let name = &names[i];
        let (host, locality) = look_up(name, own.job)?;
        let mut guard = known();
        let known = guard.get_or_insert_default();
        let (host, core) = (known.number(&host), Locality::core(&locality));
        let seat = Seat { locality: Locality::parse(&locality), core };
        known.places.insert((name.job, name.rank), (host, seat));
        places.hosts[i] = host;
        places.seat_at(i, seat);
    }
    Ok(())
}

/// The name of the host with this number.
fn host_name(number: u32) -> String {
    known().as_ref().and_then(|k| k.hosts.get(number as usize).cloned()).unwrap_or_default()
}

/// The shape of a node, from the places of a communicator's processes on it, in the order of their ranks.
/// Processes of one node may run on other processors each (in a cgroup of its own): what a communicator does
/// is decided by what its lowest rank there, `first`, may run on, and others that are placed like it.
pub fn hardware(first: &cr_proc, seats: &[Seat]) -> Result<Hardware, i32> {
    let hardware = Hardware::seen(seats.iter().map(|seat| (0, seat.locality, seat.core)));
    let bindings: HashSet<_> = seats.iter().collect();
    let processors = processors_of(first)?.saturating_mul(bindings.len() as u32);
    Ok(Hardware { processors, ..hardware })
}

/// Processors that a process may run on; 0 where it does not tell.
fn processors_of(name: &cr_proc) -> Result<u32, i32> {
    let own = own_name();
    let key = (name.job, name.rank);
    if key == (own.job, own.rank) {
        return Ok(cores::processors());
    }
    if let Some(&processors) = known().as_ref().and_then(|k| k.processors.get(&key)) {
        return Ok(processors);
    }
    let card = card::card(name)?;
    let number = card.lines().nth(CARD_LINES - 1).unwrap_or_default();
    let processors = number.parse().unwrap_or(0);
    known().get_or_insert_default().processors.insert(key, processors);
    Ok(processors)
}

/// The node of every place, by numbers made small, in the order of first appearance; and the names of the
/// nodes.
pub fn nodes(places: &Places) -> (Vec<u32>, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let most = places.hosts.iter().max().map_or(0, |&host| host as usize + 1);
    let mut numbers = vec![u32::MAX; most];
    let number = |&host: &u32| {
        let number = &mut numbers[host as usize];
        if *number == u32::MAX {
            *number = names.len() as u32;
            names.push(host_name(host));
        }
        *number
    };
    (places.hosts.iter().map(number).collect(), names)
}
