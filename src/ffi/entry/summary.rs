// SPDX-License-Identifier: BSD-3-Clause
//! What is reported of the counters at the end.
//!
//! A sum needs the counters of all ranks. Open MPI lets the module of MPI_COMM_WORLD go after a fence that
//! every living rank has reached, while messages still travel: then each rank sends its counters to rank 0,
//! and waits for the answer that they have come. Nobody waits for longer than [`PATIENCE`] without news, so a
//! rank that is dead delays the others, but holds nobody up.

use crate::ffi::base::glue::{self, ompi_request_t};
use crate::ffi::base::messages::{print, show};
use crate::ffi::base::name;
use crate::ffi::comm::state::Comm;
use crate::ffi::process::counters;
use crate::params::{Config, Report, Topic};
use crate::report;
use std::fs;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So long a rank waits for the next message.
const PATIENCE: Duration = Duration::from_secs(5);

/// The collective context of MPI_COMM_WORLD is idle by then: any tag of the blocking collectives will do.
const TAG: i32 = -10;

/// What a message begins with: one that was left over from an operation that failed is none of ours.
const MAGIC: u64 = 0x636f_6c6c_7275_7374;

/// The sum has been printed, or sent.
static IS_SUMMED: AtomicBool = AtomicBool::new(false);

/// A message under way, with its memory.
struct Message {
    request: *mut ompi_request_t,
    words: Vec<u64>,
}

impl Message {
    /// Posts a message from or to a rank; none where that fails.
    fn post(comm: &Comm, rank: u32, mut words: Vec<u64>, is_receive: bool) -> Option<Message> {
        let mut request = ptr::null_mut();
        let (bytes, at) = (size_of_val(words.as_slice()), words.as_mut_ptr().cast());
        // SAFETY: the communicator is alive; the memory stays until the request is done, or for ever (see
        // `finish`).
        let code = unsafe {
            match is_receive {
                true => glue::cr_irecv(comm.handle(), at, bytes, ptr::null_mut(), rank as i32, TAG, &mut request),
                false => glue::cr_isend(comm.handle(), at, bytes, ptr::null_mut(), rank as i32, TAG, &mut request),
            }
        };
        if code != 0 {
            std::mem::forget(words);
            return None;
        }
        Some(Message { request, words })
    }

    fn is_done(&self) -> bool {
        // SAFETY: a live request of ours, or null: then the send was complete at once.
        self.request.is_null() || unsafe { glue::cr_request_done(self.request) != 0 }
    }

    /// Ends it: its words, if it has come. What is still under way keeps its memory for ever: the process is
    /// about to end.
    fn finish(self, is_receive: bool) -> Option<Vec<u64>> {
        if self.request.is_null() {
            return Some(self.words);
        }
        let done = self.is_done();
        if !done && is_receive {
            // SAFETY: a live receive of ours.
            unsafe { glue::cr_request_cancel(self.request) };
        }
        if !self.is_done() {
            std::mem::forget(self.words);
            return None;
        }
        // SAFETY: a complete request of ours, which goes.
        let code = unsafe { glue::cr_request_finish(self.request, ptr::null_mut()) };
        (done && code == 0).then_some(self.words)
    }
}

/// Calls progress until `all` is so, or nothing has happened for so long as [`PATIENCE`]. `all` gives how
/// many things have happened.
fn wait(wanted: usize, mut happened: impl FnMut() -> usize) {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let now = happened();
        if now >= wanted || since.elapsed() > PATIENCE {
            return;
        }
        if now > last {
            (last, since) = (now, Instant::now());
        }
        // SAFETY: no collective is under way in this process: MPI_Finalize is.
        unsafe { glue::cr_progress() };
    }
}

/// Sums up the counters of all ranks, where that is wished. Called when the module of MPI_COMM_WORLD goes, in
/// MPI_Finalize.
pub fn gather(comm: &Comm) {
    // Rank 0 may be in another cluster, which not all reach: then each reports its own.
    let wanted = comm.config().report == Report::Sum && comm.is_apart() == Ok(false);
    if !wanted || IS_SUMMED.swap(true, Ordering::Relaxed) {
        return;
    }
    let own: Vec<u64> = [MAGIC].into_iter().chain(counters::snapshot()).collect();
    if comm.rank() == 0 { receive(comm, own) } else { send(comm, own) }
}

fn send(comm: &Comm, own: Vec<u64>) {
    let answer = Message::post(comm, 0, Vec::new(), true);
    let counters = Message::post(comm, 0, own, false);
    let messages = || [&answer, &counters].into_iter().flatten();
    wait(messages().count(), || messages().filter(|message| message.is_done()).count());
    answer.and_then(|message| message.finish(true));
    counters.and_then(|message| message.finish(false));
}

fn receive(comm: &Comm, mut sum: Vec<u64>) {
    let length = sum.len();
    let post = |rank| Message::post(comm, rank, vec![0; length], true).map(|message| (rank, message));
    let mut open: Vec<(u32, Message)> = (1..comm.size()).filter_map(post).collect();
    let (mut answers, mut ranks) = (Vec::new(), 1);
    wait(open.len(), || {
        let (done, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut open).into_iter().partition(|(_, m)| m.is_done());
        open = rest;
        for (rank, message) in done {
            if let Some(words) = message.finish(true).filter(|words| words[0] == MAGIC) {
                sum.iter_mut().zip(words).for_each(|(all, one)| *all = all.wrapping_add(one));
                ranks += 1;
            }
            answers.extend(Message::post(comm, rank, Vec::new(), false));
        }
        answers.len()
    });
    wait(answers.len(), || answers.iter().filter(|message| message.is_done()).count());
    answers.into_iter().for_each(|message| _ = message.finish(false));
    open.into_iter().for_each(|(_, message)| _ = message.finish(true));
    print_lines(&report::table(&counters::counts(&sum[1..]), ranks, comm.size() as usize));
}

/// Line by line: a pipe takes a page at once, at most.
fn print_lines(text: &str) {
    text.lines().for_each(print);
}

/// The report of this process, when the component is closed.
pub fn report(config: &Config, host: &str) {
    let name = name::own_name();
    let counts = || counters::counts(&counters::snapshot());
    match &config.report {
        Report::None => {}
        Report::Ranks => print_lines(&report::lines(&format!("rank {}", name.rank), &counts())),
        // Without MPI_COMM_WORLD, as in sessions, or with one process in it, or in several clusters.
        Report::Sum if IS_SUMMED.load(Ordering::Relaxed) => {}
        Report::Sum => print_lines(&report::lines(&format!("rank {}", name.rank), &counts())),
        Report::Json(folder) => {
            let text = report::json(&counts(), env!("CARGO_PKG_VERSION"), name.job, name.rank, host);
            if let Err(why) = write(folder, &format!("coll_rust.{}.{}.json", name.job, name.rank), &text) {
                show(
                    Topic::Warning,
                    &format!("coll_rust_report: the file in {} cannot be written: {why}", folder.display()),
                );
            }
        }
    }
}

/// Writes a file in one step: who looks into the folder finds a whole one or none.
fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let draft = folder.join(format!(".{name}.new"));
    fs::write(&draft, text).and_then(|()| fs::rename(&draft, folder.join(name))).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}
