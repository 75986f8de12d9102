//! The Rust half of a module: what one communicator needs.

use super::call::Call;
use super::glue::{self, CR_ERR_OTHER, cr_proc, ompi_communicator_t};
use super::identity::Identities;
use super::kind::Kind;
use super::neighbor::Neighborhood;
use super::network;
use super::placement;
use super::shared;
use super::startup;
use super::team::Maker;
use crate::endpoint::Rank;
use crate::hier::parts::Parts;
use crate::params::Config;
use crate::topo::{Group, Hierarchy, LevelSpec, Placement, Shape};
use smallvec::SmallVec;
use std::fmt::Display;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Plans that are kept; a program with more roots than that makes the others anew at each call.
const KEPT: usize = 64;

/// One communicator.
pub struct Comm {
    handle: *mut ompi_communicator_t,
    rank: Rank,
    size: u32,
    config: &'static Config,
    place: OnceLock<Result<Placement, i32>>,
    plans: Mutex<Plans>,
    /// For each operation, unordered and ordered, without and with the node as one group, the plan used last (null: none yet).
    last: [AtomicPtr<Plan>; 4 * Kind::COUNT],
    /// Of the operations on it.
    pub identities: Identities,
    /// Rooted calls so far, for flow control.
    rooted: AtomicU32,
    /// Neighbourhood calls on a distributed graph so far, likewise.
    directed: AtomicU32,
    /// None without a process topology; looked up by the first neighbourhood call.
    neighborhood: OnceLock<Option<Neighborhood>>,
    /// Its processes on this node, where they share memory.
    pub team: Maker,
    sharing: OnceLock<Sharing>,
    /// How those work together.
    pub trees: shared::Trees,
    /// The operations, by number, whose calls may try the team at once.
    quick: AtomicU32,
}

// SAFETY: the handle is Open MPI's communicator, which any thread may use; the rest is Sync by itself.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

#[derive(Default)]
struct Plans {
    hierarchies: SmallVec<[(LevelSpec, bool, Arc<Hierarchy>); 2]>,
    /// Never removed before the communicator goes: `Comm::last` and callers refer to them.
    plans: Vec<Arc<Plan>>,
}

/// Which processes could share memory. The same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// None.
    Nobody,
    /// Those of each node, which are several on some.
    Nodes,
    /// All: they are on one node.
    All,
}

/// The caller's groups in a hierarchy of the communicator.
pub struct Plan {
    /// Which hierarchy, by number.
    hierarchy: usize,
    root: Option<Rank>,
    /// Bottom to top.
    pub groups: Vec<Group>,
    /// The same on all ranks.
    pub shape: Shape,
    /// Whom the groups' members stand for; found at the first need.
    parts: OnceLock<Parts>,
}

/// A plan, kept by the communicator or made for one call.
pub enum PlanRef<'c> {
    /// Kept.
    Kept(&'c Plan),
    /// Made for a root beyond those that are kept.
    Made(Box<Plan>),
}

impl std::ops::Deref for PlanRef<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        match self {
            PlanRef::Kept(plan) => plan,
            PlanRef::Made(plan) => plan,
        }
    }
}

impl Comm {
    /// For a communicator of two or more processes.
    pub fn new(handle: *mut ompi_communicator_t, config: &'static Config) -> Comm {
        // SAFETY: the communicator is alive: it is being set up.
        let (rank, size) = unsafe { (glue::cr_comm_rank(handle) as Rank, glue::cr_comm_size(handle) as u32) };
        Comm {
            handle,
            rank,
            size,
            config,
            place: OnceLock::new(),
            plans: Mutex::default(),
            last: std::array::from_fn(|_| AtomicPtr::default()),
            identities: Identities::new(config),
            rooted: AtomicU32::new(0),
            directed: AtomicU32::new(0),
            neighborhood: OnceLock::new(),
            team: Maker::default(),
            sharing: OnceLock::new(),
            trees: shared::Trees::default(),
            quick: AtomicU32::new(0),
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

    /// The parameters.
    pub fn config(&self) -> &'static Config {
        self.config
    }

    /// Whether the operation that is being called synchronises: of those that some ranks may run ahead in, every `flow_limit`-th does.
    pub fn synchronises(&self, call: &Call) -> bool {
        let counter = if call.kind.is_neighbor() { &self.directed } else { &self.rooted };
        call.one_way && due(counter, self.config.flow_limit)
    }

    /// The caller's neighbours; none without a process topology. Not to be asked for before the first neighbourhood call: Open MPI
    /// attaches the topology after the module was made.
    pub fn neighborhood(&self) -> Option<&Neighborhood> {
        self.neighborhood.get_or_init(|| Neighborhood::find(self)).as_ref()
    }

    /// Whether all of its processes could share memory: one node, one job, and the parameters allow it. The same on all ranks.
    /// (Calls that would find no answer have been refused: see [`find_sharing`](Comm::find_sharing).)
    pub fn is_shared(&self) -> bool {
        matches!(self.find_sharing(), Ok(Sharing::All))
    }

    /// Whether the processes of its nodes could share memory, of each node by themselves. The same on all ranks.
    pub fn is_shared_in_nodes(&self) -> bool {
        matches!(self.find_sharing(), Ok(Sharing::Nodes))
    }

    /// Who could share memory; an error where this process cannot tell: it must not go another way than the others.
    pub fn find_sharing(&self) -> Result<Sharing, i32> {
        if let Some(&known) = self.sharing.get() {
            return Ok(known);
        }
        let allowed = self.config.shm.limit > 0 && !self.is_of_several_jobs();
        let found = match self.place()?.nodes() {
            _ if !allowed => Sharing::Nobody,
            1 => Sharing::All,
            nodes if nodes == self.size as usize => Sharing::Nobody,
            _ => Sharing::Nodes,
        };
        Ok(*self.sharing.get_or_init(|| found))
    }

    /// There is a team, or will never be one: calls need not ask any more.
    pub fn open_quickly(&self) {
        if self.quick.load(Ordering::Relaxed) == 0 {
            let kinds = Kind::all().filter(|&kind| shared::wanted(self, kind) && !shared::has_tree(self, kind));
            // SYNC(the team): the maker has its own.
            self.quick.store(kinds.fold(0, |mask, kind| mask | 1 << kind as u32), Ordering::Relaxed);
        }
    }

    /// Whether calls of the operation of this number may try the team at once.
    #[inline]
    pub fn is_quick(&self, number: i32) -> bool {
        self.quick.load(Ordering::Relaxed) >> (number as u32 & 31) & 1 != 0
    }

    /// The groups for an operation. `ordered`: groups of consecutive ranks only.
    pub fn plan(&self, kind: Kind, ordered: bool, root: Option<Rank>) -> Result<PlanRef<'_>, i32> {
        self.plan_over(kind, ordered, false, root)
    }

    /// The same; `in_node`: the caller's node is one group, whatever is
    /// inside (what is above does not depend on it).
    pub fn plan_over(&self, kind: Kind, ordered: bool, in_node: bool, root: Option<Rank>) -> Result<PlanRef<'_>, i32> {
        let last = &self.last[4 * kind as usize + 2 * usize::from(in_node) + usize::from(ordered)];
        // SAFETY: null, or a plan of `self.plans`, which lives as long as the communicator. SYNC(the plan's contents): stored
        // with release below.
        if let Some(plan) = unsafe { last.load(Ordering::Acquire).as_ref() }
            && plan.root == root
        {
            return Ok(PlanRef::Kept(plan));
        }
        let levels = self.levels(kind);
        let found = match in_node {
            true => self.plan_for(&levels.from_node_up(), ordered, root)?,
            false => self.plan_for(levels, ordered, root)?,
        };
        if let PlanRef::Kept(plan) = &found {
            // SYNC(the plan's contents): read with acquire above.
            last.store(ptr::from_ref(*plan).cast_mut(), Ordering::Release);
        }
        Ok(found)
    }

    /// The groups in the hierarchy of these levels.
    pub fn plan_for(&self, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> Result<PlanRef<'_>, i32> {
        let place = self.place()?;
        let mut plans = self.plans();
        let index = match plans.hierarchies.iter().position(|(l, o, _)| l == levels && *o == ordered) {
            Some(index) => index,
            None => {
                let hierarchy = Arc::new(Hierarchy::build(place, levels, ordered));
                plans.hierarchies.push((levels.clone(), ordered, hierarchy));
                plans.hierarchies.len() - 1
            }
        };
        let found = plans.plans.iter().find(|p| p.hierarchy == index && p.root == root).map(Arc::as_ptr);
        if let Some(plan) = found {
            // SAFETY: kept as long as the communicator.
            return Ok(PlanRef::Kept(unsafe { &*plan }));
        }
        let hierarchy = &plans.hierarchies[index].2;
        let groups = hierarchy.groups(root);
        let plan = Plan { hierarchy: index, root, groups, shape: hierarchy.shape(), parts: OnceLock::new() };
        // Those without a root are few.
        if root.is_some() && plans.plans.len() >= KEPT {
            return Ok(PlanRef::Made(Box::new(plan)));
        }
        let plan = Arc::new(plan);
        let kept = Arc::as_ptr(&plan);
        plans.plans.push(plan);
        // SAFETY: as above.
        Ok(PlanRef::Kept(unsafe { &*kept }))
    }

    /// Whom the members of a plan's groups stand for: of a rooted operation where the plan has a root, else of a joined one.
    pub fn parts<'p>(&self, plan: &'p Plan) -> &'p Parts {
        plan.parts.get_or_init(|| {
            let hierarchy = Arc::clone(&self.plans().hierarchies[plan.hierarchy].2);
            match plan.root {
                Some(root) => Parts::rooted(&hierarchy, &plan.groups, self.rank, root),
                None => Parts::joined(&hierarchy, &plan.groups, self.rank),
            }
        })
    }

    /// Where everybody sits; looked up at the first need.
    pub fn place(&self) -> Result<&Placement, i32> {
        self.place.get_or_init(|| self.find_place()).as_ref().map_err(|&code| code)
    }

    /// Whether processes of several jobs are in it.
    pub fn is_of_several_jobs(&self) -> bool {
        let own = placement::own_name();
        self.names().is_ok_and(|names| names.iter().any(|n| n.job != own.job))
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn names(&self) -> Result<Vec<cr_proc>, i32> {
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

    /// Looks up where everybody sits. Every process finds the same partition into nodes and switches.
    fn find_place(&self) -> Result<Placement, i32> {
        let names = self.names()?;
        let own = placement::own_name();
        if names.iter().any(|n| n.job != own.job) {
            startup::compare_jobs(&names)?;
        }
        let places = placement::places(&names).map_err(refused)?;
        let (hosts, originals) = placement::compact(&places);
        let uppers = network::switches(&originals).map_err(refused)?;
        let me = self.rank as usize;
        let local: Vec<_> = (0..self.size)
            .zip(&places)
            .filter(|(rank, _)| hosts[*rank as usize] == hosts[me])
            .map(|(rank, place)| (rank, place.locality))
            .collect();
        let first = local.first().map_or(self.rank, |(rank, _)| *rank);
        let hardware = placement::hardware_seen_by(&names[first as usize])
            .map_err(|code| if code == 0 { CR_ERR_OTHER as i32 } else { code })?;
        Ok(Placement::new(self.rank, hosts, uppers, local, hardware))
    }
}

/// Says why there is no answer; the error for it.
fn refused(why: impl Display) -> i32 {
    startup::print(&format!("coll/rust: {why}"));
    CR_ERR_OTHER as i32
}

/// Counts a call; true for every `limit`-th.
pub fn due(counter: &AtomicU32, limit: u32) -> bool {
    limit != 0 && (counter.fetch_add(1, Ordering::Relaxed).wrapping_add(1)).is_multiple_of(limit)
}

/// Host and locality string of every rank, from the cards.
pub fn everybody(comm: &Comm) -> Result<Vec<(String, String)>, i32> {
    comm.names()?.iter().map(placement::from_card).collect()
}
