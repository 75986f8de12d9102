// SPDX-License-Identifier: BSD-3-Clause
//! The buffers of a reduction, and how two values are combined without needless copies.

use crate::endpoint::{Endpoint, Result, Span, TempBuffer};
use smallvec::SmallVec;

/// A value on its way through a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Where it lies.
    pub span: Span,
    /// Whether that memory may be overwritten (false: the user's send buffer).
    pub owned: bool,
}

impl Value {
    /// In memory that must stay as it is.
    pub fn borrowed(span: Span) -> Value {
        Value { span, owned: false }
    }

    /// In memory that the reduction may use.
    pub fn owned(span: Span) -> Value {
        Value { span, owned: true }
    }
}

/// The memory of one reduction of `units` units: temporary buffers, made when first needed, and the place
/// where the result is wanted, which serves as one of them until then.
pub struct Work<'a, E: Endpoint + 'a> {
    ep: &'a E,
    units: usize,
    commutative: bool,
    target: Option<Span>,
    target_free: bool,
    free: SmallVec<[Span; 4]>,
    /// Keeps the temporary buffers alive as long as spans of them may be about.
    temps: SmallVec<[E::Temp<'a>; 2]>,
}

impl<'a, E: Endpoint> Work<'a, E> {
    /// `target`: where the result is wanted, of `units` units, if it may be written before the end.
    pub fn new(ep: &'a E, units: usize, commutative: bool, target: Option<Span>) -> Work<'a, E> {
        let free = SmallVec::new();
        Work { ep, units, commutative, target, target_free: target.is_some(), free, temps: SmallVec::new() }
    }

    /// Whether operands may be exchanged.
    pub fn commutative(&self) -> bool {
        self.commutative
    }

    /// A buffer of `units` units with undefined contents; the target, if that is free and `last` says that
    /// the result may lie there.
    pub fn take(&mut self, last: bool) -> Result<Span> {
        if last
            && let Some(target) = self.target
            && self.target_free
        {
            self.target_free = false;
            return Ok(target);
        }
        if let Some(span) = self.free.pop() {
            return Ok(span);
        }
        let temp = self.ep.temp(self.units)?;
        let span = temp.span();
        self.temps.push(temp);
        Ok(span)
    }

    /// Gives back the memory of a value that is no longer needed.
    pub fn give(&mut self, value: Value) {
        if !value.owned {
            return;
        }
        if self.target.is_some_and(|t| t.ptr() == value.span.ptr()) {
            self.target_free = true;
        } else {
            self.free.push(value.span);
        }
    }

    /// `left ⊕ right`; the other operand's memory becomes free. May exchange the operands where they commute.
    pub fn combine(&mut self, left: Value, right: Value) -> Result<Value> {
        if left.owned && !right.owned && self.commutative {
            self.ep.reduce(right.span, left.span);
            return Ok(left);
        }
        self.combine_in_order(left, right)
    }

    /// `left ⊕ right`, never exchanged; the other operand's memory becomes free.
    pub fn combine_in_order(&mut self, left: Value, right: Value) -> Result<Value> {
        if right.owned {
            self.ep.reduce(left.span, right.span);
            self.give(left);
            return Ok(right);
        }
        let copy = Value::owned(self.take(false)?);
        self.ep.copy(right.span, copy.span);
        self.ep.reduce(left.span, copy.span);
        self.give(left);
        Ok(copy)
    }
}
