// SPDX-License-Identifier: BSD-3-Clause
//! Barrier, dissemination: in step i every member signals the one 2^i further and waits for the one 2^i
//! before.
//!
//! Cost: ⌈log₂ p⌉ steps, as many empty messages per member. Requirements: none.
//! Source: Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, IJPP 1988.

use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result, Span};

/// Returns when all members have called.
pub async fn dissemination<E: Endpoint>(stage: &Stage<'_, E>) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    let mut distance = 1;
    while distance < size {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        stage.exchange(to, Span::empty(), from, Span::empty()).await?;
        distance *= 2;
    }
    Ok(())
}
