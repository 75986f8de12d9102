// SPDX-License-Identifier: BSD-3-Clause
//! Reductions of what lies in a device's memory.

use crate::endpoint::Result;
use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::Call;
use crate::ffi::call::device::must_stage;
use crate::ffi::mpi::device::{Stage, Staging};
use std::sync::Arc;

/// What stands in for the buffers of a call.
pub fn staging_of(call: &Call<'_>) -> Result<Staging> {
    let dtype = call.units();
    let mut staging = Staging::default();
    if call.send.as_ref().is_some_and(|side| side.device) {
        staging.operand = Some(Stage::new(dtype, call.operand(), true, 0)?);
    }
    if call.receive.as_ref().is_some_and(|side| side.device) {
        let in_place = call.send.is_none();
        let there = if in_place { call.operand() } else { call.result() };
        let has_result = call.kind != Kind::Exscan || !call.is_first();
        let result = if has_result { call.result().len() } else { 0 };
        staging.result = Some(Stage::new(dtype, there, in_place, result)?);
    }
    Ok(staging)
}

/// The call with its elements in what stands in for its buffers.
fn stand_in<'a>(staging: &Arc<Staging>, call: &Call<'a>) -> Call<'a> {
    let mut host = call.clone();
    for (side, stage) in [(&mut host.send, &staging.operand), (&mut host.receive, &staging.result)] {
        if let (Some(side), Some(stage)) = (side, stage) {
            (side.buffer, side.device) = (stage.here().ptr().cast(), false);
        }
    }
    host.staging = Some(staging.clone());
    host
}

/// Runs a reduction with operands in host memory in place of those in a device's; `run` runs it there.
pub async fn staged(call: &Call<'_>, run: impl AsyncFnOnce(&Call<'_>) -> Result<()>) -> Result<()> {
    let staging = Arc::new(staging_of(call)?);
    staging.begin()?;
    {
        let host = stand_in(&staging, call);
        // It comes here once: nothing of it lies in a device's memory any more.
        debug_assert!(!must_stage(&host));
        run(&host).await?;
    }
    staging.end().await?;
    if let Some(staging) = Arc::into_inner(staging) {
        staging.free();
    }
    Ok(())
}
