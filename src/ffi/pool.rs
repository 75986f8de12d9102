//! This process's pools of shared memory: made when a communicator first needs one, kept until the process ends.

use super::glue;
use super::startup;
use crate::params::{Shm, ShmBacking};
use crate::shm::backing::Backing;
use crate::shm::budget::Budget;
use crate::shm::locator::Place;
use crate::shm::pool::Pool;
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
        ShmBacking::Folder(path) => vec![Backing::Folder(path.clone())],
    }
}

/// How many backings there are to try.
pub fn attempts(shm: &Shm) -> usize {
    backings(shm).len()
}

/// This process's number among those of its job on its node.
fn place() -> Option<Place> {
    let (mut local, mut locals) = (0, 0);
    // SAFETY: fills in ours.
    unsafe { glue::cr_local(&mut local, &mut locals) };
    (locals > 0).then_some(Place { local, locals })
}

/// Bytes of the limit for the node that are this process'.
pub fn share(shm: &Shm) -> u64 {
    place().map_or(0, |place| share_of(shm, place))
}

fn share_of(shm: &Shm, place: Place) -> u64 {
    shm.limit / u64::from(place.locals)
}

/// The pool of the backing number `attempt`; `None` where it cannot be had, which is told at verbose level 2.
pub fn get(shm: &Shm, attempt: usize) -> Option<Arc<Pool>> {
    let place = place()?;
    let made = MADE.get_or_init(|| {
        let budget = Arc::new(Budget::new(share_of(shm, place)));
        Mutex::new(Made { budget, pools: Default::default() })
    });
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    if made.pools[attempt].is_none() {
        match Pool::create(&backings(shm)[attempt], place, &made.budget) {
            Ok(pool) => made.pools[attempt] = Some(pool),
            Err(failure) => startup::remark(&format!("no shared memory: {failure}")),
        }
    }
    made.pools[attempt].clone()
}

/// Tells, once and at verbose level 2, why there was no more memory for a group, where it was this process that had none.
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
        startup::remark(&format!("point-to-point messages take over, for want of shared memory: {why}"));
    }
}
