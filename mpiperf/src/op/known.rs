// SPDX-License-Identifier: BSD-3-Clause
//! What MPI libraries are known to get wrong: the explanation of a failed verification.

use super::Mode;
use super::reduction::Reduction;
use super::table::Kind;
use super::types::Base;

/// The circumstances of a wrong result.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// The function.
    pub kind: Kind,
    /// How it was called.
    pub mode: Mode,
    /// The reduction and its type, if it reduces.
    pub reduction: Option<(Reduction, Base)>,
}

/// The known bug of this library that explains a wrong result, and what to do; empty if there is none.
pub fn bug(library: &str, of: Circumstances) -> &'static str {
    let (open_mpi, mpich) = (library.contains("Open MPI"), library.contains("MPICH"));
    let copies_early = matches!(of.kind, Kind::Gather | Kind::Scatter | Kind::Allgather);
    match of.reduction {
        Some((Reduction::Sum, base)) if open_mpi && base.narrow() => {
            "; this is a known bug of Open MPI (issue 8045): its component op/avx saturates sums of 8 and 16 bit integers instead of \
             wrapping around; run with --mca op ^avx, or take another datatype"
        }
        Some((Reduction::Max | Reduction::Min, base)) if mpich && base.unsigned() => {
            "; this is a known bug of MPICH 4.0 (issue 6083): it compares unsigned integers as signed ones; take a signed datatype, or \
             a later MPICH"
        }
        None if (mpich || library.contains("Intel")) && of.mode == Mode::Persistent && copies_early => {
            "; this is a known bug of MPICH (issue 7078) and of Intel MPI: a rank's own block is copied when the request is made instead \
             of when it is started; take the v operation, or a later library"
        }
        _ => "",
    }
}

/// What would crash or hang: refused, with this reason. `derived`: the datatype is not a predefined one.
///
/// Found with MPICH 4.0.2 and Intel MPI 2021.18, from the second start of a request on.
pub fn fatal(library: &str, kind: Kind, mode: Mode, derived: bool, size: usize) -> Option<&'static str> {
    let (mpich, intel) = (library.contains("MPICH") && library.contains("4.0."), library.contains("Intel"));
    if mode != Mode::Persistent || !(mpich || intel) {
        return None;
    }
    match kind {
        Kind::Scatter if size > 2 => Some(
            "in MPICH 4.0 and Intel MPI the second start of this request fails on one rank and hangs on the others, from 3 processes on; \
             take scatterv_init, or a later library",
        ),
        Kind::Allgather if size.is_power_of_two() && (mpich && derived || intel && size > 2) => Some(
            "MPICH 4.0 (with derived datatypes) and Intel MPI crash in this request at 2, 4, 8 … processes; take allgatherv_init, or a \
             later library",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_explained() {
        let reduce = |library, reduction, base| {
            let of = Circumstances { kind: Kind::Reduce, mode: Mode::Blocking, reduction: Some((reduction, base)) };
            bug(library, of)
        };
        assert!(reduce("Open MPI v4.1.4", Reduction::Sum, Base::Int8).contains("--mca op ^avx"));
        assert!(reduce("MPICH Version: 4.0.2", Reduction::Max, Base::Uint32).contains("6083"));
        assert_eq!(reduce("Open MPI v4.1.4", Reduction::Sum, Base::Int32), "");
        assert_eq!(reduce("Open MPI v4.1.4", Reduction::Max, Base::Int8), "");
        assert_eq!(reduce("MPICH Version: 4.0.2", Reduction::Sum, Base::Int8), "");
        let gather =
            |mode| bug("Intel(R) MPI Library 2021.17", Circumstances { kind: Kind::Gather, mode, reduction: None });
        assert!(gather(Mode::Persistent).contains("7078") && gather(Mode::Blocking).is_empty());
        let refused = |library, kind, mode, derived, size| fatal(library, kind, mode, derived, size).is_some();
        let (mpich, intel) = ("MPICH Version: 4.0.2", "Intel(R) MPI Library 2021.18");
        for library in [mpich, intel] {
            assert!(refused(library, Kind::Scatter, Mode::Persistent, false, 3));
            assert!(!refused(library, Kind::Scatter, Mode::Persistent, false, 2));
            assert!(!refused(library, Kind::Scatter, Mode::Nonblocking, false, 3));
            assert!(!refused(library, Kind::Scatterv, Mode::Persistent, true, 3));
            assert!(!refused(library, Kind::Allgather, Mode::Persistent, true, 3));
        }
        assert!(refused(mpich, Kind::Allgather, Mode::Persistent, true, 2));
        assert!(!refused(mpich, Kind::Allgather, Mode::Persistent, false, 4));
        assert!(refused(intel, Kind::Allgather, Mode::Persistent, false, 4));
        assert!(!refused(intel, Kind::Allgather, Mode::Persistent, true, 2));
        for library in ["MPICH Version: 4.2.1", "Open MPI v4.1.4"] {
            assert!(!refused(library, Kind::Scatter, Mode::Persistent, true, 4));
        }
    }
}
