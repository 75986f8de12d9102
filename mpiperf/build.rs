// SPDX-License-Identifier: BSD-3-Clause
//! Compiles `glue.c` with the compiler wrapper that the `mpi` crate uses too: `MPICC`, by default `mpicc`.
//!
//! Whether the library has persistent collectives, and under which prefix, is found by linking: headers and
//! version numbers promise more than some libraries hold.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn main() {
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rerun-if-changed=glue.c");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let persistent = [(1, "", "MPI_"), (2, "#include <mpi-ext.h>\n", "MPIX_")]
        .into_iter()
        .find(|(_, include, prefix)| links(&mpicc, &out, include, prefix))
        .map_or(0, |found| found.0);
    cc::Build::new()
        .compiler(&mpicc)
        .file("glue.c")
        .define("MPIPERF_PERSISTENT", persistent.to_string().as_str())
        .warnings(true)
        .extra_warnings(true)
        .compile("mpiperf_glue");
}

/// Whether a program that initialises a persistent collective of this prefix compiles and links.
fn links(mpicc: &str, out: &Path, include: &str, prefix: &str) -> bool {
    let (source, program) = (out.join("persistent.c"), out.join("persistent"));
    let text = format!(
        "#include <mpi.h>\n{include}int main(void) {{\n    MPI_Request r;\n    return {prefix}Bcast_init(0, 0, MPI_INT, 0, \
         MPI_COMM_WORLD, MPI_INFO_NULL, &r)\n        + {prefix}Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);\n}}\n"
    );
    if let Err(error) = std::fs::write(&source, text) {
        println!("cargo::warning={}: {error}", source.display());
        return false;
    }
    Command::new(mpicc)
        .args(["-Werror=implicit-function-declaration", "-o"])
        .args([&program, &source])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
