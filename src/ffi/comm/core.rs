// SPDX-License-Identifier: BSD-3-Clause
//! What a communicator is, by itself: its processes, where they sit, and what follows from that.

use crate::endpoint::Rank;
use crate::ffi::base::glue::{self, cr_proc, ompi_communicator_t};
use crate::ffi::base::kind::Kind;
use crate::ffi::base::name;
use crate::ffi::comm::identity::Identities;
use crate::ffi::comm::members::Members;
use crate::ffi::process::{network, placement};
use crate::hier::plans::{Along, Plan, Plans};
use crate::params::Config;
use crate::select::{Decision, Given, Memo, Sharing, Whole};
use crate::topo::{LevelSpec, Placement};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// What one communicator is: who is in it and where they sit; what follows from that and the parameters; the
/// tags of its operations.
#[repr(C)]
pub struct Core {
    // What short calls need comes first.
    rank: Rank,
    size: u32,
    config: &'static Config,
    handle: *mut ompi_communicator_t,
    ranks: OnceLock<Box<[Rank]>>,
    members: OnceLock<Result<Arc<Members>, i32>>,
    plans: Plans,
    /// By operation, the decision that was made last.
    decisions: [Memo<Given, Decision>; Kind::COUNT],
    sharing: OnceLock<Sharing>,
    /// Of the operations on it.
    pub identities: Identities,
}

// SAFETY: the handle is Open MPI's communicator, which any thread may use; the rest is Sync by itself.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

impl Core {
    /// For a communicator of two or more processes.
    pub fn new(handle: *mut ompi_communicator_t, config: &'static Config) -> Core {
        // SAFETY: the communicator is alive: it is being set up.
        let (rank, size) = unsafe { (glue::cr_comm_rank(handle) as Rank, glue::cr_comm_size(handle) as u32) };
        Core {
            rank,
            size,
            config,
            handle,
            ranks: OnceLock::new(),
            members: OnceLock::new(),
            plans: Plans::default(),
            decisions: std::array::from_fn(|_| Memo::default()),
            sharing: OnceLock::new(),
            identities: Identities::new(config),
        }
    }

    /// Open MPI's communicator.
    pub fn handle(&self) -> *mut ompi_communicator_t {
        self.handle
    }

    /// The caller's rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Number of processes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// All ranks.
    pub fn ranks(&self) -> &[Rank] {
        self.ranks.get_or_init(|| (0..self.size).collect())
    }

    /// The parameters.
    pub fn config(&self) -> &'static Config {
        self.config
    }

    /// Whether all of its processes could share memory: one node, one job, and the parameters allow it. The
    /// same on all ranks. (Calls that would find no answer have been refused: see
    /// [`find_sharing`](Core::find_sharing).)
    pub fn is_shared(&self) -> bool {
        matches!(self.find_sharing(), Ok(Sharing::All))
    }

    /// Who could share memory; an error where this process cannot tell: it must not go another way than the
    /// others.
    #[inline]
    pub fn find_sharing(&self) -> Result<Sharing, i32> {
        match self.sharing.get() {
            Some(&known) => Ok(known),
            None => self.look_for_sharing(),
        }
    }

    #[cold]
    fn look_for_sharing(&self) -> Result<Sharing, i32> {
        let allowed = self.config.shm.limit != Some(0) && !self.is_of_several_jobs();
        let found = match self.place()?.nodes() {
            _ if !allowed => Sharing::Nobody,
            1 => Sharing::All,
            nodes if nodes == self.size as usize => Sharing::Nobody,
            _ => Sharing::Nodes,
        };
        Ok(*self.sharing.get_or_init(|| found))
    }

    /// Whether its processes are in several clusters, and not all may have messages with each other. The same
    /// on all ranks.
    pub fn is_apart(&self) -> Result<bool, i32> {
        Ok(network::names_clusters() && self.place()?.clusters().is_some())
    }

    /// What is decided about a call: once for all that follow each other alike. The same on all ranks.
    pub fn decide(&self, kind: Kind, given: Given) -> Result<Decision, i32> {
        self.decisions[kind as usize].answer(given, || {
            let (levels, sharing) = (self.levels(kind), self.find_sharing()?);
            let Given { block, bytes, commutative } = given;
            let whole = Whole {
                operation: kind,
                members: self.size as usize,
                shape: self.plan(kind, Along::All, false, None)?.shape,
                shared: sharing == Sharing::Nodes && levels.is_auto(),
                block,
                bytes,
                commutative,
                reproducible: self.config.reproducible,
            };
            Ok(Decision::new(self.config.algorithm(kind), levels, sharing, &whole))
        })
    }

    /// The groups for an operation. `ordered`: groups of consecutive ranks only.
    #[inline]
    pub fn plan(&self, kind: Kind, along: Along, ordered: bool, root: Option<Rank>) -> Result<Arc<Plan>, i32> {
        Ok(self.plans.last(self.members()?.hierarchies(), kind, self.levels(kind), along, ordered, root))
    }

    /// The groups in the hierarchy of these levels.
    pub fn plan_for(&self, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> Result<Arc<Plan>, i32> {
        Ok(self.members()?.hierarchies().find(levels, ordered, root))
    }

    /// Where everybody sits; looked up at the first need.
    pub fn place(&self) -> Result<&Placement, i32> {
        Ok(self.members()?.hierarchies().place())
    }

    fn members(&self) -> Result<&Members, i32> {
        let find = || Members::of(self.handle, self.rank, self.names()?);
        self.members.get_or_init(find).as_deref().map_err(|&code| code)
    }

    /// Whether processes of several jobs are in it.
    pub fn is_of_several_jobs(&self) -> bool {
        let own = name::own_name();
        self.names().is_ok_and(|names| names.iter().any(|n| n.job != own.job))
    }

    /// The levels of an operation.
    pub fn levels(&self, kind: Kind) -> &'static LevelSpec {
        let own = match kind {
            Kind::Bcast => &self.config.bcast.levels,
            Kind::Reduce => &self.config.reduce.levels,
            Kind::Allreduce => &self.config.allreduce.levels,
            Kind::Barrier => &self.config.barrier.levels,
            _ => &None,
        };
        own.as_ref().unwrap_or(&self.config.levels)
    }

    /// The names of all processes.
    pub fn names(&self) -> Result<Vec<cr_proc>, i32> {
        (0..self.size)
            .map(|rank| {
                let mut name = cr_proc::default();
                // SAFETY: the rank is in the communicator; fills in ours.
                match unsafe { glue::cr_comm_proc(self.handle, rank as i32, &mut name) } {
                    0 => Ok(name),
                    code => Err(code),
                }
            })
            .collect()
    }
}

/// Counts a call; true for every `limit`-th.
pub fn due(counter: &AtomicU32, limit: u32) -> bool {
    limit != 0 && (counter.fetch_add(1, Ordering::Relaxed).wrapping_add(1)).is_multiple_of(limit)
}

/// Host and locality string of every rank, from the cards.
pub fn everybody(comm: &Core) -> Result<Vec<(String, String)>, i32> {
    comm.names()?.iter().map(placement::from_card).collect()
}
