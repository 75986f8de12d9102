//! coll/rust: topology-aware hierarchical collectives for Open MPI.
pub mod algo;
pub mod endpoint;
#[cfg(feature = "ompi")]
mod ffi;
pub mod hier;
pub mod params;
pub mod pattern;
pub mod select;
pub mod sim;
pub mod topo;
