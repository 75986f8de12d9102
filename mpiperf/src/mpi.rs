// SPDX-License-Identifier: BSD-3-Clause
//! The thin layer over MPI that the measuring itself uses: communicators, and messages of the measurement's
//! own.
//!
//! Communicators that are measured and the one that carries the tool's own messages are always different
//! ones.

use std::ffi::CString;
use std::os::raw::{c_int, c_void};
use std::time::{Duration, Instant};

pub use mpi::ffi;

use crate::error::{Error, Result};

unsafe extern "C" {
    fn mpiperf_in_place() -> *mut c_void;
    fn mpiperf_byte() -> ffi::MPI_Datatype;
}

/// `MPI_IN_PLACE`.
pub fn in_place() -> *mut c_void {
    // SAFETY: returns a constant.
    unsafe { mpiperf_in_place() }
}

/// `MPI_BYTE`.
pub fn byte() -> ffi::MPI_Datatype {
    // SAFETY: returns a constant.
    unsafe { mpiperf_byte() }
}

/// Turns the return code of MPI function `what` into a result.
pub fn check(what: &'static str, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let mut text = vec![0u8; 8192];
    let mut len: c_int = 0;
    // SAFETY: the buffer is longer than MPI_MAX_ERROR_STRING of any library.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    text.truncate(len.max(0) as usize);
    Err(Error::Mpi { what, text: String::from_utf8_lossy(&text).into_owned() })
}

/// Calls an MPI function by name and checks its code: `call!(MPI_Barrier(comm.raw()))`.
#[macro_export]
macro_rules! call {
    ($name:ident ( $($arg:expr),* $(,)? )) => {{
        // SAFETY: handles come from MPI, and pointers are to buffers as long as the counts beside them say:
        // each use sees to that.
        #[allow(clippy::macro_metavars_in_unsafe, reason = "arguments are handles and pointers, checked at each use")]
        let code = unsafe { $crate::mpi::ffi::$name($($arg),*) };
        $crate::mpi::check(stringify!($name), code)
    }};
}

/// A communicator with its rank and size; freed when dropped, unless it is `MPI_COMM_WORLD` or MPI is
/// finalised. Errors are returned.
pub struct Comm {
    raw: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    owned: bool,
}

impl Comm {
    /// Takes over `raw`.
    pub fn from_raw(raw: ffi::MPI_Comm, owned: bool) -> Result<Comm> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a constant of the library.
        let returned = unsafe { ffi::RSMPI_ERRORS_RETURN };
        call!(MPI_Comm_set_errhandler(raw, returned))?;
        call!(MPI_Comm_rank(raw, &mut rank))?;
        call!(MPI_Comm_size(raw, &mut size))?;
        Ok(Comm { raw, rank: rank as usize, size: size as usize, owned })
    }

    /// `MPI_COMM_WORLD`.
    pub fn world() -> Result<Comm> {
        // SAFETY: a constant of the library.
        Comm::from_raw(unsafe { ffi::RSMPI_COMM_WORLD }, false)
    }

    /// The handle.
    pub fn raw(&self) -> ffi::MPI_Comm {
        self.raw
    }

    /// This process's rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A duplicate. Collective.
    pub fn dup(&self) -> Result<Comm> {
        // SAFETY: a constant of the library.
        let mut new = unsafe { ffi::RSMPI_COMM_NULL };
        call!(MPI_Comm_dup(self.raw, &mut new))?;
        Comm::from_raw(new, true)
    }

    /// A duplicate with info keys (Open MPI's `ompi_comm_coll_preference` chooses collective components).
    /// Collective.
    pub fn dup_with_info(&self, keys: &[(&str, &str)]) -> Result<Comm> {
        // SAFETY: a constant of the library.
        let mut info = unsafe { ffi::RSMPI_INFO_NULL };
        call!(MPI_Info_create(&mut info))?;
        for (key, value) in keys {
            let text = |s: &str| CString::new(s).map_err(|_| Error::usage(format!("'{s}' holds a NUL byte")));
            let (key, value) = (text(key)?, text(value)?);
            call!(MPI_Info_set(info, key.as_ptr(), value.as_ptr()))?;
        }
        // SAFETY: a constant of the library.
        let mut new = unsafe { ffi::RSMPI_COMM_NULL };
        call!(MPI_Comm_dup_with_info(self.raw, info, &mut new))?;
        call!(MPI_Info_free(&mut info))?;
        Comm::from_raw(new, true)
    }

    /// The processes of each colour, in the order of their ranks. Collective.
    pub fn split(&self, colour: usize) -> Result<Comm> {
        // SAFETY: a constant of the library.
        let mut new = unsafe { ffi::RSMPI_COMM_NULL };
        call!(MPI_Comm_split(self.raw, colour as c_int, self.rank as c_int, &mut new))?;
        Comm::from_raw(new, true)
    }

    /// The processes that share memory with this one. Collective.
    pub fn node(&self) -> Result<Comm> {
        // SAFETY: a constant of the library.
        let mut new = unsafe { ffi::RSMPI_COMM_NULL };
        // SAFETY: a constant of the library.
        let kind = unsafe { ffi::RSMPI_COMM_TYPE_SHARED };
        // SAFETY: a constant of the library.
        let none = unsafe { ffi::RSMPI_INFO_NULL };
        call!(MPI_Comm_split_type(self.raw, kind, self.rank as c_int, none, &mut new))?;
        Comm::from_raw(new, true)
    }

    /// Sends plain values to `to`.
    pub fn send<T: Plain>(&self, data: &[T], to: usize, tag: c_int) -> Result<()> {
        let bytes = size_of_val(data) as c_int;
        call!(MPI_Send(data.as_ptr().cast(), bytes, byte(), to as c_int, tag, self.raw))
    }

    /// Receives exactly `data.len()` plain values from `from`.
    pub fn recv<T: Plain>(&self, data: &mut [T], from: usize, tag: c_int) -> Result<()> {
        let bytes = size_of_val(data) as c_int;
        // SAFETY: a constant of the library.
        let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
        call!(MPI_Recv(data.as_mut_ptr().cast(), bytes, byte(), from as c_int, tag, self.raw, ignore))
    }

    /// Whether a message of `from` is there to be received.
    pub fn arrived(&self, from: usize, tag: c_int) -> Result<bool> {
        let mut there: c_int = 0;
        // SAFETY: a constant of the library.
        let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
        call!(MPI_Iprobe(from as c_int, tag, self.raw, &mut there, ignore))?;
        Ok(there != 0)
    }

    /// Broadcasts plain values from `root`. Collective.
    pub fn bcast<T: Plain>(&self, data: &mut [T], root: usize) -> Result<()> {
        let bytes = size_of_val(data) as c_int;
        call!(MPI_Bcast(data.as_mut_ptr().cast(), bytes, byte(), root as c_int, self.raw))
    }

    /// The values of all ranks, in rank order, on every rank; each gives the same number. Collective.
    pub fn allgather<T: Plain>(&self, data: &[T]) -> Result<Vec<T>> {
        let bytes = size_of_val(data) as c_int;
        let mut all = vec![T::default(); data.len() * self.size];
        call!(MPI_Allgather(data.as_ptr().cast(), bytes, byte(), all.as_mut_ptr().cast(), bytes, byte(), self.raw))?;
        Ok(all)
    }

    /// The values of all ranks, in rank order, on `root`; nothing elsewhere. Collective.
    pub fn gather<T: Plain>(&self, data: &[T], root: usize) -> Result<Vec<T>> {
        let bytes = size_of_val(data) as c_int;
        let n = if self.rank == root { data.len() * self.size } else { 0 };
        let mut all = vec![T::default(); n];
        let (to, root) = (all.as_mut_ptr().cast(), root as c_int);
        call!(MPI_Gather(data.as_ptr().cast(), bytes, byte(), to, bytes, byte(), root, self.raw))?;
        Ok(all)
    }

    /// `to.len()` values to each rank from `root`, whose `from` holds those of all ranks in rank order.
    /// Collective.
    pub fn scatter<T: Plain>(&self, from: &[T], to: &mut [T], root: usize) -> Result<()> {
        if self.rank == root && from.len() != to.len() * self.size {
            return Err(Error::Measure(format!("scatter of {} values to {} ranks", from.len(), self.size)));
        }
        let bytes = size_of_val(to) as c_int;
        let (data, root) = (to.as_mut_ptr().cast(), root as c_int);
        call!(MPI_Scatter(from.as_ptr().cast(), bytes, byte(), data, bytes, byte(), root, self.raw))
    }

    /// Element by element the largest value over all ranks. Collective.
    pub fn max(&self, data: &mut [f64]) -> Result<()> {
        // SAFETY: a constant of the library.
        let (n, double, max) = unsafe { (data.len() as c_int, ffi::RSMPI_DOUBLE, ffi::RSMPI_MAX) };
        call!(MPI_Allreduce(in_place(), data.as_mut_ptr().cast(), n, double, max, self.raw))
    }

    /// All processes arrive. Collective.
    pub fn barrier(&self) -> Result<()> {
        call!(MPI_Barrier(self.raw))
    }

    /// Waits without a core until all processes come here; false if that takes longer than `limit`, or
    /// fails: then the communicator is of no more use. Collective.
    pub fn meet(&self, limit: Option<Duration>) -> Result<bool> {
        // SAFETY: a handle without content, set by the next call.
        let mut request: ffi::MPI_Request = unsafe { std::mem::zeroed() };
        // The request lives until the process ends or the barrier is complete.
        call!(MPI_Ibarrier(self.raw, &mut request))?;
        let start = Instant::now();
        let mut done = 0;
        while limit.is_none_or(|limit| start.elapsed() < limit) {
            // SAFETY: a constant of the library.
            let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
            call!(MPI_Test(&mut request, &mut done, ignore))?;
            if done != 0 {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(false)
    }

    /// The same outcome on every rank: the error of the lowest rank that has one, or success. Collective.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        const LONGEST: usize = 1024;
        let failed = if mine.is_err() { self.rank as f64 } else { self.size as f64 };
        let mut worst = [-failed];
        self.max(&mut worst)?;
        let first = -worst[0] as usize;
        if first == self.size {
            return mine;
        }
        let mut status = [mine.as_ref().err().map_or(0, Error::status)];
        self.bcast(&mut status, first)?;
        let mut text = [0u8; LONGEST];
        if let Err(error) = &mine {
            let message = error.to_string();
            let n = message.len().min(LONGEST);
            text[..n].copy_from_slice(&message.as_bytes()[..n]);
        }
        self.bcast(&mut text, first)?;
        let end = text.iter().position(|b| *b == 0).unwrap_or(LONGEST);
        let text = format!("{} (rank {first})", String::from_utf8_lossy(&text[..end]));
        Err(Error::Agreed { text, status: status[0] })
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        let mut over = 0;
        if self.owned && call!(MPI_Finalized(&mut over)).is_ok() && over == 0 {
            let _ = call!(MPI_Comm_free(&mut self.raw));
        }
    }
}

/// Types whose values are their bytes and that any bytes are a value of.
///
/// # Safety
///
/// No padding, no pointer, every bit pattern valid.
pub unsafe trait Plain: Copy + Default {}

macro_rules! plain {
    ($($number:ty),*) => {$(
        // SAFETY: a number.
        unsafe impl Plain for $number {}
    )*};
}
plain!(u8, i32, u32, u64, f64);

/// What the MPI library says that it is: the first line of `MPI_Get_library_version`.
pub fn library() -> String {
    let mut text = vec![0u8; 8192 + 1];
    let mut len: c_int = 0;
    // SAFETY: the buffer is as long as MPI_MAX_LIBRARY_VERSION_STRING of any library.
    unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &mut len) };
    text.truncate(len.max(0) as usize);
    String::from_utf8_lossy(&text).lines().next().unwrap_or("this MPI library").trim().trim_end_matches(',').to_owned()
}
