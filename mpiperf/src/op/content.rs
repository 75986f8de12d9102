// SPDX-License-Identifier: BSD-3-Clause
//! The contents of messages: streams of pseudo-random words, cheap to make and known to every rank without
//! communication.

/// Odd, with bits well spread: 2⁶⁴ / φ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a state into a word whose every bit depends on all of the state's (splitmix64).
pub fn mix(state: u64) -> u64 {
    let x = state.wrapping_add(STEP);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The key of the stream of block `slot` that rank `source` sends in call `call`.
pub fn key(seed: u64, call: u64, source: usize, slot: usize) -> u64 {
    mix(mix(mix(mix(seed) ^ call) ^ source as u64) ^ slot as u64)
}

/// The key of what lies where nobody may write.
pub const CANARY: u64 = 0xa5c3_1d0b_77e9_52f1;

/// Word `i` of a stream: one addition from its predecessor, so that filling costs little more than writing.
#[inline]
fn word(key: u64, i: u64) -> u64 {
    key.wrapping_add(i.wrapping_mul(STEP))
}

/// Element `i` of a stream for reductions: every bit well mixed.
#[inline]
pub fn mixed(key: u64, i: u64) -> u64 {
    let x = word(key, i);
    let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

/// The byte at `at` of a stream.
pub fn byte(key: u64, at: usize) -> u8 {
    word(key, at as u64 / 8).to_le_bytes()[at % 8]
}

/// Writes the stream's bytes from `at` on.
pub fn fill(key: u64, at: usize, out: &mut [u8]) {
    let (head, body, first) = split(at, out.len());
    for (i, b) in out[..head].iter_mut().enumerate() {
        *b = byte(key, at + i);
    }
    let mut words = out[head..head + body].chunks_exact_mut(8);
    for (i, chunk) in (&mut words).enumerate() {
        chunk.copy_from_slice(&word(key, first + i as u64).to_le_bytes());
    }
    for (i, b) in out[head + body..].iter_mut().enumerate() {
        *b = byte(key, at + head + body + i);
    }
}

/// The first byte of `data` that differs from the stream from `at` on: its place in `data`.
pub fn differs(key: u64, at: usize, data: &[u8]) -> Option<usize> {
    let (head, body, first) = split(at, data.len());
    let bytes = |from: usize, to: usize| (from..to).find(|i| data[*i] != byte(key, at + i));
    if let Some(i) = bytes(0, head) {
        return Some(i);
    }
    // Whole blocks without a branch for each word, so that the compiler can use vectors.
    const BLOCK: usize = 64;
    for (b, block) in data[head..head + body].chunks(8 * BLOCK).enumerate() {
        let mut wrong = 0;
        for (i, chunk) in block.chunks_exact(8).enumerate() {
            let mut raw = [0; 8];
            raw.copy_from_slice(chunk);
            wrong |= u64::from_le_bytes(raw) ^ word(key, first + (b * BLOCK + i) as u64);
        }
        if wrong != 0 {
            return bytes(head + b * BLOCK * 8, head + b * BLOCK * 8 + block.len());
        }
    }
    bytes(head + body, data.len())
}

/// Bytes before the first whole word, bytes of whole words, and the number of the first of these.
fn split(at: usize, len: usize) -> (usize, usize, u64) {
    let head = (at.wrapping_neg() % 8).min(len);
    let body = (len - head) / 8 * 8;
    (head, body, ((at + head) / 8) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_the_same_from_any_start() {
        let k = key(1, 2, 3, 4);
        let mut whole = vec![0; 1500];
        fill(k, 0, &mut whole);
        for (at, len) in [(0, 1500), (1, 3), (3, 5), (7, 700), (8, 16), (9, 1400), (100, 0)] {
            let mut part = vec![0; len];
            fill(k, at, &mut part);
            assert_eq!(part, whole[at..at + len]);
            assert_eq!(differs(k, at, &part), None);
        }
    }

    #[test]
    fn each_wrong_byte_is_found() {
        let k = key(1, 2, 3, 4);
        let mut data = vec![0; 1203];
        fill(k, 5, &mut data);
        for i in 0..data.len() {
            data[i] ^= 1;
            assert_eq!(differs(k, 5, &data), Some(i));
            data[i] ^= 1;
        }
    }

    #[test]
    fn keys_differ() {
        let keys =
            [key(1, 2, 3, 4), key(2, 2, 3, 4), key(1, 3, 3, 4), key(1, 2, 4, 4), key(1, 2, 3, 5), key(1, 3, 2, 4)];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|b| a != b));
        }
    }
}
