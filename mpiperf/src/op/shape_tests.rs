// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::op::table::operations;

const EVERY: [Counts; 4] = [Counts::Regular, Counts::Random, Counts::Linear, Counts::Spike];

fn spread(counts: Counts, size: usize) -> Spread {
    Spread { counts, mean: 10, seed: 3, size }
}

#[test]
fn distributions_keep_the_mean() {
    for size in 2..9 {
        let sum = |counts| (0..size).map(|rank| spread(counts, size).one(rank)).sum::<usize>();
        assert_eq!(sum(Counts::Regular), 10 * size);
        assert_eq!(sum(Counts::Spike), 10 * size);
        // Rounded down at each rank.
        assert!(sum(Counts::Linear) <= 10 * size && sum(Counts::Linear) + size > 10 * size);
        assert!((0..size).all(|rank| spread(Counts::Random, size).one(rank) <= 20));
    }
    let many = Spread { mean: 1000, ..spread(Counts::Random, 2000) };
    let sum: usize = (0..2000).map(|rank| many.one(rank)).sum();
    assert!((1_900_000..2_100_000).contains(&sum), "{sum}");
    assert_ne!(many.one(1), Spread { seed: 4, ..many }.one(1));
}

#[test]
fn counts_between_two_are_equal_in_both_directions() {
    for counts in [Counts::Regular, Counts::Random, Counts::Linear] {
        for (a, b) in (0..7).flat_map(|a| (0..7).map(move |b| (a, b))) {
            assert_eq!(spread(counts, 7).two(a, b), spread(counts, 7).two(b, a));
        }
    }
}

/// Whatever is received is sent: each block that a rank expects is a block of the same length that the other
/// puts out.
#[test]
fn every_block_received_was_sent() {
    let (size, root) = (5, 2);
    for operation in operations().iter().filter(|operation| operation.sized && !operation.reduces && !operation.pairs())
    {
        for counts in EVERY.into_iter().filter(|counts| operation.vector || *counts == Counts::Regular) {
            for in_place in [false, operation.in_place && counts != Counts::Spike] {
                let neighbors = |rank: usize| Neighbors {
                    sources: vec![(rank + 4) % 5, (rank + 3) % 5],
                    targets: vec![(rank + 1) % 5, (rank + 2) % 5],
                };
                let shapes: Vec<Shape> = (0..size)
                    .map(|rank| Shape::new(operation.kind, in_place, &spread(counts, size), rank, &neighbors(rank)))
                    .collect();
                let resolved = |who, slot| (if let Who::Rank(rank) = who { rank } else { root }, slot);
                let blocks = |pieces: &[Piece]| -> Vec<((usize, usize), usize)> {
                    let block = |piece: &Piece| match piece.what {
                        What::Block(who, slot) => (resolved(who, slot), piece.count),
                        What::Fold(..) => panic!("a movement reduces"),
                    };
                    pieces.iter().map(block).collect()
                };
                let role = |rank: usize| shapes[rank].role(rank == root);
                let sent: Vec<_> = (0..size).flat_map(|rank| blocks(&role(rank).input)).collect();
                let received: Vec<_> = (0..size).flat_map(|rank| blocks(&role(rank).output)).collect();
                assert!(!received.is_empty());
                for block in received {
                    assert!(sent.contains(&block), "{} {counts:?} {block:?}", operation.name);
                }
            }
        }
    }
}

#[test]
fn pieces_fit_their_buffers_and_do_not_overlap() {
    for operation in operations() {
        for (rank, in_place) in (0..4).flat_map(|rank| [(rank, false), (rank, operation.in_place)]) {
            let neighbors = Neighbors { sources: vec![1, 1, 2], targets: vec![0, 3, 3] };
            let counts = if operation.vector { Counts::Random } else { Counts::Regular };
            let shape = Shape::new(operation.kind, in_place, &spread(counts, 4), rank, &neighbors);
            for role in [shape.role(false), shape.role(true)] {
                let room = if role.in_recv { role.receives } else { role.sends };
                for (pieces, room) in [(&role.input, room), (&role.output, role.receives)] {
                    let mut end = 0;
                    for piece in pieces {
                        assert!(piece.at >= end, "{}", operation.name);
                        end = piece.at + piece.count;
                    }
                    assert!(end <= room, "{}", operation.name);
                }
            }
        }
    }
}

#[test]
fn reductions_by_rank() {
    let shape =
        |kind, in_place, rank| Shape::new(kind, in_place, &spread(Counts::Linear, 3), rank, &Neighbors::default());
    let fold = |kind, rank| shape(kind, false, rank).role(true).output.first().map(|piece| piece.what.clone());
    assert_eq!(fold(Kind::Scan, 1), Some(What::Fold(0..2, 0)));
    assert_eq!(fold(Kind::Exscan, 2), Some(What::Fold(0..2, 0)));
    assert_eq!(fold(Kind::Exscan, 0), None);
    assert!(shape(Kind::Exscan, false, 0).role(true).undefined);
    // Counts 0, 10, 20: rank 2's block starts at 10 of 30.
    assert_eq!(fold(Kind::ReduceScatter, 2), Some(What::Fold(0..3, 10)));
    let placed = shape(Kind::ReduceScatter, true, 2);
    assert_eq!((placed.role(true).receives, placed.role(true).undefined, placed.role(true).sends), (30, true, 0));
    assert_eq!(shape(Kind::Reduce, true, 1).role(false).sends, 10);
    assert_eq!(shape(Kind::Reduce, true, 1).role(true).sends, 0);
    assert!(shape(Kind::Reduce, false, 1).role(false).output.is_empty());
}

#[test]
fn arguments_of_calls() {
    let arguments = |kind, extent| {
        let neighbors = Neighbors { sources: vec![0, 2], targets: vec![1, 2] };
        Shape::new(kind, false, &spread(Counts::Linear, 3), 1, &neighbors).arguments(extent).unwrap()
    };
    let gatherv = arguments(Kind::Gatherv, None);
    assert_eq!((gatherv.sn, gatherv.rns, gatherv.rds), (10, vec![0, 10, 20], vec![0, 0, 10]));
    let exchange = arguments(Kind::Alltoallw, Some(24));
    assert_eq!((exchange.sns, exchange.sds), (vec![5, 10, 15], vec![0, 120, 360]));
    let neighbor = arguments(Kind::NeighborAlltoallw, Some(8));
    assert_eq!(
        (neighbor.sns, neighbor.rns, neighbor.sdas, neighbor.rdas),
        (vec![10, 15], vec![5, 15], vec![0, 80], vec![0, 40])
    );
}

#[test]
fn what_mpi_cannot_count_is_refused() {
    let large = Spread { mean: 1 << 31, ..spread(Counts::Regular, 2) };
    let text =
        Shape::new(Kind::Bcast, false, &large, 0, &Neighbors::default()).arguments(None).err().unwrap().to_string();
    assert!(text.contains("2147483648") && text.contains("2147483647"), "{text}");
    let long = Spread { mean: 1 << 30, ..spread(Counts::Regular, 4) };
    assert!(Shape::new(Kind::Allgatherv, false, &long, 0, &Neighbors::default()).arguments(None).is_err());
    assert!(Shape::new(Kind::Allgather, false, &long, 0, &Neighbors::default()).arguments(None).is_ok());
}
