//! Compiles `glue.c` with the compiler wrapper that the `mpi` crate uses too: `MPICC`, by default `mpicc`.

fn main() {
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rerun-if-changed=glue.c");
    cc::Build::new().compiler(&mpicc).file("glue.c").warnings(true).extra_warnings(true).compile("mpiperf_glue");
}
