// SPDX-License-Identifier: BSD-3-Clause
//! Runs every operation at many settings, a few calls each, and verifies every result.
//!
//! `mpiexec -n N verify [quick|full] [OPERATION]`: the last line on rank 0 is "N cases, N hit known bugs of
//! the library, N failed"; exit status 1 if any failed.

use std::process::ExitCode;

use mpiperf::error::{Error, Result};
use mpiperf::mpi::Comm;
use mpiperf::op::{self, Cache, Call, Counts, Mode, Operation, Overlap, REDUCTIONS, Root, Setting, Topology};

const PLAIN: [&str; 13] = [
    "byte", "char", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double", "pair",
];
const DERIVED: [&str; 6] =
    ["vector:2:3:int32", "vector:8:8", "indexed:int16", "struct", "resized:12:double", "resized:24:pair"];
/// Calls of each case: more than one turn of the buffers and of the roots.
const CALLS: u64 = 5;

fn main() -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        eprintln!("verify: MPI is initialised already");
        return ExitCode::FAILURE;
    };
    let result = run();
    let code = match &result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("verify: {error}");
            ExitCode::FAILURE
        }
    };
    drop(universe);
    code
}

fn run() -> Result<usize> {
    let world = Comm::world()?;
    let (measured, own) = (world.dup()?, world.dup()?);
    let mut words = std::env::args().skip(1);
    let full = words.next().is_some_and(|word| word == "full");
    let only = words.next();
    let (mut cases, mut failed, mut known) = (0, 0, 0);
    for operation in op::operations() {
        if only.as_ref().is_some_and(|name| name != operation.name) {
            continue;
        }
        for setting in settings(operation, full, world.size()) {
            cases += 1;
            match own.agree(check(&measured, &own, &setting)) {
                Ok(()) => {}
                // What a library does not have is no failure of the tool.
                Err(error) if error.to_string().contains("no persistent") => {
                    cases -= 1;
                    break;
                }
                // The library's own bugs, found by verification or refused.
                Err(error)
                    if ["known bug", "would crash or hang"].iter().any(|text| error.to_string().contains(text)) =>
                {
                    known += 1
                }
                Err(error) => {
                    failed += 1;
                    if world.rank() == 0 {
                        println!("FAILED {setting:?}\n    {error}");
                    }
                }
            }
        }
    }
    if world.rank() == 0 {
        println!("{cases} cases, {known} hit known bugs of the library, {failed} failed");
    }
    Ok(failed)
}

/// A few verified calls of a case; then one whose result is spoilt, which verification must notice.
fn check(measured: &Comm, own: &Comm, setting: &Setting) -> Result<()> {
    let mut case = op::make(measured, setting)?;
    for number in 0..CALLS {
        if let Err(error) = case.prepare(Call { number }).and_then(|()| case.run()) {
            // The other ranks may wait in the call for ever.
            println!("FAILED {setting:?}\n    {error}");
            // SAFETY: ends the job.
            unsafe { mpiperf::mpi::ffi::MPI_Abort(own.raw(), 1) };
        }
        // A rank that fails must not leave the others waiting in the next call.
        own.agree(case.verify())?;
    }
    if case.spoil() && case.verify().is_ok() {
        return Err(Error::Measure("a spoilt result was not noticed".to_owned()));
    }
    Ok(())
}

fn settings(operation: &Operation, full: bool, size: usize) -> Vec<Setting> {
    let datatype = operation.default_datatype("sum").to_owned();
    let plain = Setting { operation: operation.name.to_owned(), bytes: 64, datatype, ..Setting::default() };
    let mut all = Vec::new();
    let sizes: &[usize] = match (operation.sized, full) {
        (false, _) => &[0],
        (true, false) => &[8, 4000],
        (true, true) => &[0, 8, 1000, 40_000, 300_000],
    };
    all.extend(sizes.iter().map(|bytes| Setting { bytes: *bytes, ..plain.clone() }));
    if operation.pairs() {
        let window = if operation.name == "pingpong" { 0 } else { 5 };
        all.iter_mut().for_each(|setting| setting.window = window);
        all.push(Setting { pairs: 1, window, ..plain.clone() });
    }
    if !operation.sized || operation.pairs() {
        return all;
    }
    let bytes = 480;
    for datatype in PLAIN.iter().chain(&DERIVED).filter(|_| !operation.reduces) {
        all.push(Setting { datatype: (*datatype).to_owned(), bytes, root: Root::Rotating, ..plain.clone() });
        all.push(Setting { datatype: (*datatype).to_owned(), bytes: 16 * bytes, ..plain.clone() });
    }
    for (datatype, reduction) in PLAIN.iter().flat_map(|datatype| REDUCTIONS.map(|reduction| (datatype, reduction))) {
        let setting =
            Setting { datatype: (*datatype).to_owned(), reduction: reduction.to_owned(), bytes, ..plain.clone() };
        if operation.reduces && op::defined(&setting.reduction, &setting.datatype) {
            all.push(setting);
        }
    }
    let affine = Setting { datatype: "pair".to_owned(), reduction: "affine".to_owned(), ..plain.clone() };
    let base = if operation.reduces { affine } else { plain.clone() };
    let mut more = vec![
        Setting { cache: Cache::Cold, bytes: 4096, ..base.clone() },
        Setting { align: 4096, seed: 7, ..base.clone() },
    ];
    if operation.rooted {
        more.push(Setting { root: Root::Rotating, bytes: 24_000, ..base.clone() });
        more.push(Setting { root: Root::Fixed(size - 1), ..base.clone() });
        more.push(Setting { root: Root::Rotating, cache: Cache::Cold, ..base.clone() });
    }
    if operation.vector {
        more.extend([Counts::Random, Counts::Linear, Counts::Spike].map(|counts| Setting { counts, ..base.clone() }));
    }
    if operation.neighbor {
        more.extend(more.clone().into_iter().map(|setting| Setting { topology: Topology::Graph, ..setting }));
    }
    if operation.in_place {
        let fits = |setting: &Setting| setting.counts != Counts::Spike || !operation.name.contains("alltoall");
        let placed = more.clone().into_iter().chain([base.clone()]).filter(fits);
        more.extend(placed.map(|setting| Setting { in_place: true, ..setting }).collect::<Vec<_>>());
    }
    if operation.mode != Mode::Blocking {
        let overlap = Some(Overlap { compute: 2e-5, test_every: 5e-6 });
        more.push(Setting { overlap, ..base.clone() });
        more.push(Setting { overlap: Some(Overlap { compute: 2e-5, test_every: 0.0 }), ..base });
    }
    all.extend(more);
    all
}
