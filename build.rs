//! Rust declarations for `ompi-glue/glue.h`, the border to the C shim, so that both sides cannot drift apart.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=ompi-glue/glue.h");
    if env::var_os("CARGO_FEATURE_OMPI").is_none() {
        return Ok(());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("glue.rs");
    bindgen::Builder::default()
        .header("ompi-glue/glue.h")
        .allowlist_file(".*/glue.h|ompi-glue/glue.h")
        // Rust defines these: only their declarations for C are in the header.
        .blocklist_function(
            "cr_param_table|cr_params_registered|cr_counter_table|cr_component_init|cr_component_close|cr_comm_query|cr_comm_free|cr_block_.*|cr_call_.*|cr_op_start|cr_op_free",
        )
        .derive_default(true)
        .prepend_enum_name(false)
        .layout_tests(true)
        .generate_comments(false)
        .generate()?
        .write_to_file(out)?;
    Ok(())
}
