//! Atomics and waiting: the only place that knows whether a model checker runs.

pub mod atomic;
