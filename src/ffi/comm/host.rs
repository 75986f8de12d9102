// SPDX-License-Identifier: BSD-3-Clause
//! The endpoint over Open MPI's point-to-point layer.
//!
//! One per operation. It owns what the operation posted and the temporary buffers that those posts touch, so
//! a future that is dropped leaves nothing dangling: what is still in flight then is cancelled where it can
//! be, and otherwise the endpoint leaks its buffers. One thread at a time uses it: who polls the operation.

mod post;
mod posted;
mod reach;

use crate::endpoint::{Endpoint, Error, PHASES, Rank, Result, Span, Tag, TempBuffer, instead_of};
use crate::ffi::base::glue::{self, ompi_communicator_t, ompi_op_t, ompi_request_t};
use crate::ffi::base::kind::Kind;
use crate::ffi::comm::core::Core;
use crate::ffi::mpi::data::Datatype;
use crate::ffi::mpi::device::Staging;
use crate::ffi::process::counters;
use crate::shm::copy;
use crate::topo::Clusters;
use post::{Post, PostState};
use posted::{Entry, SEND, Work};
use reach::Way;
use smallvec::SmallVec;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::future::poll_fn;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Alignment of temporary buffers: a cache line.
const ALIGN: usize = 64;

/// How long an operation that failed waits for its messages.
const PATIENCE: Duration = Duration::from_secs(2);

struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
}

#[derive(Default)]
struct State {
    posted: SmallVec<[Entry; 8]>,
    /// Free places in it.
    free: usize,
    /// Why the operation fails.
    noted: Option<Error>,
    spare: SmallVec<[Buffer; 2]>,
}

/// One operation's view of its communicator.
pub struct HostEndpoint {
    comm: *mut ompi_communicator_t,
    rank: Rank,
    size: u32,
    /// Whose counters count; `None`: nobody's.
    kind: Option<Kind>,
    dtype: Datatype,
    op: *mut ompi_op_t,
    first_tag: i32,
    /// Units in a message at most; those of a longer one go as several.
    longest: usize,
    /// Whether the operation goes on when a message has another length than its receiver has room for.
    goes_on: bool,
    /// What the user's buffers stand for, where they do.
    staging: Option<Arc<Staging>>,
    /// Where ranks are in several clusters.
    clusters: Option<Arc<Clusters>>,
    state: UnsafeCell<State>,
}

// SAFETY: the endpoint lives inside its operation's future, which one thread at a time polls (block_on on the
// caller's stack, or the engine's single runner), so no two threads touch `state` at once.
unsafe impl Sync for HostEndpoint {}
// SAFETY: the pointers are to Open MPI's objects, which any thread may use.
unsafe impl Send for HostEndpoint {}

impl HostEndpoint {
    /// For an operation of `kind` on units of `dtype`, combined by `op`, with tags from `first_tag`
    /// downwards. The communicator outlives it: the operation holds its `Comm`.
    pub fn new(comm: &Core, kind: Option<Kind>, dtype: Datatype, op: *mut ompi_op_t, first_tag: i32) -> HostEndpoint {
        let (rank, size) = (comm.rank(), comm.size());
        let longest = (comm.config().max_message / dtype.info.size.max(1)).max(1);
        let state = UnsafeCell::default();
        let apart = comm.is_apart().unwrap_or(false);
        let clusters = comm.place().ok().filter(|_| apart).and_then(|place| place.clusters().cloned());
        let comm = comm.handle();
        HostEndpoint {
            comm,
            rank,
            size,
            kind,
            dtype,
            op,
            first_tag,
            longest,
            goes_on: false,
            staging: None,
            clusters,
            state,
        }
    }

    /// Goes on when a message has another length than its receiver has room for: others wait for this rank.
    pub fn go_on(&mut self) {
        self.goes_on = true;
    }

    /// Asks for elements before it touches them, and tells which are final.
    pub fn stage(&mut self, staging: Option<Arc<Staging>>) {
        self.staging = staging;
    }

    /// Before elements are touched.
    #[inline(always)]
    fn needs(&self, elements: Span) -> Result<()> {
        match &self.staging {
            None => Ok(()),
            Some(staging) => staging.needs_elements(elements),
        }
    }

    /// Never cuts a message: ranks may describe the same data by elements of different sizes.
    pub fn keep_whole(&mut self) {
        self.longest = usize::MAX;
    }

    #[allow(clippy::mut_from_ref)]
    fn state(&self) -> &mut State {
        // SAFETY: one thread at a time (see above); no caller keeps it over a call that takes another.
        unsafe { &mut *self.state.get() }
    }

    fn tag(&self, tag: Tag) -> i32 {
        self.first_tag - (i32::from(tag.lane) * i32::from(PHASES) + i32::from(tag.phase))
    }

    fn register(&self, code: i32, request: *mut ompi_request_t, expected: usize) -> Post<'_> {
        if code != 0 {
            return Post { posted: PostState::Failed(Error::Mpi(code)), ep: self };
        }
        if request.is_null() {
            return Post { posted: PostState::Done, ep: self }; // a send that was complete at once
        }
        self.keep(Entry { work: Work::Request(request), expected })
    }

    /// Keeps something that was posted.
    fn keep(&self, entry: Entry) -> Post<'_> {
        let State { posted, free, .. } = self.state();
        let found = if *free > 0 { posted.iter().position(Entry::is_free) } else { None };
        let slot = found.unwrap_or(posted.len());
        match posted.get_mut(slot) {
            Some(place) => (*place, *free) = (entry, *free - 1),
            None => posted.push(entry),
        }
        Post { posted: PostState::Slot(slot), ep: self }
    }

    /// Posts `data` as one message, or, where that would be too long, as several, one after the other: both
    /// sides cut alike, since both know the length.
    fn post<'a>(&'a self, data: Span, one: impl Fn(Span) -> Post<'a>) -> Post<'a> {
        if data.len() <= self.longest {
            return one(data);
        }
        let starts = (0..data.len()).step_by(self.longest);
        let posts = starts.map(|at| one(data.slice(at..data.len().min(at.saturating_add(self.longest)))).posted);
        Post { posted: PostState::Several(posts.collect()), ep: self }
    }

    fn send_one(&self, to: Rank, tag: Tag, data: Span) -> Post<'_> {
        if let Err(error) = self.needs(data) {
            return Post { posted: PostState::Failed(error), ep: self };
        }
        if let Some(kind) = self.kind {
            counters::sent(kind, tag.level, data.len() * self.dtype.info.size);
        }
        let mut request = ptr::null_mut();
        // SAFETY: the span is valid memory of the operation until the post is done (contract of `Endpoint`).
        let code = unsafe {
            glue::cr_isend(
                self.comm,
                data.ptr().cast(),
                data.len(),
                self.dtype.handle,
                to as i32,
                self.tag(tag),
                &mut request,
            )
        };
        self.register(code, request, SEND)
    }

    fn recv_one(&self, from: Rank, tag: Tag, data: Span) -> Post<'_> {
        if let Err(error) = self.needs(data) {
            return Post { posted: PostState::Failed(error), ep: self };
        }
        let mut request = ptr::null_mut();
        // SAFETY: as in `send_one`.
        let code = unsafe {
            glue::cr_irecv(
                self.comm,
                data.ptr().cast(),
                data.len(),
                self.dtype.handle,
                from as i32,
                self.tag(tag),
                &mut request,
            )
        };
        self.register(code, request, data.len() * self.dtype.info.size)
    }
}

impl Endpoint for HostEndpoint {
    type Post<'a>
        = Post<'a>
    where
        Self: 'a;
    type Temp<'a>
        = Temp<'a>
    where
        Self: 'a;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: Rank, tag: Tag, data: Span) -> Post<'_> {
        // Of each of several messages, as the receiver waits for all of them. No element of another type than
        // a byte is at hand to be sent in place of none.
        let sent = |data: Span| match self.state().noted {
            Some(_) if data.is_empty() && !self.dtype.handle.is_null() => data,
            Some(_) => instead_of(data),
            None => data,
        };
        match self.way(to) {
            Way::Messages => self.post(data, |data| self.send_one(to, tag, sent(data))),
            Way::Gateway => self.post(data, |data| self.send_out(to, tag, sent(data))),
            Way::None => self.refused(to),
        }
    }

    fn tell(&self, to: Rank, tag: Tag, data: Span) -> Post<'_> {
        let noted = self.state().noted.take();
        let post = self.send(to, tag, data);
        self.state().noted = noted;
        post
    }

    fn recv(&self, from: Rank, tag: Tag, data: Span) -> Post<'_> {
        match self.way(from) {
            Way::Messages => self.post(data, |data| self.recv_one(from, tag, data)),
            Way::Gateway => self.post(data, |data| self.recv_from_out(from, tag, data)),
            Way::None => self.refused(from),
        }
    }

    fn reduce_units(&self, left: Span, right: Span) {
        // After an error the operation fails in the end: the staging keeps it.
        if right.is_empty() || self.needs(left).and(self.needs(right)).is_err() {
            return;
        }
        // SAFETY: both spans hold `right.len()` elements of the datatype; nothing posted touches `right`.
        unsafe {
            glue::cr_op_reduce(self.op, left.ptr().cast(), right.ptr().cast(), right.len(), self.dtype.handle);
        }
    }

    fn copy_units(&self, from: Span, to: Span) {
        if to.is_empty() || self.needs(from).and(self.needs(to)).is_err() {
            return;
        }
        if self.dtype.handle.is_null() {
            // SAFETY: both spans are `to.len()` bytes and do not overlap (contract of `Endpoint`).
            unsafe { copy::bytes(from.ptr(), to.ptr(), to.len()) };
        } else {
            // SAFETY: both spans hold `to.len()` elements of the datatype and do not overlap. Copying cannot
            // fail for a datatype that is committed, and MPI checks that before it calls us.
            unsafe { glue::cr_copy(self.dtype.handle, to.len(), to.ptr().cast(), from.ptr().cast()) };
        }
    }

    fn note(&self, error: Error) {
        self.state().noted.get_or_insert(error);
    }

    fn noted(&self) -> Result<()> {
        self.state().noted.map_or(Ok(()), Err)
    }

    fn made(&self, data: Span) {
        if let Some(staging) = &self.staging {
            staging.made_elements(data);
        }
    }

    fn temp(&self, units: usize) -> Result<Temp<'_>> {
        let shift = self.dtype.origin(units);
        // The origin of the first unit is aligned, whatever lies before it.
        let pad = shift.wrapping_neg().rem_euclid(ALIGN as isize);
        let bytes = self.dtype.reach(units).ok_or(Error::NoMemory(usize::MAX))?.saturating_add(pad as usize).max(1);
        let spare = &mut self.state().spare;
        let buffer = match spare.iter().position(|b| b.layout.size() == bytes) {
            Some(i) => spare.swap_remove(i),
            None => {
                let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| Error::NoMemory(bytes))?;
                // SAFETY: the size is at least 1.
                let start = NonNull::new(unsafe { alloc(layout) }).ok_or(Error::NoMemory(bytes))?;
                Buffer { start, layout }
            }
        };
        let origin = buffer.start.as_ptr().wrapping_offset(shift + pad);
        // SAFETY: the buffer holds so many units, and stays until the endpoint goes.
        let span = unsafe { Span::new(origin, units, self.dtype.info.extent) };
        Ok(Temp { ep: self, buffer: Some(buffer), span })
    }
}

impl HostEndpoint {
    /// What `future` gives, which posts here; after an error, once nothing that it posted is in flight.
    pub async fn settled<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let result = future.await.and_then(|value| self.noted().map(|()| value));
        if result.is_err() {
            self.settle().await;
        }
        result
    }

    /// After an error: cancels the receives and waits until nothing is in flight, so that the caller may give
    /// the user's buffers back. A send to a process that is gone may never end: after [`PATIENCE`] what is
    /// left is left.
    pub async fn settle(&self) {
        let slots = 0..self.state().posted.len();
        for slot in slots.clone() {
            self.state().posted[slot].cancel();
        }
        let deadline = Instant::now() + PATIENCE;
        poll_fn(|_| {
            let mut in_flight = false;
            for slot in slots.clone() {
                in_flight |= self.test(slot).is_pending();
            }
            if in_flight && Instant::now() < deadline { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

impl Drop for HostEndpoint {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let mut in_flight = false;
        for entry in &mut state.posted {
            in_flight |= entry.abandon();
        }
        if in_flight {
            // After an error or a panic: messages that are under way may read or write these buffers.
            std::mem::forget(std::mem::take(&mut state.spare));
            return;
        }
        for buffer in state.spare.drain(..) {
            // SAFETY: allocated in `temp` with this layout, and nothing in flight touches it.
            unsafe { dealloc(buffer.start.as_ptr(), buffer.layout) };
        }
    }
}

/// A temporary buffer of the operation; goes back to the endpoint.
pub struct Temp<'a> {
    ep: &'a HostEndpoint,
    buffer: Option<Buffer>,
    span: Span,
}

// SAFETY: owns its buffer, and an address may go to another thread.
unsafe impl Send for Temp<'_> {}
// SAFETY: a shared reference only gives the address of the buffer.
unsafe impl Sync for Temp<'_> {}

impl TempBuffer for Temp<'_> {
    fn span(&self) -> Span {
        self.span
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.ep.state().spare.push(buffer);
        }
    }
}
