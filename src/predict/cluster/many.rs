// SPDX-License-Identifier: BSD-3-Clause
//! Operations of very many ranks, which have messages within their nodes too.

use super::Predicted;
use super::call::{Along, Settings, call};
use super::groups::groups;
use crate::endpoint::{Endpoint, Result};
use crate::hier::lanes::only;
use crate::predict::data::{Buffer, value};
use crate::predict::{Case, Kind};
use crate::sim::clock::net::Places;
use crate::sim::clock::net::many::{Took, nowhere, run};
use crate::topo::LevelSpec;

/// What one call takes. Messages have lengths, but no contents. `tick` is told how many ranks are through.
///
/// # Errors
/// What the operation returns.
pub fn many(
    places: Places<'static>,
    levels: &LevelSpec,
    case: Case,
    settings: &Settings,
    tick: impl FnMut(u32),
) -> Result<Predicted> {
    let (groups, shape) = groups(&places, levels);
    let unit = unit(case.kind);
    // Neither is memory, but they are not the same.
    let both = nowhere(2 * case.bytes / unit, unit);
    let spans = [both.slice(0..case.bytes / unit), both.slice(case.bytes / unit..2 * case.bytes / unit)];
    let rank = |ep| {
        let (groups, settings) = (&groups, &settings);
        async move {
            let ep: crate::sim::clock::net::ClockEndpoint = ep;
            let along = Along { groups: &groups[ep.rank() as usize], shape };
            call(&ep, along, None, case, settings, spans).await
        }
    };
    Ok(run(places, false, unit, rank, only, tick)?.into())
}

/// The same with contents, for few ranks: their results are checked.
///
/// # Errors
/// What the operation returns.
///
/// # Panics
/// When a result is wrong.
pub fn checked(places: Places<'static>, levels: &LevelSpec, case: Case, settings: &Settings) -> Result<Predicted> {
    let (groups, shape) = groups(&places, levels);
    let size = places.size() as usize;
    let unit = unit(case.kind);
    let buffers: Vec<[Buffer; 2]> = (0..size).map(|_| [0; 2].map(|_| Buffer::new(case.bytes))).collect();
    for (seed, [from, to]) in (1..).zip(&buffers) {
        from.fill(seed);
        to.fill(0);
    }
    let rank = |ep| {
        let (groups, settings, buffers) = (&groups, &settings, &buffers);
        async move {
            let ep: crate::sim::clock::net::ClockEndpoint = ep;
            let me = ep.rank() as usize;
            let spans = match unit {
                1 => buffers[me].each_ref().map(|buffer| buffer.span(case.bytes)),
                _ => buffers[me].each_ref().map(|buffer| buffer.numbers(case.bytes)),
            };
            call(&ep, Along { groups: &groups[me], shape }, None, case, settings, spans).await
        }
    };
    let predicted = run(places, true, unit, rank, only, |_| ())?;
    check(case, &buffers);
    Ok(predicted.into())
}

impl From<Took> for Predicted {
    fn from(took: Took) -> Predicted {
        let Took { time, path, traffic } = took;
        Predicted { time, path, traffic, ..Predicted::default() }
    }
}

/// Bytes of a unit.
fn unit(kind: Kind) -> usize {
    if matches!(kind, Kind::Reduce | Kind::Allreduce) { 8 } else { 1 }
}

/// # Panics
/// When a result is wrong.
pub(super) fn check(case: Case, buffers: &[[Buffer; 2]]) {
    let size = buffers.len();
    for i in 0..case.bytes / 8 {
        let sum = (1..=size as u64).fold(0_u64, |sum, seed| sum.wrapping_add(value(seed, i)));
        for (me, [from, to]) in buffers.iter().enumerate() {
            let right = match case.kind {
                Kind::Bcast => from.at(i) == value(1, i),
                Kind::Reduce => me > 0 || to.at(i) == sum,
                Kind::Allreduce => to.at(i) == sum,
                _ => true,
            };
            assert!(right, "{case:?}: rank {me} has a wrong result at {i}");
        }
    }
}
