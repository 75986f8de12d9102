// SPDX-License-Identifier: BSD-3-Clause
//! Reading and writing another process' private memory: cross memory attach, process_vm_readv(2) and
//! process_vm_writev(2).
//!
//! Data go by the C library's calls: nix takes slices, and the memory of a [`Span`](crate::endpoint::Span) is
//! none (somebody may write it meanwhile, or nobody ever has). A few bytes of one's own are a slice.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

use crate::shm::os::failure::Failure;
use crate::shm::os::random;

/// Bytes of the number that peers probe with.
pub const SECRET: usize = 16;
/// A random number in private memory, at which peers see whether they can read it, and write it: they write
/// what it is.
static NUMBER: [AtomicU64; SECRET / 8] = [const { AtomicU64::new(0) }; SECRET / 8];
static DRAWN: OnceLock<[u8; SECRET]> = OnceLock::new();

/// Address and contents of the caller's number that peers probe with; `None` when the system gives no random
/// bytes.
pub fn secret() -> Option<(u64, [u8; SECRET])> {
    if DRAWN.get().is_none() {
        let bytes = random().ok()?;
        DRAWN.get_or_init(|| {
            for (word, part) in NUMBER.iter().zip(bytes.as_chunks::<8>().0) {
                word.store(u64::from_ne_bytes(*part), Ordering::Relaxed);
            }
            bytes
        });
    }
    DRAWN.get().map(|bytes| (NUMBER.as_ptr().addr() as u64, *bytes))
}

/// Copies `bytes` at address `from` of process `pid` to `to`: all of them, or an error.
///
/// # Safety
/// `to` holds so many bytes.
pub unsafe fn read(pid: i32, from: u64, to: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: the kernel writes what `to` holds, and checks the other side.
    completely(to, from, bytes, |local, remote| unsafe { libc::process_vm_readv(pid, local, 1, remote, 1, 0) })
}

/// Copies `bytes` at `from` to address `to` of process `pid`: all of them, or an error, perhaps after some.
///
/// # Safety
/// `from` holds so many bytes.
pub unsafe fn write(pid: i32, from: *const u8, to: u64, bytes: usize) -> io::Result<()> {
    let from = from.cast_mut();
    // SAFETY: the kernel reads what `from` holds, and checks the other side.
    completely(from, to, bytes, |local, remote| unsafe { libc::process_vm_writev(pid, local, 1, remote, 1, 0) })
}

/// Linux cuts a transfer short at 2 GiB, at a page that is not there, and wherever else it likes; what is
/// missing is asked for again.
fn completely(
    near: *mut u8,
    far: u64,
    bytes: usize,
    call: impl Fn(*const libc::iovec, *const libc::iovec) -> isize,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let local = libc::iovec { iov_base: near.wrapping_add(done).cast(), iov_len: bytes - done };
        let remote = libc::iovec { iov_base: (far as usize).wrapping_add(done) as *mut _, iov_len: bytes - done };
        match call(&local, &remote) {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            moved @ 1.. => done += moved as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Reads the few bytes of process `pid` at address `from` that `to` has: the system moves so many at once.
pub fn peek(pid: i32, from: u64, to: &mut [u8]) -> io::Result<()> {
    let (few, there) = (to.len(), RemoteIoVec { base: from as usize, len: to.len() });
    all_of(few, process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(to)], &[there]))
}

/// Writes a few bytes to address `to` of process `pid`.
fn poke(pid: i32, from: &[u8], to: u64) -> io::Result<()> {
    let there = RemoteIoVec { base: to as usize, len: from.len() };
    all_of(from.len(), process_vm_writev(Pid::from_raw(pid), &[IoSlice::new(from)], &[there]))
}

fn all_of(bytes: usize, moved: nix::Result<usize>) -> io::Result<()> {
    if moved? == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Whether the private memory of process `pid` can be read and written: reads its number at `address`,
/// compares, and writes the same. (A refused ptrace, a filter of system calls, another user name space: EPERM
/// or ENOSYS. Another PID name space: ESRCH, or somebody else's memory.)
pub fn probe(pid: i32, address: u64, secret: [u8; SECRET]) -> Result<(), Failure> {
    let mut got = [0; SECRET];
    peek(pid, address, &mut got).map_err(|e| Failure::of(format!("process_vm_readv from process {pid}"), e))?;
    if got != secret {
        return Err(Failure::new(format!("process_vm_readv from process {pid} read the memory of another process")));
    }
    // The other process has that number there, which nobody gives another value.
    poke(pid, &got, address).map_err(|e| Failure::of(format!("process_vm_writev to process {pid}"), e))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::num::NonZeroUsize;

    #[test]
    fn moves_all_of_it() {
        let from: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        let mut to = vec![0; from.len()];
        let pid = std::process::id() as i32;
        // SAFETY: `to` is as long as `from`.
        unsafe { read(pid, from.as_ptr().addr() as u64, to.as_mut_ptr(), from.len()) }.unwrap();
        assert!(from == to);
        to.fill(0);
        // SAFETY: as above, the other way.
        unsafe { write(pid, from.as_ptr(), to.as_mut_ptr().addr() as u64, from.len()) }.unwrap();
        assert!(from == to);
    }

    #[test]
    fn says_why_not() {
        let (address, secret) = secret().unwrap();
        let pid = std::process::id() as i32;
        assert!(probe(pid, address, secret).is_ok());
        assert_eq!(super::secret(), Some((address, secret)));
        // What can be read only.
        static FIXED: [u8; 16] = [7; 16];
        let unwritable = probe(pid, FIXED.as_ptr().addr() as u64, FIXED).unwrap_err();
        assert!(unwritable.to_string().contains("process_vm_writev"), "{unwritable}");
        assert_eq!(probe(pid, 1, secret).unwrap_err().errno(), Some(libc::EFAULT));
        assert_eq!(probe(i32::MAX, address, secret).unwrap_err().errno(), Some(libc::ESRCH));
        let other = [1u8; 16];
        let wrong = probe(pid, other.as_ptr().addr() as u64, secret).unwrap_err();
        assert!(wrong.to_string().contains("another process"), "{wrong}");
    }

    #[test]
    fn a_hole_behind_the_data_is_an_error() {
        let page = crate::shm::os::system_page() as usize;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let pages = NonZeroUsize::new(2 * page).unwrap();
        // SAFETY: a fresh anonymous mapping of two pages, of which the second is unmapped again.
        let start = unsafe {
            let start = mmap_anonymous(None, pages, access, MapFlags::MAP_PRIVATE).unwrap();
            munmap(start.byte_add(page), page).unwrap();
            start.addr().get() + page - 100
        };
        let mut to = [0; 200];
        // SAFETY: `to` holds 200 bytes.
        let error = unsafe { read(std::process::id() as i32, start as u64, to.as_mut_ptr(), 200) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        // SAFETY: as above.
        let error = unsafe { write(std::process::id() as i32, to.as_ptr(), start as u64, 200) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
