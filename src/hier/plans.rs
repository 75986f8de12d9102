// SPDX-License-Identifier: BSD-3-Clause
//! The groups that the operations of a communicator go along, kept from call to call.

use super::parts::Parts;
use crate::endpoint::Rank;
use crate::select::{Memo, Operation};
use crate::topo::{Group, Hierarchy, Level, LevelSpec, Placement, Shape};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Plans that are kept; a program with more roots than that makes the others anew whenever the root changes.
const KEPT: usize = 64;

/// The caller's groups in a hierarchy of the communicator.
#[derive(Debug)]
pub struct Plan {
    /// Bottom to top.
    pub groups: Vec<Group>,
    /// The same on all ranks.
    pub shape: Shape,
    root: Option<Rank>,
    hierarchy: Arc<Hierarchy>,
    /// Found at the first need.
    parts: OnceLock<Parts>,
}

impl Plan {
    /// Whom the members of the groups stand for: of a rooted operation where there is a root, else of a
    /// joined one.
    pub fn parts(&self) -> &Parts {
        self.parts.get_or_init(|| match self.root {
            Some(root) => Parts::rooted(&self.hierarchy, &self.groups, self.hierarchy.rank(), root),
            None => Parts::joined(&self.hierarchy, &self.groups, self.hierarchy.rank()),
        })
    }
}

/// Along which levels an operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Those of its parameters.
    All,
    /// The same, but the caller's node is one group, whatever is inside (what is above does not depend on
    /// it).
    FromNodeUp,
    /// The node only.
    Node,
}

impl Along {
    const COUNT: usize = 3;

    /// All, or with the node as one group, whose processes share memory.
    pub fn over(shared: bool) -> Along {
        if shared { Along::FromNodeUp } else { Along::All }
    }
}

/// Where the processes of a communicator sit, and what has been made of that: for all communicators of the
/// same processes.
#[derive(Debug)]
pub struct Hierarchies {
    place: Placement,
    made: Mutex<Made>,
}

/// The plans that a communicator has used.
#[derive(Debug)]
pub struct Plans {
    /// For each operation, way along the levels, and order, the plan used last.
    last: [Memo<Option<Rank>, Arc<Plan>>; 2 * Along::COUNT * Operation::COUNT],
}

#[derive(Debug, Default)]
struct Made {
    hierarchies: SmallVec<[(LevelSpec, bool, Arc<Hierarchy>); 2]>,
    plans: Vec<Arc<Plan>>,
}

impl Default for Plans {
    fn default() -> Plans {
        Plans { last: std::array::from_fn(|_| Memo::default()) }
    }
}

impl Plans {
    /// The plan of an operation whose parameters say `levels`: always the same ones in a communicator.
    /// `ordered`: groups of consecutive ranks only.
    pub fn last(
        &self,
        hierarchies: &Hierarchies,
        operation: Operation,
        levels: &LevelSpec,
        along: Along,
        ordered: bool,
        root: Option<Rank>,
    ) -> Arc<Plan> {
        let number = (operation as usize * Along::COUNT + along as usize) * 2 + usize::from(ordered);
        let found = self.last[number].answer(root, || {
            let find = |levels: &LevelSpec| Ok(hierarchies.find(levels, ordered, root));
            match along {
                Along::All => find(levels),
                Along::FromNodeUp => find(&levels.from_node_up()),
                Along::Node => find(&LevelSpec::List(vec![Level::Node])),
            }
        });
        found.unwrap_or_else(|never: std::convert::Infallible| match never {})
    }
}

impl Hierarchies {
    /// Of processes that sit so.
    pub fn new(place: Placement) -> Hierarchies {
        Hierarchies { place, made: Mutex::default() }
    }

    /// Where they sit.
    pub fn place(&self) -> &Placement {
        &self.place
    }

    /// The plan in the hierarchy of these levels.
    pub fn find(&self, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> Arc<Plan> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.hierarchies.iter().find(|(l, o, _)| l == levels && *o == ordered);
        let hierarchy = match known {
            Some((_, _, hierarchy)) => hierarchy.clone(),
            None => {
                let hierarchy = Arc::new(Hierarchy::build(&self.place, levels, ordered));
                made.hierarchies.push((levels.clone(), ordered, hierarchy.clone()));
                hierarchy
            }
        };
        let known = made.plans.iter().find(|plan| Arc::ptr_eq(&plan.hierarchy, &hierarchy) && plan.root == root);
        if let Some(plan) = known {
            return plan.clone();
        }
        let (groups, shape) = (hierarchy.groups(root), hierarchy.shape());
        let plan = Arc::new(Plan { groups, shape, root, hierarchy, parts: OnceLock::new() });
        // Those without a root are few.
        if root.is_none() || made.plans.len() < KEPT {
            made.plans.push(plan.clone());
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::{Hardware, Locality, Modules};

    /// A rank's view of four nodes with four processes each, on two sockets.
    fn place(me: Rank) -> Placement {
        let hosts: Vec<u32> = (0..16).map(|rank| rank / 4).collect();
        let local = (0..16).filter(|rank| rank / 4 == me / 4);
        let local = local.map(|rank| (rank, Locality { socket: Some(rank % 4 / 2), ..Locality::default() })).collect();
        let hw = Hardware { socket: Modules { modules: 2, cores: 2 }, ..Hardware::default() };
        Placement::new(me, hosts, vec![vec![0], vec![1], vec![0], vec![1]], local, hw)
    }

    /// Whatever was asked before: each plan is the one that is asked for, and the same one if it is asked for
    /// again.
    #[test]
    fn no_plan_stands_in_for_another() {
        let roots = || [None].into_iter().chain((0..16).map(Some));
        let ways = [Along::All, Along::FromNodeUp, Along::Node];
        for levels in ["auto", "none", "socket,node"].map(|text| LevelSpec::parse(text).unwrap()) {
            let (place, plans) = (place(5), Plans::default());
            let hierarchies = Hierarchies::new(place.clone());
            let ask =
                |operation, along, ordered, root| plans.last(&hierarchies, operation, &levels, along, ordered, root);
            let mut groups = Vec::new();
            for operation in [Operation::Gather, Operation::Scatter] {
                for (along, ordered, root) in ways.into_iter().flat_map(|along| {
                    [false, true].into_iter().flat_map(move |o| roots().map(move |root| (along, o, root)))
                }) {
                    let spec = match along {
                        Along::All => levels.clone(),
                        Along::FromNodeUp => levels.from_node_up(),
                        Along::Node => LevelSpec::List(vec![Level::Node]),
                    };
                    let expected = Hierarchy::build(&place, &spec, ordered);
                    let plan = ask(operation, along, ordered, root);
                    assert_eq!((&plan.groups, plan.shape), (&expected.groups(root), expected.shape()));
                    assert_eq!(plan.parts().top().is_empty(), root.is_some(), "of the rooted or the joined kind");
                    assert!(Arc::ptr_eq(&plan, &ask(operation, along, ordered, root)));
                    // Another root in between.
                    let other = ask(operation, along, ordered, Some(7));
                    assert_eq!(other.groups, expected.groups(Some(7)));
                    assert_eq!(ask(operation, along, ordered, root).groups, plan.groups);
                    groups.push(plan.groups.clone());
                }
            }
            groups.dedup();
            assert!(groups.len() > 20, "{} in a row that differ", groups.len());
        }
    }

    #[test]
    fn roots_beyond_those_that_are_kept_have_plans_too() {
        let hosts: Vec<u32> = (0..200).map(|rank| rank / 2).collect();
        let local = vec![(0, Locality::default()), (1, Locality::default())];
        let place = Placement::new(0, hosts, Vec::new(), local, Hardware::default());
        let (plans, levels) = (Plans::default(), LevelSpec::Auto);
        let hierarchies = Hierarchies::new(place.clone());
        for round in 0..2 {
            for root in (0..200).map(Some) {
                let ask = || plans.last(&hierarchies, Operation::Bcast, &levels, Along::All, false, root);
                let plan = ask();
                assert_eq!(plan.groups, Hierarchy::build(&place, &levels, false).groups(root), "round {round}");
                assert!(Arc::ptr_eq(&plan, &ask()));
            }
        }
        assert_eq!(hierarchies.made.lock().unwrap().plans.len(), KEPT);
    }
}
