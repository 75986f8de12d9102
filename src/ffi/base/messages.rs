// SPDX-License-Identifier: BSD-3-Clause
//! Messages to the user.

use crate::ffi::base::config::config;
use crate::ffi::base::glue::{self, ompi_communicator_t};
use crate::ffi::base::name::own_name;
use crate::ffi::base::text::c_text;
use crate::params::Topic;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::parent_id;
use std::time::Duration;

/// Prints a message to standard error, in one piece.
pub fn print(message: &str) {
    // SAFETY: a NUL-terminated string.
    unsafe { glue::cr_print(c_text(&format!("{message}\n")).as_ptr()) };
}

/// Hands a message of the help file to the runtime, which prints one of a topic, and counts those of other
/// processes. False where it cannot.
fn is_shown(topic: Topic, about: &str) -> bool {
    // SAFETY: NUL-terminated strings.
    unsafe { glue::cr_show_help(c_text(topic.name()).as_ptr(), c_text(about).as_ptr()) != 0 }
}

/// Shows a message of the help file.
pub fn show(topic: Topic, about: &str) {
    if !is_shown(topic, about) {
        print(&topic.message(about));
    }
}

/// How long who has found an error leaves the others to say it: the end of one is that of all.
const TIME_TO_SAY: Duration = Duration::from_millis(500);

/// Shows a message of the help file that several processes find alike: those of that job, or of jobs that
/// it has spawned. Where the runtime does not sort them out, the first process of the node says it.
fn show_once(topic: Topic, job: u32, about: &str) -> Option<UnixDatagram> {
    if is_shown(topic, about) {
        return None;
    }
    // The name of a socket belongs to the first one who takes it, until that process ends. Its parent is the
    // launcher's daemon.
    let name = format!("coll_rust.{}.{job}.{}", parent_id(), topic.name());
    let taken = SocketAddr::from_abstract_name(name).and_then(|address| UnixDatagram::bind_addr(&address));
    if !taken.as_ref().is_err_and(|why| why.kind() == ErrorKind::AddrInUse) {
        print(&topic.message(about));
    }
    // The first one holds the name while the others come here: once it has died they would take it. They
    // leave its end time to be theirs.
    std::thread::sleep(TIME_TO_SAY);
    taken.ok()
}

/// Shows a message of the help file, after which this process will end the job.
pub fn show_last(topic: Topic, about: &str) {
    std::mem::forget(show_once(topic, own_name().job, about));
}

/// Shows a message of the help file about an error that all processes of a communicator return. As a rule
/// that ends the job, and the first one to return would take the message from who says it. `job` is that of
/// the communicator's rank 0.
pub fn show_error(topic: Topic, job: u32, about: &str) {
    drop(show_once(topic, job, about));
}

/// Whether something is told at this verbosity of ours, or because the framework's is high.
pub fn is_told(level: u8) -> bool {
    // SAFETY: no arguments.
    config().is_ok_and(|config| config.verbose >= level) || unsafe { glue::cr_verbosity() } >= glue::CR_VERBOSE as i32
}

/// Tells something [that is told](is_told).
pub fn tell(message: &str) {
    // SAFETY: no arguments; a NUL-terminated string.
    unsafe {
        match glue::cr_verbosity() >= glue::CR_VERBOSE as i32 {
            true => glue::cr_output(c_text(message).as_ptr()),
            false => print(&format!("coll/rust: {message}")),
        }
    }
}

/// Tells who wants to hear more: at verbose level 2, or at the framework's (`coll_base_verbose`).
pub fn remark(message: &str) {
    if is_told(2) {
        tell(message);
    }
}

/// Shows a message and ends the job. Of what several processes have to say under one topic, one is printed.
pub fn fatal(comm: *mut ompi_communicator_t, topic: Topic, message: &str) -> ! {
    show_last(topic, message);
    // SAFETY: the communicator that is being set up; Open MPI ends the process here.
    unsafe { glue::cr_abort(comm, 1) };
    std::process::abort()
}
