// SPDX-License-Identifier: BSD-3-Clause
//! Operations by nothing but flags and copies, and `MPI_Reduce_local` where there is something to combine,
//! instead of an MPI library's: what they cost on this machine without messages, communicators or a choice
//! between ways.
//!
//! These are no collectives for a program: memory for whole messages of all ranks is there beforehand,
//! contents are contiguous, and a call begins when all ranks are out of the one before (where time is not
//! taken; so `prepare` of such a case is collective, and to be called once for each call). Flags and short
//! contents share a cache line.

mod meeting;
mod ways;

use std::os::raw::c_int;

use clap::ValueEnum;

use crate::error::{Error, Result};
use crate::mpi::{self, Comm, ffi};
use crate::node::{Transfer, transfer};

use super::call::{Arguments, Target, start};
use super::table::{Kind, Operation};
use super::{Counts, Mode, Setting};
use meeting::Meeting;

/// How contents get from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Into shared memory and out of it. Whoever wants a reduction combines all operands
    Copies,
    /// The same after a call of the MPI function, or of its plain form, that moves nothing (`MPI_COMM_SELF`,
    /// counts of 0): as soon as a collective could begin that costs nothing before its first flag or copy
    AfterEmpty,
    /// As the first, but each rank combines a part of the operands, for all who want it
    #[value(name = "shared-work")]
    Shares,
    /// From the private memory of one to that of the other, by the system (`process_vm_readv`,
    /// `process_vm_writev`)
    Direct,
}

impl Way {
    /// What a row is called.
    pub fn name(self) -> &'static str {
        match self {
            Way::Copies => "bare copies",
            Way::AfterEmpty => "bare copies after an empty call",
            Way::Shares => "bare copies, shared work",
            Way::Direct => "bare direct copies",
        }
    }
}

/// The ways of an operation; none: there is no bare form.
pub fn ways(kind: Kind) -> &'static [Way] {
    match kind {
        Kind::Barrier => &[Way::Copies, Way::AfterEmpty],
        Kind::Reduce | Kind::Allreduce => &[Way::Copies, Way::AfterEmpty, Way::Shares],
        Kind::Bcast
        | Kind::Gather
        | Kind::Gatherv
        | Kind::Scatter
        | Kind::Scatterv
        | Kind::Allgather
        | Kind::Allgatherv
        | Kind::Alltoall
        | Kind::Alltoallv => &[Way::Copies, Way::AfterEmpty, Way::Direct],
        _ => &[],
    }
}

/// The ways of an operation that are among `named`, all where that is empty; an error where there are none.
pub fn chosen(operation: &Operation, named: &[Way]) -> Result<Vec<Way>> {
    let all = ways(operation.kind);
    let chosen: Vec<Way> = all.iter().copied().filter(|way| named.is_empty() || named.contains(way)).collect();
    if chosen.is_empty() {
        let list = |ways: &[Way]| {
            let values = ways.iter().filter_map(Way::to_possible_value);
            values.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(",")
        };
        return Err(Error::usage(format!("--bare={}: {} has {}", list(named), operation.name, list(all))));
    }
    Ok(chosen)
}

/// Refuses settings of which there is no bare form.
pub fn check(operation: &Operation, setting: &Setting, derived: bool) -> Result<()> {
    let name = operation.name;
    let error = |text: &str| Err(Error::usage(format!("{name}: {text}")));
    if operation.mode != Mode::Blocking || ways(operation.kind).is_empty() {
        return error(
            "has no bare form; barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall and the vector forms of the last \
             four have",
        );
    }
    if operation.reduces && setting.reduction == "affine" {
        return error("bare forms combine in any order, which affine does not allow");
    }
    if setting.in_place || setting.counts != Counts::Regular || derived {
        return error("there are bare forms of regular counts of a basic datatype only, and not in place");
    }
    Ok(())
}

/// Lets other processes read and write this one's memory where the system allows that only to those who are
/// named: for all variants alike, so before any of them.
pub fn admit() {
    #[cfg(target_os = "linux")]
    // SAFETY: numbers only; kernels without such a rule refuse the call, and it is not needed.
    unsafe {
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0)
    };
}

/// A bare form of one operation.
pub struct Bare {
    kind: Kind,
    way: Way,
    meeting: Meeting,
    /// Bytes of a block, and of an element.
    bytes: usize,
    element: usize,
    /// The processes of all ranks.
    processes: Vec<libc::pid_t>,
    /// Of a call that moves nothing.
    nothing: Arguments,
}

impl Bare {
    /// `bytes`: of a block, a multiple of those of an `element`; `crowded`: there are more ranks than cores.
    /// `None`: the way is not possible here. Collective.
    pub fn new(comm: &Comm, kind: Kind, way: Way, bytes: usize, element: usize, crowded: bool) -> Result<Option<Bare>> {
        let boxes = matches!(kind, Kind::Scatter | Kind::Scatterv | Kind::Alltoall | Kind::Alltoallv);
        // Blocks that are read where they lie need no room.
        let room = if way == Way::Direct { 0 } else { bytes };
        let meeting = Meeting::new(comm, room, boxes, crowded)?;
        let bare = {
            let own = [u64::from(std::process::id())];
            let processes = comm.allgather(&own)?.into_iter().map(|process| process as libc::pid_t).collect();
            let nothing = Arguments { rns: vec![0], rds: vec![0], ..Arguments::default() };
            Bare { kind, way, meeting, bytes, element, processes, nothing }
        };
        if way != Way::Direct {
            return Ok(Some(bare));
        }
        let mut word = [7u64];
        let places = comm.allgather(&[word.as_mut_ptr() as u64])?;
        let mut seen = [0u64];
        // What is written is what has been read.
        let possible = bare.meeting.others().all(|rank| {
            seen = [0];
            let place = std::hint::black_box(seen.as_mut_ptr()).cast();
            let done = |way| transfer(bare.processes[rank], way, place, places[rank] as usize, 8).is_ok();
            done(Transfer::Read) && std::hint::black_box(seen) == [7] && done(Transfer::Write)
        });
        let mut refused = [f64::from(u8::from(!possible))];
        comm.max(&mut refused)?;
        Ok((refused == [0.0]).then_some(bare))
    }

    /// Waits until no rank is in the call before.
    pub fn ready(&self) -> Result<()> {
        self.meeting.next()
    }

    /// After the call, when its time has been taken.
    pub fn over(&self) {
        self.meeting.over();
    }

    /// The call.
    pub fn call(&self, to: &Target) -> Result<()> {
        let place = ways::Place { bare: self, send: to.send.cast(), recv: to.recv.cast(), root: to.root as usize, to };
        match self.way {
            Way::Direct => return place.directly(),
            Way::Shares => return place.share_work(),
            Way::AfterEmpty => self.call_empty(to)?,
            Way::Copies => {}
        }
        match self.kind {
            Kind::Barrier => place.barrier(),
            Kind::Bcast => place.bcast(),
            Kind::Gather | Kind::Gatherv => place.gather(),
            Kind::Scatter | Kind::Scatterv => place.scatter(),
            Kind::Allgather | Kind::Allgatherv => place.allgather(),
            Kind::Alltoall | Kind::Alltoallv => place.alltoall(),
            _ => return place.reduce(),
        }
        Ok(())
    }

    /// Calls the MPI function for nothing. Of the vector forms only `MPI_Allgatherv` returns early in Open
    /// MPI where all counts are 0; the others go on into a component, which takes two to three times as long,
    /// so that their plain forms are called.
    fn call_empty(&self, to: &Target) -> Result<()> {
        let mut places = [0_u64; 2];
        let [send, recv] = &mut places;
        let (send, recv) = (std::ptr::from_mut(send).cast(), std::ptr::from_mut(recv).cast());
        // SAFETY: MPI sets the handle when it starts, and it stays as it is.
        let comm = unsafe { ffi::RSMPI_COMM_SELF };
        let alone = Target { send, recv, root: 0, comm, ..*to };
        let kind = match self.kind {
            Kind::Gatherv => Kind::Gather,
            Kind::Scatterv => Kind::Scatter,
            Kind::Alltoallv => Kind::Alltoall,
            other => other,
        };
        // SAFETY: the counts are 0, of `MPI_Allgatherv` with one for each process of the communicator.
        let code = unsafe { start(kind, Mode::Blocking, &self.nothing, &alone, std::ptr::null_mut()) };
        mpi::check("an empty call", code)
    }

    /// Elements in so many bytes.
    fn elements(&self, bytes: usize) -> c_int {
        (bytes / self.element) as c_int
    }
}
