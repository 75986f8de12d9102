// SPDX-License-Identifier: BSD-3-Clause
//! Declarations made from `ompi-glue/glue.h`.
#![allow(missing_docs, non_camel_case_types, non_upper_case_globals, non_snake_case, dead_code)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/glue.rs"));
