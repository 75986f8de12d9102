// SPDX-License-Identifier: BSD-3-Clause
//! Rounds in which members meet in pairs, each pair once: the circle method.
//!
//! With an odd number of members, those whose numbers add up to the round's (modulo size) meet, and one is
//! idle. With an even number the last one stands apart, and meets whoever would be idle. (Kirkman 1847.)

/// Number of rounds among `size` members.
pub fn rounds(size: usize) -> usize {
    if size.is_multiple_of(2) { size.saturating_sub(1) } else { size }
}

/// Whom `me` meets in a round; none where it is idle.
pub fn partner(me: usize, round: usize, size: usize) -> Option<usize> {
    let circle = if size.is_multiple_of(2) { size - 1 } else { size };
    if me == circle {
        // Who would meet itself: twice its number is the round's, and circle is odd.
        return Some(if round.is_multiple_of(2) { round / 2 } else { (round + circle) / 2 });
    }
    let other = (round + circle - me) % circle;
    match other == me {
        true if circle == size => None,
        true => Some(circle),
        false => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_meets_once() {
        for size in 1..=65 {
            let mut met = vec![0; size * size];
            for round in 0..rounds(size) {
                for me in 0..size {
                    let Some(other) = partner(me, round, size) else { continue };
                    assert_eq!(partner(other, round, size), Some(me), "size {size} round {round}");
                    assert_ne!(other, me);
                    met[me * size + other] += 1;
                }
            }
            for (i, &times) in met.iter().enumerate() {
                assert_eq!(times, usize::from(i / size != i % size), "size {size}");
            }
        }
        assert_eq!((rounds(0), rounds(1), rounds(2), rounds(7), rounds(8)), (0, 1, 1, 7, 7));
    }
}
