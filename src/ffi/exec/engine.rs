// SPDX-License-Identifier: BSD-3-Clause
//! Operations that run from the progress engine: nonblocking and persistent ones.
//!
//! Started operations go to a list, or to an inbox while somebody runs the list. One runner at a time
//! (whoever gets the flag in [`progress`]) takes those of the inbox over and polls all, so an operation is
//! only ever polled by one thread, and a progress call from inside a poll or a completion finds the flag set
//! and returns. A thousand outstanding operations do not cost a thousand polls: a progress call looks at the
//! oldest few, which are the likeliest to be ready, and at the next few of the rest in turn.

use crate::endpoint::{Error, Result};
use crate::ffi::base::apart::small;
use crate::ffi::base::error;
use crate::ffi::base::glue::{self, CR_ERR_INTERN, CR_ERR_NO_MEM, cr_call, ompi_request_t};
use crate::ffi::base::guard;
use crate::ffi::base::kind::{Kind, Mode};
use crate::ffi::call::accept::accept;
use crate::ffi::call::arguments::Call;
use crate::ffi::call::device::Device;
use crate::ffi::call::eligible;
use crate::ffi::comm::identity::{Identity, Ticket};
use crate::ffi::comm::slot::{Slot, nonblocking};
use crate::ffi::comm::state::Comm;
use crate::ffi::process::counters;
use crate::ffi::run::operation;
use crate::shm::op::short::{self, Short};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::{Context, Poll, Waker};

/// Polled at every progress call: the oldest operations.
const OLDEST: usize = 16;
/// Polled besides, in turn.
const IN_TURN: usize = 16;

/// An operation under way.
struct Op {
    future: Pin<Box<dyn Future<Output = Result<()>> + Send>>,
    /// Null: there is none, and nobody waits for it.
    request: *mut ompi_request_t,
    comm: Arc<Comm>,
    /// The identity of a nonblocking operation, to be given back.
    ticket: Option<Ticket>,
    /// Of a persistent operation: to be set if it fails.
    failed: Option<Arc<AtomicBool>>,
    /// The outcome, where it is known before the request may be completed.
    outcome: Option<i32>,
}

// SAFETY: the request is Open MPI's and may be completed by any thread; the rest is Send.
unsafe impl Send for Op {}

impl Op {
    /// Polls; true when the outcome is known. A panic fails the operation.
    fn poll(&mut self) -> bool {
        if self.outcome.is_some() {
            return true;
        }
        let mut context = Context::from_waker(Waker::noop());
        self.outcome = match catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(&mut context))) {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(Ok(()))) => Some(0),
            Ok(Poll::Ready(Err(error))) => Some(error::code(error)),
            Err(panic) => Some(guard::report(&*panic)),
        };
        self.outcome.is_some()
    }

    /// Polls it for the first time, and leaves what remains to the progress engine. `at_once`: the request
    /// may be completed before this returns.
    fn begin(mut self, at_once: bool) {
        if self.poll() && at_once {
            self.finish();
        } else {
            push(self);
        }
    }

    /// Frees what the operation holds, then completes the request.
    fn finish(self) {
        let Op { future, request, comm, ticket, failed, outcome } = self;
        if let Some(failed) = failed.filter(|_| outcome != Some(0)) {
            failed.store(true, Ordering::Relaxed);
        }
        // Whatever happens to the future: later operations wait for the ticket, and somebody for the request.
        guard::guard(|| {
            drop(future);
            0
        });
        guard::guard(|| {
            if let Some(ticket) = ticket {
                comm.identities.complete(ticket);
            }
            drop(comm);
            0
        });
        if !request.is_null() {
            // SAFETY: the request of this operation, not completed before; nothing touches it from here on.
            unsafe { glue::cr_request_complete(request, outcome.unwrap_or(CR_ERR_INTERN as i32)) };
        }
    }
}

struct Engine {
    inbox: Mutex<Vec<Op>>,
    /// Operations in the inbox and the list.
    alive: AtomicUsize,
    arrived: AtomicBool,
    /// Set while somebody runs the list.
    busy: AtomicBool,
    list: UnsafeCell<List>,
}

#[derive(Default)]
struct List {
    ops: Vec<Op>,
    turn: usize,
}

// SAFETY: only the holder of `busy` touches `list`; it is taken with acquire and given with release ordering.
unsafe impl Sync for Engine {}

static ENGINE: Engine = Engine {
    inbox: Mutex::new(Vec::new()),
    alive: AtomicUsize::new(0),
    arrived: AtomicBool::new(false),
    busy: AtomicBool::new(false),
    list: UnsafeCell::new(List { ops: Vec::new(), turn: 0 }),
};
static REGISTERED: Once = Once::new();

fn push(op: Op) {
    REGISTERED.call_once(|| {
        // SAFETY: the function stays in memory: the DSO is never unmapped (-z nodelete).
        unsafe { glue::cr_progress_register(Some(progress)) };
    });
    ENGINE.alive.fetch_add(1, Ordering::Relaxed);
    if ENGINE.busy.swap(true, Ordering::Acquire) {
        ENGINE.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(op);
        ENGINE.arrived.store(true, Ordering::Release);
        return;
    }
    // SAFETY: we hold `busy`, and nothing here makes progress.
    let list = unsafe { &mut *ENGINE.list.get() };
    list.take_in();
    list.ops.push(op);
    ENGINE.busy.store(false, Ordering::Release);
}

/// At the end of MPI: Open MPI must not call us any more.
pub fn close() {
    if REGISTERED.is_completed() {
        // SAFETY: registered in `push`.
        unsafe { glue::cr_progress_unregister(Some(progress)) };
    }
}

/// Called by `opal_progress`. Returns how many operations were completed.
unsafe extern "C" fn progress() -> i32 {
    if ENGINE.alive.load(Ordering::Relaxed) == 0 || ENGINE.busy.swap(true, Ordering::Acquire) {
        return 0;
    }
    let done = guard::guard_or(Done::new(), || {
        // SAFETY: we hold `busy`.
        let list = unsafe { &mut *ENGINE.list.get() };
        list.take_in();
        list.step()
    });
    ENGINE.busy.store(false, Ordering::Release);
    // Completing may run callbacks of Open MPI, which may start operations: not under the flag.
    let count = done.len();
    ENGINE.alive.fetch_sub(count, Ordering::Relaxed);
    for op in done {
        guard::guard(|| {
            op.finish();
            0
        });
    }
    count as i32
}

/// Operations that are done: rarely more than one at a time.
type Done = SmallVec<[Op; 1]>;

impl List {
    /// Moves here what has come to the inbox.
    fn take_in(&mut self) {
        if ENGINE.arrived.load(Ordering::Relaxed) && ENGINE.arrived.swap(false, Ordering::Acquire) {
            self.ops.append(&mut ENGINE.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Polls some operations; returns those that are done.
    fn step(&mut self) -> Done {
        let mut done = SmallVec::<[usize; OLDEST + IN_TURN]>::new();
        let oldest = self.ops.len().min(OLDEST);
        let rest = self.ops.len() - oldest;
        for i in 0..oldest {
            if self.ops[i].poll() {
                done.push(i);
            }
        }
        for _ in 0..rest.min(IN_TURN) {
            self.turn = (self.turn + 1) % rest;
            if self.ops[oldest + self.turn].poll() {
                done.push(oldest + self.turn);
            }
        }
        done.sort_unstable();
        // Each one that goes takes the rest one place down.
        done.iter().enumerate().map(|(gone, at)| self.ops.remove(at - gone)).collect()
    }
}

/// Where a request is stored.
type Out = *mut *mut ompi_request_t;

/// Starts a nonblocking operation; stores its request.
///
/// # Safety
/// As for [`Call::new`]; `request` may be written.
#[inline(never)]
pub unsafe fn start_any(comm: &Arc<Comm>, call: &cr_call, device: Device, request: Out) -> i32 {
    // SAFETY: by the caller's promise.
    let call = match unsafe { accept(comm, call, device, Mode::Nonblocking) } {
        Ok(call) => call.own(),
        Err(code) => return code,
    };
    counters::handled(call.kind, Mode::Nonblocking);
    // Before anything that may fail: all ranks count alike.
    let identity = match call.is_empty() {
        true => None,
        false => {
            let ticket = comm.identities.nonblocking(call.kind, call.is_like_agreement());
            // Open MPI calls these in another order on each rank.
            let in_order = !call.is_like_agreement() && eligible::is_eligible(comm, &call);
            let slot =
                in_order.then(|| Slot::Nonblocking { number: comm.team.number(), late: comm.team.has_learned() });
            let synchronise =
                !(in_order && comm.is_shared()) && comm.synchronises(call.kind, call.one_way, call.by_all);
            Some(Identity { ticket: Some(ticket), slot, first_tag: ticket.first_tag, synchronise })
        }
    };
    // SAFETY: the communicator is alive. Open MPI's binding retains a request's datatypes and operation.
    let made = unsafe { glue::cr_request_new(comm.handle(), 0, ptr::null_mut()) };
    if made.is_null() {
        if let Some(identity) = identity {
            let number = match identity.slot {
                Some(Slot::Nonblocking { number, .. }) => Some(number),
                _ => None,
            };
            abandon(comm, identity.ticket, number);
        }
        return CR_ERR_NO_MEM as i32;
    }
    // Open MPI's binding writes to the request of an operation with derived arguments after we return: such a
    // one is completed by a later progress call.
    let at_once = !call.has_derived_arguments();
    launch(comm, call, made, identity, None, at_once);
    // SAFETY: by the caller's promise.
    unsafe { *request = made };
    0
}

/// Makes the future, polls it once (which posts its first messages), and leaves the rest to the progress
/// engine. Without an identity there is nothing to do. `failed` is set if it fails. `at_once`: the request
/// may be completed before this returns.
pub fn launch(
    comm: &Arc<Comm>,
    call: Call<'static>,
    request: *mut ompi_request_t,
    identity: Option<Identity>,
    failed: Option<Arc<AtomicBool>>,
    at_once: bool,
) {
    let future: Pin<Box<dyn Future<Output = Result<()>> + Send>> = match identity {
        None => Box::pin(async { Ok(()) }),
        Some(identity) => {
            let comm = comm.clone();
            // Not an `async fn`: that would hold its arguments twice.
            small(|| async move {
                if let Some(ticket) = identity.ticket {
                    comm.identities.turn(ticket).await;
                }
                operation::run(&comm, &call, identity.slot, Some(identity.first_tag), identity.synchronise).await
            })
        }
    };
    let ticket = identity.and_then(|identity| identity.ticket);
    Op { future, request, comm: comm.clone(), ticket, failed, outcome: None }.begin(at_once);
}

/// Leaves what completes a request to the progress engine, and polls it for the first time. As
/// [`launch`] has it.
pub fn adopt(
    comm: &Arc<Comm>,
    future: impl Future<Output = Result<()>> + Send + 'static,
    request: *mut ompi_request_t,
    failed: Option<Arc<AtomicBool>>,
    at_once: bool,
) {
    let future = Box::pin(future);
    Op { future, request, comm: comm.clone(), ticket: None, failed, outcome: None }.begin(at_once);
}

/// Starts a nonblocking operation on predefined datatypes on the stream of the team that operation `number`
/// uses, which is open, with its `queue` or without it; stores its request.
///
/// # Safety
/// `request` may be written; what `operation` holds across its awaits may go to another thread, and stays
/// where it is until the request is complete.
#[inline(always)]
pub unsafe fn start_on_stream(
    comm: &Arc<Comm>,
    (kind, number, queue): (Kind, u64, bool),
    request: *mut *mut ompi_request_t,
    operation: impl Short + 'static,
) -> i32 {
    counters::handled(kind, Mode::Nonblocking);
    // Those of its kind that go by messages, on all ranks, count it.
    let ticket = comm.identities.nonblocking(kind, false);
    // SAFETY: the communicator is alive.
    let made = unsafe { glue::cr_request_new(comm.handle(), 0, ptr::null_mut()) };
    if made.is_null() {
        abandon(comm, Some(ticket), Some(number));
        return CR_ERR_NO_MEM as i32;
    }
    let of = comm.clone();
    let future = small(|| async move {
        let _turn = of.team.turn(number).await;
        let turn = of.team.get().and_then(|team| team.turn(nonblocking(number), 0, queue)).ok_or(Error::Peer)?;
        short::run(turn, operation).await
    });
    Op { future, request: made, comm: comm.clone(), ticket: Some(ticket), failed: None, outcome: None }.begin(true);
    // SAFETY: by the caller's promise.
    unsafe { *request = made };
    0
}

/// Gives up an operation that has an identity, but no request: later ones wait for its turns here, and the
/// others for it in shared memory, where it has that number.
fn abandon(comm: &Arc<Comm>, ticket: Option<Ticket>, number: Option<u64>) {
    let of = comm.clone();
    let future = async move {
        if let Some(number) = number {
            let _turn = of.team.turn(number).await;
            if let Some(team) = of.team.team(&of, false).await? {
                team.fail();
            }
        }
        Ok(())
    };
    let comm = comm.clone();
    Op { future: Box::pin(future), request: ptr::null_mut(), comm, ticket, failed: None, outcome: None }.begin(true);
}
