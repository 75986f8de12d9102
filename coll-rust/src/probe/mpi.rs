// SPDX-License-Identifier: BSD-3-Clause
//! A few collectives of Open MPI in a program that does not link it: its library is loaded when wanted, so
//! that neither a compiler nor another program is needed on the nodes.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::process::Command;

/// Calls of MPI_Barrier: more than the component leaves to the one below (`coll_rust_first_calls`).
const CALLS: usize = 8;

/// Initialises MPI, calls MPI_Barrier on MPI_COMM_WORLD, and ends; the library's name.
pub fn collectives(ompi_info: &Path) -> Result<String, String> {
    let folder = libraries(ompi_info);
    let mut names: Vec<String> = Vec::new();
    if let Some(folder) = &folder {
        names.extend(["libmpi.so.40", "libmpi.so"].map(|name| format!("{folder}/{name}")));
    }
    names.extend(["libmpi.so.40", "libmpi.so"].map(str::to_owned));
    let mut why = String::new();
    for name in names {
        // SAFETY: initialisers of Open MPI's library only allocate.
        match unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => {
                call(&library).map_err(|error| format!("{name}: {error}"))?;
                // It stays loaded: what it has started may still run.
                std::mem::forget(library);
                return Ok(name);
            }
            Err(error) => why = error.to_string(),
        }
    }
    Err(format!(
        "Open MPI's library cannot be loaded: {why}; name its folder in LD_LIBRARY_PATH (mpiexec -x LD_LIBRARY_PATH)"
    ))
}

fn libraries(ompi_info: &Path) -> Option<String> {
    let output = Command::new(ompi_info).args(["--parsable", "--path", "libdir"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("path:libdir:").map(str::to_owned))
}

fn call(library: &Library) -> Result<(), String> {
    type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
    type Barrier = unsafe extern "C" fn(*mut c_void) -> c_int;
    type Finalize = unsafe extern "C" fn() -> c_int;
    let say = |error: libloading::Error| error.to_string();
    let good = |name: &str, code: c_int| match code {
        0 => Ok(()),
        code => Err(format!("{name} failed with code {code}")),
    };
    // SAFETY: these are MPI's functions by the MPI standard, and the object that MPI_COMM_WORLD is the
    // address of in Open MPI 4 to 6; the standard allows null for MPI_Init's arguments. All calls are made in
    // order.
    unsafe {
        let init = library.get::<Init>(b"MPI_Init\0").map_err(say)?;
        let barrier = library.get::<Barrier>(b"MPI_Barrier\0").map_err(say)?;
        let finalize = library.get::<Finalize>(b"MPI_Finalize\0").map_err(say)?;
        let world = library.get::<*mut c_void>(b"ompi_mpi_comm_world\0").map_err(say)?.into_raw();
        good("MPI_Init", init(std::ptr::null_mut(), std::ptr::null_mut()))?;
        for _ in 0..CALLS {
            good("MPI_Barrier", barrier(world))?;
        }
        good("MPI_Finalize", finalize())
    }
}
