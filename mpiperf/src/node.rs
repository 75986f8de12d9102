// SPDX-License-Identifier: BSD-3-Clause
//! What processes of one node have in common: shared memory, and copies to and from each other's private
//! memory.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::call;
use crate::error::{Error, Result};
use crate::mpi::{Comm, ffi};

/// Pages are this long, or a multiple of it.
pub const PAGE: usize = 4096;

/// Shared memory of all processes of a communicator, full of zeros at first. Each process has touched its
/// part of it: as many bytes as each other, in their order.
pub struct Window {
    raw: ffi::MPI_Win,
    base: *mut u8,
    bytes: usize,
}

impl Window {
    /// Allocates so many bytes, which begin with a page. Collective; fails where the processes are on several
    /// nodes.
    pub fn new(comm: &Comm, bytes: usize) -> Result<Window> {
        let whole = if comm.rank() == 0 { bytes + PAGE } else { 0 } as ffi::MPI_Aint;
        let mut base: *mut u8 = std::ptr::null_mut();
        // SAFETY: constants of the library.
        let (mut raw, info) = unsafe { (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL) };
        let out = (&raw mut base).cast();
        call!(MPI_Win_allocate_shared(whole, 1, info, comm.raw(), out, &mut raw))?;
        let (mut size, mut unit): (ffi::MPI_Aint, c_int) = (0, 0);
        call!(MPI_Win_shared_query(raw, 0, &mut size, &mut unit, out))?;
        // Loads and stores are allowed between these two.
        call!(MPI_Win_lock_all(0, raw))?;
        // Where pages begin for rank 0 they begin for the others, too: all map whole pages.
        let mut skip = [(base as usize).next_multiple_of(PAGE) as u64 - base as u64];
        comm.bcast(&mut skip, 0)?;
        // SAFETY: less than a page, which the window has to spare.
        let base = unsafe { base.add(skip[0] as usize) };
        // Each its part, which then lies on its node of memory.
        let [from, to] = [0, 1].map(|i| bytes * (comm.rank() + i) / comm.size());
        // SAFETY: the window is as long from here on; whoever uses it waits at the barrier first.
        unsafe { base.add(from).write_bytes(0, to - from) };
        comm.barrier()?;
        Ok(Window { raw, base, bytes })
    }

    /// Byte `at`.
    #[inline]
    pub fn at(&self, at: usize) -> *mut u8 {
        debug_assert!(at < self.bytes);
        // SAFETY: within the window.
        unsafe { self.base.add(at) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let mut over = 0;
        if call!(MPI_Finalized(&mut over)).is_ok() && over == 0 {
            let _ = call!(MPI_Win_unlock_all(self.raw));
            let _ = call!(MPI_Win_free(&mut self.raw));
        }
    }
}

/// How far the processes of a node have come: each has a count, which the others see, in cache lines of its
/// own.
pub struct Counts {
    start: *mut u8,
    me: usize,
    size: usize,
    mine: Cell<u64>,
}

impl Counts {
    /// Bytes between two counts: two cache lines, since processors fetch them in pairs.
    const APART: usize = 128;

    /// Counts of the processes of a communicator, all 0; none, where one of them cannot see those of rank 0
    /// (on another node, or behind another /proc). Collective. Memory that the MPI library knows nothing of:
    /// whoever fails may drop it alone.
    pub fn new(comm: &Comm) -> Result<Option<Counts>> {
        let bytes = comm.size() * Counts::APART;
        let own = if comm.rank() == 0 { shared_file(bytes).ok() } else { None };
        let mut place = [u64::from(std::process::id()), own.as_ref().map_or(u64::MAX, |file| file.as_raw_fd() as u64)];
        comm.bcast(&mut place, 0)?;
        let open = || File::options().read(true).write(true).open(format!("/proc/{}/fd/{}", place[0], place[1])).ok();
        // Open until all have come to the end.
        let file = own.or_else(open);
        let start = file.as_ref().and_then(|file| map(file, bytes));
        let counts = start.map(|start| Counts { start, me: comm.rank(), size: comm.size(), mine: Cell::new(0) });
        // Whether it is the same one shows in the marks that they see there.
        counts.iter().for_each(Counts::introduce);
        comm.barrier()?;
        let all = comm.allgather(&[u64::from(counts.as_ref().is_some_and(Counts::met))])?;
        Ok(counts.filter(|_| all.iter().all(|met| *met == 1)))
    }

    /// Leaves a mark for [`met`](Counts::met).
    fn introduce(&self) {
        self.mark(self.me).store(self.me as u64 + 1, Ordering::Relaxed);
    }

    /// Whether all have left theirs.
    fn met(&self) -> bool {
        (0..self.size).all(|rank| self.mark(rank).load(Ordering::Relaxed) == rank as u64 + 1)
    }

    fn mark(&self, rank: usize) -> &AtomicU64 {
        self.word(rank * Counts::APART + 8)
    }

    /// Counts on, for this process.
    pub fn advance(&self) {
        self.mine.set(self.mine.get() + 1);
        self.of(self.me).store(self.mine.get(), Ordering::Relaxed);
    }

    /// Whether all others have come as far.
    pub fn all_here(&self) -> bool {
        (0..self.size).all(|rank| self.of(rank).load(Ordering::Relaxed) >= self.mine.get())
    }

    fn of(&self, rank: usize) -> &AtomicU64 {
        self.word(rank * Counts::APART)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < self.size * Counts::APART);
        // SAFETY: aligned, within the mapping, which begins with zeros, and only accessed so.
        unsafe { &*self.start.add(at).cast() }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.size * Counts::APART) };
    }
}

/// A file of so many zeros without a name, for [`Counts`].
#[cfg(target_os = "linux")]
fn shared_file(bytes: usize) -> std::io::Result<File> {
    // SAFETY: a name that ends with 0; the descriptor is new.
    let file = unsafe {
        match libc::memfd_create(c"mpiperf".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => return Err(std::io::Error::last_os_error()),
            descriptor => File::from_raw_fd(descriptor),
        }
    };
    file.set_len(bytes as u64)?;
    Ok(file)
}

/// None.
#[cfg(not(target_os = "linux"))]
fn shared_file(_: usize) -> std::io::Result<File> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Maps a file that processes share.
fn map(file: &File, bytes: usize) -> Option<*mut u8> {
    if file.metadata().ok()?.len() != bytes as u64 {
        return None;
    }
    let (rights, null) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
    // SAFETY: new memory, at an address of the system's choice.
    let start = unsafe { libc::mmap(null, bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the other process.
    Read,
    /// To the other process.
    Write,
}

/// Copies between `local` memory, which has room for so many bytes, and address `remote` of another process.
#[cfg(target_os = "linux")]
pub fn transfer(process: libc::pid_t, transfer: Transfer, local: *mut u8, remote: usize, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let near = libc::iovec { iov_base: local.cast(), iov_len: bytes };
    let far = libc::iovec { iov_base: remote as *mut libc::c_void, iov_len: bytes };
    let (near, far) = (&raw const near, &raw const far);
    // SAFETY: the near part is memory of this rank with room for so many bytes; the far one is checked by the
    // system.
    let done = unsafe {
        match transfer {
            Transfer::Read => libc::process_vm_readv(process, near, 1, far, 1, 0),
            Transfer::Write => libc::process_vm_writev(process, near, 1, far, 1, 0),
        }
    };
    if done == bytes as isize {
        return Ok(());
    }
    let name = match transfer {
        Transfer::Read => "process_vm_readv",
        Transfer::Write => "process_vm_writev",
    };
    let why = match done {
        -1 => std::io::Error::last_os_error().to_string(),
        done => format!("{done} of {bytes} bytes"),
    };
    Err(Error::Measure(format!("{name}: {why}")))
}

/// Copies nothing.
#[cfg(not(target_os = "linux"))]
pub fn transfer(_: libc::pid_t, _: Transfer, _: *mut u8, _: usize, _: usize) -> Result<()> {
    Err(Error::Measure("only Linux lets a process read another one's memory".to_owned()))
}
