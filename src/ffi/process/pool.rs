// SPDX-License-Identifier: BSD-3-Clause
//! This process's pools of shared memory: made when a communicator first needs one, kept until the process
//! ends.

use crate::ffi::base::{glue, messages};
use crate::params::{Shm, ShmBacking, Topic};
use crate::shm::os::allowance;
use crate::shm::os::budget::Budget;
use crate::shm::os::failure::Failure;
use crate::shm::pool::Pool;
use crate::shm::pool::backing::Backing;
use crate::shm::pool::locator::Place;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The folder of `shm_backing` = auto.
const FOLDER: &str = "/dev/shm";
/// The most backings that are tried one after the other.
pub const ATTEMPTS: usize = 2;

struct Made {
    budget: Arc<Budget>,
    pools: [Option<Arc<Pool>>; ATTEMPTS],
}

static MADE: OnceLock<Mutex<Made>> = OnceLock::new();

/// The backings to try, in order. The same on all ranks.
fn backings(shm: &Shm) -> Vec<Backing> {
    match &shm.backing {
        ShmBacking::Auto => vec![Backing::Memfd, Backing::Folder(FOLDER.into())],
        ShmBacking::Memfd => vec![Backing::Memfd],
        // A name is left behind by who is killed while it has one, so that it is for those who need it.
        ShmBacking::Folder(path) => vec![Backing::Unnamed(path.clone()), Backing::Folder(path.clone())],
    }
}

/// How many backings there are to try.
pub fn attempts(shm: &Shm) -> usize {
    backings(shm).len()
}

/// This process's number among those of its job on its node.
fn place() -> Option<Place> {
    let (mut local, mut locals, mut first) = (0, 0, 0);
    // SAFETY: fills in ours.
    unsafe { glue::cr_local(&mut local, &mut locals, &mut first) };
    (locals > 0).then_some(Place { local, locals })
}

/// Bytes of the limit for the node that are this process', as far as it knows: by default that depends on
/// what it may have.
pub fn share(shm: &Shm) -> u64 {
    place().map_or(0, |place| budget(shm, place).bytes())
}

fn budget(shm: &Shm, place: Place) -> Budget {
    let part = |bytes: u64| bytes / u64::from(place.locals);
    match shm.limit {
        Some(said) => Budget::new(part(said)),
        // Pools are as long on all processes, whatever each of them may use.
        None => Budget::limited(part(allowance::MOST), part(by_default())),
    }
}

/// What was so when it was first asked for.
fn by_default() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(allowance::by_default)
}

/// The pool of the backing number `attempt`; `None` where it cannot be had, which is told at verbose level 2.
pub fn get(shm: &Shm, attempt: usize) -> Option<Arc<Pool>> {
    let place = place()?;
    let made =
        MADE.get_or_init(|| Mutex::new(Made { budget: Arc::new(budget(shm, place)), pools: Default::default() }));
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    if made.pools[attempt].is_none() {
        match Pool::create(&backings(shm)[attempt], place, &made.budget) {
            Ok(pool) => {
                register(&pool);
                made.pools[attempt] = Some(pool);
            }
            Err(failure) => tell_failure(shm, place, &failure),
        }
    }
    made.pools[attempt].clone()
}

/// Has the runtime remove the name of a pool when the job ends, however that is.
fn register(pool: &Pool) {
    let path = pool.locator().path.as_ref().map(|path| CString::new(path.as_os_str().as_bytes()));
    if let Some(Ok(path)) = path {
        // SAFETY: a NUL-terminated string, which is copied.
        unsafe { glue::cr_remove_at_end(path.as_ptr()) };
    }
}

/// Tells why there is no pool. Who has named a folder expects it to be used, and hears so in any case: once
/// from each node.
fn tell_failure(shm: &Shm, place: Place, failure: &Failure) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let named = matches!(shm.backing, ShmBacking::Folder(_));
    if !named || place.local != 0 {
        messages::remark(&format!("no shared memory: {failure}"));
    } else if !TOLD.swap(true, Ordering::Relaxed) {
        let about = format!("no shared memory, point-to-point messages take over: {failure}");
        messages::show(Topic::Warning, &about);
    }
}

/// Tells, once and at verbose level 2, why there was no more memory for a group, where it was this process
/// that had none.
pub fn tell_refusal() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.load(Ordering::Relaxed) {
        return;
    }
    let Some(made) = MADE.get() else { return };
    let pools = made.lock().unwrap_or_else(PoisonError::into_inner).pools.clone();
    if let Some(why) = pools.iter().flatten().find_map(|pool| pool.refusal())
        && !TOLD.swap(true, Ordering::Relaxed)
    {
        messages::remark(&format!("point-to-point messages take over, for want of shared memory: {why}"));
    }
}
