// SPDX-License-Identifier: BSD-3-Clause
//! Two things. The number of the build, which all processes of a job must have in common. And Rust
//! declarations for `ompi-glue/glue.h`, the border to the C shim, so that both sides cannot drift apart.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error::Error, fs, io};

/// What a build is made from: folders (of which the sources count) and files.
const MADE_FROM: &[&str] = &["Cargo.lock", "Cargo.toml", "build.rs", "ompi-glue", "src"];

/// FNV-1a. It tells builds apart that differ by accident, and needs no crate.
struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()).fold(self.0, mix);
    }
}

/// Adds the sources at `path` to `found`, and has cargo look at them.
fn sources(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo:rerun-if-changed={}", path.display());
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        // Not what an editor leaves.
        if path.is_dir() || path.extension().is_some_and(|e| e == "rs" || e == "c" || e == "h") {
            sources(&path, found)?;
        }
    }
    Ok(())
}

/// The number of the build: of its sources, and of the compiler, which lays out structs. The same wherever
/// and whenever it is made.
fn build_number() -> Result<String, Box<dyn Error>> {
    let mut files = Vec::new();
    for path in MADE_FROM {
        sources(Path::new(path), &mut files)?;
    }
    files.sort();
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for file in files {
        hash.add(file.to_string_lossy().as_bytes());
        hash.add(&fs::read(file)?);
    }
    let rustc = env::var_os("RUSTC").ok_or("cargo sets RUSTC")?;
    hash.add(&Command::new(rustc).arg("-vV").output()?.stdout);
    for name in ["TARGET", "PROFILE"] {
        hash.add(env::var(name)?.as_bytes());
    }
    Ok(format!("{:016x}", hash.0))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rustc-env=COLL_RUST_BUILD={}", build_number()?);
    if env::var_os("CARGO_FEATURE_OMPI").is_none() {
        return Ok(());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("glue.rs");
    bindgen::Builder::default()
        .header("ompi-glue/glue.h")
        .allowlist_file(".*/glue.h|ompi-glue/glue.h")
        // Rust defines these: only their declarations for C are in the header.
        .blocklist_function(
            "cr_param_table|cr_params_registered|cr_counter_table|cr_version|cr_component_check|cr_component_init|cr_component_close|cr_comm_query|cr_comm_free|cr_block_.*|cr_call_.*|cr_device_.*|cr_op_start|cr_op_free",
        )
        .derive_default(true)
        .prepend_enum_name(false)
        .layout_tests(true)
        .generate_comments(false)
        .generate()?
        .write_to_file(out)?;
    Ok(())
}
