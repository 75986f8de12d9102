// SPDX-License-Identifier: BSD-3-Clause
//! Who sends to whom in a neighbourhood operation.
//!
//! A member has a list of destinations and a list of sources. The block in slot i of its send buffer goes to
//! destination i, the block in slot i of its receive buffer comes from source i. Lists may name a member
//! several times, and the member itself. The k-th block that a member sends to another one is the k-th that
//! this one receives from it; on a [`Grid`], a block that is sent in the negative direction of a dimension is
//! received from the positive one, which is something else where both neighbours are one and the same.

/// One entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The other member.
    pub peer: usize,
    /// Which block of the buffer.
    pub slot: usize,
}

/// The neighbourhood of one member.
///
/// Both lists ascend by distance, which is how far the sender has to count, in a circle, to get to the
/// receiver. So members that treat only a few edges at a time, each list in its order, never wait for each
/// other in a circle: of all edges that are left, both ends of the one with the least distance have come to
/// it. Edges between the same two members stay in the order in which they are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// Whom the member sends to, but for itself.
    pub destinations: Vec<Edge>,
    /// Whom it receives from, but for itself.
    pub sources: Vec<Edge>,
    /// What it sends to itself: the slot of the send buffer, and that of the receive buffer.
    pub own: Vec<(usize, usize)>,
}

impl Neighbors {
    /// The neighbourhood of member `me` of `size`, of edges in the order in which they are matched.
    pub fn new(
        me: usize,
        size: usize,
        destinations: impl IntoIterator<Item = Edge>,
        sources: impl IntoIterator<Item = Edge>,
    ) -> Neighbors {
        let (leaving, mut destinations): (Vec<_>, Vec<_>) = destinations.into_iter().partition(|e| e.peer == me);
        let (arriving, mut sources): (Vec<_>, Vec<_>) = sources.into_iter().partition(|e| e.peer == me);
        destinations.sort_by_key(|e| (e.peer + size - me) % size);
        sources.sort_by_key(|e| (me + size - e.peer) % size);
        let own = leaving.iter().zip(&arriving).map(|(from, to)| (from.slot, to.slot)).collect();
        Neighbors { destinations, sources, own }
    }

    /// The same with other numbers for the members.
    pub fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        let edges = self.destinations.iter_mut().chain(&mut self.sources);
        edges.for_each(|edge| edge.peer = number(edge.peer));
    }

    /// Leaves out the edges with others that are not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(&Edge) -> bool) {
        self.destinations.retain(&mut keep);
        self.sources.retain(&mut keep);
    }

    /// The edges with some others and with itself, then the rest.
    pub fn split(&self, mut is_inside: impl FnMut(usize) -> bool) -> [Neighbors; 2] {
        let (mut inside, mut rest) = (self.clone(), self.clone());
        inside.retain(|edge| is_inside(edge.peer));
        rest.retain(|edge| !is_inside(edge.peer));
        rest.own.clear();
        [inside, rest]
    }

    /// Whom it has edges with, in any order.
    pub fn peers(&self) -> impl Iterator<Item = usize> {
        self.destinations.iter().chain(&self.sources).map(|edge| edge.peer)
    }

    /// The neighbourhood of a member of a graph: lists of members.
    pub fn listed(me: usize, size: usize, destinations: &[usize], sources: &[usize]) -> Neighbors {
        let edges = |list: &[usize]| -> Vec<Edge> {
            list.iter().enumerate().map(|(slot, &peer)| Edge { peer, slot }).collect()
        };
        Neighbors::new(me, size, edges(destinations), edges(sources))
    }
}

/// A Cartesian grid: how many members each dimension has, and whether it is periodic. The last dimension
/// varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Members, and whether it is periodic, of each dimension.
    pub dimensions: Vec<(usize, bool)>,
}

impl Grid {
    /// Number of members.
    pub fn size(&self) -> usize {
        self.dimensions.iter().map(|&(length, _)| length).product()
    }

    /// The neighbours of a member, two of each dimension: in the negative direction, then in the positive
    /// one. None beyond the border of a dimension that is not periodic.
    pub fn around(&self, member: usize) -> impl Iterator<Item = Option<usize>> {
        let mut stride = self.size();
        self.dimensions.iter().flat_map(move |&(length, periodic)| {
            stride /= length;
            let at = member / stride % length;
            let to = |other: usize| Some(member - at * stride + other * stride);
            let before = if at > 0 { to(at - 1) } else { to(length - 1).filter(|_| periodic) };
            let after = if at + 1 < length { to(at + 1) } else { to(0).filter(|_| periodic) };
            [before, after]
        })
    }

    /// The neighbourhood of a member.
    pub fn neighbors(&self, member: usize) -> Neighbors {
        let around: Vec<Option<usize>> = self.around(member).collect();
        let edge = |slot: usize| around[slot].map(|peer| Edge { peer, slot });
        let slots = 0..around.len();
        // What was sent in the negative direction, which is sent first, comes from the positive one.
        let (destinations, sources) = (slots.clone().filter_map(edge), slots.filter_map(|slot| edge(slot ^ 1)));
        Neighbors::new(member, self.size(), destinations, sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `each` with all grids of up to three dimensions of up to four.
    fn grids(mut each: impl FnMut(&Grid)) {
        for dimensions in 0..=3_u32 {
            for code in 0..8_usize.pow(dimensions) {
                let dimension = |d| (1 + code / 8_usize.pow(d) % 8 / 2, code / 8_usize.pow(d) % 2 == 1);
                each(&Grid { dimensions: (0..dimensions).map(dimension).collect() });
            }
        }
    }

    fn coordinates(grid: &Grid, mut member: usize) -> Vec<usize> {
        let mut all: Vec<usize> = grid
            .dimensions
            .iter()
            .rev()
            .map(|&(length, _)| {
                let at = member % length;
                member /= length;
                at
            })
            .collect();
        all.reverse();
        all
    }

    #[test]
    fn neighbours_on_a_grid_are_one_step_away() {
        grids(|grid| {
            for member in 0..grid.size() {
                let at = coordinates(grid, member);
                for (slot, peer) in grid.around(member).enumerate() {
                    let (d, step) = (slot / 2, [-1, 1][slot % 2]);
                    let (length, periodic) = grid.dimensions[d];
                    let there = at[d] as isize + step;
                    let inside = (0..length as isize).contains(&there);
                    assert_eq!(peer.is_some(), inside || periodic, "{grid:?} {member} {slot}");
                    let Some(peer) = peer else { continue };
                    let mut expected = at.clone();
                    expected[d] = there.rem_euclid(length as isize) as usize;
                    assert_eq!(coordinates(grid, peer), expected, "{grid:?} {member} {slot}");
                }
            }
        });
    }

    #[test]
    fn what_goes_left_comes_from_the_right() {
        grids(|grid| {
            let all: Vec<Neighbors> = (0..grid.size()).map(|m| grid.neighbors(m)).collect();
            for (member, here) in all.iter().enumerate() {
                let filled = grid.around(member).flatten().count();
                assert_eq!(
                    (here.destinations.len() + here.own.len(), here.sources.len() + here.own.len()),
                    (filled, filled)
                );
                for &(from, to) in &here.own {
                    assert_eq!(from ^ 1, to);
                }
                for (peer, there) in all.iter().enumerate() {
                    let sent: Vec<usize> =
                        here.destinations.iter().filter(|e| e.peer == peer).map(|e| e.slot).collect();
                    let got: Vec<usize> =
                        there.sources.iter().filter(|e| e.peer == member).map(|e| e.slot ^ 1).collect();
                    assert_eq!(sent, got, "{grid:?} from {member} to {peer}");
                }
            }
        });
    }

    #[test]
    fn lists_ascend_by_distance_and_keep_their_order() {
        let neighbors = Neighbors::listed(2, 5, &[1, 2, 3, 1, 2, 4], &[2, 0, 3, 0, 2, 2]);
        let pairs = |edges: &[Edge]| -> Vec<(usize, usize)> { edges.iter().map(|e| (e.peer, e.slot)).collect() };
        assert_eq!(pairs(&neighbors.destinations), [(3, 2), (4, 5), (1, 0), (1, 3)]);
        assert_eq!(pairs(&neighbors.sources), [(0, 1), (0, 3), (3, 2)]);
        assert_eq!(neighbors.own, [(1, 0), (4, 4)]);
    }
}
