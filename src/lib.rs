//! coll/rust: topology-aware hierarchical collectives for Open MPI.
pub mod algo;
pub mod endpoint;
pub mod pattern;
pub mod topo;
