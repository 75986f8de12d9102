// SPDX-License-Identifier: BSD-3-Clause
//! Parts of blocks.

use coll_rust::algo::data::Block;
use coll_rust::endpoint::{Blocks, Stream};
use coll_rust::hier::pieces::{Piece, Pieces, cuts};
use coll_rust::sim::{Rng, SimBlocks};

#[test]
fn segments_make_the_whole() {
    let mut rng = Rng::new(5);
    for _ in 0..300 {
        let lens: Vec<usize> = (0..6).map(|_| [0, 1, 7, 20][rng.below(4)]).collect();
        let parts = [vec![0, 3, 4], vec![1, 5], vec![2]];
        let longest = parts.iter().map(|part| part.iter().map(|&r| lens[r]).sum()).max().unwrap_or(0);
        let bytes: Vec<Vec<u8>> = lens.iter().map(|&len| (0..len as u8).collect()).collect();
        let blocks = if rng.below(2) == 0 { SimBlocks::run(&bytes) } else { SimBlocks::scattered(&mut rng, &bytes) };
        let step = 1 + rng.below(12);
        let mut ends = vec![0; 6];
        for start in (0..longest).step_by(step) {
            let cuts = cuts(&parts, |rank| lens[rank], &(start..start + step));
            let pieces = Pieces { blocks: &blocks, cuts: &cuts };
            for part in &parts {
                assert!(part.iter().map(|&rank| pieces.len(rank)).sum::<usize>() <= step);
            }
            for (rank, cut) in cuts.iter().enumerate() {
                assert_eq!(cut.start, if cut.is_empty() { cut.start } else { ends[rank] });
                ends[rank] += cut.len();
                if let (Some(piece), Some(block)) = (pieces.direct(rank..rank + 1), blocks.direct(rank..rank + 1)) {
                    assert!(cut.is_empty() || piece.ptr() == block.slice(cut.clone()).ptr());
                    assert_eq!(piece.len(), cut.len());
                }
                let piece = Piece { stream: &Block { blocks: &blocks, member: rank }, cut: cut.clone() };
                assert_eq!(piece.direct().is_some(), blocks.direct(rank..rank + 1).is_some());
            }
            // Several pieces are one run only where their bytes are.
            for range in [0..2, 0..6, 2..5] {
                let Some(span) = pieces.direct(range.clone()) else { continue };
                assert_eq!(span.len(), cuts[range.clone()].iter().map(ExactSizeIterator::len).sum::<usize>());
                let mut at = 0;
                for rank in range.filter(|&rank| !cuts[rank].is_empty()) {
                    let block = blocks.direct(rank..rank + 1).map(|block| block.slice(cuts[rank].clone()).ptr());
                    assert_eq!(block, Some(span.slice(at..at + cuts[rank].len()).ptr()));
                    at += cuts[rank].len();
                }
            }
        }
        assert_eq!(ends, lens);
    }
}
