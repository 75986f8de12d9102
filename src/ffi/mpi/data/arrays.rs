//! Arrays among the arguments of a call: the user's, or copies of them; of ints, or of 64 bits.

use crate::ffi::base::glue::{cr_big, cr_count, cr_displ, cr_wide};
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
            // SAFETY: the user's array lasts as long as the call, and nothing that borrows it outlives that
            // (`Side::own`).
            Array::Borrowed(start, len) => unsafe { std::slice::from_raw_parts(*start, *len) },
            Array::Owned(copy) => copy,
        }
    }

    /// Copies it.
    pub fn own(&mut self) {
        if let Array::Borrowed(..) = self {
            *self = Array::Owned(self.all().into());
        }
    }
}

/// How many elements each block has.
#[derive(Clone, Debug)]
pub enum Counts {
    /// In an array of ints.
    Ints(Array<cr_count>),
    /// In an array of sizes: of MPI's functions for large counts.
    Big(Array<cr_big>),
}

impl Counts {
    /// Of one block. Open MPI refuses negative counts.
    pub fn of(&self, block: usize) -> usize {
        match self {
            Counts::Ints(all) => usize::try_from(all.all()[block]).unwrap_or(0),
            Counts::Big(all) => checked(all.all()[block]),
        }
    }

    /// Of the first so many blocks together.
    pub fn before(&self, blocks: usize) -> usize {
        (0..blocks).fold(0, |sum, block| sum.saturating_add(self.of(block)))
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        match self {
            Counts::Ints(all) => all.all().len(),
            Counts::Big(all) => all.all().len(),
        }
    }

    /// Copies it.
    pub fn own(&mut self) {
        match self {
            Counts::Ints(all) => all.own(),
            Counts::Big(all) => all.own(),
        }
    }
}

/// A count of 64 bits; negative ones, which Open MPI refuses, are none.
fn checked(count: cr_big) -> usize {
    isize::try_from(count).map_or(0, |_| count)
}

/// Where blocks begin: in bytes where they have datatypes of their own, else in extents.
#[derive(Clone, Debug)]
pub enum Starts {
    /// In an array of ints.
    Narrow(Array<cr_displ>),
    /// In an array of addresses' differences.
    Wide(Array<cr_wide>),
}

impl Starts {
    /// Of one block.
    pub fn of(&self, block: usize) -> isize {
        match self {
            Starts::Narrow(all) => all.all()[block] as isize,
            Starts::Wide(all) => all.all()[block],
        }
    }

    /// Copies it.
    pub fn own(&mut self) {
        match self {
            Starts::Narrow(all) => all.own(),
            Starts::Wide(all) => all.own(),
        }
    }
}
