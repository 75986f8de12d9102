// SPDX-License-Identifier: BSD-3-Clause
//! Scan, recursive doubling: at distance d = 1, 2, 4, … partners exchange the totals of their blocks of d
//! members.
//!
//! The upper partner puts the lower block's total before its result; both put the totals together, lower
//! block first. A total that no member further up will need is not made: the lower partner is told nothing
//! when its block of 2d is the last one.
//!
//! Cost: ⌈log₂ p⌉ steps · n units; one message up for each pair of partners, and one down unless theirs is
//! the last block; up to 2 ⌈log₂ p⌉ combinations per member. Memory: up to three vectors.
//! Requirements: none, any number of members; order is kept.
//! Source: Hillis, Steele: Data parallel algorithms, CACM 1986; with exchanged totals as in MPICH.

use super::Scan;
use crate::algo::reduce::{Value, Work};
use crate::algo::{Stage, join};
use crate::endpoint::{Endpoint, Result, Span};

/// Leaves in `target` the combination of the `mine` of this and all lower members, or only of the lower ones.
pub async fn recursive_doubling<E: Endpoint>(stage: &Stage<'_, E>, kind: Scan, mine: Span, target: Span) -> Result<()> {
    let (ep, me, size) = (stage.ep(), stage.me(), stage.size());
    if mine.is_empty() {
        return Ok(());
    }
    let mut work = Work::new(ep, mine.len(), false, None);
    let mut started = kind == Scan::Inclusive;
    if started && mine.ptr() != target.ptr() {
        ep.copy(mine, target);
    }
    // In place this is the target too, but whenever that is written, the total has moved away or is needed no
    // more.
    let mut total = Value::borrowed(mine);
    let mut distance = 1;
    while distance < size {
        let (partner, upper) = (me ^ distance, me & distance != 0);
        let more = (me | (2 * distance - 1)) + 1 < size;
        distance *= 2;
        if partner >= size {
            continue;
        }
        let arriving = if upper || more { Some(work.take(false)?) } else { None };
        let receive = arriving.map(|span| stage.recv(partner, span));
        let send = (!upper || more).then(|| stage.send(partner, total.span));
        let received = join(receive).await;
        join(send).await?;
        received?;
        let Some(span) = arriving else { continue };
        if !upper {
            total = work.combine_in_order(total, Value::owned(span))?;
            continue;
        }
        if more {
            total = prepend(ep, span, total, &mut work)?;
        }
        if started {
            ep.reduce(span, target);
        } else {
            ep.copy(span, target);
            started = true;
        }
        work.give(Value::owned(span));
    }
    Ok(())
}

/// `left ⊕ value`; `left` stays as it is.
fn prepend<'a, E: Endpoint>(ep: &'a E, left: Span, value: Value, work: &mut Work<'a, E>) -> Result<Value> {
    let owned = if value.owned {
        value
    } else {
        let copy = Value::owned(work.take(false)?);
        ep.copy(value.span, copy.span);
        copy
    };
    ep.reduce(left, owned.span);
    Ok(owned)
}
