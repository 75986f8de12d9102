// SPDX-License-Identifier: BSD-3-Clause
//! Whether this Open MPI is the one that the component was built for, and all processes have the same build.

use crate::endpoint::{Error, Result};
use crate::ffi::base::glue::{self, CR_ERR_OTHER, cr_differences, cr_release, ompi_communicator_t};
use crate::ffi::base::messages;
use crate::ffi::base::name::own_name;
use crate::params::Topic;
use crate::shm::pool::locator::{HELLO_BYTES, Hello};
use crate::version::{self, Difference, Release};
use std::env;
use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

impl From<cr_release> for Release {
    fn from(release: cr_release) -> Release {
        Release { major: release.major, minor: release.minor, patch: release.patch }
    }
}

/// The Open MPI that the shim was compiled for, and the one that runs.
fn releases() -> (Release, Release) {
    let (mut built, mut running) = (cr_release::default(), cr_release::default());
    // SAFETY: fills in ours.
    unsafe { glue::cr_releases(&mut built, &mut running) };
    (built.into(), running.into())
}

/// Release, build and what it was built for.
pub fn identity() -> String {
    version::identity(releases().0)
}

/// The same, as a C string that stays.
pub fn text() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(identity()).unwrap_or_default()).as_ptr()
}

/// The line of this process's card that tells its build.
pub fn card_line() -> String {
    version::card_line(releases().0)
}

fn differences(ask: impl FnOnce(&mut cr_differences)) -> Vec<Difference> {
    let mut found = cr_differences::default();
    ask(&mut found);
    let rows = found.rows.iter().take(found.count);
    let told = rows.map(|row| Difference {
        // SAFETY: a constant of the shim's.
        name: unsafe { CStr::from_ptr(row.name) }.to_string_lossy().into_owned(),
        built: row.built,
        found: row.found,
    });
    told.collect()
}

/// Whether the component may run with this Open MPI. If not, or if that is worth a remark, it is said once.
pub fn check() -> bool {
    let (built, running) = releases();
    // SAFETY: fills in ours.
    let differences = differences(|found| unsafe { glue::cr_differences(found) });
    match version::judge(built, running, &differences) {
        Ok(remark) => {
            let _ = REMARK.set(remark);
            true
        }
        Err(message) => {
            if speaks() {
                messages::print(&message);
            }
            false
        }
    }
}

/// What is to be said about an Open MPI that is not quite the one it was built for.
static REMARK: OnceLock<Option<String>> = OnceLock::new();

/// The remark, for who wants to hear more.
pub fn remark() -> Option<&'static str> {
    REMARK.get()?.as_deref()
}

/// Whether this process speaks for its job: the first one does. Nothing but the environment is asked, since
/// Open MPI may be another one than it was built for. A process of which that tells nothing speaks for
/// itself.
fn speaks() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let rank = ranks.iter().find_map(|name| env::var(name).ok()?.trim().parse::<u32>().ok());
    rank.unwrap_or(0) == 0
}

/// Looks at the fields of `MPI_COMM_WORLD`, which is being set up; ends the job if something else is in their
/// place. (Nobody can decline any more: other processes may have another Open MPI, and have found nothing
/// wrong.)
pub fn check_world(world: *mut ompi_communicator_t) {
    // SAFETY: the communicator is alive; fills in ours.
    let differences = differences(|found| unsafe { glue::cr_world_differences(world, found) });
    let (built, running) = releases();
    if let Some(difference) = differences.first() {
        messages::fatal(
            world,
            Topic::Error,
            &format!(
                "this {running} is not the one it was built for, {built}: {difference}. Build it anew, or leave it out: --mca coll ^rust"
            ),
        );
    }
}

fn host(card: &str) -> &str {
    card.lines().next().unwrap_or_default()
}

/// Compares the builds of two processes of the job, given their ranks and cards.
pub fn compare(one: (u32, &str), other: (u32, &str)) -> std::result::Result<(), String> {
    version::compare((one.0, host(one.1), one.1), (other.0, host(other.1), other.1))
}

/// Compares the build of a process of another job, given its rank in the communicator and its card, with that
/// of rank 0. All find the same.
pub fn compare_jobs((rank, card): (usize, &str), reference: &str) -> std::result::Result<(), String> {
    compare((0, reference), (rank as u32, card))
        .map_err(|message| format!("in a communicator of several jobs, {message}"))
}

/// The members' hellos, if all are of the same build. Their cards say so as a rule; here, all members see all
/// hellos, and find the same.
pub fn alike(hellos: Vec<[u8; HELLO_BYTES]>) -> Result<Vec<[u8; HELLO_BYTES]>> {
    if hellos.iter().any(Hello::is_of_another_build) {
        messages::show_error(
            Topic::RanksDiffer,
            own_name().job,
            "the processes of a node have different builds of the component: they share no memory",
        );
        return Err(Error::Mpi(CR_ERR_OTHER as i32));
    }
    Ok(hellos)
}
