// SPDX-License-Identifier: BSD-3-Clause
//! Random numbers and texts.

/// Xorshift64*, from a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize) % limit
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// A number, small or strange.
    pub fn number(&mut self) -> String {
        match self.below(8) {
            0 => self
                .pick(&["0", "1", "00", "18446744073709551615", "18446744073709551616", "4294967296", "-1", "1048577"])
                .to_string(),
            1 => (self.below(1 << 20)).to_string(),
            2 => format!("{:0width$}", self.below(100), width = self.below(80)),
            _ => self.below(20).to_string(),
        }
    }

    /// Changes a text in one to eight places.
    pub fn mutate(&mut self, text: &str, tokens: &[&str], others: &[&str]) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len() + 1);
            let end = at + self.below((bytes.len() - at).min(40) + 1);
            match self.below(8) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..at, self.pick(tokens).bytes())),
                2 => drop(bytes.splice(at..end, self.pick(tokens).bytes())),
                3 => {
                    let most = if self.one_in(50) { 2000 } else { 3 };
                    let copy = bytes[at..end].repeat(1 + self.below(most));
                    drop(bytes.splice(end..end, copy));
                }
                4 => drop(bytes.splice(at..end, self.number().into_bytes())),
                5 => {
                    let other = self.pick(others).as_bytes();
                    let from = self.below(other.len() + 1);
                    let to = from + self.below(other.len() - from + 1);
                    drop(bytes.splice(at..end, other[from..to].iter().copied()));
                }
                6 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                _ => drop(bytes.splice(at..at, [self.below(256) as u8])),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
