// SPDX-License-Identifier: BSD-3-Clause
//! Virtual topologies for the neighbour collectives.

use std::os::raw::c_int;

use crate::call;
use crate::error::Result;
use crate::mpi::{Comm, ffi};

use super::Topology;
use super::shape::Neighbors;

/// The steps from a rank to those it sends to in [`Topology::Graph`].
const STEPS: [usize; 3] = [1, 2, 4];

/// A communicator with the topology, with the info keys of `comm`, so that it has the same collective
/// components. Collective.
pub fn attach(comm: &Comm, topology: Topology) -> Result<(Comm, Neighbors)> {
    let neighbors = neighbors(topology, comm.rank(), comm.size());
    // SAFETY: constants of the library.
    let (mut new, none) = unsafe { (ffi::RSMPI_COMM_NULL, ffi::RSMPI_INFO_NULL) };
    match topology {
        Topology::Torus => {
            let (rows, columns) = grid(comm.size());
            let (dims, periodic) = ([rows as c_int, columns as c_int], [1, 1]);
            call!(MPI_Cart_create(comm.raw(), 2, dims.as_ptr(), periodic.as_ptr(), 0, &mut new))?;
        }
        Topology::Graph => {
            let ints = |ranks: &[usize]| ranks.iter().map(|rank| *rank as c_int).collect::<Vec<c_int>>();
            let (from, to) = (ints(&neighbors.sources), ints(&neighbors.targets));
            let weights = vec![1 as c_int; from.len().max(to.len())];
            let (n, m) = (from.len() as c_int, to.len() as c_int);
            let (from, to, weights) = (from.as_ptr(), to.as_ptr(), weights.as_ptr());
            call!(MPI_Dist_graph_create_adjacent(comm.raw(), n, from, weights, m, to, weights, none, 0, &mut new))?;
        }
    }
    let bare = Comm::from_raw(new, true)?;
    let mut info = none;
    call!(MPI_Comm_get_info(comm.raw(), &mut info))?;
    let code = call!(MPI_Comm_dup_with_info(bare.raw(), info, &mut new));
    call!(MPI_Info_free(&mut info))?;
    code?;
    Ok((Comm::from_raw(new, true)?, neighbors))
}

/// Rows and columns, as equal as they can be.
fn grid(size: usize) -> (usize, usize) {
    let rows = (1..=size.isqrt()).rev().find(|rows| size.is_multiple_of(*rows)).unwrap_or(1);
    (size / rows, rows)
}

/// The neighbours of a rank, in MPI's order.
fn neighbors(topology: Topology, rank: usize, size: usize) -> Neighbors {
    match topology {
        Topology::Torus => {
            let (rows, columns) = grid(size);
            let (row, column) = (rank / columns, rank % columns);
            let at = |row: usize, column: usize| row % rows * columns + column % columns;
            let around = vec![
                at(row + rows - 1, column),
                at(row + 1, column),
                at(row, column + columns - 1),
                at(row, column + 1),
            ];
            Neighbors { sources: around.clone(), targets: around }
        }
        Topology::Graph => {
            let mut steps: Vec<usize> = STEPS.iter().map(|step| step % size).filter(|step| *step != 0).collect();
            steps.sort_unstable();
            steps.dedup();
            Neighbors {
                sources: steps.iter().map(|step| (rank + size - step) % size).collect(),
                targets: steps.iter().map(|step| (rank + step) % size).collect(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!([2, 3, 4, 6, 12, 16].map(grid), [(2, 1), (3, 1), (2, 2), (3, 2), (4, 3), (4, 4)]);
    }

    #[test]
    fn every_edge_has_two_ends() {
        for size in 2..20 {
            for topology in [Topology::Torus, Topology::Graph] {
                let all: Vec<Neighbors> = (0..size).map(|rank| neighbors(topology, rank, size)).collect();
                for rank in 0..size {
                    for to in &all[rank].targets {
                        let there = all[*to].sources.iter().filter(|from| **from == rank).count();
                        assert_eq!(there, all[rank].targets.iter().filter(|other| *other == to).count());
                    }
                }
            }
        }
        assert_eq!(neighbors(Topology::Graph, 0, 5).targets, [1, 2, 4]);
        assert_eq!(neighbors(Topology::Torus, 0, 6).targets, [4, 2, 1, 1]);
    }
}
