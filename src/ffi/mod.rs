//! The border to Open MPI: the only `extern "C"`, the only types of Open MPI, and everything that is
//! process-wide.
//!
//! * [`exports`]: what the shim calls, each entry behind the panic guard;
//! * [`settings`]: the parameters as MCA holds them; [`messages`]: what users are told;
//! * [`startup`]: the parameters in force, the exchange at start-up, what stops the job;
//! * [`placement`]: where every process sits, looked up once per process;
//! * [`comm`]: the Rust half of a module: hierarchies, identities of operations, flow control;
//! * the tags of operations ([`identity`]);
//! * [`host`]: the endpoint over Open MPI's point-to-point layer; [`data`]: the user's buffers;
//! * [`device`]: buffers in a device's memory;
//! * [`call`]: a call's arguments and what all ranks know of them; [`operation`]: a call becomes a future;
//!   [`engine`]: futures that run from the progress engine (nonblocking, and [`persistent`] ones);
//! * [`apart`]: futures in memory of their own;
//! * [`version`]: whether this Open MPI is the one it was built for, and all processes have the same build;
//! * [`smsc`]: Open MPI's means to read other processes' memory;
//! * [`decisions`]: which way calls go, for those who ask;
//! * [`counters`]: what was done; [`summary`]: what is reported of it.

/// Declarations made from `ompi-glue/glue.h`.
#[allow(missing_docs, non_camel_case_types, non_upper_case_globals, non_snake_case, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
pub(crate) mod glue {
    include!(concat!(env!("OUT_DIR"), "/glue.rs"));
}

mod apart;
mod blocking;
mod call;
mod comm;
mod counters;
mod data;
mod decisions;
mod device;
mod engine;
mod exports;
mod flat;
mod guard;
mod host;
mod identity;
mod joined;
mod kind;
mod messages;
mod neighbor;
mod network;
mod operation;
mod persistent;
mod placement;
mod pool;
mod settings;
mod shared;
mod smsc;
mod startup;
mod summary;
mod team;
mod times;
mod version;
