// SPDX-License-Identifier: BSD-3-Clause
//! The connection with the gateway of the own cluster: at most one, made when the first message needs it, and
//! driven by Open MPI's progress.
//!
//! What fails once stays failed, since nobody knows what was lost on the way: all messages under way, and all
//! later ones, are errors.

mod identity;
mod memory;
mod socket;

use crate::endpoint::{Error, Result};
use crate::ffi::base::config::config;
use crate::ffi::base::glue::{self, CR_ERR_OTHER, cr_proc, ompi_communicator_t};
use crate::ffi::base::guard::guard_or;
use crate::ffi::base::{messages, name};
use crate::ffi::mpi::data::HostStream;
use crate::ffi::process::{network, placement};
use crate::params::Topic;
use crate::relay::hello::Hello;
use crate::relay::mail::{Failure, Handle, Peer};
use crate::relay::session::Session;
use socket::Socket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

pub use identity::card_line;

/// So long the gateway may take to let a process in.
const PATIENCE: Duration = Duration::from_secs(8);
/// So long nothing comes from the gateway at most while something is under way: it sends signs of life.
const SILENCE: Duration = Duration::from_secs(7);
/// So long a process that ends waits for the gateway to have read all.
const FAREWELL: Duration = Duration::from_secs(1);
/// While nothing is under way, the socket is looked at in one of so many progress calls.
const SELDOM: u32 = 64;
/// Bytes that are read in one progress call, about.
const GULP: u64 = 1 << 20;
/// Bytes that are read at once.
const BUFFER: usize = 128 << 10;

/// A process of another cluster, in a communicator.
#[derive(Clone, Copy)]
pub struct Remote {
    /// The number of the caller's cluster in the network file.
    pub from: u32,
    /// That of the other one.
    pub to: u32,
    /// Who it is.
    pub name: cr_proc,
    /// The communicator.
    pub comm: u64,
}

/// The connection.
struct Link {
    session: Session<HostStream>,
    /// None: it is lost, or there was none.
    socket: Option<Socket>,
    /// Of the gateway, for messages.
    address: String,
    /// For what is read.
    buffer: Vec<u8>,
    /// Bytes that have come.
    received: u64,
    /// When the last ones did.
    heard: Instant,
    /// What is still to be said.
    failure: Option<String>,
}

static LINK: Mutex<Option<Link>> = Mutex::new(None);
/// Whether there is one.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU32 = AtomicU32::new(0);

fn link() -> MutexGuard<'static, Option<Link>> {
    LINK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is said of a failure.
type Said = Option<String>;

/// Says what has failed, when nothing is locked.
fn tell(said: Said) {
    if let Some(text) = said {
        messages::show(Topic::Gateway, &text);
    }
}

const LOST: Error = Error::Mpi(CR_ERR_OTHER as i32);

/// Says that a process of another job is not to be had.
pub fn other_job() -> Error {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tell(Some(
            "a communicator has processes of several jobs in several clusters; gateways join clusters of one job only. \
             Start all processes by one mpiexec, or leave coll_rust_gateway out."
                .to_owned(),
        ));
    });
    LOST
}

/// Sends a message. The memory stays as it is until the message is over, or given up.
pub fn send(remote: Remote, tag: i32, memory: HostStream) -> Result<Handle> {
    post(remote, |session, peer| session.mail.send(peer, remote.comm, tag, memory))
}

/// Receives one.
pub fn recv(remote: Remote, tag: i32, memory: HostStream) -> Result<Handle> {
    post(remote, |session, peer| session.mail.recv(peer, remote.comm, tag, memory))
}

fn post(remote: Remote, post: impl FnOnce(&mut Session<HostStream>, Peer) -> Handle) -> Result<Handle> {
    let names = network::cluster_names();
    let Some(cluster) = u16::try_from(remote.to).ok().filter(|to| usize::from(*to) < names.len()) else {
        return Err(unnamed(&remote.name));
    };
    if remote.from as usize >= names.len() {
        return Err(unnamed(&name::own_name()));
    }
    let peer = Peer { cluster, name: u64::from(remote.name.job) << 32 | u64::from(remote.name.rank) };
    let mut guard = link();
    if guard.is_none() {
        // The runtime is asked who this job is, and may let in other operations of this thread.
        drop(guard);
        let made = Link::new(remote.from as usize, names);
        guard = self::link();
        if guard.is_none() {
            guard.insert(made).enter();
        }
    }
    let Some(link) = &mut *guard else { return Err(LOST) };
    let handle = post(&mut link.session, peer);
    let said = link.drive();
    drop(guard);
    tell(said);
    Ok(handle)
}

/// Of a node that is in no cluster of the network file.
fn unnamed(name: &cr_proc) -> Error {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tell(Some(format!(
            "rank {} is on a node of no cluster, so that no gateway serves it. Add the node to the network file.",
            name.rank
        )));
    });
    LOST
}

/// Whether a message is over, and how many bytes it had: then it is forgotten.
pub fn test(handle: Handle) -> Option<Result<usize>> {
    let end = link().as_mut()?.session.mail.test(handle)?;
    Some(end.map_err(|failure| match failure {
        Failure::Memory(code) => Error::Mpi(code),
        Failure::Lost | Failure::GivenUp => LOST,
    }))
}

/// Gives a message up: its memory is not touched any more.
pub fn give_up(handle: Handle) {
    if let Some(link) = link().as_mut() {
        link.session.mail.give_up(handle);
    }
}

/// A communicator goes, which is still alive.
pub fn forget(comm: *mut ompi_communicator_t) {
    if IS_OPEN.load(Ordering::Relaxed)
        && let Some(link) = link().as_mut()
    {
        // SAFETY: alive, as its module is.
        link.session.mail.forget(unsafe { glue::cr_comm_key(comm) });
    }
}

/// At the end of MPI: what was sent arrives, and the gateway is told that no more comes.
pub fn close() {
    let Some(mut link) = link().take() else { return };
    // SAFETY: registered in `Link::new`.
    unsafe { glue::cr_progress_unregister(Some(progress)) };
    if !link.session.is_let_in() {
        return;
    }
    link.session.end();
    let deadline = Instant::now() + FAREWELL;
    while Instant::now() < deadline {
        // An error is the end, which is what is waited for.
        let _ = link.drive();
        let Some(socket) = &link.socket else { return };
        if link.session.output().is_empty() {
            socket.finish();
        }
        socket.pause();
    }
}

/// Called by `opal_progress`. Returns whether anything has come.
unsafe extern "C" fn progress() -> i32 {
    guard_or(0, || {
        let Ok(mut guard) = LINK.try_lock() else { return 0 };
        let Some(link) = guard.as_mut().filter(|link| link.socket.is_some()) else { return 0 };
        if !link.session.mail.is_busy() && !CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(SELDOM) {
            return 0;
        }
        let before = link.received;
        let said = link.drive();
        let came = link.received != before;
        drop(guard);
        tell(said);
        came.into()
    })
}

impl Link {
    /// Begins to connect. What fails is said by [drive](Link::drive).
    fn new(own: usize, names: &[String]) -> Link {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the function stays in memory: the DSO is never unmapped (-z nodelete).
            unsafe { glue::cr_progress_register(Some(progress)) };
        });
        IS_OPEN.store(true, Ordering::Relaxed);
        let cluster = &names[own];
        let address = config().ok().and_then(|config| config.gateways.of(cluster)).unwrap_or_default().to_owned();
        let mut link = Link {
            session: Session::lost(),
            socket: None,
            address,
            buffer: vec![0; BUFFER],
            received: 0,
            heard: Instant::now(),
            failure: None,
        };
        match begin(&link.address, own, names) {
            Ok((session, socket)) => (link.session, link.socket) = (session, Some(socket)),
            Err(why) => {
                link.session.mail.lose(None, None);
                link.failure = Some(why);
            }
        }
        link
    }

    /// Waits until the gateway has let this process in, as it does at once, whatever other processes do. The
    /// program may not call MPI for a long time after this.
    fn enter(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.session.is_let_in() {
            let Some(socket) = &self.socket else { return };
            if Instant::now() > deadline {
                self.fail(&format!("it has not answered within {} s", PATIENCE.as_secs()));
                return;
            }
            socket.pause();
            self.step();
        }
    }

    fn fail(&mut self, why: &str) {
        self.socket = None;
        self.session.mail.lose(None, None);
        self.failure = Some(format!("the gateway of this cluster, {}: {why}", self.address));
    }

    fn step(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        let before = self.received;
        if let Err(why) = step(socket, &mut self.session, &mut self.buffer, &mut self.received) {
            self.fail(&why);
        } else if self.received != before {
            self.heard = Instant::now();
        } else if self.session.is_let_in() && self.session.mail.is_busy() && self.heard.elapsed() > SILENCE {
            // A program that did not call MPI for long has read the signs that came meanwhile just now.
            self.fail(&format!("it has not answered for {} s", SILENCE.as_secs()));
        }
    }

    /// Sends and receives what can be; what is to be said.
    fn drive(&mut self) -> Said {
        self.step();
        let mut said = std::mem::take(&mut self.session.notices);
        said.extend(self.failure.take());
        let own = name::own_name().rank;
        (!said.is_empty()).then(|| format!("rank {own} on {}: {}", placement::own_host(), said.join("\n")))
    }
}

/// Opens the connection: the key, the job's name, the address.
fn begin(address: &str, own: usize, names: &[String]) -> std::result::Result<(Session<HostStream>, Socket), String> {
    if address.is_empty() {
        return Err(format!("coll_rust_gateway names no gateway for cluster {}", names[own]));
    }
    let key = identity::key()?;
    let name = name::own_name();
    let hello = Hello {
        job: identity::job()?,
        process: u64::from(name.job) << 32 | u64::from(name.rank),
        cluster: own as u16,
        clusters: names.to_vec(),
        key: key.name.clone(),
        nonce: identity::nonce()?,
    };
    let session = Session::new(&hello, &key)?;
    Ok((session, Socket::connect(address)?))
}

/// One round with the socket. The error says why the connection is over.
fn step(
    socket: &mut Socket,
    session: &mut Session<HostStream>,
    buffer: &mut [u8],
    received: &mut u64,
) -> std::result::Result<(), String> {
    if !socket.is_connected()? {
        return Ok(());
    }
    let limit = *received + GULP;
    loop {
        loop {
            let output = session.output();
            if output.is_empty() {
                break;
            }
            match socket.write(output)? {
                0 => break,
                sent => session.sent(sent),
            }
        }
        let got = socket.read(buffer)?;
        if got == 0 {
            return Ok(());
        }
        *received += got as u64;
        session.received(&buffer[..got])?;
        if *received >= limit {
            return Ok(());
        }
    }
}
