// SPDX-License-Identifier: BSD-3-Clause
//! One state of the store, in words:
//!
//! | word | holds |
//! | --- | --- |
//! | 0 | words of the image |
//! | 1 | keys |
//! | 2 | sum of all other words |
//! | 3 … | of each key, ascending: the key; then where its value begins and how many words it has |
//! | … | values |

use super::{Change, Error};
use crate::sync::shared::{Ordering, SharedU64};
use std::collections::BTreeMap;

/// What is stored: a kind of thing, whose, and which one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    /// `job`: the low half of a job's name. `number`: below 2²⁴.
    pub const fn new(kind: u8, job: u32, number: u32) -> Key {
        Key((kind as u64) << 56 | ((number & 0xff_ffff) as u64) << 32 | job as u64)
    }
}

/// Words before the directory.
const HEAD: usize = 3;
/// Words of the longest image: places are halves of words.
const MOST: usize = u32::MAX as usize;

/// Words of shared memory, read one by one.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(&'a [SharedU64]);

impl<'a> Words<'a> {
    /// These.
    pub fn new(words: &'a [SharedU64]) -> Words<'a> {
        Words(words)
    }

    /// The word at a place, if there is one.
    #[inline(always)]
    pub fn at(self, place: usize) -> Result<u64, Error> {
        // Relaxed: the lock, or the number of the active image, has ordered it.
        self.0.get(place).map(|word| word.load(Ordering::Relaxed)).ok_or(Error::Corrupt)
    }

    /// Those from a place on.
    pub fn from(self, place: usize) -> Result<Words<'a>, Error> {
        self.0.get(place..).map(Words).ok_or(Error::Corrupt)
    }

    /// How many.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = u64> + 'a {
        self.0.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// A copy.
    pub fn to_vec(self) -> Vec<u64> {
        self.iter().collect()
    }
}

/// A state of the store, in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    words: Words<'a>,
    keys: usize,
}

impl<'a> Image<'a> {
    /// The image at the beginning of a room, without a look at its sum.
    #[inline]
    pub fn unchecked(room: &'a [SharedU64]) -> Result<Image<'a>, Error> {
        let word = |place: usize| Words(room).at(place).map(|word| usize::try_from(word).unwrap_or(usize::MAX));
        let (len, keys) = (word(0)?, word(1)?);
        let words = Words(room.get(..len).ok_or(Error::Corrupt)?);
        // Every key takes two words.
        if len < HEAD || keys > (len - HEAD) / 2 { Err(Error::Corrupt) } else { Ok(Image { words, keys }) }
    }

    /// The same, if its sum is right.
    pub fn checked(room: &'a [SharedU64]) -> Result<Image<'a>, Error> {
        let image = Image::unchecked(room)?;
        let words = image.words.iter();
        let others = words.enumerate().filter(|(place, _)| *place != 2).map(|(_, word)| word);
        if sum(others) == image.words.at(2)? { Ok(image) } else { Err(Error::Corrupt) }
    }

    /// The value under a key. By halving the directory.
    #[inline]
    pub fn get(self, key: Key) -> Result<Words<'a>, Error> {
        let (mut low, mut high) = (0, self.keys);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.words.at(HEAD + 2 * middle)? {
                found if found == key.0 => return self.value(middle),
                found if found < key.0 => low = middle + 1,
                _ => high = middle,
            }
        }
        Err(Error::Missing)
    }

    fn value(self, number: usize) -> Result<Words<'a>, Error> {
        let place = self.words.at(HEAD + 2 * number + 1)?;
        let (at, len) = ((place >> 32) as usize, place as u32 as usize);
        let end = at.checked_add(len).ok_or(Error::Corrupt)?;
        self.words.0.get(at..end).map(Words).ok_or(Error::Corrupt)
    }

    /// All values by their keys; those that contradict the rest are left out.
    pub fn values(self) -> Vec<(Key, Words<'a>)> {
        let pair = |number| Some((Key(self.words.at(HEAD + 2 * number).ok()?), self.value(number).ok()?));
        (0..self.keys).filter_map(pair).collect()
    }

    /// Words that it takes.
    pub fn len(self) -> usize {
        self.words.len()
    }

    /// Never: it has a head.
    pub fn is_empty(self) -> bool {
        false
    }
}

/// The sum of words. It finds what was changed by chance, not what was changed on purpose.
pub fn sum(words: impl Iterator<Item = u64>) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    words.fold(0x636f_6c6c, mix)
}

/// Writes the image that `changes` make of `values` into a room. `step` is called before each store, with its
/// number; how many there were.
pub(super) fn write(
    room: &[SharedU64],
    values: Vec<(Key, Words<'_>)>,
    changes: &[Change],
    step: &impl Fn(usize),
) -> Result<usize, Error> {
    let mut all: BTreeMap<Key, Vec<u64>> = values.into_iter().map(|(key, words)| (key, words.to_vec())).collect();
    for (key, value) in changes {
        match value {
            Some(value) => drop(all.insert(*key, value.clone())),
            None => drop(all.remove(key)),
        }
    }
    let directory = HEAD + 2 * all.len();
    let len = all.values().try_fold(directory, |sum, value| sum.checked_add(value.len()));
    let len = len.filter(|len| *len <= room.len().min(MOST)).ok_or(Error::Full)?;
    let mut words = vec![len as u64, all.len() as u64, 0];
    let mut at = directory;
    for (key, value) in &all {
        words.extend([key.0, (at as u64) << 32 | value.len() as u64]);
        at += value.len();
    }
    all.values().for_each(|value| words.extend(value));
    let others = words.iter().enumerate().filter(|(place, _)| *place != 2).map(|(_, word)| *word);
    words[2] = sum(others);
    for (place, (to, word)) in room.iter().zip(&words).enumerate() {
        step(place);
        to.store(*word, Ordering::Relaxed);
    }
    Ok(words.len())
}
