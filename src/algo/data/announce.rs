// SPDX-License-Identifier: BSD-3-Clause
//! Lengths that the other side of a message does not know are told in a message of their own: 8 bytes each,
//! little endian.

use crate::endpoint::{Endpoint, Result, Span, TempBuffer};
use smallvec::SmallVec;

/// Bytes of a number.
const WIDTH: usize = size_of::<u64>();

/// The bytes of `numbers`, in a buffer of the endpoint: a message to be sent.
pub fn numbers<'a, E: Endpoint>(ep: &'a E, numbers: impl IntoIterator<Item = usize>) -> Result<E::Temp<'a>> {
    let bytes: SmallVec<[u8; 64]> = numbers.into_iter().flat_map(|n| (n as u64).to_le_bytes()).collect();
    let temp = ep.temp(bytes.len())?;
    ep.write(&bytes, temp.span());
    Ok(temp)
}

/// A message of numbers that is on its way.
pub struct Announced<'a, E: Endpoint + 'a> {
    ep: &'a E,
    temp: E::Temp<'a>,
}

/// A place for `count` numbers to arrive at.
pub fn announced<E: Endpoint>(ep: &E, count: usize) -> Result<Announced<'_, E>> {
    Ok(Announced { ep, temp: ep.temp(count.saturating_mul(WIDTH))? })
}

impl<E: Endpoint> Announced<'_, E> {
    /// What to post the receive on.
    pub fn span(&self) -> Span {
        self.temp.span()
    }

    /// The numbers, once they are there; an error, if they may be others.
    pub fn get(&self) -> Result<SmallVec<[usize; 8]>> {
        self.ep.noted().map(|()| self.told())
    }

    /// The numbers that another rank has [told](Endpoint::tell), once they are there.
    pub fn told(&self) -> SmallVec<[usize; 8]> {
        let span = self.temp.span();
        let mut bytes: SmallVec<[u8; 64]> = SmallVec::from_elem(0, span.len());
        self.ep.read(span, &mut bytes);
        let number = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| bytes[i])) as usize;
        bytes.chunks_exact(WIDTH).map(number).collect()
    }
}
