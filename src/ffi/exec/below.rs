// SPDX-License-Identifier: BSD-3-Clause
//! Reductions of what lies in a device's memory, by the component below, which combines by the processor.
//!
//! So it gets host memory in place of such buffers. The other ranks, who hand over what they have, need not
//! know of it.

use crate::endpoint::{Error, Result};
use crate::ffi::base::error::{self, PASS};
use crate::ffi::base::glue::{self, CR_ERR_NO_MEM, cr_call, cr_stand_in, ompi_request_t};
use crate::ffi::base::kind::Mode;
use crate::ffi::call::arguments::{Call, Retained};
use crate::ffi::call::device::{Device, must_stage};
use crate::ffi::comm::state::Comm;
use crate::ffi::exec::{blocking, engine};
use crate::ffi::mpi::device::{Stage, Staging};
use crate::ffi::mpi::progress;
use crate::ffi::run::device::staging_of;
use std::future::poll_fn;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// What Rust keeps of a call while the component below has it.
pub struct Passed {
    comm: Arc<Comm>,
    mode: Mode,
    staging: Arc<Staging>,
    /// The user's objects, of a persistent call: Open MPI keeps those of a nonblocking one.
    retained: Option<Retained>,
    /// Open MPI's binding writes to the request after we return.
    is_written: bool,
}

impl Passed {
    /// Takes host memory for the buffers of a call that is passed, which `memory` says then. The answer for
    /// the shim: to pass it, or an error. Other calls than reductions go as they are.
    ///
    /// # Safety
    /// As for [`Call::new`].
    pub unsafe fn stand_in(
        comm: &Arc<Comm>,
        call: &cr_call,
        device: Device,
        mode: Mode,
        memory: &mut cr_stand_in,
    ) -> i32 {
        if call.op.is_null() {
            return PASS;
        }
        // SAFETY: by the caller's promise.
        let mut call = match unsafe { Call::passed(comm, call) } {
            Ok(call) => call,
            Err(code) => return code,
        };
        device.mark(&mut call);
        if !must_stage(&call) || call.is_empty() {
            return PASS;
        }
        let staging = match staging_of(&call) {
            Ok(staging) => staging,
            Err(error) => return error::code(error),
        };
        // A persistent operation fetches at each start.
        if mode != Mode::Persistent
            && let Err(error) = fetch(&staging)
        {
            return error::code(error);
        }
        let start = |stage: &Option<Stage>| stage.as_ref().map_or(ptr::null_mut(), |stage| stage.here().ptr().cast());
        (memory.send, memory.recv) = (start(&staging.operand), start(&staging.result));
        let passed = Passed {
            comm: comm.clone(),
            mode,
            staging: Arc::new(staging),
            // SAFETY: alive by the caller's promise.
            retained: (mode == Mode::Persistent).then(|| unsafe { call.retain() }),
            is_written: call.has_derived_arguments(),
        };
        memory.half = Box::into_raw(Box::new(passed)).cast();
        PASS
    }

    /// The component below has answered with `code`, and stored its request, if there is one: a blocking
    /// call's result goes to the device, another one's request is followed.
    ///
    /// # Safety
    /// `request` is null for a blocking call; else it holds that component's request, and may be written.
    pub unsafe fn answered(self, code: i32, request: *mut *mut ompi_request_t) -> Answer {
        if code != 0 {
            return Answer::Code(code);
        }
        if self.mode == Mode::Blocking {
            let end = blocking::drive(pin!(give_back(self.staging)), || None);
            return Answer::Code(end.map_or_else(error::code, |()| 0));
        }
        let Passed { comm, staging, retained, is_written, .. } = self;
        // SAFETY: by the caller's promise.
        let theirs = Theirs(unsafe { *request });
        if let Some(retained) = retained {
            let work = Work { comm: comm.clone(), staging, theirs, ours: ptr::null_mut(), failed: Arc::default() };
            return Answer::Keep(comm, Below { work, _retained: retained });
        }
        // SAFETY: the communicator is alive.
        let ours = unsafe { glue::cr_request_new(comm.handle(), 0, ptr::null_mut()) };
        if ours.is_null() {
            // Theirs goes on in the memory, which is not given back.
            return Answer::Code(CR_ERR_NO_MEM as i32);
        }
        let future = async move {
            theirs.completes().await;
            theirs.free()?;
            give_back(staging).await
        };
        engine::adopt(&comm, future, ours, None, !is_written);
        // SAFETY: by the caller's promise.
        unsafe { *request = ours };
        Answer::Code(0)
    }
}

/// What follows the answer of the component below.
pub enum Answer {
    /// This is what to answer the caller with.
    Code(i32),
    /// The persistent operation that the caller is to get a request for.
    Keep(Arc<Comm>, Below),
}

/// Fetches all that is read.
fn fetch(staging: &Staging) -> Result<()> {
    staging.begin()?;
    staging.needs_all()
}

/// Has the result go to the device; nobody else uses the memory any more.
async fn give_back(staging: Arc<Staging>) -> Result<()> {
    staging.end().await?;
    if let Some(staging) = Arc::into_inner(staging) {
        staging.free();
    }
    Ok(())
}

fn result_of(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Mpi(code)) }
}

/// A request of the component below.
#[derive(Clone, Copy)]
struct Theirs(*mut ompi_request_t);

// SAFETY: Open MPI's, which any thread may look at.
unsafe impl Send for Theirs {}
// SAFETY: as above.
unsafe impl Sync for Theirs {}

impl Theirs {
    /// Whether it is complete.
    fn is_done(self) -> bool {
        // SAFETY: alive: it is freed after this.
        unsafe { glue::cr_request_done(self.0) != 0 }
    }

    /// Waits until it is.
    async fn completes(self) {
        poll_fn(move |_| match self.is_done() {
            true => Poll::Ready(()),
            false => {
                progress::await_progress();
                Poll::Pending
            }
        })
        .await;
    }

    /// How it has ended; it is not used again.
    fn free(self) -> Result<()> {
        // SAFETY: complete, or inactive.
        result_of(unsafe { glue::cr_request_finish(self.0, ptr::null_mut()) })
    }

    /// How it has ended; a persistent one, which may be started again.
    fn rest(self) -> Result<()> {
        // SAFETY: complete.
        result_of(unsafe { glue::cr_request_rest(self.0) })
    }
}

/// A persistent operation of the component below.
pub struct Below {
    work: Work,
    _retained: Retained,
}

/// What a start of it takes.
#[derive(Clone)]
pub struct Work {
    comm: Arc<Comm>,
    staging: Arc<Staging>,
    theirs: Theirs,
    ours: *mut ompi_request_t,
    failed: Arc<AtomicBool>,
}

impl Below {
    /// The request that the user has.
    pub fn set_request(&mut self, request: *mut ompi_request_t) {
        self.work.ours = request;
    }

    /// What a start takes.
    pub fn work(&self) -> Work {
        self.work.clone()
    }

    /// The request is freed: nothing of it goes on, unless it has failed.
    pub fn free(self) {
        let Work { staging, theirs, failed, .. } = self.work;
        let _ = theirs.free();
        if !failed.load(Ordering::Relaxed)
            && let Some(staging) = Arc::into_inner(staging)
        {
            staging.free();
        }
    }
}

impl Work {
    /// Starts the operation again: the operand comes, and the result goes back. When this returns, another
    /// thread may have freed the request.
    pub fn start(self) -> i32 {
        let Work { comm, staging, theirs, ours, failed } = self;
        if failed.load(Ordering::Relaxed) {
            return error::refused();
        }
        staging.restart();
        if let Err(error) = fetch(&staging) {
            return error::code(error);
        }
        // SAFETY: inactive, as ours is, which its owner starts.
        let code = unsafe { glue::cr_request_start(theirs.0) };
        if code != 0 {
            failed.store(true, Ordering::Relaxed);
            return code;
        }
        let future = async move {
            theirs.completes().await;
            theirs.rest()?;
            staging.end().await
        };
        // SAFETY: inactive, and ours to start.
        unsafe { glue::cr_request_activate(ours) };
        engine::adopt(&comm, future, ours, Some(failed), true);
        0
    }
}
