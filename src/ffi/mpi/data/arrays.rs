// SPDX-License-Identifier: BSD-3-Clause
//! Arrays among the arguments of a call: the user's, or copies of them; of ints, or of 64 bits.

use crate::ffi::base::glue::{cr_big, cr_count, cr_displ, cr_wide};
use std::sync::Arc;

/// An array argument of a call: the user's while the call lasts, or a copy.
#[derive(Clone, Debug)]
pub enum Array<'a, T> {
    /// The user's.
    Borrowed(&'a [T]),
    /// A copy.
    Owned(Arc<[T]>),
}

impl<'a, T: Copy> Array<'a, T> {
    /// The user's array of so many elements.
    ///
    /// # Safety
    /// It has them, and lasts so long, or has none.
    pub unsafe fn borrowed(start: *const T, len: usize) -> Array<'a, T> {
        Array::Borrowed(match start.is_null() {
            true => &[],
            // SAFETY: by the caller's promise.
            false => unsafe { std::slice::from_raw_parts(start, len) },
        })
    }

    /// The elements.
    pub fn all(&self) -> &[T] {
        match self {
            Array::Borrowed(array) => array,
            Array::Owned(copy) => copy,
        }
    }

    /// Copies it.
    pub fn own(self) -> Array<'static, T> {
        Array::Owned(match self {
            Array::Borrowed(array) => array.into(),
            Array::Owned(copy) => copy,
        })
    }
}

/// How many elements each block has.
#[derive(Clone, Debug)]
pub enum Counts<'a> {
    /// In an array of ints.
    Ints(Array<'a, cr_count>),
    /// In an array of sizes: of MPI's functions for large counts.
    Big(Array<'a, cr_big>),
}

impl Counts<'_> {
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
    pub fn own(self) -> Counts<'static> {
        match self {
            Counts::Ints(all) => Counts::Ints(all.own()),
            Counts::Big(all) => Counts::Big(all.own()),
        }
    }
}

/// A count of 64 bits; negative ones, which Open MPI refuses, are none.
fn checked(count: cr_big) -> usize {
    isize::try_from(count).map_or(0, |_| count)
}

/// Where blocks begin: in bytes where they have datatypes of their own, else in extents.
#[derive(Clone, Debug)]
pub enum Starts<'a> {
    /// In an array of ints.
    Narrow(Array<'a, cr_displ>),
    /// In an array of addresses' differences.
    Wide(Array<'a, cr_wide>),
}

impl Starts<'_> {
    /// Of one block.
    pub fn of(&self, block: usize) -> isize {
        match self {
            Starts::Narrow(all) => all.all()[block] as isize,
            Starts::Wide(all) => all.all()[block],
        }
    }

    /// Copies it.
    pub fn own(self) -> Starts<'static> {
        match self {
            Starts::Narrow(all) => Starts::Narrow(all.own()),
            Starts::Wide(all) => Starts::Wide(all.own()),
        }
    }
}
