// SPDX-License-Identifier: BSD-3-Clause
//! Where the cycles of one read go: of the placement store at the seven marks of the paper, and of PMIx_Get
//! as a whole, since no mark can be put into an installed library.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use coll_rust::store::image::Key;
use coll_rust::store::{Reader, Store, sequence};
use coll_rust::sync::rwlock::Kind;
use coll_rust::sync::segment::Segment;

use crate::clock::counter::read as counter;
use crate::error::{Error, Result};

/// The parts of a read, between the marks P1 to P7.
pub const PARTS: [&str; 6] = ["entry", "lock", "search", "decode", "unlock", "exit"];

/// Number of ranks whose nodes the store holds, and readers it has slots for.
const RANKS: u32 = 100_000;
const READERS: usize = 64;
/// The key that is read.
const NODES: Key = Key::new(200, 1, 0);

/// A store with the nodes of a job, dealt so that a look-up has to search.
pub fn store<K: Kind>() -> Result<Store<K>> {
    let failed = |error: &dyn std::fmt::Display| Error::Measure(format!("placement store: {error}"));
    let values = sequence::encode(&(0..RANKS).map(|rank| rank / 3 % 4000).collect::<Vec<_>>());
    let segment = Segment::anonymous(Store::<K>::words(1024, READERS)).map_err(|error| failed(&error))?;
    let store = Store::create(Arc::new(segment), 1024, READERS).map_err(|error| failed(&error))?;
    // More keys beside it, as many as a job has.
    let mut all: Vec<_> = (0..14).map(|number| (Key::new(100, 1, number), Some(vec![u64::from(number); 12]))).collect();
    all.push((NODES, Some(values)));
    store.put(&all).map_err(|error| failed(&error))?;
    Ok(store)
}

/// The node of a rank, with a mark at each step: what it takes from P1 to P7. Out of line, as a caller in
/// another library would find it.
#[inline(never)]
fn get<K: Kind>(reader: &mut Reader<'_, K>, rank: u32, marks: &mut [u64; 7]) -> Option<u32> {
    marks[0] = counter();
    let place = rank as usize;
    marks[1] = counter();
    let found = reader.look(|image| {
        marks[2] = counter();
        let words = image.get(NODES)?;
        marks[3] = counter();
        let node = sequence::Sequence::new(words)?.at(place)?;
        marks[4] = counter();
        Ok(node)
    });
    marks[5] = counter();
    let found = found.ok();
    marks[6] = counter();
    found
}

/// The same without marks.
#[inline(never)]
fn plain<K: Kind>(reader: &mut Reader<'_, K>, rank: u32) -> Option<u32> {
    reader.look(|image| sequence::Sequence::new(image.get(NODES)?)?.at(rank as usize)).ok()
}

/// Medians, in ticks of the counter: of each part, less what a mark takes itself; of a read without marks.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// P2 − P1 to P7 − P6.
    pub parts: [f64; 6],
    /// All, without the marks between.
    pub whole: f64,
}

fn median(mut ticks: Vec<u64>) -> f64 {
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).map_or(0.0, |middle| *middle as f64)
}

/// What two marks one after the other are apart.
fn empty(reads: usize) -> f64 {
    median(
        (0..reads)
            .map(|_| {
                let begun = counter();
                counter().saturating_sub(begun)
            })
            .collect(),
    )
}

/// Reads so many times.
pub fn of_store<K: Kind>(store: &Store<K>, number: usize, reads: usize) -> Result<Profile> {
    let failed = |error| Error::Measure(format!("placement store: {error}"));
    let mut reader = store.reader(number).map_err(failed)?;
    let mut all = vec![Vec::with_capacity(reads); PARTS.len()];
    let mut whole = Vec::with_capacity(reads);
    for i in 0..reads as u32 {
        let (rank, mut marks) = (i.wrapping_mul(7919) % RANKS, [0; 7]);
        let begun = counter();
        let found = plain(&mut reader, rank);
        whole.push(counter().saturating_sub(begun));
        let again = get(&mut reader, rank, &mut marks);
        if found != Some(rank / 3 % 4000) || again != found {
            return Err(Error::Wrong(format!("the node of rank {rank} is not {found:?}")));
        }
        all.iter_mut().zip(marks.windows(2)).for_each(|(part, marks)| part.push(marks[1].saturating_sub(marks[0])));
    }
    let mark = empty(reads);
    let mut parts = [0.0; PARTS.len()];
    parts.iter_mut().zip(all).for_each(|(part, ticks)| *part = (median(ticks) - mark).max(0.0));
    Ok(Profile { parts, whole: (median(whole) - mark).max(0.0) })
}

/// A process's name in PMIx, in all versions from 2 on.
#[repr(C)]
struct Process {
    space: [c_char; 256],
    rank: u32,
}

type Init = unsafe extern "C" fn(*mut Process, *const c_void, usize) -> i32;
type Get = unsafe extern "C" fn(*const Process, *const c_char, *const c_void, usize, *mut *mut c_void) -> i32;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> i32;

/// The library that MPI has loaded, or the installed one, and a function of it.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: both look names up; the library is never closed.
    let found = unsafe {
        let library = libc::dlopen(c"libpmix.so.2".as_ptr(), libc::RTLD_NOW);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    };
    (!found.is_null()).then_some(found)
}

/// Median ticks of PMIx_Get of a key, of process `rank` of the caller's job: under a launcher with PMIx only.
/// `None` where that does not answer.
pub fn of_pmix(key: &CStr, rank: u32, reads: usize) -> Option<f64> {
    let [init, get, finalize] = [c"PMIx_Init", c"PMIx_Get", c"PMIx_Finalize"].map(function);
    // SAFETY: these are the types of the functions in PMIx 2 to 5.
    let (init, get, finalize) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Init>(init?),
            std::mem::transmute::<*mut c_void, Get>(get?),
            std::mem::transmute::<*mut c_void, Finalize>(finalize?),
        )
    };
    let mut process = Process { space: [0; 256], rank: 0 };
    // SAFETY: it fills in the name; MPI has initialised it before, so that this only counts.
    if unsafe { init(&mut process, std::ptr::null(), 0) } != 0 {
        return None;
    }
    process.rank = rank;
    let mut ticks = Vec::with_capacity(reads);
    for _ in 0..reads {
        let mut value = std::ptr::null_mut();
        let begun = counter();
        // SAFETY: the name and the key are ours; the value is malloc'd and then ours.
        let code = unsafe { get(&process, key.as_ptr(), std::ptr::null(), 0, &mut value) };
        ticks.push(counter().saturating_sub(begun));
        if code != 0 {
            break;
        }
        // SAFETY: the value is ours. What it refers to in turn is not given back: some bytes a read.
        unsafe { libc::free(value) };
    }
    // SAFETY: counts down.
    unsafe { finalize(std::ptr::null(), 0) };
    (ticks.len() == reads).then(|| median(ticks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_rust::sync::rwlock::Mcs;

    #[test]
    fn the_parts_are_the_whole() {
        let store = store::<Mcs>().unwrap();
        let profile = of_store(&store, 0, 2000).unwrap();
        assert!(profile.whole > 0.0 && profile.parts[1] + profile.parts[4] > 0.0, "{profile:?}");
        assert!(profile.parts.iter().all(|ticks| *ticks >= 0.0 && ticks.is_finite()));
    }
}
