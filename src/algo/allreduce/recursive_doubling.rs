// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce, recursive doubling, in rank order.
//!
//! Players ([`crate::pattern::pof2`]) exchange whole values with the partner at distance 1, 2, 4, …; both
//! compute the same expression, lower block first (also where the operation commutes: exchanged
//! operands can differ in the bits of a NaN). Extras hand in their value first and get the result at the end.
//!
//! Cost: ⌊log₂ p⌋ (+ 2) steps · n units, as many combinations of n. Requirements: none; order is kept.
//! Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005.

use crate::algo::Stage;
use crate::algo::reduce::{Value, Work};
use crate::endpoint::{Endpoint, Result};
use crate::pattern::pof2::{Part, Players, Proxy};

/// Combines all members' `mine` everywhere. Uses two phases.
pub async fn recursive_doubling<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    mine: Value,
    work: &mut Work<'a, E>,
) -> Result<Value> {
    let players = Players::new(stage.size(), Proxy::Upper);
    let (id, extra) = match players.part(stage.me()) {
        Part::Extra { proxy } => {
            stage.send(proxy, mine.span).await?;
            work.give(mine);
            let result = work.take(true)?;
            stage.second().recv(proxy, result).await?;
            return Ok(Value::owned(result));
        }
        Part::Player { id, extra } => (id, extra),
    };
    let mut value = mine;
    if let Some(extra) = extra {
        let span = work.take(players.count() == 1)?;
        stage.recv(extra, span).await?;
        value = work.combine_in_order(Value::owned(span), value)?;
    }
    let mut distance = 1;
    while distance < players.count() {
        let partner = players.member(id ^ distance);
        let span = work.take(2 * distance >= players.count())?;
        stage.exchange(partner, value.span, partner, span).await?;
        let other = Value::owned(span);
        value = if id & distance == 0 {
            work.combine_in_order(value, other)?
        } else {
            work.combine_in_order(other, value)?
        };
        distance *= 2;
    }
    if let Some(extra) = extra {
        stage.second().send(extra, value.span).await?;
    }
    Ok(value)
}
