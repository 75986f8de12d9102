// SPDX-License-Identifier: BSD-3-Clause
//! Where the memory of a pool comes from: an anonymous file (memfd), or a file in a folder such as /dev/shm.
//!
//! A file is sparse: pages are taken by [`Store::reserve`] before anybody touches them, so that a full file
//! system is an error there and not a SIGBUS later; but [not where they need not](Store::comes_by_touch).
//! fallocate(2) takes them by the caller's memory policy (tmpfs and memfd allocate like a first touch by the
//! caller would; without a policy of its own, on the NUMA node that the caller runs on), so a process that is
//! bound finds its pool in its own node, and nothing is left to readers that touch first.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};

use crate::shm::os::failure::Failure;
use crate::shm::os::lifelock::Lifelock;
use crate::shm::os::random;
use crate::shm::pool::locator::LONGEST_PATH;
use crate::shm::pool::mapping::Mapping;
use crate::sync::files::{self, beyond_standard};

/// Where the memory of a pool comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// memfd_create(2): a file without a name; peers open it as /proc/PID/fd/FD.
    Memfd,
    /// A file without a name in this folder, which peers open in the same way. However its owner ends,
    /// nothing is left.
    Unnamed(PathBuf),
    /// A file in this folder, of which peers open the name: for those that may not look into each other's
    /// /proc.
    Folder(PathBuf),
}

impl Backing {
    /// The folder, where it has one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Backing::Memfd => None,
            Backing::Unnamed(folder) | Backing::Folder(folder) => Some(folder),
        }
    }
}

/// Pages are reserved in pieces of so many bytes, so that a process that gets signals all the time comes on
/// nevertheless.
const PIECE: u64 = 1 << 20;

/// The file of a pool, as its owner has it.
#[derive(Debug)]
pub struct Store {
    file: File,
    /// Its name, where it has ever had one.
    path: Option<PathBuf>,
    /// Where it lies, if not in memory.
    folder: Option<PathBuf>,
    /// Pages that nobody has reserved come when they are touched, and nobody gets SIGBUS.
    comes_by_touch: bool,
    /// Addresses for all of it, writable where it is open.
    pub map: Mapping,
}

impl Store {
    /// A sparse file of `bytes` (whole pages of the system), with addresses for all of it.
    pub fn create(backing: &Backing, bytes: u64) -> Result<Store, Failure> {
        check_limit(bytes)?;
        let (file, path) = match backing {
            Backing::Memfd => (files::in_memory(c"coll_rust").map_err(|e| Failure::of("memfd_create", e))?, None),
            Backing::Unnamed(folder) => (unnamed(folder)?, None),
            Backing::Folder(folder) => named(folder).map(|(file, path)| (file, Some(path)))?,
        };
        let in_memory = *backing == Backing::Memfd;
        match fill(&file, bytes) {
            Ok(map) => {
                if in_memory {
                    // Nobody can cut it under its readers. Without the seals it works as well.
                    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
                    let _ = fcntl(&file, FcntlArg::F_ADD_SEALS(seals));
                }
                let comes_by_touch = in_memory && !counts_ahead();
                Ok(Store { file, path, folder: backing.folder().map(Path::to_owned), comes_by_touch, map })
            }
            Err(failure) => {
                path.iter().for_each(|path| drop(fs::remove_file(path)));
                Err(failure)
            }
        }
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether pages need not be reserved.
    pub fn comes_by_touch(&self) -> bool {
        self.comes_by_touch
    }

    /// The number of its descriptor, for peers.
    pub fn fd(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// The name it has, or had.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Removes its name; the memory stays.
    pub fn forget_name(&self) {
        if let Some(path) = &self.path {
            drop(fs::remove_file(path));
        }
    }

    /// Takes the pages of bytes `at..at + bytes`: all of them, or none. They are zero.
    pub fn reserve(&self, at: u64, bytes: u64) -> Result<(), Failure> {
        let mut done = 0;
        while done < bytes {
            let piece = PIECE.min(bytes - done);
            if let Err(error) = self.fallocate(FallocateFlags::empty(), at + done, piece) {
                // A file system that is full to the last page would hurt others.
                self.unreserve(at, done);
                return Err(Failure::of(format!("fallocate of {bytes} bytes for a pool in {}", self.place()), error));
            }
            done += piece;
        }
        Ok(())
    }

    /// Gives pages back to the system, and tells whether that worked.
    pub fn unreserve(&self, at: u64, bytes: u64) -> bool {
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        bytes == 0 || self.fallocate(hole, at, bytes).is_ok()
    }

    /// Bytes that the system holds for it.
    pub fn held(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map_or(0, |data| data.blocks() * 512)
    }

    fn fallocate(&self, mode: FallocateFlags, at: u64, bytes: u64) -> nix::Result<()> {
        loop {
            match fallocate(&self.file, mode, at as libc::off_t, bytes as libc::off_t) {
                Err(Errno::EINTR) => {}
                done => return done,
            }
        }
    }

    fn place(&self) -> String {
        self.folder.as_ref().map_or_else(|| "memory".to_owned(), |folder| folder.display().to_string())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.forget_name();
    }
}

/// Whether the system refuses memory beyond what it has (vm.overcommit_memory = 2): a page that cannot be had
/// would be a signal.
fn counts_ahead() -> bool {
    fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|text| text.trim() == "2")
}

fn check_limit(bytes: u64) -> Result<(), Failure> {
    let longest = files::longest();
    if bytes > longest {
        return Err(Failure::new(format!(
            "a pool of {bytes} bytes is beyond the limit of file sizes, {longest} bytes (ulimit -f)"
        )));
    }
    Ok(())
}

/// A file that has no name, or, on file systems that have no such files, none any more.
fn unnamed(folder: &Path) -> Result<File, Failure> {
    if !folder.is_absolute() {
        return Err(not_for_pools(folder));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC);
    let cannot = |error| Failure::of(format!("cannot create a file in {}", folder.display()), error);
    match options.open(folder) {
        Ok(file) => Ok(beyond_standard(file.into()).map_err(cannot)?.into()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => {
            let (file, path) = named(folder)?;
            fs::remove_file(&path).map_err(|e| Failure::of(format!("cannot remove {}", path.display()), e))?;
            Ok(file)
        }
        Err(error) => Err(cannot(error)),
    }
}

fn not_for_pools(folder: &Path) -> Failure {
    let longest = LONGEST_PATH - 43;
    Failure::new(format!("{} is no folder for pools: an absolute path of at most {longest} bytes is", folder.display()))
}

/// How all names begin.
const PREFIX: &str = "coll_rust.";
/// A name is there for as long as a handshake takes. One that is so old, and whose owner is gone, has been
/// left.
const OLD: Duration = Duration::from_secs(60);

/// Removes names that processes have left which were killed in a handshake.
fn tidy(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let ours = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for entry in ours {
        let is_old = |data: fs::Metadata| {
            data.is_file() && data.modified().is_ok_and(|then| then.elapsed().is_ok_and(|age| age > OLD))
        };
        if !entry.metadata().is_ok_and(is_old) {
            continue;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
        let lock = options.open(entry.path()).and_then(Lifelock::of);
        if lock.is_ok_and(|lock| lock.is_gone()) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn named(folder: &Path) -> Result<(File, PathBuf), Failure> {
    tidy(folder);
    let hex: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("{PREFIX}{hex}"));
    let length = path.as_os_str().len();
    if !folder.is_absolute() || length > LONGEST_PATH {
        return Err(not_for_pools(folder));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    match options.open(&path) {
        Ok(file) => match beyond_standard(file.into()) {
            Ok(file) => Ok((file.into(), path)),
            Err(error) => {
                drop(fs::remove_file(&path));
                Err(Failure::of("fcntl", error))
            }
        },
        Err(error) => Err(Failure::of(format!("cannot create {}", path.display()), error)),
    }
}

fn fill(file: &File, bytes: u64) -> Result<Mapping, Failure> {
    file.set_len(bytes).map_err(|e| Failure::of(format!("cannot make a pool {bytes} bytes long"), e))?;
    Mapping::of(file, bytes, true).map_err(|e| Failure::of(format!("cannot map a pool of {bytes} bytes"), e))
}
