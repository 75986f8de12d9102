//! The arrays that a call brings with it.

use crate::ffi::glue::{cr_displ, cr_wide};
use std::sync::Arc;

/// An array argument of a call: the user's while the call lasts, or a copy.
#[derive(Clone, Debug)]
pub enum Array<T> {
    /// The user's.
    Borrowed(*const T, usize),
    /// A copy.
    Owned(Arc<[T]>),
}

impl<T: Copy> Array<T> {
    /// The elements.
    pub fn all(&self) -> &[T] {
        match self {
            Array::Borrowed(_, 0) => &[],
            // SAFETY: the user's array lasts as long as the call, and nothing that borrows it outlives that (`Side::own`).
            Array::Borrowed(start, len) => unsafe { std::slice::from_raw_parts(*start, *len) },
            Array::Owned(copy) => copy,
        }
    }

    pub(super) fn own(&mut self) {
        if let Array::Borrowed(..) = self {
            *self = Array::Owned(self.all().into());
        }
    }
}

/// Where blocks with datatypes of their own begin, in bytes.
#[derive(Clone, Debug)]
pub enum Starts {
    /// In an array of ints.
    Narrow(Array<cr_displ>),
    /// In an array of addresses' differences.
    Wide(Array<cr_wide>),
}

impl Starts {
    pub(super) fn of(&self, block: usize) -> isize {
        match self {
            Starts::Narrow(all) => all.all()[block] as isize,
            Starts::Wide(all) => all.all()[block],
        }
    }

    pub(super) fn own(&mut self) {
        match self {
            Starts::Narrow(all) => all.own(),
            Starts::Wide(all) => all.own(),
        }
    }
}
