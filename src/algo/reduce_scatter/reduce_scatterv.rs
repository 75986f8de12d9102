// SPDX-License-Identifier: BSD-3-Clause
//! Reduce-scatter as a reduction to member 0 and a scatter, both along k-nomial trees, in rank order.
//!
//! Cost: 2 ⌈log_k p⌉ steps, 2 (p − 1) messages; the whole vector p − 1 times on the way up, and a block as
//! often on the way down as its member's number has non-zero digits in base k. Memory: the vector, up to k
//! times at an inner member. Requirements: none; order is kept.
//! Source: MPI's definition of the operation; for short vectors, where pairwise takes p − 1 steps.

use super::settle;
use crate::algo::Stage;
use crate::algo::data::{Packed, Plain, Role};
use crate::algo::reduce::{Value, Work, knomial::knomial as reduce};
use crate::algo::scatter::knomial::knomial as scatter;
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::lengths::Lengths;

/// Combines all members' `mine`, and leaves the own block of the result in `target`. Uses two phases.
pub async fn reduce_scatterv<E: Endpoint>(
    stage: &Stage<'_, E>,
    mine: Span,
    lengths: &Lengths,
    target: Span,
    radix: u32,
) -> Result<()> {
    let ep = stage.ep();
    if lengths.is_empty() {
        return Ok(());
    }
    let mut work = Work::new(ep, mine.len(), false, None);
    let sum = reduce(stage, 0, Value::borrowed(mine), &mut work, radix).await?;
    let own = Plain { ep, span: target };
    let Some(sum) = sum else {
        let role: Role<'_, _, Packed<'_, E>> = Role::Other { own: &own };
        return scatter(&stage.second(), 0, role, Some(lengths), radix).await;
    };
    let all = Packed { ep, span: sum.span, lengths };
    let role: Role<'_, Plain<'_, E>, _> = Role::Root { all: &all, own: None };
    scatter(&stage.second(), 0, role, Some(lengths), radix).await?;
    settle(ep, sum.span.slice(lengths.get(0)), target);
    Ok(())
}
