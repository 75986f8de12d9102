// SPDX-License-Identifier: BSD-3-Clause
//! What the shim calls. Each entry is behind the panic guard.

use crate::ffi::base::glue::{
    CR_ERR_OTHER, cr_call, cr_comm_is_inter, cr_comm_is_world, cr_comm_name, cr_comm_size, cr_counter,
    cr_is_finalizing, cr_param, ompi_communicator_t, ompi_request_t,
};
use crate::ffi::base::guard::{guard, guard_or};
use crate::ffi::base::kind::Kind;
use crate::ffi::base::{config, messages};
use crate::ffi::call::device::Device;
use crate::ffi::comm::core;
use crate::ffi::comm::state::Comm;
use crate::ffi::entry::quick::At;
use crate::ffi::entry::{dispatch, summary};
use crate::ffi::exec::{engine, persistent};
use crate::ffi::process::{counters, gateway, network, placement, settings, startup, version};
use crate::ffi::run::decisions;
use crate::params::Topic;
use crate::topo::{Hardware, Locality, show};
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// The table of parameters.
///
/// # Safety
/// `table` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_param_table(table: *mut *const cr_param) -> usize {
    guard_or(0, || {
        let rows = settings::table();
        // SAFETY: by the caller's promise.
        unsafe { *table = rows.as_ptr() };
        rows.len()
    })
}

/// All parameters have been registered.
#[unsafe(no_mangle)]
pub extern "C" fn cr_params_registered() {
    guard(|| {
        settings::store_numbers();
        0
    });
}

/// The table of counters.
///
/// # Safety
/// `table` may be written, or is null: then the table is not needed any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_counter_table(table: *mut *const cr_counter) -> usize {
    static ROWS: Mutex<Option<counters::Rows>> = Mutex::new(None);
    guard_or(0, || {
        let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
        if table.is_null() {
            *rows = None;
            return 0;
        }
        let rows = rows.get_or_insert_with(counters::table).as_slice();
        // SAFETY: by the caller's promise. The rows stay where they are until they are not needed any more.
        unsafe { *table = rows.as_ptr() };
        rows.len()
    })
}

/// Release, build and what it was built for.
#[unsafe(no_mangle)]
pub extern "C" fn cr_version() -> *const c_char {
    guard_or(c"".as_ptr(), version::text)
}

/// The component opens: 1 if it may go on.
#[unsafe(no_mangle)]
pub extern "C" fn cr_component_check() -> i32 {
    guard_or(0, || version::check().into())
}

/// The component starts.
#[unsafe(no_mangle)]
pub extern "C" fn cr_component_init(thread_multiple: i32) -> i32 {
    guard(|| {
        counters::set_threads(thread_multiple != 0);
        startup::init();
        0
    })
}

/// The component ends.
#[unsafe(no_mangle)]
pub extern "C" fn cr_component_close() {
    guard(|| {
        engine::close();
        gateway::close();
        if let Ok(config) = config::config() {
            summary::report(config, placement::own_host());
        }
        0
    });
}

/// A communicator looks for its components. 1: ours takes part.
///
/// # Safety
/// `comm` is alive; `priority` and `state` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_comm_query(
    handle: *mut ompi_communicator_t,
    priority: *mut i32,
    state: *mut *mut c_void,
) -> i32 {
    guard_or(0, || {
        // SAFETY: by the caller's promise.
        let (inter, world, size) =
            unsafe { (cr_comm_is_inter(handle) != 0, cr_comm_is_world(handle) != 0, cr_comm_size(handle)) };
        let config = match config::config() {
            Ok(config) => config,
            Err(message) => messages::fatal(handle, Topic::WrongValue, message),
        };
        if world {
            version::check_world(handle);
            startup::check_world(handle);
            placement::set_size(size as u32);
        }
        if inter || size < 2 || config.priority < 0 {
            return 0;
        }
        let comm = Arc::new(Comm::new(handle, config));
        // Processes of other jobs are asked for over the network: now, and not in the middle of a nonblocking
        // call. An error is kept for the first collective.
        if comm.is_of_several_jobs() {
            let _ = comm.place();
        }
        if world && comm.rank() == 0 {
            introduce(&comm);
        }
        if messages::is_told(2) {
            // SAFETY: the communicator's own NUL-terminated name.
            let name = unsafe { CStr::from_ptr(cr_comm_name(handle)) }.to_string_lossy().into_owned();
            messages::tell(&format!("rank {} of {} in {name}: selected", comm.rank(), comm.size()));
        }
        // SAFETY: by the caller's promise. The module owns the state until cr_comm_free.
        unsafe {
            *priority = config.priority;
            *state = Arc::into_raw(comm).cast_mut().cast();
        }
        1
    })
}

/// What rank 0 of the job shows at the start.
fn introduce(comm: &Comm) {
    let config = comm.config();
    if messages::is_told(1) {
        messages::tell(&format!("version {}, {} processes", version::identity(), comm.size()));
        if let Some(remark) = version::remark() {
            messages::tell(remark);
        }
    }
    if config.show.config {
        messages::print(startup::settings_text().trim_end());
    }
    if config.show.decisions {
        decisions::show();
    }
    if !(config.show.hierarchy || config.show.dot) {
        return;
    }
    let (Ok(cards), Ok(processes)) = (core::everybody(comm), comm.names()) else {
        messages::print("coll/rust: the hierarchy cannot be shown: some processes have not said where they are");
        return;
    };
    let mut names: Vec<String> = Vec::new();
    let hosts: Vec<u32> = cards
        .iter()
        .map(|(host, _)| {
            let known = names.iter().position(|n| n == host);
            known.unwrap_or_else(|| {
                names.push(host.clone());
                names.len() - 1
            }) as u32
        })
        .collect();
    let places = hosts.iter().zip(&cards);
    let hw = Hardware::seen(places.map(|(&host, (_, text))| (host, Locality::parse(text), Locality::core(text))));
    let localities: Vec<Locality> = cards.iter().map(|(_, locality)| Locality::parse(locality)).collect();
    // What is wrong with it has been said.
    let network = network::of(&processes, &hosts, &names).ok().flatten();
    let view = show::View {
        hosts: &hosts,
        names: &names,
        localities: &localities,
        network: network.as_deref(),
        spec: &config.levels,
        hw,
        ordered: false,
    };
    if config.show.hierarchy {
        messages::print(show::hierarchy(&view).trim_end());
    }
    if config.show.dot {
        messages::print(show::dot(&view).trim_end());
    }
}

/// The module of a communicator goes.
///
/// # Safety
/// `state` came from [`cr_comm_query`] and is not used again; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_comm_free(state: *mut c_void) {
    guard(|| {
        if !state.is_null() {
            // SAFETY: by the caller's promise.
            let comm = unsafe { Arc::from_raw(state.cast::<Comm>()) };
            // SAFETY: the communicator whose module goes is still alive.
            if unsafe { cr_comm_is_world(comm.handle()) != 0 && cr_is_finalizing() != 0 } {
                summary::gather(&comm);
            }
            gateway::forget(comm.handle());
            drop(comm);
        }
        0
    });
}

/// Runs `body` with the module's communicator.
///
/// # Safety
/// `state` came from [`cr_comm_query`] and is alive.
#[inline(always)]
pub(super) unsafe fn with_comm(state: *mut c_void, body: impl FnOnce(&Arc<Comm>) -> i32) -> i32 {
    guard(|| {
        if state.is_null() {
            return CR_ERR_OTHER as i32;
        }
        // SAFETY: by the caller's promise; the reference that the module owns stays with it.
        let comm = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(state.cast::<Comm>()) });
        body(&comm)
    })
}

/// Defines a door for each blocking collective, with all that short calls do: a function without branches for
/// other operations, in a small frame.
macro_rules! doors {
    ($($door:ident: $kind:ident by $way:ident,)*) => { $(
        /// A blocking collective.
        ///
        /// # Safety
        /// `state` is a live module's; `call` holds live handles and the user's buffers.
        #[unsafe(no_mangle)]
        #[unsafe(link_section = ".text.hot.coll_rust")]
        pub unsafe extern "C" fn $door(state: *mut c_void, call: *const cr_call) -> i32 {
            // SAFETY: by the caller's promise.
            unsafe {
                with_comm(state, |comm| {
                    let way = |at: At<'_, true>, call: &_| at.$way(call);
                    dispatch::block_on(comm, Kind::$kind, &*call, way)
                })
            }
        }
    )* };
}

// All in one section, beside the functions of the shim that call them (ompi-glue/module.c) and those that
// wait (some of which count as cold, so that calls that find all others there are laid out without them):
// where processes take turns on the cores, few pages of code are better than many.
doors! {
    cr_block_allgather: Allgather by allgather,
    cr_block_allgatherv: Allgatherv by allgatherv,
    cr_block_allreduce: Allreduce by allreduce,
    cr_block_alltoall: Alltoall by alltoall,
    cr_block_alltoallv: Alltoallv by alltoallv,
    cr_block_alltoallw: Alltoallw by mixed,
    cr_block_barrier: Barrier by barrier,
    cr_block_bcast: Bcast by bcast,
    cr_block_exscan: Exscan by scan,
    cr_block_gather: Gather by gather,
    cr_block_gatherv: Gatherv by gatherv,
    cr_block_neighbor_allgather: NeighborAllgather by neighbor_allgather,
    cr_block_neighbor_allgatherv: NeighborAllgatherv by neighbor_allgather,
    cr_block_neighbor_alltoall: NeighborAlltoall by neighbor_alltoall,
    cr_block_neighbor_alltoallv: NeighborAlltoallv by neighbor_alltoall,
    cr_block_neighbor_alltoallw: NeighborAlltoallw by mixed,
    cr_block_reduce: Reduce by reduce,
    cr_block_reduce_scatter: ReduceScatter by reduce_scatter,
    cr_block_reduce_scatter_block: ReduceScatterBlock by reduce_scatter,
    cr_block_scan: Scan by scan,
    cr_block_scatter: Scatter by scatter,
    cr_block_scatterv: Scatterv by scatterv,
}

/// A nonblocking collective.
///
/// # Safety
/// As for [`cr_block_bcast`], until the request is complete; `request` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_call_nonblocking(
    state: *mut c_void,
    call: *const cr_call,
    request: *mut *mut ompi_request_t,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { with_comm(state, |comm| dispatch::start(comm, &*call, request)) }
}

/// A persistent collective is initialised.
///
/// # Safety
/// As for [`cr_call_nonblocking`], until the request is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_call_persistent(
    state: *mut c_void,
    call: *const cr_call,
    request: *mut *mut ompi_request_t,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { with_comm(state, |comm| persistent::init(comm, &*call, Device::NONE, request)) }
}

/// A persistent collective is started.
///
/// # Safety
/// `op` belongs to a live, inactive request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_op_start(op: *mut c_void) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| unsafe { persistent::restart(op) })
}

/// A request is freed.
///
/// # Safety
/// `op` belongs to that request and is not used again; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_op_free(op: *mut c_void) {
    guard(|| {
        // SAFETY: by the caller's promise.
        unsafe { persistent::release(op) };
        0
    });
}
