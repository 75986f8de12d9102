//! Identities of operations: the tags that keep their messages apart.
//!
//! A call takes the next identity of its communicator: calls are made in the same order on all ranks, so all give one
//! operation the same identity. Identities of calls come round again after many calls; by then the earlier operation is
//! long over, since no more than half of them may be outstanding.
//!
//! A persistent operation keeps its identity until its request is freed, which each rank does when it likes. When all
//! identities have been given out, the ranks agree, inside the initialisation (which MPI lets synchronise), which of
//! them are free everywhere.

use super::comm::Comm;
use super::counters::Kind;
use super::data::Datatype;
use super::engine;
use super::glue::{self, CR_ERR_OTHER};
use super::host::HostEndpoint;
use super::{operation, startup};
use crate::endpoint::{Endpoint, MAX_LANES, PHASES, Result, Span, Tag, TempBuffer};
use crate::topo::Level;
use std::collections::HashSet;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tags of one operation.
const TAGS: u64 = PHASES as u64 * MAX_LANES as u64;

/// The identities of one communicator.
#[derive(Default)]
pub struct Identities {
    /// Calls so far of blocking and nonblocking operations.
    calls: AtomicU64,
    inits: Mutex<Inits>,
}

/// Persistent operations.
#[derive(Default)]
struct Inits {
    /// Given out for the first time so far.
    fresh: u64,
    /// Free on all ranks, the next one last.
    agreed: Vec<u64>,
    /// Of requests that this rank has not freed.
    live: HashSet<u64>,
}

/// First tag, and how many operations have tags of their own. Collective tags are negative; the ranges of Open MPI's own
/// collectives begin at −10 and grow downwards, so ours begin half-way to the largest tag.
fn space(comm: &Comm, persistent: bool) -> (i32, u64) {
    // SAFETY: reads a number of the selected PML.
    let largest = unsafe { glue::cr_max_tag() }.clamp(1 << 15, 1 << 30);
    let quarter = largest.min(comm.config().max_tag.unwrap_or(largest)) / 4;
    let first = if persistent { -3 * quarter } else { -2 * quarter };
    (first, quarter as u64 / TAGS)
}

fn first_tag(space: (i32, u64), identity: u64) -> i32 {
    space.0 - (identity * TAGS) as i32
}

impl Identities {
    fn inits(&self) -> MutexGuard<'_, Inits> {
        self.inits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first tag of the operation that is being called; its tags go downwards from there. `Err` where so many operations
    /// are outstanding that tags could repeat among them.
    pub fn next_call(&self, comm: &Comm) -> std::result::Result<i32, i32> {
        let space = space(comm, false);
        if comm.outstanding.load(Ordering::Relaxed) >= space.1 / 2 {
            startup::print(&format!(
                "coll/rust: more than {} nonblocking collectives are outstanding on one communicator, which is what the \
                 point-to-point layer has tags for; complete some first",
                space.1 / 2
            ));
            return Err(CR_ERR_OTHER as i32);
        }
        Ok(first_tag(space, self.calls.fetch_add(1, Ordering::Relaxed) % space.1))
    }

    /// Identity and first tag of the persistent operation that is being initialised. May synchronise.
    pub fn next_init(&self, comm: &Comm) -> std::result::Result<(u64, i32), i32> {
        let space = space(comm, true);
        let mut inits = self.inits();
        let identity = if inits.fresh < space.1 {
            inits.fresh += 1;
            inits.fresh - 1
        } else {
            if inits.agreed.is_empty() {
                let used: Vec<u64> = inits.live.iter().copied().collect();
                drop(inits); // no lock is held while others' progress runs
                let free = self.agree(comm, space.1, &used)?;
                inits = self.inits();
                inits.agreed = free;
            }
            let Some(identity) = inits.agreed.pop() else {
                startup::print(&format!(
                    "coll/rust: {} persistent collectives are alive on one communicator, as many as the point-to-point layer \
                     has tags for; free some first",
                    space.1
                ));
                return Err(CR_ERR_OTHER as i32);
            };
            identity
        };
        inits.live.insert(identity);
        Ok((identity, first_tag(space, identity)))
    }

    /// The request of this identity was freed here.
    pub fn free(&self, identity: u64) {
        self.inits().live.remove(&identity);
    }

    /// The identities that no rank uses, descending. Takes a call's identity for itself.
    fn agree(&self, comm: &Comm, identities: u64, used: &[u64]) -> std::result::Result<Vec<u64>, i32> {
        let mut bits = vec![0u8; (identities as usize).div_ceil(8)];
        for &identity in used {
            bits[identity as usize / 8] |= 1 << (identity % 8);
        }
        let tag = self.next_call(comm)?;
        let ep = HostEndpoint::new(comm, Kind::Barrier, Datatype::BYTES, ptr::null_mut(), tag);
        engine::drive(union(&ep, &mut bits)).map_err(operation::code)?;
        Ok((0..identities).rev().filter(|&i| bits[i as usize / 8] & (1 << (i % 8)) == 0).collect())
    }
}

/// Everybody's bits or'ed together, everywhere: a dissemination, which may bring a bit more than once.
/// Cost: ⌈log₂ p⌉ steps · n bytes.
async fn union(ep: &HostEndpoint, bits: &mut [u8]) -> Result<()> {
    let (mine, theirs) = (ep.temp(bits.len())?, ep.temp(bits.len())?);
    let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
    let (me, size) = (ep.rank(), ep.size());
    let mut distance = 1;
    while distance < size {
        write(bits, mine.span());
        let receive = ep.recv((me + size - distance) % size, tag, theirs.span());
        let send = ep.send((me + distance) % size, tag, mine.span());
        receive.await?;
        send.await?;
        // SAFETY: the receive is complete, so the buffer holds `bits.len()` bytes that nothing else touches.
        let other = unsafe { std::slice::from_raw_parts(theirs.span().ptr(), bits.len()) };
        bits.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
        distance *= 2;
    }
    Ok(())
}

fn write(bits: &[u8], to: Span) {
    // SAFETY: a temporary buffer of that length, with nothing posted on it.
    unsafe { ptr::copy_nonoverlapping(bits.as_ptr(), to.ptr(), bits.len()) };
}
