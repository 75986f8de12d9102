// SPDX-License-Identifier: BSD-3-Clause
//! Another process of the node: its pool, and whether it lives.
//!
//! But for the [count of sleepers](crate::shm::memory::layout::Sleepers) in its first page nothing is written
//! there. All the same it is mapped writable on processors of AMD's: on a Zen 4 a read of a line that another
//! core has just written takes the line away from that core where the page may be written, and leaves it a
//! copy where it may only be read; and what one core alone has comes back to the writer sooner (of less than
//! 4 KiB; docs/design/rotating-slots.md). On other processors, and where assertions are checked, all but that
//! page is for reading only, so that a wrong write is a fault.
//!
//! process_vm_readv and process_vm_writev know a process by its number. A process that dies leaves its number
//! to another one, of the same user perhaps, whose memory nobody shall read, let alone write; and a number
//! may come up again within seconds (there are 32768 of them by default, given out in turn). So a look at the
//! process, which its descriptor keeps apart from all others, comes first: [`Peer::is_itself`]. A look takes
//! a system call, 0.2 µs where 64 KiB take 4, so that it is good for [`LOOK_NS`]: too short a time for
//! numbers to go round, however many processes are started. What remains is a caller that is stopped between
//! the look and the copy for as long as that takes. (Linux has no such call that takes a descriptor.)

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::shm::copy;
use crate::shm::copy::smsc::Endpoint;
use crate::shm::memory::layout::LOCKED;
use crate::shm::os::failure::Failure;
use crate::shm::os::lifelock::Lifelock;
use crate::shm::pool::locator::{Locator, pid_space};
use crate::shm::pool::mapping::Mapping;
use crate::sync::clock;
use crate::sync::files::beyond_standard;

/// Another process' pool.
#[derive(Debug)]
pub struct Peer {
    /// Where it is.
    pub locator: Locator,
    /// All of it. Only its first page (of the system) is sure to be writable.
    pub map: Mapping,
    watch: Watch,
    /// When the process was last seen alive.
    seen: AtomicU64,
    /// A probe has found that process_vm_readv reads its private memory.
    pub(in crate::shm) readable: AtomicBool,
    /// By which a component reads its private memory; there from the first successful probe on.
    pub(in crate::shm) smsc: OnceLock<Endpoint>,
}

impl Peer {
    /// Maps the pool of another process.
    pub fn attach(locator: &Locator) -> Result<Peer, Failure> {
        let same_space = locator.pid_space != 0 && locator.pid_space == pid_space();
        // The watch begins before the token is checked: then the process watched is the owner, and no later
        // one of the same number.
        let watch = same_space.then(|| Watch::start(locator.pid));
        let file = open(locator, same_space)?;
        let bytes = locator.length;
        let cannot = |e| Failure::of(format!("cannot map {bytes} bytes of the pool of {}", owner(locator)), e);
        let writable = !cfg!(debug_assertions) && copy::reads_take_over();
        let map = Mapping::of(&file, bytes, writable).map_err(cannot)?;
        let watch = watch.unwrap_or_else(|| Watch::from_outside(file, &map));
        if watch.is_dead() {
            return Err(Failure::new(format!("{} has died", owner(locator))));
        }
        Ok(Peer {
            locator: locator.clone(),
            map,
            watch,
            seen: AtomicU64::new(0),
            readable: AtomicBool::new(false),
            smsc: OnceLock::new(),
        })
    }

    /// Whether its number is that of its process, and no other's: before an access to private memory by that
    /// number.
    #[inline]
    pub fn is_itself(&self) -> bool {
        let now = clock::nanoseconds();
        now.wrapping_sub(self.seen.load(Ordering::Relaxed)) < LOOK_NS || self.look(now)
    }

    #[cold]
    fn look(&self, now: u64) -> bool {
        let alive = !self.is_dead();
        if alive {
            self.seen.store(now, Ordering::Relaxed);
        }
        alive
    }

    /// Whether its process is known to be dead.
    pub fn is_dead(&self) -> bool {
        self.watch.is_dead()
    }
}

/// How long a look at a process is good for.
const LOOK_NS: u64 = 10_000_000;

fn owner(locator: &Locator) -> String {
    format!("process {} (local rank {})", locator.pid, locator.place.local)
}

/// Opens a pool by its name, and where it has none any more, or never had, through its owner's descriptor.
fn open(locator: &Locator, same_space: bool) -> Result<File, Failure> {
    let through = PathBuf::from(format!("/proc/{}/fd/{}", locator.pid, locator.fd));
    let named = match &locator.path {
        None => None,
        Some(path) => match open_at(path, locator) {
            Ok(file) => return Ok(file),
            Err(failure) => Some(failure),
        },
    };
    let file = match same_space {
        true => open_at(&through, locator),
        false => Err(Failure::new(format!("{} is in another PID name space", owner(locator)))),
    };
    file.map_err(|failure| match named {
        Some(named) => Failure::new(format!("{named}; {failure}")),
        None => failure,
    })
}

/// Opens a file if it is the pool. What lies there may be anything: a device would be opened with effects, a
/// pipe would block.
fn open_at(path: &Path, locator: &Locator) -> Result<File, Failure> {
    let cannot = |error| Failure::of(format!("cannot open {} of {}", path.display(), owner(locator)), error);
    let is_pool = |data: &fs::Metadata| data.is_file() && data.len() == locator.length;
    let mut token = [0; 16];
    if is_pool(&fs::metadata(path).map_err(cannot)?) {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(cannot)?;
        let file = File::from(beyond_standard(file.into()).map_err(cannot)?);
        if is_pool(&file.metadata().map_err(cannot)?) {
            file.read_exact_at(&mut token, 0).map_err(cannot)?;
            if token == locator.token {
                return Ok(file);
            }
        }
    }
    Err(Failure::new(format!("{} is not the pool of {}", path.display(), owner(locator))))
}

/// Whether a process has died.
#[derive(Debug)]
enum Watch {
    /// Nobody knows.
    Unknown,
    /// In another PID name space, or a system without /proc: by the lock on its pool.
    Lock(Lifelock),
    /// By a descriptor of the process, which no later process of the same number can be mistaken for.
    Descriptor(OwnedFd),
    /// By its number, and when it started (clock ticks after the boot).
    Number(i32, Option<u64>),
}

impl Watch {
    /// Of the owner of a pool, whose number means nothing here.
    fn from_outside(file: File, map: &Mapping) -> Watch {
        // SAFETY: within the first page, aligned; its owner wrote it before anybody knew of the pool.
        let locked = unsafe { map.start().wrapping_add(LOCKED).cast::<u64>().read() } == 1;
        match Lifelock::of(file) {
            Ok(lock) if locked => Watch::Lock(lock),
            _ => Watch::Unknown,
        }
    }

    fn start(pid: i32) -> Watch {
        // nix has neither this call nor that of `is_pidfd`.
        // SAFETY: only a number; the call makes a descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        match i32::try_from(fd) {
            // SAFETY: a descriptor that was just made.
            Ok(fd) if fd >= 0 => match beyond_standard(unsafe { OwnedFd::from_raw_fd(fd) }) {
                Ok(fd) => Watch::Descriptor(fd),
                Err(_) => Watch::by_number(pid),
            },
            // Linux before 5.3, a filter of system calls, no more descriptors, or no such process.
            _ => Watch::by_number(pid),
        }
    }

    fn by_number(pid: i32) -> Watch {
        Watch::Number(pid, stat(pid).map(|(_, started)| started))
    }

    fn is_dead(&self) -> bool {
        match self {
            Watch::Unknown => false,
            Watch::Lock(lock) => lock.is_gone(),
            Watch::Descriptor(fd) => {
                let mut asked = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
                let ready = poll(&mut asked, PollTimeout::ZERO) == Ok(1);
                // It is readable when the process has ended, waited for or not.
                let ended = PollFlags::POLLIN | PollFlags::POLLHUP;
                ready && asked[0].revents().is_some_and(|events| events.intersects(ended)) && is_pidfd(fd)
            }
            Watch::Number(pid, started) => {
                let gone = kill(Pid::from_raw(*pid), None) == Err(Errno::ESRCH);
                let other = stat(*pid)
                    .is_some_and(|(state, now)| matches!(state, 'Z' | 'X') || started.is_some_and(|then| then != now));
                gone || other
            }
        }
    }
}

/// Whether it is a descriptor of a process. A program may close those that it does not know, and get the same
/// number for something else.
fn is_pidfd(fd: &OwnedFd) -> bool {
    // SAFETY: signal 0 is none.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), 0, ptr::null::<u8>(), 0) };
    sent == 0 || Errno::last() != Errno::EBADF
}

/// State and start of a process, as proc(5) has them.
fn stat(pid: i32) -> Option<(char, u64)> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name in parentheses may hold anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::process::{Child, Command, Stdio};

    use nix::sys::signal::Signal;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;

    fn cat() -> Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Both watches see a process live, and see it dead before and after it is waited for.
    #[test]
    fn a_dead_process_is_seen() {
        let mut child = cat();
        let pid = child.id() as i32;
        let watches = [Watch::start(pid), Watch::by_number(pid)];
        assert!(watches.iter().all(|watch| !watch.is_dead()));
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        // WNOWAIT leaves the zombie.
        waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(watches.iter().all(Watch::is_dead), "a zombie: {watches:?}");
        child.wait().unwrap();
        assert!(watches.iter().all(Watch::is_dead), "nothing left: {watches:?}");
        assert!(Watch::start(pid).is_dead());
    }

    #[test]
    fn what_has_got_the_number_of_a_watch_is_not_taken_for_a_death() {
        // Of what is always readable, and of a process that lives.
        let zeros = File::open("/dev/zero").unwrap();
        assert!(!Watch::Descriptor(zeros.into()).is_dead());
        let mut child = cat();
        let watch = Watch::start(child.id() as i32);
        assert!(matches!(&watch, Watch::Descriptor(fd) if is_pidfd(fd)) && !watch.is_dead());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(watch.is_dead());
    }

    #[test]
    fn a_number_that_is_used_again_is_dead() {
        let pid = std::process::id() as i32;
        let (_, started) = stat(pid).unwrap();
        assert!(!Watch::Number(pid, Some(started)).is_dead());
        assert!(Watch::Number(pid, Some(started - 1)).is_dead());
        assert!(!Watch::Unknown.is_dead());
    }
}
