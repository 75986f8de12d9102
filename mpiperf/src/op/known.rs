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
            "; this is a known bug of MPICH before 4.3 (issue 7078) and of Intel MPI: a rank's own block is copied when the request is \
             made instead of when it is started; take the v operation, or a later MPICH"
        }
        _ => "",
    }
}

/// What would end the job: refused, with this reason.
pub fn fatal(library: &str, kind: Kind, mode: Mode, derived: bool) -> Option<&'static str> {
    let early = library.contains("MPICH") && library.contains("4.0.");
    (early && kind == Kind::Allgather && mode == Mode::Persistent && derived).then_some(
        "MPICH 4.0 releases the datatype of this persistent collective too often and then ends the job; take a plain datatype, \
         allgatherv_init, or a later MPICH",
    )
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
        assert!(fatal("MPICH Version: 4.0.2", Kind::Allgather, Mode::Persistent, true).is_some());
        assert!(fatal("MPICH Version: 4.0.2", Kind::Allgather, Mode::Nonblocking, true).is_none());
        assert!(fatal("MPICH Version: 4.2.1", Kind::Allgather, Mode::Persistent, true).is_none());
    }
}
