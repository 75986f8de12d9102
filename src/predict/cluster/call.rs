// SPDX-License-Identifier: BSD-3-Clause
//! One process' call of an operation over several nodes, as the component composes it.

use crate::algo::reduce::Value;
use crate::endpoint::{Endpoint, Result, Span};
use crate::hier::allreduce::Specs;
use crate::hier::{self, Job};
use crate::predict::{Case, Kind};
use crate::select::{Allreduce, Barrier, Bcast, Reduce, Spec, segment_size};
use crate::shm::exec::node::Node;
use crate::topo::{Group, Shape};

/// Segments under way at a time, as the parameter `window` has it.
const WINDOW: u8 = 8;

/// The values of the parameters that name algorithms and segments.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `coll_rust_barrier_algorithm`
    pub barrier: Spec<Barrier>,
    /// `coll_rust_bcast_algorithm`
    pub bcast: Spec<Bcast>,
    /// `coll_rust_reduce_algorithm`
    pub reduce: Spec<Reduce>,
    /// `coll_rust_allreduce_algorithm`
    pub allreduce: Spec<Allreduce>,
    /// `coll_rust_<operation>_segment_size`; `None`: auto.
    pub segment: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        let (barrier, bcast, reduce, allreduce) = (Spec::AUTO, Spec::AUTO, Spec::AUTO, Spec::AUTO);
        Settings { barrier, bcast, reduce, allreduce, segment: None }
    }
}

/// What the levels of a job are.
#[derive(Clone, Copy)]
pub struct Along<'g> {
    /// The caller's groups.
    pub groups: &'g [Group],
    /// The shape of the job.
    pub shape: Shape,
}

/// Whether an operation can be predicted over several nodes.
pub fn has(kind: Kind) -> bool {
    matches!(kind, Kind::Barrier | Kind::Bcast | Kind::Reduce | Kind::Allreduce)
}

/// The call of a process: data in `from`, or the result in `to`.
///
/// # Panics
/// An operation that [`has`] does not know.
pub async fn call<E: Endpoint>(
    ep: &E,
    Along { groups, shape }: Along<'_>,
    node: Option<Node<'_>>,
    case: Case,
    settings: &Settings,
    [from, to]: [Span; 2],
) -> Result<()> {
    let (is_root, unit) = (ep.rank() == 0, from.extent().unsigned_abs().max(1));
    let chain = matches!(case.kind, Kind::Bcast | Kind::Reduce);
    let segment = segment_size(settings.segment, case.bytes, ep.size() as usize, shape, chain);
    let job = Job {
        ep,
        groups,
        bytes: case.bytes,
        segment: (segment / unit).max(1),
        window: WINDOW,
        commutative: true,
        divisible: true,
        crowded: false,
        node,
    };
    match case.kind {
        Kind::Barrier => hier::barrier::barrier(&job, &settings.barrier).await,
        Kind::Bcast => hier::bcast::bcast(&job, &settings.bcast, &from, is_root).await,
        Kind::Reduce => {
            hier::reduce::reduce(&job, &settings.reduce, Value::borrowed(from), is_root.then_some(to)).await
        }
        Kind::Allreduce => {
            let specs = Specs { allreduce: &settings.allreduce, reduce: &settings.reduce, bcast: &settings.bcast };
            hier::allreduce::allreduce(&job, &specs, Value::borrowed(from), to).await
        }
        other => panic!("{} over several nodes", other.name()),
    }
}
