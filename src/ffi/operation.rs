//! A call becomes a future.

use super::comm::{Comm, Plan};
use super::counters::Kind;
use super::data::{Datatype, HostStream};
use super::glue::{self, CR_ERR_ARG, CR_ERR_INTERN, CR_ERR_NO_MEM, CR_PASS, cr_call, ompi_datatype_t, ompi_op_t};
use super::host::HostEndpoint;
use super::startup;
use crate::algo::reduce::Value;
use crate::endpoint::{Error, Rank, Result, Span, Stream};
use crate::hier::{self, Job, allreduce::Specs};
use crate::params::Config;
use crate::select::{Reduce, Spec, segment_size};
use crate::topo::{LevelSpec, Shape};
use std::ffi::c_void;
use std::ptr;

/// No message is longer than this: the longest that every transport below is known to carry whole.
const LONGEST: usize = 256 << 20;

/// A collective call with what was found out about its arguments.
#[derive(Clone, Copy)]
pub struct Call {
    pub kind: Kind,
    root: Rank,
    send: *mut c_void,
    receive: *mut c_void,
    count: usize,
    pub dtype: *mut ompi_datatype_t,
    pub op: *mut ompi_op_t,
    in_place: bool,
    units: Datatype,
    commutative: bool,
    intrinsic: bool,
    extremum: bool,
}

// SAFETY: addresses of the user's buffers and of Open MPI's objects; the operation has the buffers for its duration.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

impl Call {
    /// Takes over a call from the shim.
    ///
    /// # Safety
    /// The handles in `call` are live, and stay so until the operation is over.
    pub unsafe fn new(call: &cr_call) -> std::result::Result<Call, i32> {
        let kind = Kind::from_number(call.kind).ok_or(CR_ERR_INTERN as i32)?;
        let units = match call.dtype.is_null() {
            true => Datatype::BYTES,
            // SAFETY: live by the caller's promise.
            false => unsafe { Datatype::of(call.dtype, call.count) },
        };
        let mut op = glue::cr_op_info::default();
        if !call.op.is_null() {
            // SAFETY: live by the caller's promise; fills in ours.
            unsafe { glue::cr_op_info(call.op, &mut op) };
        }
        Ok(Call {
            kind,
            root: Rank::try_from(call.root).map_err(|_| CR_ERR_ARG as i32)?,
            send: call.sbuf.cast_mut(),
            receive: call.rbuf,
            count: if kind == Kind::Barrier { 0 } else { call.count },
            dtype: call.dtype,
            op: call.op,
            in_place: call.in_place != 0,
            units,
            commutative: op.commutative != 0,
            intrinsic: op.intrinsic != 0,
            extremum: op.extremum != 0,
        })
    }

    /// Packed bytes of the whole operation: the same on all ranks.
    fn bytes(&self) -> usize {
        self.units.info.size.saturating_mul(self.count)
    }

    /// Whether there is nothing to do, which every rank knows.
    pub fn is_empty(&self) -> bool {
        self.kind != Kind::Barrier && self.bytes() == 0
    }

    /// Whether it looks like a step of Open MPI's agreement on a context identifier: an allreduce of one int by MPI_MAX or MPI_MIN.
    /// The same on all ranks.
    pub fn is_like_agreement(&self) -> bool {
        self.kind == Kind::Allreduce && self.extremum && self.bytes() == 4
    }

    /// Whether a rank could run ahead of the others in it.
    pub fn is_rooted(&self) -> bool {
        matches!(self.kind, Kind::Bcast | Kind::Reduce)
    }

    /// Whether the parameters leave this operation to the component below.
    pub fn is_below(&self, config: &Config) -> bool {
        match self.kind {
            Kind::Bcast => config.bcast.algorithm.below(),
            Kind::Reduce => config.reduce.algorithm.below(),
            Kind::Allreduce => config.allreduce.algorithm.below(),
            Kind::Barrier => config.barrier.algorithm.below(),
        }
    }

    /// Whether Open MPI retains an argument for the request after the call returns.
    pub fn has_derived_arguments(&self) -> bool {
        (!self.op.is_null() && !self.intrinsic) || self.units.info.predefined == 0
    }

    fn elements(&self, buffer: *mut c_void) -> Span {
        Span::new(buffer.cast(), self.count, self.units.info.extent)
    }
}

/// The MPI error code for an error; prints what has not been said.
pub fn code(error: Error) -> i32 {
    match error {
        Error::Mpi(code) => code,
        Error::NoMemory(bytes) => {
            startup::print(&format!("coll/rust: no memory for a temporary buffer of {bytes} bytes"));
            CR_ERR_NO_MEM as i32
        }
        Error::Peer => {
            startup::print("coll/rust: a process of the group has died, or has failed in an operation of the group");
            CR_ERR_INTERN as i32
        }
    }
}

/// Runs `call` with tags from `first_tag` downwards. `synchronise`: with a barrier first (flow control).
pub async fn run(comm: &Comm, call: Call, first_tag: i32, synchronise: bool) -> Result<()> {
    let (units, op) = match call.kind {
        Kind::Bcast | Kind::Barrier => (Datatype::BYTES, ptr::null_mut()),
        Kind::Reduce | Kind::Allreduce => (call.units, call.op),
    };
    let ep = HostEndpoint::new(comm, Some(call.kind), units, op, first_tag);
    let result = run_over(&ep, comm, &call, synchronise).await;
    if result.is_err() {
        ep.settle().await;
    }
    result
}

async fn run_over(ep: &HostEndpoint, comm: &Comm, call: &Call, synchronise: bool) -> Result<()> {
    if synchronise {
        let plan = comm.plan(Kind::Barrier, false, None).map_err(Error::Mpi)?;
        hier::barrier::synchronise(&job(ep, &plan, comm, Amount::NONE)).await?;
    }
    match call.kind {
        Kind::Bcast => bcast(ep, comm, call).await,
        Kind::Reduce => reduce(ep, comm, call).await,
        Kind::Allreduce => allreduce(ep, comm, call).await,
        Kind::Barrier => {
            let plan = comm.plan(Kind::Barrier, false, None).map_err(Error::Mpi)?;
            let spec = &comm.config().barrier.algorithm;
            hier::barrier::barrier(&job(ep, &plan, comm, Amount::NONE), spec).await
        }
    }
}

/// How much data, and how it may be treated.
#[derive(Clone, Copy)]
struct Amount {
    bytes: usize,
    segment: usize,
    commutative: bool,
    divisible: bool,
}

impl Amount {
    /// No data.
    const NONE: Amount = Amount { bytes: 0, segment: 1, commutative: true, divisible: true };
}

fn job<'a>(ep: &'a HostEndpoint, plan: &'a Plan, comm: &Comm, amount: Amount) -> Job<'a, HostEndpoint> {
    let Amount { bytes, segment, commutative, divisible } = amount;
    Job {
        ep,
        groups: &plan.groups,
        bytes,
        segment,
        window: comm.config().window,
        commutative,
        divisible,
        crowded: plan.shape.crowded,
    }
}

async fn bcast(ep: &HostEndpoint, comm: &Comm, call: &Call) -> Result<()> {
    let config = comm.config();
    let plan = comm.plan(Kind::Bcast, false, Some(call.root)).map_err(Error::Mpi)?;
    let stream = HostStream::new(call.units, call.count, call.receive);
    let bytes = stream.len();
    let segment = segment_size(config.bcast.segment_size, bytes, comm.size() as usize, plan.shape, true).min(LONGEST);
    let job = job(ep, &plan, comm, Amount { bytes, segment, ..Amount::NONE });
    hier::bcast::bcast(&job, &config.bcast.algorithm, &stream, comm.rank() == call.root).await
}

/// The amount of a reduction. Every rank finds the same segments: predefined operations are only defined on predefined
/// types, so all ranks have the same element size. With a user-defined one, ranks may describe the same data by elements of
/// different sizes, so the message stays whole.
fn amount(call: &Call, comm: &Comm, setting: Option<usize>, shape: Shape) -> Amount {
    let commutative = call.commutative && !comm.config().reproducible;
    let segment = match call.intrinsic {
        false => call.count,
        true => {
            let chain = call.kind == Kind::Reduce;
            let bytes = segment_size(setting, call.bytes(), comm.size() as usize, shape, chain).min(LONGEST);
            bytes / call.units.info.size.max(1)
        }
    };
    Amount { bytes: call.bytes(), segment: segment.max(1), commutative, divisible: call.intrinsic }
}

/// In reproducible mode the levels and the algorithm of the parameters give way to one tree, whose expression depends on the
/// number of ranks only.
fn fixed_tree() -> (LevelSpec, Spec<Reduce>) {
    (LevelSpec::List(Vec::new()), Spec::everywhere(Reduce::Knomial(2)))
}

async fn reduce(ep: &HostEndpoint, comm: &Comm, call: &Call) -> Result<()> {
    let config = comm.config();
    let is_root = comm.rank() == call.root;
    let target = is_root.then(|| call.elements(call.receive));
    let input = match call.in_place && is_root {
        true => Value::owned(call.elements(call.receive)),
        false => Value::borrowed(call.elements(call.send)),
    };
    let setting = config.reduce.segment_size;
    if config.reproducible {
        let (levels, spec) = fixed_tree();
        let plan = comm.plan_for(&levels, true, Some(call.root)).map_err(Error::Mpi)?;
        let job = job(ep, &plan, comm, amount(call, comm, setting, plan.shape));
        return hier::reduce::reduce(&job, &spec, input, target).await;
    }
    let plan = comm.plan(Kind::Reduce, !call.commutative, Some(call.root)).map_err(Error::Mpi)?;
    let job = job(ep, &plan, comm, amount(call, comm, setting, plan.shape));
    hier::reduce::reduce(&job, &config.reduce.algorithm, input, target).await
}

async fn allreduce(ep: &HostEndpoint, comm: &Comm, call: &Call) -> Result<()> {
    let config = comm.config();
    let target = call.elements(call.receive);
    let input = match call.in_place {
        true => Value::owned(target),
        false => Value::borrowed(call.elements(call.send)),
    };
    let setting = config.allreduce.segment_size;
    if config.reproducible {
        // The fixed tree, then the fastest way down.
        let (levels, spec) = fixed_tree();
        let up = comm.plan_for(&levels, true, None).map_err(Error::Mpi)?;
        let down = comm.plan(Kind::Allreduce, false, None).map_err(Error::Mpi)?;
        let job = job(ep, &up, comm, amount(call, comm, setting, down.shape));
        return hier::allreduce::two_trees(&job, &down.groups, &spec, &config.bcast.algorithm, input, target).await;
    }
    let plan = comm.plan(Kind::Allreduce, !call.commutative, None).map_err(Error::Mpi)?;
    let job = job(ep, &plan, comm, amount(call, comm, setting, plan.shape));
    let specs = Specs {
        allreduce: &config.allreduce.algorithm,
        reduce: &config.reduce.algorithm,
        bcast: &config.bcast.algorithm,
    };
    hier::allreduce::allreduce(&job, &specs, input, target).await
}

/// What a call is answered with where the parameters leave it to the component below.
pub const PASS: i32 = CR_PASS;
