// SPDX-License-Identifier: BSD-3-Clause
//! Bruck's exchange of all with all, of any radix.
//!
//! A member numbers its slots by distance: at the start slot j holds what goes j members further. Write j in
//! base k; for each digit the slots where it is d ≠ 0 move d · weight members on, so slot j ends after all
//! digits with what came from j members before. (Bruck et al.: Efficient algorithms for all-to-all
//! communications, IEEE TPDS 1997.)

/// One message of an exchange: all slots whose digit of this weight is `digit` move `distance()` members on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    size: usize,
    radix: usize,
    /// The weight of the digit.
    pub weight: usize,
    /// The digit, above 0 and below the radix.
    pub digit: usize,
}

impl Hop {
    /// How far the slots move.
    pub fn distance(self) -> usize {
        self.digit * self.weight
    }

    /// The slots that move, ascending.
    pub fn slots(self) -> impl Iterator<Item = usize> + use<> {
        // Runs of `weight` slots, one per value of the higher digits.
        (self.distance()..self.size)
            .step_by(self.weight.saturating_mul(self.radix))
            .flat_map(move |run| run..self.size.min(run + self.weight))
    }

    /// Whether a slot was never filled by a message before this one.
    pub fn untouched(self, slot: usize) -> bool {
        slot.is_multiple_of(self.weight)
    }
}

/// The exchange over `size` members.
#[derive(Clone, Copy, Debug)]
pub struct Bruck {
    size: usize,
    radix: usize,
}

impl Bruck {
    /// A `radix` below 2 counts as 2, one above `size` as `size`.
    pub fn new(size: usize, radix: u32) -> Bruck {
        Bruck { size, radix: (radix as usize).min(size).max(2) }
    }

    /// The weights of the digits, lowest first: one step each.
    pub fn weights(self) -> impl Iterator<Item = usize> + use<> {
        let next = move |&weight: &usize| weight.checked_mul(self.radix);
        std::iter::successors(Some(1), next).take_while(move |&weight| weight < self.size)
    }

    /// The messages of a step, which go at the same time.
    pub fn hops(self, weight: usize) -> impl Iterator<Item = Hop> + use<> {
        let Bruck { size, radix } = self;
        (1..radix).map(move |digit| Hop { size, radix, weight, digit }).take_while(move |hop| hop.distance() < size)
    }

    /// The most slots that move in one step.
    pub fn widest(self) -> usize {
        let moving = |weight| self.hops(weight).map(|hop| hop.slots().count()).sum();
        self.weights().map(moving).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_travels_its_own_number() {
        for size in 1..=70 {
            for radix in [0, 2, 3, 4, 7, 8, 69, 70, 1000] {
                let bruck = Bruck::new(size, radix);
                let mut travelled = vec![0; size];
                for weight in bruck.weights() {
                    let mut moved = vec![false; size];
                    for hop in bruck.hops(weight) {
                        assert!(hop.slots().is_sorted() && hop.slots().count() > 0);
                        for slot in hop.slots() {
                            assert!(!std::mem::replace(&mut moved[slot], true), "at most once in a step");
                            assert_eq!(hop.untouched(slot), travelled[slot] == 0);
                            travelled[slot] += hop.distance();
                        }
                    }
                    assert!(moved.iter().filter(|&&m| m).count() <= bruck.widest());
                }
                assert_eq!(travelled, (0..size).collect::<Vec<_>>(), "size {size} radix {radix}");
            }
        }
    }

    #[test]
    fn the_number_of_steps_is_logarithmic() {
        for size in 1..=257_usize {
            assert_eq!(Bruck::new(size, 2).weights().count(), size.next_power_of_two().trailing_zeros() as usize);
            assert_eq!(Bruck::new(size, u32::MAX).weights().count(), usize::from(size > 1));
        }
    }
}
