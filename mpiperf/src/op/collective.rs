// SPDX-License-Identifier: BSD-3-Clause
//! A case of one collective.

use std::collections::HashMap;
use std::os::raw::c_int;

use crate::call;
use crate::error::{Error, Result};
use crate::mpi::{Comm, check, ffi, in_place};

use super::bare::{Bare, Way};
use super::buffers::{Buffers, Contents, Plan};
use super::call::{Arguments, Target, has_persistent, start};
use super::known::{Circumstances, bug, fatal};
use super::reduction::{Inputs, Op, Reduction};
use super::shape::{Neighbors, Shape, Spread};
use super::table::{Kind, Operation};
use super::types::{Base, Datatype, Layout};
use super::{Cache, Call, Case, Counts, Mode, Overlap, Root, Setting, memory, overlap, topology};

unsafe extern "C" {
    fn mpiperf_op_null() -> ffi::MPI_Op;
}

/// Persistent requests that are kept for further calls with the same buffers and root. Beyond that they are
/// made anew, outside of the timed part.
const REQUESTS: usize = 256;

/// A collective with its buffers.
pub struct Collective {
    operation: &'static Operation,
    setting: Setting,
    name: String,
    rank: usize,
    size: usize,
    layout: Layout,
    shape: Shape,
    arguments: Arguments,
    reduction: Reduction,
    base: Base,
    buffers: Buffers,
    /// The call that each set holds the contents of.
    filled: Vec<Option<u64>>,
    /// Number of the current call, and what it works on.
    call: Option<u64>,
    target: Target,
    request: ffi::MPI_Request,
    requests: HashMap<(usize, usize), ffi::MPI_Request>,
    /// What makes the calls instead of MPI.
    bare: Option<Bare>,
    // Handles that the above refers to; freed last.
    _datatype: Datatype,
    _op: Option<Op>,
    _topology: Option<Comm>,
}

impl Collective {
    /// A case on `comm`, agreed upon on `own`. Collective.
    pub fn new(comm: &Comm, own: &Comm, operation: &'static Operation, setting: &Setting) -> Result<Collective> {
        check_setting(comm, operation, setting)?;
        let (layout, count, reduction, base) = elements(operation, setting, comm.size())?;
        let (topology, neighbors) = match operation.neighbor {
            true => topology::attach(comm, setting.topology).map(|(comm, neighbors)| (Some(comm), neighbors))?,
            false => (None, Neighbors::default()),
        };
        let spread = Spread { counts: setting.counts, mean: count, seed: setting.seed, size: comm.size() };
        let shape = Shape::new(operation.kind, setting.in_place, &spread, comm.rank(), &neighbors);
        let in_bytes = matches!(operation.kind, Kind::Alltoallw | Kind::NeighborAlltoallw).then_some(layout.extent);
        // Counts differ between ranks, and so may the limit be exceeded on some of them only.
        let mut arguments = own.agree(shape.arguments(in_bytes))?;
        let datatype = layout.commit()?;
        arguments.types = vec![datatype.raw(); comm.size().max(neighbors.sources.len()).max(neighbors.targets.len())];
        let op = if operation.reduces { Some(reduction.handle()?) } else { None };
        let buffers = allocate(own, operation, setting, &shape, &layout)?;
        let null = std::ptr::null_mut();
        let target = Target {
            send: null,
            recv: null,
            datatype: datatype.raw(),
            // SAFETY: returns a constant.
            op: op.as_ref().map_or_else(|| unsafe { mpiperf_op_null() }, Op::raw),
            root: 0,
            comm: topology.as_ref().unwrap_or(comm).raw(),
        };
        let mut case = Collective {
            operation,
            setting: setting.clone(),
            name: describe(operation, setting),
            rank: comm.rank(),
            size: comm.size(),
            layout,
            shape,
            arguments,
            reduction,
            base,
            filled: vec![None; buffers.sets()],
            buffers,
            call: None,
            target,
            // SAFETY: a constant.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            requests: HashMap::new(),
            bare: None,
            _datatype: datatype,
            _op: op,
            _topology: topology,
        };
        if setting.overlap.is_some() {
            overlap::rate();
        }
        for call in 0..case.buffers.sets() as u64 {
            case.fill(call);
        }
        Ok(case)
    }

    /// With calls by a bare way; `None` where that is not possible. Collective.
    pub fn barely(mut self, comm: &Comm, way: Way, crowded: bool) -> Result<Option<Collective>> {
        let count =
            if self.operation.sized { self.layout.count(&self.setting.datatype, self.setting.bytes)? } else { 0 };
        let (kind, element) = (self.operation.kind, self.layout.size);
        self.bare = Bare::new(comm, kind, way, count * element, element, crowded)?;
        Ok(self.bare.is_some().then_some(self))
    }

    fn root(&self, call: u64) -> usize {
        match self.setting.root {
            Root::Fixed(root) => root,
            Root::Rotating => (call % self.size as u64) as usize,
        }
    }

    fn set(&self, call: u64) -> usize {
        (call % self.buffers.sets() as u64) as usize
    }

    fn contents(&self, call: u64) -> (bool, usize, Inputs) {
        let root = self.root(call);
        let Setting { seed, .. } = self.setting;
        (root == self.rank, root, Inputs { seed, call, size: self.size, reduction: self.reduction, base: self.base })
    }

    /// Fills the buffers of a call.
    fn fill(&mut self, call: u64) {
        let (is_root, root, inputs) = self.contents(call);
        let contents = Contents { inputs, root, layout: &self.layout };
        let set = self.set(call);
        self.buffers.fill(set, self.shape.role(is_root), &contents, self.setting.verify);
        self.filled[set] = Some(call);
    }

    /// The buffers' addresses as MPI wants them.
    fn aim(&mut self, set: usize, root: usize) {
        let (is_root, kind) = (root == self.rank, self.operation.kind);
        let (mut send, mut recv) = (self.buffers.send(set), self.buffers.recv(set));
        let scatters = matches!(kind, Kind::Scatter | Kind::Scatterv);
        if self.operation.rooted && !is_root {
            match kind {
                Kind::Bcast => {}
                _ if scatters => send = std::ptr::null_mut(),
                _ => recv = std::ptr::null_mut(),
            }
        }
        if self.setting.in_place && (is_root || !self.operation.rooted) {
            *(if scatters { &mut recv } else { &mut send }) = in_place().cast();
        }
        (self.target.send, self.target.recv, self.target.root) = (send.cast(), recv.cast(), root as c_int);
    }

    /// Makes (or finds) the persistent request of the current target.
    fn initialise(&mut self, set: usize, root: usize) -> Result<()> {
        if let Some(request) = self.requests.get(&(set, root)) {
            self.request = *request;
            return Ok(());
        }
        if self.requests.len() >= REQUESTS {
            self.free_requests()?;
        }
        self.start()?;
        self.requests.insert((set, root), self.request);
        Ok(())
    }

    fn free_requests(&mut self) -> Result<()> {
        for (_, mut request) in self.requests.drain() {
            call!(MPI_Request_free(&mut request))?;
        }
        Ok(())
    }

    #[inline]
    fn start(&mut self) -> Result<()> {
        // SAFETY: arguments and buffers follow from one shape, and live as long as the case, which frees the
        // requests first.
        let code = unsafe {
            start(self.operation.kind, self.operation.mode, &self.arguments, &self.target, &mut self.request)
        };
        check(self.operation.name, code)
    }

    /// Computes, and calls MPI_Test now and then.
    fn overlap(&mut self, with: Overlap) -> Result<()> {
        if with.test_every <= 0.0 {
            overlap::compute(with.compute);
            return Ok(());
        }
        let mut left = with.compute;
        while left > 0.0 {
            overlap::compute(left.min(with.test_every));
            left -= with.test_every;
            let mut done = 0;
            // SAFETY: a constant.
            let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
            call!(MPI_Test(&mut self.request, &mut done, ignore))?;
        }
        Ok(())
    }
}

impl Case for Collective {
    fn prepare(&mut self, call: Call) -> Result<()> {
        // The set of the call before is filled for its next turn: by then it will have left the caches.
        if let Some(before) = self.call {
            self.fill(before + self.buffers.sets() as u64);
        }
        let (set, root) = (self.set(call.number), self.root(call.number));
        if self.filled[set] != Some(call.number) {
            self.fill(call.number);
        }
        self.call = Some(call.number);
        self.aim(set, root);
        if self.operation.mode == Mode::Persistent {
            self.initialise(set, root)?;
        }
        if let Some(bare) = &self.bare {
            bare.ready()?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        if let Some(bare) = &self.bare {
            return bare.call(&self.target);
        }
        match self.operation.mode {
            Mode::Blocking => return self.start(),
            Mode::Nonblocking => self.start()?,
            Mode::Persistent => call!(MPI_Start(&mut self.request))?,
        }
        if let Some(with) = self.setting.overlap {
            self.overlap(with)?;
        }
        // SAFETY: a constant.
        let ignore = unsafe { ffi::RSMPI_STATUS_IGNORE };
        call!(MPI_Wait(&mut self.request, ignore))
    }

    fn verify(&mut self) -> Result<()> {
        if let Some(bare) = &self.bare {
            bare.over();
        }
        let Some(call) = self.call.filter(|_| self.setting.verify) else { return Ok(()) };
        let (is_root, root, inputs) = self.contents(call);
        let contents = Contents { inputs, root, layout: &self.layout };
        let set = self.set(call);
        self.buffers.check(set, self.shape.role(is_root), &contents).map_err(|text| {
            let Operation { kind, mode, reduces, .. } = *self.operation;
            let of = Circumstances { kind, mode, reduction: reduces.then_some((self.reduction, self.base)) };
            let known = bug(&crate::mpi::library(), of);
            Error::Wrong(format!("{}, call {call}, rank {}: {text}{known}", self.name, self.rank))
        })
    }

    fn memory(&self) -> usize {
        self.buffers.bytes()
    }

    fn spoil(&mut self) -> bool {
        let Some(call) = self.call else { return false };
        let is_root = self.root(call) == self.rank;
        let set = self.set(call);
        self.buffers.spoil(set, self.shape.role(is_root), &self.layout)
    }
}

impl Drop for Collective {
    fn drop(&mut self) {
        let _ = self.free_requests();
    }
}

/// The datatype, how many of it, and how they are reduced. Alike on all ranks.
fn elements(operation: &Operation, setting: &Setting, size: usize) -> Result<(Layout, usize, Reduction, Base)> {
    let layout = Layout::parse(&setting.datatype)?;
    let count = if operation.sized { layout.count(&setting.datatype, setting.bytes)? } else { 0 };
    let library = crate::mpi::library();
    if let Some(reason) = fatal(&library, operation.kind, operation.mode, layout.derived(), size) {
        return Err(Error::usage(format!("{} on {library} would crash or hang: {reason}", operation.name)));
    }
    let reduction = Reduction::parse(&setting.reduction)?;
    let mut base = Base::Byte;
    if operation.reduces {
        base = Inputs::allowed(reduction, &setting.reduction, layout.plain, &setting.datatype)?;
    }
    Ok((layout, count, reduction, base))
}

fn describe(operation: &Operation, setting: &Setting) -> String {
    let mut text = operation.name.to_owned();
    if operation.sized {
        text += &format!(" of {} bytes of {}", setting.bytes, setting.datatype);
    }
    if operation.reduces {
        text += &format!(" by {}", setting.reduction);
    }
    text
}

/// Refuses what does not fit together. Alike on all ranks.
fn check_setting(comm: &Comm, operation: &Operation, setting: &Setting) -> Result<()> {
    let (name, size) = (operation.name, comm.size());
    let error = |text: String| Err(Error::usage(format!("{name}: {text}")));
    if operation.mode == Mode::Persistent && !has_persistent() {
        return error(format!(
            "{} has no persistent collectives; take {} instead",
            crate::mpi::library(),
            name.replace("_init", "")
        ));
    }
    if let (true, Root::Fixed(root)) = (operation.rooted, setting.root)
        && root >= size
    {
        return error(format!("root {root} is not a rank: there are 0 to {}", size - 1));
    }
    if setting.in_place && !operation.in_place {
        return error("MPI has no MPI_IN_PLACE for this operation".to_owned());
    }
    if setting.counts != Counts::Regular && !operation.vector {
        return error(
            "counts other than regular are for operations that have a count for each rank, such as gatherv".to_owned(),
        );
    }
    let exchange = matches!(operation.kind, Kind::Alltoallv | Kind::Alltoallw);
    if setting.in_place && exchange && setting.counts == Counts::Spike {
        return error(
            "counts 'spike' cannot be in place, where MPI wants equal counts in both directions; take random or linear"
                .to_owned(),
        );
    }
    if !setting.align.is_power_of_two() || setting.align > 1 << 30 {
        return error(format!("alignment {} is not a power of two up to 1 GiB", setting.align));
    }
    if let Some(with) = setting.overlap {
        if operation.mode == Mode::Blocking {
            return error(format!("nothing overlaps with a blocking call; take i{name}"));
        }
        let fine = |seconds: f64| seconds.is_finite() && (0.0..=3600.0).contains(&seconds);
        if !fine(with.compute) || !fine(with.test_every) {
            return error(format!(
                "overlap of {} s with tests every {} s: both must be from 0 to 3600",
                with.compute, with.test_every
            ));
        }
    }
    Ok(())
}

/// Allocates as many sets as the cache state wants. Collective.
fn allocate(comm: &Comm, operation: &Operation, setting: &Setting, shape: &Shape, layout: &Layout) -> Result<Buffers> {
    let roles = match setting.root {
        Root::Fixed(root) => [shape.role(root == comm.rank()); 2],
        Root::Rotating => [shape.role(false), shape.role(true)],
    };
    let longest = |elements: [usize; 2]| elements[0].max(elements[1]).checked_mul(layout.extent);
    let align = setting.align.max(16);
    let plan = longest(roles.map(|role| role.sends)).zip(longest(roles.map(|role| role.receives)));
    let plan = plan.and_then(|(sends, receives)| Plan::new(sends, receives, align));
    let plan = comm
        .agree(plan.ok_or_else(|| Error::usage(format!("{}: the message is too large to address", operation.name))))?;
    let sets = match setting.cache {
        Cache::Cold if operation.sized => {
            let cache = memory::last_level_cache().ok_or_else(|| {
                Error::usage("cold buffers: the size of the last level cache is not in /sys/devices/system/cpu/cpu0/cache; take warm ones")
            });
            2 * comm.agree(cache)? / plan.stride + 2
        }
        _ => 1,
    };
    let hint = if setting.cache == Cache::Cold {
        "cold buffers take twice the last level cache on every rank; take warm buffers, smaller messages or fewer ranks"
    } else {
        "take smaller messages or fewer ranks"
    };
    // All ranks rotate through the same number of sets.
    let mut most = [sets as f64];
    comm.max(&mut most)?;
    let sets = most[0] as usize;
    memory::enough(comm, plan.stride.saturating_mul(sets), hint)?;
    comm.agree(Buffers::new(plan, sets, align, layout.size))
}
