//! Parameters, the exchange at start-up, and messages that stop the job.

use super::counters::leak;
use super::glue::{self, CR_ERR_OTHER, cr_param, cr_proc, ompi_communicator_t};
use super::network::{missing, network};
use super::{placement, smsc};
use crate::params::{self, Config, ZeroCopy};
use crate::shm::copy;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The parameters' values, as MCA holds them: a C string each, or null.
static VALUES: [AtomicPtr<c_char>; params::TABLE.len()] =
    [const { AtomicPtr::new(ptr::null_mut()) }; params::TABLE.len()];

/// The parsed parameters, or the message that says what is wrong with them.
static CONFIG: OnceLock<Result<Config, String>> = OnceLock::new();

/// The table that the shim registers; made once, kept for ever.
pub fn table() -> &'static [cr_param] {
    struct Table(Vec<cr_param>);
    // SAFETY: the pointers are to leaked strings and to statics.
    unsafe impl Send for Table {}
    // SAFETY: as above.
    unsafe impl Sync for Table {}
    static TABLE: OnceLock<Table> = OnceLock::new();
    &TABLE
        .get_or_init(|| {
            let rows = params::TABLE.iter().zip(&VALUES).map(|(p, value)| cr_param {
                name: leak(p.name.to_owned()),
                help: leak(p.help.to_owned()),
                default_text: leak(p.default.to_owned()),
                value: value.as_ptr(),
                level: i32::from(p.level),
                was: names(p.was),
            });
            Table(rows.collect())
        })
        .0
}

/// The names as C strings, null behind the last one; never freed.
fn names(list: &[&str]) -> *const *const c_char {
    let pointers: Vec<_> = list.iter().map(|name| leak((*name).to_owned())).chain([ptr::null()]).collect();
    Box::leak(pointers.into_boxed_slice()).as_ptr()
}

/// The value of each parameter as text, in the order of the table.
fn texts() -> Vec<String> {
    let text = |value: &AtomicPtr<c_char>, default: &str| {
        let value = value.load(Ordering::Relaxed);
        if value.is_null() {
            return default.to_owned();
        }
        // SAFETY: MCA keeps a NUL-terminated string there once the parameters are registered.
        unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned()
    };
    params::TABLE.iter().zip(&VALUES).map(|(p, v)| text(v, p.default)).collect()
}

/// Parses the parameters and publishes what other processes want to know of this one. A wrong value is kept for
/// [`config`]: `ompi_info` loads components too, and must not fail.
pub fn init() {
    CONFIG.get_or_init(|| {
        let texts = texts();
        params::check_names(std::env::vars_os().filter_map(|(k, _)| k.into_string().ok()))?;
        let mut config = params::parse(texts.iter().map(String::as_str))?;
        params::set_for_tests(&mut config, |name| std::env::var(name).ok())?;
        match config.shm.zero_copy == ZeroCopy::Smsc && !smsc::is_supported() {
            true => Err(smsc::UNSUPPORTED.to_owned()),
            false => Ok(config),
        }
    });
    if let Ok(config) = config() {
        copy::set_stores(config.shm.stores);
    }
    if let Ok(card) = CString::new(own_card_text()) {
        // SAFETY: a NUL-terminated string. A failure shows when somebody looks for the card.
        unsafe { glue::cr_modex_put(card.as_ptr()) };
    }
}

/// This process's card: where it sits, and the parameters that differ from their defaults.
fn own_card_text() -> String {
    let mut card = placement::own_card();
    for (param, text) in params::TABLE.iter().zip(texts()) {
        if text != param.default {
            card.push_str(&format!("{}={}\n", param.name, text.replace('\n', " ")));
        }
    }
    card
}

/// The parameters, or the message about them.
pub fn config() -> Result<&'static Config, &'static str> {
    match CONFIG.get() {
        Some(Ok(config)) => Ok(config),
        Some(Err(message)) => Err(message),
        None => Err("coll/rust was asked to work before it was initialised"),
    }
}

/// The parameters that differ from their defaults in a process's card: its lines `name=value`.
fn settings(card: &str) -> impl Iterator<Item = (&str, &str)> {
    card.lines().skip(placement::CARD_LINES).filter_map(|line| line.split_once('='))
}

/// Compares this process's parameters with those of another one.
pub fn compare(own: &str, other: &str) -> Result<(), String> {
    for p in params::TABLE {
        let find = |card| settings(card).find(|(name, _)| *name == p.name).map_or(p.default, |(_, value)| value);
        let (a, b) = (find(own), find(other));
        if a != b {
            return Err(format!("{}{} is \"{a}\" here, but \"{b}\" there", params::PREFIX, p.name));
        }
    }
    Ok(())
}

/// Checks what must hold for the processes of this job among those of a communicator: every one has the component,
/// with the same parameters. Ends the job where it does not. Each looks at the first one and at the next one: if all find
/// what they look for, all are alike. It waits for the others' cards, which MPI_Init need not: so the communicator's first
/// collective does it.
pub fn check_members(comm: *mut ompi_communicator_t, names: &[cr_proc]) {
    static ALIKE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    let alike = || ALIKE.lock().unwrap_or_else(PoisonError::into_inner);
    let own = placement::own_name();
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
            own.rank,
            &format!(
                "rank {} (on {host}) has the component, but rank {rank} has not; select the same components on all ranks (--mca coll), and install \
                 coll/rust on all nodes",
                own.rank
            ),
        );
    };
    if let Err(difference) = compare(&own_card, &other) {
        fatal(
            comm,
            own.rank,
            &format!(
                "parameters differ between the ranks of the job: {difference} (here: rank {} on {host}; there: rank {rank}). Set them \
                 for the whole job, with mpiexec --mca or in the environment of mpiexec.",
                own.rank
            ),
        );
    }
}

/// Compares the parameters of the jobs in a communicator. (Those within a job are compared by [`check_members`].) All ranks look at the
/// first rank of every job, so all find the same.
pub fn compare_jobs(names: &[cr_proc]) -> Result<(), i32> {
    let mut firsts: Vec<(usize, &cr_proc)> = Vec::new();
    for (rank, name) in names.iter().enumerate() {
        if firsts.iter().all(|(_, first)| first.job != name.job) {
            firsts.push((rank, name));
        }
    }
    let card = |name| card(name).map_err(|code| if code == 0 { CR_ERR_OTHER as i32 } else { code });
    let reference = card(firsts[0].1)?;
    for &(rank, name) in &firsts[1..] {
        if let Err(difference) = compare(&card(name)?, &reference) {
            print(&format!(
                "coll/rust: parameters differ between the jobs of a communicator: {difference} (here: rank {rank}; there: rank 0). \
                 Give all jobs the same values."
            ));
            return Err(CR_ERR_OTHER as i32);
        }
    }
    Ok(())
}

/// The card that a process of the same job has published.
pub fn card(process: &cr_proc) -> Result<String, i32> {
    let mut text: *mut c_char = ptr::null_mut();
    // SAFETY: on success `text` is a malloc'd string that is ours.
    unsafe {
        let code = glue::cr_modex_get(process, &mut text);
        if code != 0 || text.is_null() {
            return Err(code);
        }
        let card = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Ok(card)
    }
}

/// Prints a message to standard error, in one piece.
pub fn print(message: &str) {
    if let Ok(text) = CString::new(message.replace('\0', " ") + "\n") {
        // SAFETY: a NUL-terminated string.
        unsafe { glue::cr_print(text.as_ptr()) };
    }
}

/// Prints a message for who wants to hear more: at verbose level 2.
pub fn remark(message: &str) {
    if config().is_ok_and(|config| config.verbose >= 2) {
        print(&format!("coll/rust: {message}"));
    }
}

/// Prints a message and ends the job. Processes of higher rank wait first: where all have the same to say, the one of the lowest rank says it, and its
/// abort ends the others, which on a busy machine takes some hundred milliseconds.
pub fn fatal(comm: *mut ompi_communicator_t, rank: u32, message: &str) -> ! {
    std::thread::sleep(Duration::from_millis(500 * u64::from(rank.min(12))));
    print(&format!("coll/rust: {message}"));
    // SAFETY: the communicator that is being set up; Open MPI ends the process here.
    unsafe { glue::cr_abort(comm, 1) };
    std::process::abort()
}

/// The parameters in force, a line each.
pub fn settings_text() -> String {
    let lines = params::TABLE.iter().zip(texts()).map(|(p, text)| format!("{}{} = {text}\n", params::PREFIX, p.name));
    lines.collect()
}

/// Checks what this process can tell by itself of the job: its network file names this node. Ends the job where it does not.
pub fn check_world(comm: *mut ompi_communicator_t) {
    let own = placement::own_name();
    let own_card = own_card_text();
    let host = own_card.lines().next().unwrap_or_default();
    match network() {
        Ok(None) => {}
        Ok(Some(network)) if network.switches(host).is_some() => {}
        Ok(Some(_)) => fatal(comm, own.rank, &missing(host)),
        Err(message) => fatal(comm, own.rank, message),
    }
}
