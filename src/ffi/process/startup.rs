// SPDX-License-Identifier: BSD-3-Clause
//! Parameters, the exchange at start-up, and messages that stop the job.

use crate::ffi::base::glue::{self, CR_ERR_OTHER, cr_proc, ompi_communicator_t};
use crate::ffi::base::messages::{self, fatal, show};
use crate::ffi::base::{config, name};
use crate::ffi::mpi::smsc;
use crate::ffi::process::card::{card, settings};
use crate::ffi::process::settings::{self as mca, Given, given};
use crate::ffi::process::{gateway, network, placement, version};
use crate::params::{self, Topic, ZeroCopy};
use crate::shm::copy;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What is said of names that are no parameter.
static UNKNOWN: OnceLock<Option<String>> = OnceLock::new();

/// Parses the parameters and publishes what other processes want to know of this one. A wrong value is kept
/// for [`config`]: `ompi_info` loads components too, and must not fail.
pub fn init() {
    config::parse(|| {
        let mut config = params::parse(given().iter().map(Given::value))?;
        params::set_for_tests(&mut config, |name| std::env::var(name).ok())?;
        match config.shm.zero_copy == ZeroCopy::Smsc && !smsc::is_supported() {
            true => Err(smsc::UNSUPPORTED.to_owned()),
            false => Ok(config),
        }
    });
    UNKNOWN.get_or_init(mca::unknown);
    if let Ok(config) = config::config() {
        copy::set_stores(config.shm.stores);
    }
    placement::own_host();
    if let Ok(card) = CString::new(own_card_text()) {
        // SAFETY: a NUL-terminated string. A failure shows when somebody looks for the card.
        unsafe { glue::cr_modex_put(card.as_ptr()) };
    }
}

/// This process's card: where it sits, its build, and the parameters that differ from their defaults.
fn own_card_text() -> String {
    let mut card = placement::own_card() + &version::card_line();
    for (param, Given { text, .. }) in params::TABLE.iter().zip(given()) {
        if text != param.default {
            card.push_str(&format!("{}={}\n", param.name, text.replace('\n', " ")));
        }
    }
    card + &network::card_lines() + &gateway::card_line() + &placement::card_line()
}

/// Compares this process's parameters with those of another one.
pub fn compare(own: &str, other: &str) -> Result<(), String> {
    let find = |card, key, default| settings(card).find(|(name, _)| *name == key).map_or(default, |(_, value)| value);
    for p in params::TABLE {
        let (a, b) = (find(own, p.name, p.default), find(other, p.name, p.default));
        if a != b {
            return Err(format!("{}{} is \"{a}\" here, but \"{b}\" there", params::PREFIX, p.name));
        }
    }
    // A file that cannot be read is another message.
    let texts = [own, other].map(|card| find(card, network::FILE, ""));
    if texts[0] != texts[1] && texts.iter().all(|text| !text.is_empty()) {
        return Err(format!("the file of {}network_file has one text here and another one there", params::PREFIX));
    }
    Ok(())
}

/// Checks what must hold for the processes of this job among those of a communicator: every one has the
/// component, with the same parameters. Ends the job where it does not. Each looks at the first one and at
/// the next one: if all find what they look for, all are alike. It waits for the others' cards, which
/// MPI_Init need not: so the communicator's first collective does it.
pub fn check_members(comm: *mut ompi_communicator_t, names: &[cr_proc]) {
    static ALIKE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    let alike = || ALIKE.lock().unwrap_or_else(PoisonError::into_inner);
    let own = name::own_name();
    let ranks = || names.iter().filter(|name| name.job == own.job).map(|name| name.rank);
    let next = ranks().cycle().skip_while(|&rank| rank != own.rank).nth(1);
    let others: Vec<u32> = ranks().next().into_iter().chain(next).filter(|rank| *rank != own.rank).collect();
    let unknown = |rank: &u32| !alike().contains(rank);
    // The lock is not held while a card is waited for.
    for rank in others.into_iter().filter(unknown) {
        check_member(comm, &own, rank);
        alike().insert(rank);
    }
}

/// Checks that a process of this job is like this one.
fn check_member(comm: *mut ompi_communicator_t, own: &cr_proc, rank: u32) {
    let own_card = own_card_text();
    let host = own_card.lines().next().unwrap_or_default();
    let Ok(other) = card(&cr_proc { job: own.job, rank }) else {
        fatal(
            comm,
            Topic::RanksDiffer,
            &format!(
                "rank {} (on {host}) has the component, but rank {rank} has not; select the same components on all ranks (--mca coll), and install \
                 coll/rust on all nodes",
                own.rank
            ),
        );
    };
    if let Err(message) = version::compare((own.rank, &own_card), (rank, &other)) {
        fatal(comm, Topic::RanksDiffer, &message);
    }
    if let Err(difference) = compare(&own_card, &other) {
        fatal(
            comm,
            Topic::RanksDiffer,
            &format!(
                "parameters differ between the ranks of the job: {difference} (here: rank {} on {host}; there: rank {rank}). Set them \
                 for the whole job, with mpiexec --mca or in the environment of mpiexec.",
                own.rank
            ),
        );
    }
}

/// Compares the parameters of the jobs in a communicator. (Those within a job are compared by
/// [`check_members`].) All ranks look at the first rank of every job, so all find the same.
pub fn compare_jobs(names: &[cr_proc]) -> Result<(), i32> {
    let mut firsts: Vec<(usize, &cr_proc)> = Vec::new();
    for (rank, name) in names.iter().enumerate() {
        if firsts.iter().all(|(_, first)| first.job != name.job) {
            firsts.push((rank, name));
        }
    }
    let card = |name| card(name).map_err(|code| if code == 0 { CR_ERR_OTHER as i32 } else { code });
    let reference = card(firsts[0].1)?;
    let alike = |rank, card: &str| {
        version::compare_jobs((rank, card), &reference)?;
        compare(card, &reference).map_err(|difference| {
            format!(
                "parameters differ between the jobs of a communicator: {difference} (here: rank {rank}; there: rank 0). Give all jobs the \
                 same values."
            )
        })
    };
    for &(rank, name) in &firsts[1..] {
        alike(rank, &card(name)?).map_err(|message| {
            messages::show_error(Topic::RanksDiffer, firsts[0].1.job, &message);
            CR_ERR_OTHER as i32
        })?;
    }
    Ok(())
}

/// Says what is wrong with names of parameters: the first process of a node does, or, where that ends the
/// job, every one.
fn check_names(comm: *mut ompi_communicator_t) {
    let Some(Some(unknown)) = UNKNOWN.get() else { return };
    if config::config().is_ok_and(|config| config.strict) {
        fatal(comm, Topic::UnknownNameStrict, unknown);
    }
    let (mut number, mut count, mut first) = (0, 0, 0);
    // SAFETY: fills in ours.
    unsafe { glue::cr_local(&mut number, &mut count, &mut first) };
    if number == 0 {
        show(Topic::UnknownName, unknown);
    }
}

/// The parameters in force, a line each.
pub fn settings_text() -> String {
    let lines =
        params::TABLE.iter().zip(given()).map(|(p, given)| format!("{}{} = {}\n", params::PREFIX, p.name, given.text));
    lines.collect()
}

/// Checks what this process can tell by itself of the job: its parameters exist, it can read its network
/// file. Ends the job where it does not.
pub fn check_world(comm: *mut ompi_communicator_t) {
    check_names(comm);
    if let Err(message) = network::check() {
        fatal(comm, Topic::NetworkFile, message);
    }
}
