// SPDX-License-Identifier: BSD-3-Clause
//! Reductions: contents whose exact result is known for every datatype, and the result.
//!
//! Integers wrap around and take all values, so that saturation or a lost high byte shows. Floating-point
//! contents are small integers (sums) or powers of two (products), so that every order of evaluation gives
//! the same bits.

use std::ops::Range;
use std::os::raw::{c_int, c_void};

use crate::call;
use crate::error::{Error, Result};
use crate::mpi::ffi;

use super::content::{key, mixed};
use super::table::unknown;
use super::types::Base;

/// A reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
    Band,
    Bor,
    Bxor,
    Land,
    Lor,
    Lxor,
    /// Composition of x ↦ a·x + b (modulo 2³²), the lowest rank's first: user-defined, and does not commute.
    Affine,
}

/// The names of the reductions.
pub const REDUCTIONS: [&str; 11] =
    ["sum", "prod", "max", "min", "band", "bor", "bxor", "land", "lor", "lxor", "affine"];
const ALL: [Reduction; 11] = {
    use Reduction::*;
    [Sum, Prod, Max, Min, Band, Bor, Bxor, Land, Lor, Lxor, Affine]
};

impl Reduction {
    /// Reads a name.
    pub fn parse(name: &str) -> Result<Reduction> {
        let found = REDUCTIONS.iter().position(|known| *known == name);
        found.map(|i| ALL[i]).ok_or_else(|| unknown("reduction", name, &REDUCTIONS))
    }

    /// Whether MPI defines it on this type.
    pub fn takes(self, base: Base) -> bool {
        use Reduction::*;
        match base {
            Base::Char => false,
            Base::Pair => self == Affine,
            Base::Byte => matches!(self, Band | Bor | Bxor),
            Base::Float | Base::Double => matches!(self, Sum | Prod | Max | Min),
            _ => self != Affine,
        }
    }

    /// The MPI operation.
    pub fn handle(self) -> Result<Op> {
        use Reduction::*;
        // SAFETY: constants of the library.
        let mut raw = unsafe {
            match self {
                Sum | Affine => ffi::RSMPI_SUM,
                Prod => ffi::RSMPI_PROD,
                Max => ffi::RSMPI_MAX,
                Min => ffi::RSMPI_MIN,
                Band => ffi::RSMPI_BAND,
                Bor => ffi::RSMPI_BOR,
                Bxor => ffi::RSMPI_BXOR,
                Land => ffi::RSMPI_LAND,
                Lor => ffi::RSMPI_LOR,
                Lxor => ffi::RSMPI_LXOR,
            }
        };
        if self == Affine {
            call!(MPI_Op_create(Some(compose), 0, &mut raw))?;
        }
        Ok(Op { raw, owned: self == Affine })
    }
}

/// An MPI operation, freed when dropped unless it is predefined.
pub struct Op {
    raw: ffi::MPI_Op,
    owned: bool,
}

impl Op {
    /// The handle.
    pub fn raw(&self) -> ffi::MPI_Op {
        self.raw
    }
}

impl Drop for Op {
    fn drop(&mut self) {
        if self.owned {
            let _ = call!(MPI_Op_free(&mut self.raw));
        }
    }
}

/// The user-defined operation behind [`Reduction::Affine`].
unsafe extern "C" fn compose(left: *mut c_void, right: *mut c_void, len: *mut c_int, _: *mut ffi::MPI_Datatype) {
    // SAFETY: MPI passes `len` elements of the operation's datatype, a pair of uint32, at both addresses;
    // they may be unaligned.
    unsafe {
        let (left, right) = (left.cast::<Pair>(), right.cast::<Pair>());
        for i in 0..*len as usize {
            let (l, r) = (left.add(i).read_unaligned(), right.add(i).read_unaligned());
            right.add(i).write_unaligned(Pair::combine(Reduction::Affine, l, r));
        }
    }
}

/// The function x ↦ a·x + b.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    a: u32,
    b: u32,
}

/// A type that reductions work on.
trait Element: Copy {
    /// A rank's contribution, from 64 mixed bits, among `size` ranks.
    fn make(reduction: Reduction, bits: u64, rank: usize, size: usize) -> Self;
    /// `a` comes from lower ranks than `b`.
    fn combine(reduction: Reduction, a: Self, b: Self) -> Self;
}

/// True for `share` of `size` elements in the mean: keeps logical results from being all alike with many
/// ranks.
#[inline]
fn rare(bits: u64, share: u64, size: usize) -> bool {
    ((bits & 0xffff_ffff) * size as u64) >> 32 < share
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl Element for $type {
            #[inline]
            fn make(reduction: Reduction, bits: u64, _: usize, size: usize) -> Self {
                let full = (bits >> (64 - Self::BITS)) as $type;
                match reduction {
                    Reduction::Prod => full | 1,
                    Reduction::Land => if rare(bits, 1, size) { 0 } else { full | 1 },
                    Reduction::Lor => if rare(bits, 1, size) { full | 1 } else { 0 },
                    Reduction::Lxor => if rare(bits, 1, 2) { full | 1 } else { 0 },
                    Reduction::Band => if rare(bits, 2, size) { full } else { !0 },
                    Reduction::Bor => if rare(bits, 2, size) { full } else { 0 },
                    _ => full,
                }
            }
            #[inline]
            fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
                match reduction {
                    Reduction::Sum | Reduction::Affine => a.wrapping_add(b),
                    Reduction::Prod => a.wrapping_mul(b),
                    Reduction::Max => a.max(b),
                    Reduction::Min => a.min(b),
                    Reduction::Band => a & b,
                    Reduction::Bor => a | b,
                    Reduction::Bxor => a ^ b,
                    Reduction::Land => <$type>::from(a != 0 && b != 0),
                    Reduction::Lor => <$type>::from(a != 0 || b != 0),
                    Reduction::Lxor => <$type>::from((a != 0) != (b != 0)),
                }
            }
        }
    )* };
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

/// Ranks from here on give ±1 to products, so that no exponent overflows.
const POWERS: usize = 64;

macro_rules! floats {
    ($($type:ty)*) => { $(
        impl Element for $type {
            #[inline]
            fn make(reduction: Reduction, bits: u64, rank: usize, _: usize) -> Self {
                let small = (bits >> 56) as u8 as i8;
                match reduction {
                    Reduction::Prod => {
                        let sign = if bits >> 63 == 0 { 1.0 } else { -1.0 };
                        let power = if rank < POWERS { [0.5, 1.0, 2.0][(bits >> 32 & 0xffff) as usize % 3] } else { 1.0 };
                        sign * power
                    }
                    _ => <$type>::from(small),
                }
            }
            #[inline]
            fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
                match reduction {
                    Reduction::Prod => a * b,
                    Reduction::Max => a.max(b),
                    Reduction::Min => a.min(b),
                    _ => a + b,
                }
            }
        }
    )* };
}
floats!(f32 f64);

impl Element for Pair {
    #[inline]
    fn make(_: Reduction, bits: u64, _: usize, _: usize) -> Self {
        Pair { a: (bits >> 32) as u32 | 1, b: bits as u32 }
    }
    #[inline]
    fn combine(_: Reduction, l: Self, r: Self) -> Self {
        Pair { a: l.a.wrapping_mul(r.a), b: r.a.wrapping_mul(l.b).wrapping_add(r.b) }
    }
}

/// What all ranks contribute in one call.
#[derive(Debug, Clone, Copy)]
pub struct Inputs {
    /// Of the contents.
    pub seed: u64,
    /// Number of the call.
    pub call: u64,
    /// Number of ranks.
    pub size: usize,
    /// The reduction.
    pub reduction: Reduction,
    /// The type, one that the reduction [takes](Reduction::takes).
    pub base: Base,
}

impl Inputs {
    /// Writes the reduction over `ranks` of their elements from `first` on, as many as `out` has room for.
    /// One rank: its contribution.
    pub fn fold(&self, ranks: Range<usize>, first: usize, out: &mut [u8]) {
        match self.base {
            Base::Int8 => self.fold_as::<i8, 1>(ranks, first, out),
            Base::Byte | Base::Char | Base::Uint8 => self.fold_as::<u8, 1>(ranks, first, out),
            Base::Int16 => self.fold_as::<i16, 2>(ranks, first, out),
            Base::Uint16 => self.fold_as::<u16, 2>(ranks, first, out),
            Base::Int32 => self.fold_as::<i32, 4>(ranks, first, out),
            Base::Uint32 => self.fold_as::<u32, 4>(ranks, first, out),
            Base::Int64 => self.fold_as::<i64, 8>(ranks, first, out),
            Base::Uint64 => self.fold_as::<u64, 8>(ranks, first, out),
            Base::Float => self.fold_as::<f32, 4>(ranks, first, out),
            Base::Double => self.fold_as::<f64, 8>(ranks, first, out),
            Base::Pair => self.fold_as::<Pair, 8>(ranks, first, out),
        }
    }

    fn fold_as<T: Element, const N: usize>(&self, ranks: Range<usize>, first: usize, out: &mut [u8]) {
        const { assert!(size_of::<T>() == N) };
        let (lowest, reduction, size) = (ranks.start, self.reduction, self.size);
        for rank in ranks {
            let key = key(self.seed, self.call, rank, 0);
            for (i, raw) in out.chunks_exact_mut(N).enumerate() {
                let mine = T::make(reduction, mixed(key, (first + i) as u64), rank, size);
                let at: *mut T = raw.as_mut_ptr().cast();
                // SAFETY: `raw` is N bytes long, as T is, and any bytes are a T; it may be unaligned.
                unsafe {
                    let value = if rank == lowest { mine } else { T::combine(reduction, at.read_unaligned(), mine) };
                    at.write_unaligned(value);
                }
            }
        }
    }

    /// The error unless MPI defines the reduction on this type.
    pub fn allowed(reduction: Reduction, name: &str, base: Option<Base>, datatype: &str) -> Result<Base> {
        if let Some(base) = base.filter(|base| reduction.takes(*base)) {
            return Ok(base);
        }
        let taken: Vec<&str> = ALL
            .iter()
            .zip(REDUCTIONS)
            .filter(|(r, _)| base.is_some_and(|base| r.takes(base)))
            .map(|(_, name)| name)
            .collect();
        let (hint, taken) = match (reduction, taken.is_empty()) {
            (Reduction::Affine, _) => ("; affine works on datatype pair".to_owned(), String::new()),
            (_, true) => ("; reductions work on plain integers, float, double and pair".to_owned(), String::new()),
            (_, false) => (String::new(), format!("; this datatype has {}", taken.join(", "))),
        };
        Err(Error::usage(format!("reduction '{name}' is not defined on datatype '{datatype}'{hint}{taken}")))
    }
}

#[cfg(test)]
#[path = "reduction_tests.rs"]
mod tests;
