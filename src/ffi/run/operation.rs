// SPDX-License-Identifier: BSD-3-Clause
//! A call becomes a future.

use crate::algo::reduce::Value;
use crate::endpoint::{Endpoint, Error, Result, Stream};
use crate::ffi::base::apart::apart;
use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::{Call, needed};
use crate::ffi::call::device::must_stage;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::slot::Slot;
use crate::ffi::comm::state::Comm;
use crate::ffi::mpi::data::Datatype;
use crate::ffi::run::job::{Amount, job};
use crate::ffi::run::middle::{in_the_middle, is_central};
use crate::ffi::run::shared::{self, Answer, Part};
use crate::ffi::run::{decisions, device, flat, neighbor};
use crate::hier::central::{self, What};
use crate::hier::plans::Along;
use crate::hier::{self, Job, allreduce::Specs};
use crate::select::{Reduce, Spec, segment_size};
use crate::shm::exec::node::Node;
use crate::shm::policy::Operation;
use crate::topo::{LevelSpec, Shape};
use std::ptr;

/// Runs `call`: through shared memory where it can be, and it has a slot there; else with tags from
/// `first_tag` downwards (`None`: those of a blocking operation that is called now). `synchronise`: with a
/// barrier first, or messages acknowledged (flow control; shared memory has its own).
pub async fn run(
    comm: &Comm,
    call: &Call<'_>,
    slot: Option<Slot>,
    first_tag: Option<i32>,
    synchronise: bool,
) -> Result<()> {
    if !must_stage(call) {
        return on_host(comm, call, slot, first_tag, synchronise).await;
    }
    let run = async |host: &Call<'_>| apart(|| on_host(comm, host, slot, first_tag, synchronise)).await;
    apart(|| device::staged(call, run)).await
}

/// As [`run`], of what the processor may read and write.
async fn on_host(
    comm: &Comm,
    call: &Call<'_>,
    slot: Option<Slot>,
    first_tag: Option<i32>,
    mut synchronise: bool,
) -> Result<()> {
    let mut part = None;
    match slot {
        None => {}
        Some(slot) if comm.is_shared() => match apart(|| shared::run(comm, call, slot)).await? {
            Answer::Done => return Ok(()),
            Answer::Refused { synchronise: now } => synchronise |= now,
        },
        Some(slot) => part = apart(|| shared::part(comm, call, slot)).await?,
    }
    let first_tag = first_tag.unwrap_or_else(|| comm.identities.blocking(call.kind));
    apart(|| by_messages(comm, call, part, first_tag, synchronise)).await
}

/// As [`run`], by messages between nodes at least; `part`: what happens on this node through shared memory.
async fn by_messages(
    comm: &Comm,
    call: &Call<'_>,
    part: Option<Part<'_>>,
    first_tag: i32,
    synchronise: bool,
) -> Result<()> {
    // Movement works on bytes, reduction on elements.
    let (units, op) = match call.op.is_null() {
        true => (Datatype::BYTES, ptr::null_mut()),
        false => (call.units(), call.op),
    };
    let mut ep = HostEndpoint::new(comm, Some(call.kind), units, op, first_tag);
    if !op.is_null() && !call.intrinsic {
        ep.keep_whole();
    }
    ep.go_on();
    ep.stage(call.staging.clone());
    let node = part.as_ref().map(Part::node);
    decisions::whole(comm, call, node.as_ref());
    let result = run_over(&ep, comm, call, node, synchronise).await;
    // Receives that are cancelled note errors, too.
    let noted = ep.noted();
    if result.is_err() {
        if let Some(part) = &part {
            part.fail();
        }
        ep.settle().await;
    }
    noted.and(result)
}

async fn run_over(
    ep: &HostEndpoint,
    comm: &Comm,
    call: &Call<'_>,
    node: Option<Node<'_>>,
    synchronise: bool,
) -> Result<()> {
    if call.kind.is_neighbor() {
        return apart(|| neighbor::run(ep, comm, call, node, synchronise)).await;
    }
    if synchronise {
        let plan = comm.plan(Kind::Barrier, Along::over(node.is_some()), false, None).map_err(Error::Mpi)?;
        let job = Job { node, ..job(ep, &plan, comm, Amount::NONE) };
        apart(|| hier::barrier::synchronise(&job)).await?;
    }
    match call.kind {
        Kind::Bcast => apart(|| bcast(ep, comm, call, node)).await,
        Kind::Reduce => apart(|| reduce(ep, comm, call, node)).await,
        Kind::Allreduce => apart(|| allreduce(ep, comm, call, node)).await,
        Kind::Barrier => {
            let plan = comm.plan(Kind::Barrier, Along::over(node.is_some()), false, None).map_err(Error::Mpi)?;
            let job = Job { node, ..job(ep, &plan, comm, Amount::NONE) };
            if decisions::is_due(call) {
                decisions::by_level(
                    comm,
                    call,
                    &decisions::levels(&job, &comm.config().barrier.algorithm, Operation::Barrier, 0),
                );
            }
            apart(|| hier::barrier::barrier(&job, &comm.config().barrier.algorithm)).await
        }
        _ => apart(|| flat::run(ep, comm, call, node)).await,
    }
}

async fn bcast(ep: &HostEndpoint, comm: &Comm, call: &Call<'_>, node: Option<Node<'_>>) -> Result<()> {
    let config = comm.config();
    let plan = comm.plan(Kind::Bcast, Along::over(node.is_some()), false, Some(call.root)).map_err(Error::Mpi)?;
    let stream = needed(&call.receive)?.stream();
    let bytes = stream.len();
    let segment =
        segment_size(config.bcast.segment_size, bytes, comm.size() as usize, plan.shape, true).min(config.max_message);
    let job = Job { node, ..job(ep, &plan, comm, Amount { bytes, segment, ..Amount::NONE }) };
    if decisions::is_due(call) {
        decisions::by_level(comm, call, &decisions::levels(&job, &config.bcast.algorithm, Operation::Bcast, bytes));
    }
    hier::bcast::bcast(&job, &config.bcast.algorithm, &stream, call.is_root).await
}

/// The amount of a reduction. Every rank finds the same segments: predefined operations are only defined on
/// predefined types, so all ranks have the same element size. With a user-defined one, ranks may describe the
/// same data by elements of different sizes, so the message stays whole.
fn amount(call: &Call<'_>, comm: &Comm, setting: Option<usize>, shape: Shape) -> Amount {
    let commutative = call.given.commutative && !comm.config().reproducible;
    let (units, count) = (call.units(), call.count());
    let bytes = units.bytes(count);
    let segment = match call.intrinsic {
        false => count,
        true => {
            let chain = call.kind == Kind::Reduce;
            let segment =
                segment_size(setting, bytes, comm.size() as usize, shape, chain).min(comm.config().max_message);
            segment / units.info.size.max(1)
        }
    };
    Amount { bytes, segment: segment.max(1), commutative, divisible: call.intrinsic }
}

/// In reproducible mode the levels and the algorithm of the parameters give way to one tree, whose expression
/// depends on the number of ranks only.
fn fixed_tree() -> (LevelSpec, Spec<Reduce>) {
    (LevelSpec::List(Vec::new()), Spec::everywhere(Reduce::Knomial(2)))
}

async fn reduce(ep: &HostEndpoint, comm: &Comm, call: &Call<'_>, node: Option<Node<'_>>) -> Result<()> {
    let config = comm.config();
    let target = call.receive.as_ref().map(|receive| call.elements(receive));
    let input = match &call.send {
        None => Value::owned(call.elements(needed(&call.receive)?)),
        Some(send) => Value::borrowed(call.elements(send)),
    };
    let setting = config.reduce.segment_size;
    if is_central(comm, call, Some(call.root))? {
        return in_the_middle(ep, comm, call, node, call.root, What::Reduce, input.span, target).await;
    }
    if config.reproducible {
        decisions::fixed(comm, call);
        let (levels, spec) = fixed_tree();
        let plan = comm.plan_for(&levels, true, Some(call.root)).map_err(Error::Mpi)?;
        let job = job(ep, &plan, comm, amount(call, comm, setting, plan.shape));
        return hier::reduce::reduce(&job, &spec, input, target).await;
    }
    let (along, ordered) = (Along::over(node.is_some()), !call.given.commutative);
    let plan = comm.plan(Kind::Reduce, along, ordered, Some(call.root)).map_err(Error::Mpi)?;
    let job = Job { node, ..job(ep, &plan, comm, amount(call, comm, setting, plan.shape)) };
    if decisions::is_due(call) {
        decisions::by_level(
            comm,
            call,
            &decisions::levels(&job, &config.reduce.algorithm, Operation::Reduce, input.span.len()),
        );
    }
    hier::reduce::reduce(&job, &config.reduce.algorithm, input, target).await
}

async fn allreduce(ep: &HostEndpoint, comm: &Comm, call: &Call<'_>, node: Option<Node<'_>>) -> Result<()> {
    let config = comm.config();
    let target = call.elements(needed(&call.receive)?);
    let input = match &call.send {
        None => Value::owned(target),
        Some(send) => Value::borrowed(call.elements(send)),
    };
    let setting = config.allreduce.segment_size;
    if is_central(comm, call, None)? {
        let middle = central::middle(comm.place().map_err(Error::Mpi)?);
        let what = What::Allreduce(&config.bcast.algorithm);
        return in_the_middle(ep, comm, call, node, middle, what, input.span, Some(target)).await;
    }
    if config.reproducible {
        decisions::fixed(comm, call);
        // The fixed tree, then the fastest way down.
        let (levels, spec) = fixed_tree();
        let up = comm.plan_for(&levels, true, None).map_err(Error::Mpi)?;
        let down = comm.plan(Kind::Allreduce, Along::All, false, None).map_err(Error::Mpi)?;
        let job = job(ep, &up, comm, amount(call, comm, setting, down.shape));
        return hier::allreduce::two_trees(&job, &down.groups, &spec, &config.bcast.algorithm, input, target).await;
    }
    let (along, ordered) = (Along::over(node.is_some()), !call.given.commutative);
    let plan = comm.plan(Kind::Allreduce, along, ordered, None).map_err(Error::Mpi)?;
    let job = Job { node, ..job(ep, &plan, comm, amount(call, comm, setting, plan.shape)) };
    let specs = Specs {
        allreduce: &config.allreduce.algorithm,
        reduce: &config.reduce.algorithm,
        bcast: &config.bcast.algorithm,
    };
    if decisions::is_due(call) {
        decisions::by_level(comm, call, &decisions::up_and_down(&job, &specs, input.span.len()));
    }
    hier::allreduce::allreduce(&job, &specs, input, target).await
}
