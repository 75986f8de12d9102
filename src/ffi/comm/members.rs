// SPDX-License-Identifier: BSD-3-Clause
//! Where the processes of a communicator sit, and the groups that follow: kept once for all communicators of
//! the same processes, such as duplicates.

use crate::endpoint::Rank;
use crate::ffi::base::glue::{CR_ERR_OTHER, cr_proc, ompi_communicator_t};
use crate::ffi::base::{messages, name};
use crate::ffi::process::{network, placement, startup};
use crate::hier::plans::Hierarchies;
use crate::topo::Placement;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// So many are looked at when a communicator is made: a program may have thousands, of different processes.
const KEPT: usize = 32;

/// The processes of a communicator, in the order of its ranks.
pub struct Members {
    names: Box<[cr_proc]>,
    hierarchies: Hierarchies,
}

/// Those that communicators have now, the latest last.
static KNOWN: Mutex<Vec<Weak<Members>>> = Mutex::new(Vec::new());

impl Members {
    /// Of a communicator in which the caller has this rank.
    pub fn of(handle: *mut ompi_communicator_t, rank: Rank, names: Vec<cr_proc>) -> Result<Arc<Members>, i32> {
        if let Some(known) = find(&names) {
            return Ok(known);
        }
        messages::remark(&format!("placement: looks up {} processes", names.len()));
        // The list is not locked while others are asked.
        let placement = look_up(handle, rank, &names)?;
        let members = Arc::new(Members { names: names.into(), hierarchies: Hierarchies::new(placement) });
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|members| members.strong_count() > 0);
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push(Arc::downgrade(&members));
        Ok(members)
    }

    /// Where they sit, and what has been made of that.
    pub fn hierarchies(&self) -> &Hierarchies {
        &self.hierarchies
    }
}

/// Those that are known already.
fn find(names: &[cr_proc]) -> Option<Arc<Members>> {
    let same = |members: &Arc<Members>| {
        let pairs = || members.names.iter().zip(names);
        members.names.len() == names.len() && pairs().all(|(a, b)| (a.job, a.rank) == (b.job, b.rank))
    };
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().filter_map(Weak::upgrade).find(same)
}

/// Looks up where everybody sits. Every process finds the same partition into nodes and switches.
fn look_up(handle: *mut ompi_communicator_t, rank: Rank, names: &[cr_proc]) -> Result<Placement, i32> {
    let own = name::own_name();
    startup::check_members(handle, names);
    if names.iter().any(|n| n.job != own.job) {
        startup::compare_jobs(names)?;
    }
    let places = placement::places(names).map_err(refused)?;
    let (hosts, nodes) = placement::nodes(&places);
    let network = network::of(names, &hosts, &nodes).map_err(refused)?;
    network::warn(names, &nodes, network.as_deref());
    let sites = network.as_ref().and_then(|network| network.sites(&nodes));
    let uppers = network.map_or_else(Vec::new, |network| network.uppers(&nodes));
    let here = (0..).zip(&hosts).filter(|(_, host)| **host == hosts[rank as usize]).map(|(place, _)| place);
    let here: Vec<Rank> = here.collect();
    let around: Vec<_> = here.iter().map(|&place| places.seat(place as usize)).collect();
    let local: Vec<_> = here.iter().zip(&around).map(|(&place, seat)| (place, seat.locality)).collect();
    let first = here.first().copied().unwrap_or(rank);
    let hardware = placement::hardware(&names[first as usize], &around)
        .map_err(|code| if code == 0 { CR_ERR_OTHER as i32 } else { code })?;
    let placement = Placement::new(rank, hosts, uppers, local, hardware);
    Ok(match sites {
        Some(sites) => placement.on(&sites),
        None => placement,
    })
}

/// Says why there is no answer; the error for it.
fn refused(why: impl Display) -> i32 {
    messages::print(&format!("coll/rust: {why}"));
    CR_ERR_OTHER as i32
}
