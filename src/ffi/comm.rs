//! The Rust half of a module: what one communicator needs.

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
use crate::hier::plans::{Along, Plan, Plans};
use crate::params::Config;
use crate::select::decision::is_shared_within_node;
use crate::select::{Decision, Given, Memo, Sharing, Whole};
use crate::shm::team::Team;
use crate::topo::{LevelSpec, Placement};
use std::fmt::Display;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// One communicator. What short calls need comes first.
#[repr(C)]
pub struct Comm {
    /// The operations, by number, whose calls may try the team at once.
    quick: AtomicU32,
    rank: Rank,
    /// The [team](Comm::team), for those.
    ready: AtomicPtr<Team>,
    config: &'static Config,
    handle: *mut ompi_communicator_t,
    size: u32,
    /// Its processes on this node, where they share memory.
    pub team: Maker,
    ranks: OnceLock<Box<[Rank]>>,
    place: OnceLock<Result<Placement, i32>>,
    plans: Plans,
    /// By operation, the decision that was made last.
    decisions: [Memo<Given, Decision>; Kind::COUNT],
    /// Of the operations on it.
    pub identities: Identities,
    /// Rooted calls so far, for flow control.
    rooted: AtomicU32,
    /// Neighbourhood calls on a distributed graph so far, likewise.
    directed: AtomicU32,
    /// The same of those that [some ranks](super::neighbor::is_made_by_all) do not make: as many on all ranks
    /// that hang together by edges.
    partial: AtomicU32,
    /// None without a process topology; looked up by the first neighbourhood call.
    neighborhood: OnceLock<Option<Neighborhood>>,
    sharing: OnceLock<Sharing>,
    /// How those work together.
    pub trees: shared::Trees,
    /// Blocking calls that are still to go to the component below.
    first_calls: AtomicU32,
}

// SAFETY: the handle is Open MPI's communicator, which any thread may use; the rest is Sync by itself.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

impl Comm {
    /// For a communicator of two or more processes.
    pub fn new(handle: *mut ompi_communicator_t, config: &'static Config) -> Comm {
        // SAFETY: the communicator is alive: it is being set up.
        let (rank, size) = unsafe { (glue::cr_comm_rank(handle) as Rank, glue::cr_comm_size(handle) as u32) };
        Comm {
            handle,
            rank,
            size,
            ranks: OnceLock::new(),
            config,
            place: OnceLock::new(),
            plans: Plans::default(),
            decisions: std::array::from_fn(|_| Memo::default()),
            identities: Identities::new(config),
            rooted: AtomicU32::new(0),
            directed: AtomicU32::new(0),
            partial: AtomicU32::new(0),
            neighborhood: OnceLock::new(),
            team: Maker::default(),
            sharing: OnceLock::new(),
            trees: shared::Trees::default(),
            // What is to be shown, or to be the same wherever it runs, is ours from the first call on.
            first_calls: AtomicU32::new(match config.reproducible || config.show.decisions {
                true => 0,
                false => config.first_calls,
            }),
            quick: AtomicU32::new(0),
            ready: AtomicPtr::default(),
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

    /// Whether the operation that is being called synchronises: of those that some ranks may run ahead in,
    /// every `flow_limit`-th does.
    pub fn synchronises(&self, kind: Kind, one_way: bool, by_all: bool) -> bool {
        let counter = match (kind.is_neighbor(), by_all) {
            (false, _) => &self.rooted,
            (true, true) => &self.directed,
            (true, false) => &self.partial,
        };
        one_way && due(counter, self.config.flow_limit)
    }

    /// The caller's neighbours; none without a process topology. Not to be asked for before the first
    /// neighbourhood call: Open MPI attaches the topology after the module was made.
    pub fn neighborhood(&self) -> Option<&Neighborhood> {
        self.neighborhood.get_or_init(|| Neighborhood::find(self)).as_ref()
    }

    /// Whether all of its processes could share memory: one node, one job, and the parameters allow it. The
    /// same on all ranks. (Calls that would find no answer have been refused: see
    /// [`find_sharing`](Comm::find_sharing).)
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

    /// Whether a blocking call of the operation may be among the first on the communicator, which go to the
    /// component below: to make a team takes longer than a few calls gain. Those are that all ranks make in
    /// the same order: nonblocking ones are not, since Open MPI makes some itself, nor those along edges, nor
    /// what the parameters say something about. (Open MPI has nobody to stage a Reduce_scatter of a device's
    /// memory.)
    pub fn has_first_calls(&self, kind: Kind) -> bool {
        let setting = self.config.algorithm(kind);
        self.first_calls.load(Ordering::Relaxed) > 0
            && !(kind.is_neighbor() || kind == Kind::ReduceScatter)
            && !(setting.names_shm() || setting.names_algorithm() || setting.below())
            && self.levels(kind).is_auto()
    }

    /// One of those is made.
    pub fn take_first_call(&self) {
        let left = self.first_calls.load(Ordering::Relaxed);
        self.first_calls.store(left.saturating_sub(1), Ordering::Relaxed);
    }

    /// The team is settled: calls on plain data need not ask any more.
    pub fn open_quickly(&self) {
        // Another operation may have made the team sooner, here and not yet elsewhere.
        if self.first_calls.load(Ordering::Relaxed) > 0 {
            return;
        }
        // What is to be shown is seen on the way of all calls.
        if self.quick.load(Ordering::Relaxed) == 0 && !self.config.show.decisions {
            let wanted = |kind| {
                let (setting, levels) = (self.config.algorithm(kind), self.levels(kind));
                // Ways that are named are looked at on the way of all calls only.
                setting.way().is_none() && is_shared_within_node(setting, levels, kind, self.config.reproducible)
            };
            let kinds = Kind::all().filter(|&kind| wanted(kind) && !shared::has_tree(self, kind));
            if let Some(team) = self.team.get() {
                // SYNC(the team): releases the team, as its maker left it. Who sees `quick` before it goes
                // the long way.
                self.ready.store(ptr::from_ref(team).cast_mut(), Ordering::Release);
            }
            self.quick.store(kinds.fold(0, |mask, kind| mask | 1 << kind as u32), Ordering::Relaxed);
        }
    }

    /// The team, if calls of the operation of this number may try it at once.
    #[inline(always)]
    pub fn quick(&self, number: i32) -> Option<&Team> {
        if self.quick.load(Ordering::Relaxed) >> (number as u32 & 31) & 1 == 0 {
            return None;
        }
        // SYNC(the team): acquires it.
        // SAFETY: null, or our maker's team, which was made once, and does not move, as we do not.
        unsafe { self.ready.load(Ordering::Acquire).as_ref() }
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
        Ok(self.plans.last(self.place()?, kind, self.levels(kind), along, ordered, root))
    }

    /// The groups in the hierarchy of these levels.
    pub fn plan_for(&self, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> Result<Arc<Plan>, i32> {
        Ok(self.plans.find(self.place()?, levels, ordered, root))
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

    /// Looks up where everybody sits. Every process finds the same partition into nodes and switches.
    fn find_place(&self) -> Result<Placement, i32> {
        let names = self.names()?;
        let own = placement::own_name();
        startup::check_members(self.handle, &names);
        if names.iter().any(|n| n.job != own.job) {
            startup::compare_jobs(&names)?;
        }
        let places = placement::places(&names).map_err(refused)?;
        let (hosts, nodes) = placement::nodes(&places);
        let network = network::of(&names, &hosts, &nodes).map_err(refused)?;
        network::warn(&names, &nodes, network.as_deref());
        let uppers = network.map_or_else(Vec::new, |network| network.uppers(&nodes));
        let me = self.rank as usize;
        let here = || (0..self.size).zip(&places).filter(|(rank, _)| hosts[*rank as usize] == hosts[me]);
        let local: Vec<_> = here().map(|(rank, place)| (rank, place.locality)).collect();
        let first = local.first().map_or(self.rank, |(rank, _)| *rank);
        let around: Vec<_> = here().map(|(_, place)| *place).collect();
        let hardware = placement::hardware(&names[first as usize], &around)
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
