// SPDX-License-Identifier: BSD-3-Clause
//! Datatypes: their grammar, their layout in memory, and their MPI handles.

use std::os::raw::c_int;

use crate::call;
use crate::error::{Error, Result};
use crate::mpi::{byte, ffi};

use super::table::unknown;

/// The grammar of datatypes, for help texts.
pub const GRAMMAR: &str = "byte, char, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float, double, pair (two uint32), \
    vector:BLOCK:STRIDE[:BASE] (4 blocks of BLOCK elements, their starts STRIDE elements apart), indexed[:BASE] (blocks of 1, 2 and 1 \
    elements at 6, 0 and 3), struct (2 int16 at byte 0, a double at 8, an int32 at 16, of 24), resized:EXTENT[:BASE] (one element \
    every EXTENT bytes); BASE is one of the plain types, by default byte";

unsafe extern "C" {
    fn mpiperf_char() -> ffi::MPI_Datatype;
}

/// A datatype that is not made of others (`Pair` is, but reductions see it as one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Base {
    Byte,
    Char,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    Double,
    Pair,
}

const BASES: [(&str, Base, usize); 13] = [
    ("byte", Base::Byte, 1),
    ("char", Base::Char, 1),
    ("int8", Base::Int8, 1),
    ("uint8", Base::Uint8, 1),
    ("int16", Base::Int16, 2),
    ("uint16", Base::Uint16, 2),
    ("int32", Base::Int32, 4),
    ("uint32", Base::Uint32, 4),
    ("int64", Base::Int64, 8),
    ("uint64", Base::Uint64, 8),
    ("float", Base::Float, 4),
    ("double", Base::Double, 8),
    ("pair", Base::Pair, 8),
];

impl Base {
    fn parse(name: &str) -> Result<Base> {
        let found = BASES.iter().find(|entry| entry.0 == name);
        found.map(|entry| entry.1).ok_or_else(|| unknown("datatype", name, &[GRAMMAR]))
    }

    /// Bytes.
    pub fn size(self) -> usize {
        BASES.iter().find(|entry| entry.1 == self).map_or(1, |entry| entry.2)
    }

    /// Integers of 8 and 16 bits, whose sums Open MPI's op/avx saturates.
    pub fn narrow(self) -> bool {
        matches!(self, Base::Int8 | Base::Uint8 | Base::Int16 | Base::Uint16)
    }

    /// Unsigned integers.
    pub fn unsigned(self) -> bool {
        matches!(self, Base::Uint8 | Base::Uint16 | Base::Uint32 | Base::Uint64)
    }

    /// A value in words, from its bytes.
    pub fn show(self, bytes: &[u8]) -> String {
        macro_rules! number {
            ($type:ty) => {
                bytes.try_into().map(|raw| <$type>::from_ne_bytes(raw).to_string()).unwrap_or_default()
            };
        }
        match self {
            Base::Byte | Base::Char | Base::Uint8 => number!(u8),
            Base::Int8 => number!(i8),
            Base::Int16 => number!(i16),
            Base::Uint16 => number!(u16),
            Base::Int32 => number!(i32),
            Base::Uint32 => number!(u32),
            Base::Int64 => number!(i64),
            Base::Uint64 => number!(u64),
            Base::Float => number!(f32),
            Base::Double => number!(f64),
            Base::Pair => format!("({}, {})", Base::Uint32.show(&bytes[..4]), Base::Uint32.show(&bytes[4..])),
        }
    }

    fn raw(self) -> ffi::MPI_Datatype {
        // SAFETY: constants of the library, and a function that returns one.
        unsafe {
            match self {
                Base::Byte => byte(),
                Base::Char => mpiperf_char(),
                Base::Int8 => ffi::RSMPI_INT8_T,
                Base::Uint8 => ffi::RSMPI_UINT8_T,
                Base::Int16 => ffi::RSMPI_INT16_T,
                Base::Uint16 => ffi::RSMPI_UINT16_T,
                Base::Int32 => ffi::RSMPI_INT32_T,
                Base::Uint32 | Base::Pair => ffi::RSMPI_UINT32_T,
                Base::Int64 => ffi::RSMPI_INT64_T,
                Base::Uint64 => ffi::RSMPI_UINT64_T,
                Base::Float => ffi::RSMPI_FLOAT,
                Base::Double => ffi::RSMPI_DOUBLE,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Vector(usize, usize),
    Indexed,
    Struct,
    Resized(usize),
}

/// Where the packed bytes of one element lie in memory. The lower bound is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Packed bytes of an element.
    pub size: usize,
    /// Bytes from one element to the next.
    pub extent: usize,
    /// Pieces in packed order: offset in memory, length.
    pub pieces: Vec<(usize, usize)>,
    /// What no piece covers, in the order of memory.
    pub holes: Vec<(usize, usize)>,
    /// The basic type, if it is one.
    pub plain: Option<Base>,
    base: Base,
    form: Form,
}

/// Blocks of `vector`.
const VECTOR_BLOCKS: usize = 4;
/// Lengths and places of `indexed`: out of the order of memory.
const INDEXED: [(usize, usize); 3] = [(1, 6), (2, 0), (1, 3)];

impl Layout {
    /// Reads a datatype; see [`GRAMMAR`].
    pub fn parse(text: &str) -> Result<Layout> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let mut number = |what: &str| -> Result<usize> {
            let word = words.next().unwrap_or_default();
            let value = word.parse().ok().filter(|n| (1..=1 << 20).contains(n));
            value.ok_or_else(|| {
                Error::usage(format!(
                    "datatype '{text}': {what} '{word}' is not a number from 1 to 1048576; known: {GRAMMAR}"
                ))
            })
        };
        let form = match name {
            "vector" => Form::Vector(number("BLOCK")?, number("STRIDE")?),
            "resized" => Form::Resized(number("EXTENT")?),
            "indexed" => Form::Indexed,
            "struct" => Form::Struct,
            _ => Form::Plain,
        };
        let base = match (form, words.next()) {
            (Form::Plain, None) => Base::parse(name)?,
            (Form::Plain | Form::Struct, Some(rest)) => {
                return Err(Error::usage(format!("datatype '{text}': '{rest}' is too much; known: {GRAMMAR}")));
            }
            (_, base) => Base::parse(base.unwrap_or("byte"))?,
        };
        if let Some(rest) = words.next() {
            return Err(Error::usage(format!("datatype '{text}': '{rest}' is too much; known: {GRAMMAR}")));
        }
        Layout::new(text, base, form)
    }

    fn new(text: &str, base: Base, form: Form) -> Result<Layout> {
        let b = base.size();
        let (pieces, extent): (Vec<_>, usize) = match form {
            Form::Plain => (vec![(0, b)], b),
            Form::Vector(block, stride) if stride < block => {
                return Err(Error::usage(format!(
                    "datatype '{text}': STRIDE {stride} is less than BLOCK {block}: blocks would overlap"
                )));
            }
            Form::Vector(block, stride) => (
                (0..VECTOR_BLOCKS).map(|i| (i * stride * b, block * b)).collect(),
                ((VECTOR_BLOCKS - 1) * stride + block) * b,
            ),
            Form::Indexed => (INDEXED.map(|(n, at)| (at * b, n * b)).to_vec(), 7 * b),
            Form::Struct => (vec![(0, 4), (8, 8), (16, 4)], 24),
            Form::Resized(extent) if extent < b => {
                return Err(Error::usage(format!(
                    "datatype '{text}': EXTENT {extent} is less than the {b} bytes of an element"
                )));
            }
            Form::Resized(extent) => (vec![(0, b)], extent),
        };
        let mut sorted = pieces.clone();
        sorted.sort_unstable();
        let (mut holes, mut end) = (Vec::new(), 0);
        for (at, len) in sorted.into_iter().chain([(extent, 0)]) {
            if at > end {
                holes.push((end, at - end));
            }
            end = at + len;
        }
        let plain = (form == Form::Plain).then_some(base);
        Ok(Layout { size: pieces.iter().map(|piece| piece.1).sum(), extent, pieces, holes, plain, base, form })
    }

    /// Whether it has a handle of its own.
    pub fn derived(&self) -> bool {
        self.plain.is_none_or(|base| base == Base::Pair)
    }

    /// Whether elements lie side by side in packed order.
    pub fn dense(&self) -> bool {
        self.size == self.extent && self.pieces.is_sorted()
    }

    /// The number of elements in `bytes`, or the error of usage that says which sizes are possible.
    pub fn count(&self, name: &str, bytes: usize) -> Result<usize> {
        if bytes.is_multiple_of(self.size) {
            return Ok(bytes / self.size);
        }
        let (below, size) = (bytes / self.size * self.size, self.size);
        Err(Error::usage(format!(
            "message size {bytes} is not a multiple of the {size} bytes of datatype '{name}'; the nearest that are: {below} and {}",
            below + size
        )))
    }

    /// The MPI handle, committed.
    pub fn commit(&self) -> Result<Datatype> {
        // SAFETY: a constant.
        let mut new = unsafe { ffi::RSMPI_DATATYPE_NULL };
        let base = self.base.raw();
        if self.base == Base::Pair {
            call!(MPI_Type_contiguous(2, base, &mut new))?;
            if self.form != Form::Plain {
                let pair = Datatype { raw: new, owned: true };
                return self.derive(pair.raw);
            }
        } else if self.form == Form::Plain {
            return Ok(Datatype { raw: base, owned: false });
        } else {
            return self.derive(base);
        }
        call!(MPI_Type_commit(&mut new))?;
        Ok(Datatype { raw: new, owned: true })
    }

    fn derive(&self, base: ffi::MPI_Datatype) -> Result<Datatype> {
        // SAFETY: a constant.
        let mut new = unsafe { ffi::RSMPI_DATATYPE_NULL };
        match self.form {
            Form::Plain => call!(MPI_Type_contiguous(1, base, &mut new))?,
            Form::Vector(block, stride) => {
                let (blocks, block, stride) = (VECTOR_BLOCKS as c_int, block as c_int, stride as c_int);
                call!(MPI_Type_vector(blocks, block, stride, base, &mut new))?;
            }
            Form::Indexed => {
                let (lengths, places) = (INDEXED.map(|x| x.0 as c_int), INDEXED.map(|x| x.1 as c_int));
                call!(MPI_Type_indexed(3, lengths.as_ptr(), places.as_ptr(), base, &mut new))?;
            }
            Form::Struct => {
                let (lengths, places) = ([2, 1, 1], [0, 8, 16]);
                let types = [Base::Int16, Base::Double, Base::Int32].map(Base::raw);
                let mut bare = new;
                call!(MPI_Type_create_struct(3, lengths.as_ptr(), places.as_ptr(), types.as_ptr(), &mut bare))?;
                let bare = Datatype { raw: bare, owned: true };
                call!(MPI_Type_create_resized(bare.raw, 0, self.extent as ffi::MPI_Aint, &mut new))?;
            }
            Form::Resized(extent) => call!(MPI_Type_create_resized(base, 0, extent as ffi::MPI_Aint, &mut new))?,
        }
        let mut new = Datatype { raw: new, owned: true };
        call!(MPI_Type_commit(&mut new.raw))?;
        Ok(new)
    }
}

/// A handle that is freed when dropped unless it is predefined.
pub struct Datatype {
    raw: ffi::MPI_Datatype,
    owned: bool,
}

impl Datatype {
    /// The handle.
    pub fn raw(&self) -> ffi::MPI_Datatype {
        self.raw
    }
}

impl Drop for Datatype {
    fn drop(&mut self) {
        if self.owned {
            let _ = call!(MPI_Type_free(&mut self.raw));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let of = |text| Layout::parse(text).unwrap();
        let vector = of("vector:2:5:int16");
        assert_eq!((vector.size, vector.extent), (16, 34));
        assert_eq!(vector.pieces, [(0, 4), (10, 4), (20, 4), (30, 4)]);
        assert_eq!(vector.holes, [(4, 6), (14, 6), (24, 6)]);
        let indexed = of("indexed:int32");
        assert_eq!((indexed.size, indexed.extent), (16, 28));
        assert_eq!(indexed.pieces, [(24, 4), (0, 8), (12, 4)]);
        assert_eq!(indexed.holes, [(8, 4), (16, 8)]);
        let gaps = of("struct");
        assert_eq!((gaps.size, gaps.extent, gaps.holes.clone()), (16, 24, vec![(4, 4), (20, 4)]));
        let resized = of("resized:12:double");
        assert_eq!((resized.size, resized.extent, resized.holes.clone()), (8, 12, vec![(8, 4)]));
        assert!(of("double").dense() && of("vector:3:3").dense() && !resized.dense() && !indexed.dense());
        assert_eq!(of("pair").plain, Some(Base::Pair));
        assert_eq!(of("struct").plain, None);
    }

    #[test]
    fn wrong_types_say_what_is_known() {
        for wrong in [
            "",
            "int",
            "vector",
            "vector:2",
            "vector:0:4",
            "vector:4:2",
            "resized:4:double",
            "struct:byte",
            "byte:1",
            "indexed:int8:2",
        ] {
            let text = Layout::parse(wrong).unwrap_err().to_string();
            assert!(text.contains("datatype"), "{wrong}: {text}");
        }
    }

    #[test]
    fn sizes_that_do_not_divide() {
        let double = Layout::parse("double").unwrap();
        assert_eq!(double.count("double", 64).unwrap(), 8);
        assert_eq!(double.count("double", 0).unwrap(), 0);
        let text = double.count("double", 20).unwrap_err().to_string();
        assert!(text.contains("20") && text.contains("16 and 24"), "{text}");
    }
}
