//! Where the memory of a pool comes from: an anonymous file (memfd), or a file in a folder such as /dev/shm; and mapping it.
//!
//! A file is sparse: pages are taken by [`Store::reserve`] before anybody touches them, so that a full file system, or a full
//! memory of the job, is an error there and not a SIGBUS later. fallocate(2) takes them by the caller's memory policy (tmpfs and memfd
//! allocate like a first touch by the caller would; without a policy of its own, on the NUMA node that the caller runs on),
//! so a process that is bound finds its pool in its own node, and nothing is left to readers that touch first.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use super::alloc::PageSet;
use super::failure::Failure;
use super::locator::LONGEST_PATH;
use super::memory::Page;
use super::pool::PAGE;
use crate::sync::pages;

/// Where the memory of a pool comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// memfd_create(2): a file without a name; peers open it as /proc/PID/fd/FD.
    Memfd,
    /// A file in this folder, of which peers open the name.
    Folder(PathBuf),
}

/// Pages are reserved in pieces of so many bytes, so that a process that gets signals all the time comes on nevertheless.
const PIECE: u64 = 1 << 20;

/// Sixteen random bytes.
pub fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0u8; 16];
    let mut done = 0;
    while done < bytes.len() {
        // SAFETY: the rest of `bytes` starts there and is so long.
        let got = unsafe { libc::getrandom(bytes[done..].as_mut_ptr().cast(), bytes.len() - done, 0) };
        match got {
            0.. => done += got as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(Failure::of("getrandom", error));
                }
            }
        }
    }
    Ok(bytes)
}

/// Bytes of a page of the system.
pub fn system_page() -> u64 {
    // SAFETY: only a query.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// A shared mapping of a file, from its beginning on.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// Pages that have been [mapped ahead](Mapping::map_ahead). They stay so, as a rule: pools keep what groups have used.
    ahead: Mutex<PageSet>,
}

// SAFETY: a mapping is an address; who reads and writes there answers for it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`, writable.
    pub fn of(file: &File, len: u64) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = u32::try_from(len.div_ceil(PAGE)).unwrap_or(u32::MAX);
        Ok(Mapping { start, len, ahead: Mutex::new(PageSet::new(pages)) })
    }

    /// Maps pages of the pool that have not been mapped so before, to be read, or written too. Again it would change nothing, but take 50 µs for 2 MiB.
    pub fn map_ahead(&self, first: Page, count: u32, writable: bool) {
        let end = (u64::from(first) + u64::from(count)) * PAGE as u64;
        assert!(end <= self.len as u64, "page {first}, {count} pages: outside the pool");
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        for run in ahead.runs(first, count).iter().filter(|run| !run.inside) {
            let at = self.start().wrapping_add(run.first as usize * PAGE);
            pages::map(at, run.count as usize * PAGE, writable);
        }
        ahead.add(first, count);
    }

    /// Makes what follows byte `at`, the beginning of a page of the system, for reading only.
    pub fn only_read_from(&self, at: u64) -> io::Result<()> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at >= self.len {
            return Ok(());
        }
        // SAFETY: within the mapping, where nothing is writing.
        match unsafe { libc::mprotect(self.start().wrapping_add(at).cast(), self.len - at, libc::PROT_READ) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Where it starts: at a page of the system.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody holds an address in it any more (`Group` and `Pool` see to it).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The file of a pool, as its owner has it.
#[derive(Debug)]
pub struct Store {
    file: File,
    /// Its name, where it has ever had one.
    path: Option<PathBuf>,
    /// All of it, writable.
    pub map: Mapping,
}

impl Store {
    /// A sparse file of `bytes` (whole pages of the system), mapped.
    pub fn create(backing: &Backing, bytes: u64) -> Result<Store, Failure> {
        check_limit(bytes)?;
        let (file, path) = match backing {
            Backing::Memfd => (memfd()?, None),
            Backing::Folder(folder) => named(folder).map(|(file, path)| (file, Some(path)))?,
        };
        match fill(&file, bytes) {
            Ok(map) => {
                if path.is_none() {
                    // Nobody can cut it under its readers. Without the seals it works as well.
                    // SAFETY: only flags of our file.
                    unsafe {
                        libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)
                    };
                }
                Ok(Store { file, path, map })
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
            if let Err(error) = self.fallocate(0, at + done, piece) {
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
        bytes == 0 || self.fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, at, bytes).is_ok()
    }

    /// Bytes that the system holds for it.
    pub fn held(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map_or(0, |data| data.blocks() * 512)
    }

    fn fallocate(&self, mode: i32, at: u64, bytes: u64) -> io::Result<()> {
        loop {
            // SAFETY: only the file's pages, of which those in use are not given back.
            if unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at as libc::off_t, bytes as libc::off_t) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn place(&self) -> String {
        let folder = self.path.as_ref().and_then(|path| path.parent());
        folder.map_or_else(|| "memory".to_owned(), |folder| folder.display().to_string())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.forget_name();
    }
}

/// A file beyond the limit of file sizes would be a signal (SIGXFSZ), not an error.
fn check_limit(bytes: u64) -> Result<(), Failure> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills `limit`.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && bytes > limit.rlim_cur {
        return Err(Failure::new(format!(
            "a pool of {bytes} bytes is beyond the limit of file sizes, {} bytes (ulimit -f)",
            limit.rlim_cur
        )));
    }
    Ok(())
}

fn memfd() -> Result<File, Failure> {
    const NAME: &CStr = c"coll_rust";
    let create = |flags| {
        // SAFETY: a name with a 0 at its end.
        unsafe { libc::memfd_create(NAME.as_ptr(), flags) }
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Linux before 6.3 knows no MFD_NOEXEC_SEAL; later ones complain in their log where it is missing.
    let fd = match create(flags | libc::MFD_NOEXEC_SEAL) {
        -1 => create(flags),
        fd => fd,
    };
    if fd < 0 {
        return Err(Failure::last("memfd_create"));
    }
    // SAFETY: a descriptor that was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

fn named(folder: &Path) -> Result<(File, PathBuf), Failure> {
    let hex: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("coll_rust.{hex}"));
    let length = path.as_os_str().len();
    if !folder.is_absolute() || length > LONGEST_PATH {
        let what = format!(
            "{} is no folder for pools: an absolute path of at most {} bytes is",
            folder.display(),
            LONGEST_PATH - 43
        );
        return Err(Failure::new(what));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    match options.open(&path) {
        Ok(file) => Ok((file, path)),
        Err(error) => Err(Failure::of(format!("cannot create {}", path.display()), error)),
    }
}

fn fill(file: &File, bytes: u64) -> Result<Mapping, Failure> {
    file.set_len(bytes).map_err(|e| Failure::of(format!("cannot make a pool {bytes} bytes long"), e))?;
    Mapping::of(file, bytes).map_err(|e| Failure::of(format!("cannot map a pool of {bytes} bytes"), e))
}
