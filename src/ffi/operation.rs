//! A call becomes a future.

use super::comm::{Comm, Plan};
use super::counters::Kind;
use super::data::{Datatype, HostStream};
use super::glue::{
    self, CR_ERR_ARG, CR_ERR_INTERN, CR_ERR_NO_MEM, CR_ERR_OTHER, CR_PASS, cr_call, ompi_datatype_t, ompi_op_t,
};
use super::host::HostEndpoint;
use super::startup;
use crate::algo::reduce::Value;
use crate::endpoint::{Error, Rank, Result, Span, Stream};
use crate::hier::{self, Job, allreduce::Specs};
use crate::params::Config;
use crate::select::{Reduce, Spec, segment_size};
use crate::topo::LevelSpec;
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
        Error::Reported => CR_ERR_OTHER as i32,
    }
}

/// Runs `call` with tags from `first_tag` downwards. `synchronise`: with a barrier first (flow control).
pub async fn run(comm: &Comm, call: Call, first_tag: i32, synchronise: bool) -> Result<()> {
    let config = comm.config();
    if synchronise {
        let plan = comm.plan(Kind::Barrier, false, None).map_err(Error::Mpi)?;
        let ep = HostEndpoint::new(comm, call.kind, Datatype::BYTES, ptr::null_mut(), first_tag);
        hier::barrier::synchronise(&job(&ep, &plan, 0, 1, config, true)).await?;
    }
    match call.kind {
        Kind::Bcast => bcast(comm, call, config, first_tag).await,
        Kind::Reduce => reduce(comm, call, config, first_tag).await,
        Kind::Allreduce => allreduce(comm, call, config, first_tag).await,
        Kind::Barrier => barrier(comm, config, first_tag).await,
    }
}

fn job<'a>(
    ep: &'a HostEndpoint,
    plan: &'a Plan,
    bytes: usize,
    segment: usize,
    config: &Config,
    commutative: bool,
) -> Job<'a, HostEndpoint> {
    Job { ep, groups: &plan.groups, bytes, segment, window: config.window, commutative }
}

async fn bcast(comm: &Comm, call: Call, config: &Config, first_tag: i32) -> Result<()> {
    let plan = comm.plan(Kind::Bcast, false, Some(call.root)).map_err(Error::Mpi)?;
    let stream = HostStream::new(call.units, call.count, call.receive);
    let segment = segment_size(config.bcast.segment_size, stream.len(), comm.size() as usize, plan.flat);
    let ep = HostEndpoint::new(comm, call.kind, Datatype::BYTES, ptr::null_mut(), first_tag);
    let job = job(&ep, &plan, stream.len(), segment.min(LONGEST), config, true);
    hier::bcast::bcast(&job, &config.bcast.algorithm, &stream, comm.rank() == call.root).await
}

/// Elements in a segment. Every rank finds the same: predefined operations are only defined on predefined types, so all ranks
/// have the same element size. With a user-defined one, ranks may describe the same data by elements of different sizes, so
/// the message stays whole.
fn elements_per_segment(call: &Call, setting: Option<usize>, ranks: u32, flat: bool) -> usize {
    if !call.intrinsic {
        return call.count.max(1);
    }
    let bytes = segment_size(setting, call.bytes(), ranks as usize, flat).min(LONGEST);
    (bytes / call.units.info.size.max(1)).max(1)
}

/// How values are combined: whether operands may be exchanged, and (in reproducible mode) the levels and algorithm that
/// replace those of the parameters, so that the expression depends on the number of ranks only.
struct Combination<'a> {
    commutative: bool,
    fixed: Option<(&'a LevelSpec, &'a Spec<Reduce>)>,
}

fn combination<'a>(call: &Call, config: &Config, fixed: &'a (LevelSpec, Spec<Reduce>)) -> Combination<'a> {
    Combination {
        commutative: call.commutative && !config.reproducible,
        fixed: config.reproducible.then_some((&fixed.0, &fixed.1)),
    }
}

fn fixed_tree() -> (LevelSpec, Spec<Reduce>) {
    (LevelSpec::List(Vec::new()), Spec::everywhere(Reduce::Knomial(2)))
}

async fn reduce(comm: &Comm, call: Call, config: &Config, first_tag: i32) -> Result<()> {
    let is_root = comm.rank() == call.root;
    let fixed = fixed_tree();
    let how = combination(&call, config, &fixed);
    let ordered = !how.commutative;
    let (plan, spec) = match how.fixed {
        Some((levels, spec)) => (comm.plan_for(levels, ordered, Some(call.root)), spec),
        None => (comm.plan(Kind::Reduce, ordered, Some(call.root)), &config.reduce.algorithm),
    };
    let plan = plan.map_err(Error::Mpi)?;
    let ep = HostEndpoint::new(comm, call.kind, call.units, call.op, first_tag);
    let segment = elements_per_segment(&call, config.reduce.segment_size, comm.size(), plan.flat);
    let job = job(&ep, &plan, call.bytes(), segment, config, how.commutative);
    let target = is_root.then(|| call.elements(call.receive));
    let input = match call.in_place && is_root {
        true => Value::owned(call.elements(call.receive)),
        false => Value::borrowed(call.elements(call.send)),
    };
    hier::reduce::reduce(&job, spec, input, target).await
}

async fn allreduce(comm: &Comm, call: Call, config: &Config, first_tag: i32) -> Result<()> {
    let fixed = fixed_tree();
    let how = combination(&call, config, &fixed);
    let ep = HostEndpoint::new(comm, call.kind, call.units, call.op, first_tag);
    let target = call.elements(call.receive);
    let input = match call.in_place {
        true => Value::owned(target),
        false => Value::borrowed(call.elements(call.send)),
    };
    let setting = config.allreduce.segment_size;
    if let Some((levels, spec)) = how.fixed {
        // The fixed tree, then the fastest way down.
        let up = comm.plan_for(levels, true, None).map_err(Error::Mpi)?;
        let down = comm.plan(Kind::Allreduce, false, None).map_err(Error::Mpi)?;
        let segment = elements_per_segment(&call, setting, comm.size(), down.flat);
        let job = job(&ep, &up, call.bytes(), segment, config, false);
        return hier::allreduce::two_trees(&job, &down.groups, spec, &config.bcast.algorithm, input, target).await;
    }
    let plan = comm.plan(Kind::Allreduce, !how.commutative, None).map_err(Error::Mpi)?;
    let segment = elements_per_segment(&call, setting, comm.size(), plan.flat);
    let job = job(&ep, &plan, call.bytes(), segment, config, how.commutative);
    let specs = Specs {
        allreduce: &config.allreduce.algorithm,
        reduce: &config.reduce.algorithm,
        bcast: &config.bcast.algorithm,
    };
    hier::allreduce::allreduce(&job, &specs, input, target).await
}

async fn barrier(comm: &Comm, config: &Config, first_tag: i32) -> Result<()> {
    let plan = comm.plan(Kind::Barrier, false, None).map_err(Error::Mpi)?;
    let ep = HostEndpoint::new(comm, Kind::Barrier, Datatype::BYTES, ptr::null_mut(), first_tag);
    hier::barrier::barrier(&job(&ep, &plan, 0, 1, config, true), &config.barrier.algorithm).await
}

/// What a call is answered with where the parameters leave it to the component below.
pub const PASS: i32 = CR_PASS;
