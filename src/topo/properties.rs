// SPDX-License-Identifier: BSD-3-Clause
//! Random placements, seen by every process alone: do the groups that they find make one tree, and is it the
//! one of a naive definition?

mod published;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{Clusters, Group, Hardware, Hierarchy, Level, LevelSpec, Locality, Modules, Placement, Sites, show};
use crate::endpoint::Rank;

type Ranks = BTreeSet<Rank>;

/// A job that nobody sees whole.
#[derive(Clone, Debug)]
struct Job {
    hosts: Vec<u32>,
    uppers: Vec<Vec<u32>>,
    localities: Vec<Locality>,
    hw: Hardware,
    spec: LevelSpec,
    sites: Option<Sites>,
}

impl Job {
    /// What one process finds, knowing the localities on its own node only.
    fn seen_by(&self, me: Rank, ordered: bool) -> Hierarchy {
        let here = |rank: &Rank| self.hosts[*rank as usize] == self.hosts[me as usize];
        let local = (0..self.hosts.len() as Rank).filter(here).map(|r| (r, self.localities[r as usize])).collect();
        let placement = Placement::new(me, self.hosts.clone(), self.uppers.clone(), local, self.hw);
        let placement = self.sites.as_ref().map_or(placement.clone(), |sites| placement.on(sites));
        Hierarchy::build(&placement, &self.spec, ordered)
    }

    fn site(&self, rank: Rank) -> u32 {
        self.sites.as_ref().map_or(0, |sites| sites.of[self.hosts[rank as usize] as usize])
    }

    fn clusters(&self) -> Option<Clusters> {
        self.sites.as_ref().and_then(|sites| Clusters::new(&self.hosts, sites))
    }

    /// Whether two ranks share their module of a level and of the selected ones above it; by definition.
    fn together(&self, a: Rank, b: Rank, level: Level) -> bool {
        let (i, j) = (a as usize, b as usize);
        let used = |l: &Level| *l >= level && self.spec.holds(*l) && (!l.in_node() || self.hw.shared(*l));
        a == b
            || Level::ALL.iter().filter(|l| used(l)).all(|&l| match l {
                Level::Grid => true,
                Level::Cluster => self.site(a) == self.site(b),
                Level::Node => self.hosts[i] == self.hosts[j],
                Level::Switch(layer) => {
                    let id = |rank: usize| self.uppers.get(self.hosts[rank] as usize)?.get(layer as usize - 1).copied();
                    id(i) == id(j)
                }
                _ => {
                    let (x, y) = (self.localities[i].at(l), self.localities[j].at(l));
                    self.hosts[i] == self.hosts[j] && x.is_some() && x == y
                }
            })
    }

    fn partition(&self, among: &[Rank], level: Level) -> BTreeSet<Ranks> {
        let module = |&a: &Rank| among.iter().copied().filter(|&b| self.together(a, b, level)).collect();
        among.iter().map(module).collect()
    }

    /// The levels that count for a process, by definition: those that change something, in order where asked
    /// for.
    fn levels(&self, me: Rank, ordered: bool) -> Vec<Level> {
        let all: Vec<Rank> = (0..self.hosts.len() as Rank).collect();
        let here: Vec<Rank> =
            all.iter().copied().filter(|&r| self.hosts[r as usize] == self.hosts[me as usize]).collect();
        let single = |among: &[Rank]| among.iter().map(|&r| Ranks::from([r])).collect::<BTreeSet<_>>();
        let fits = |partition: &BTreeSet<Ranks>| !ordered || partition.iter().all(is_interval);
        let nodes = self.partition(&all, Level::Node);
        let mut levels = Vec::new();
        let mut below = single(&here);
        let mut below_above = single(&all);
        if self.spec.holds(Level::Node) && fits(&nodes) {
            for level in Level::ALL.into_iter().filter(|l| *l == Level::Node || (l.in_node() && self.hw.shared(*l))) {
                let partition = self.partition(&here, level);
                if self.spec.holds(level) && partition != below && fits(&partition) {
                    levels.push(level);
                    below = partition;
                }
            }
            below_above = nodes;
        }
        let layers = self.uppers.first().map_or(0, Vec::len);
        let exists = |l: &Level| if let Level::Switch(n) = l { usize::from(*n) <= layers } else { true };
        for level in Level::ALL.into_iter().filter(|l| *l > Level::Node && exists(l) && self.spec.holds(*l)) {
            let partition = self.partition(&all, level);
            if partition != below_above && fits(&partition) {
                levels.push(level);
                below_above = partition;
            }
        }
        levels
    }
}

fn is_interval(ranks: &Ranks) -> bool {
    let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else { return false };
    (last - first) as usize + 1 == ranks.len()
}

/// Something said of groups, by their levels and members.
type ByGroup<T> = BTreeMap<(Level, Vec<Rank>), T>;

/// Groups with their leaders.
type Found = ByGroup<Rank>;

/// What all processes find together, after the checks of the tree; and the ranks below every group.
fn tree(
    views: &[Hierarchy],
    clusters: Option<&Clusters>,
    root: Option<Rank>,
) -> Result<(Found, BTreeSet<(Level, Ranks)>), TestCaseError> {
    let mut found: ByGroup<Vec<(Rank, Rank)>> = BTreeMap::new();
    let mut parent = vec![None; views.len()];
    let topmost: BTreeSet<Vec<Rank>> = views
        .iter()
        .flat_map(|view| view.groups(root).into_iter().filter(|group| group.top).map(|group| group.members))
        .collect();
    // One topmost group, found by all its members and nobody else, at the end of their lists.
    prop_assert!(topmost.len() == usize::from(views.len() > 1), "{:?}", topmost);
    prop_assert!(views.iter().all(|view| view.shape() == views[0].shape()));
    for (rank, view) in (0..).zip(views) {
        let groups = view.groups(root);
        let in_top = topmost.iter().any(|members| members.contains(&rank));
        prop_assert_eq!(groups.last().is_some_and(|group| group.top), in_top);
        prop_assert!(groups.iter().rev().skip(1).all(|group| !group.top));
        prop_assert!(!view.shape().flat || groups.len() <= 1);
        for (at, Group { level, members, me, leader, .. }) in groups.into_iter().enumerate() {
            prop_assert!(members.len() > 1 && members.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(members[me], rank);
            prop_assert!(view.levels().contains(&level));
            prop_assert!(parent[rank as usize].is_none(), "a group above one that it does not lead: {} {}", rank, at);
            if me != leader {
                parent[rank as usize] = Some(members[leader]);
            }
            let leader = members[leader];
            found.entry((level, members)).or_default().push((rank, leader));
        }
    }
    // All members found the group, once, with one leader.
    let mut agreed = Found::new();
    for ((level, members), finders) in found {
        let leader = finders[0].1;
        prop_assert!(finders.iter().map(|&(rank, _)| rank).eq(members.iter().copied()), "{:?} {:?}", members, finders);
        prop_assert!(finders.iter().all(|&(_, l)| l == leader));
        agreed.insert((level, members), leader);
    }
    // A spanning tree below the root.
    let first = clusters.and_then(|clusters| clusters.leaders().iter().copied().min());
    let top = root.or(first).unwrap_or(0);
    prop_assert_eq!(agreed.keys().map(|(_, members)| members.len() - 1).sum::<usize>(), views.len() - 1);
    for rank in 0..views.len() as Rank {
        let (mut at, mut steps) = (rank, 0);
        while let Some(up) = parent[at as usize] {
            (at, steps) = (up, steps + 1);
            prop_assert!(steps < views.len());
        }
        prop_assert_eq!(at, top);
    }
    if let Some(clusters) = clusters {
        check_crossing(&agreed, clusters, root)?;
        if root.is_some_and(|root| !clusters.may_cross(root)) {
            return Ok((agreed, BTreeSet::new()));
        }
    }
    Ok((agreed.clone(), subtrees(&agreed, clusters, root)?))
}

/// Whoever is in a group with a process of another cluster has messages with it, and may.
fn check_crossing(agreed: &Found, clusters: &Clusters, root: Option<Rank>) -> Result<(), TestCaseError> {
    let mut crossing = 0;
    for (_, members) in agreed.keys() {
        for (&one, &other) in members.iter().flat_map(|one| members.iter().map(move |other| (one, other))) {
            prop_assert!(clusters.allows_with(root, one, other), "{one} {other} {root:?} {clusters:?}");
            prop_assert!(clusters.allows(one, other));
            crossing += usize::from(!clusters.together(one, other));
        }
    }
    prop_assert_eq!(crossing, clusters.count() * (clusters.count() - 1));
    Ok(())
}

/// The ranks below every group. Checks that the root leads what holds it, then the leader of the cluster, and
/// the lowest rank everything else.
fn subtrees(
    agreed: &Found,
    clusters: Option<&Clusters>,
    root: Option<Rank>,
) -> Result<BTreeSet<(Level, Ranks)>, TestCaseError> {
    let mut below: BTreeMap<Rank, Ranks> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for ((level, members), &leader) in agreed {
        let ranks: Ranks =
            members.iter().flat_map(|m| below.get(m).cloned().unwrap_or_else(|| Ranks::from([*m]))).collect();
        let leaders = clusters.iter().flat_map(|clusters| clusters.leaders()).copied();
        let own = leaders.filter(|leader| members.contains(leader)).min();
        let chief = root.filter(|root| ranks.contains(root)).or(own).or(ranks.first().copied());
        prop_assert_eq!(Some(leader), chief);
        below.insert(leader, ranks.clone());
        all.insert((*level, ranks));
    }
    Ok(all)
}

/// With `ordered`, the members of every group stand for neighbouring intervals, in order.
fn check_order(agreed: &Found) -> Result<(), TestCaseError> {
    let mut below: BTreeMap<Rank, Ranks> = BTreeMap::new();
    for ((_, members), leader) in agreed {
        let parts = members.iter().map(|m| below.get(m).cloned().unwrap_or_else(|| Ranks::from([*m])));
        let row: Vec<Rank> = parts.flatten().collect();
        prop_assert!(row.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{:?}", row);
        below.insert(*leader, row.into_iter().collect());
    }
    Ok(())
}

fn check(job: &Job, ordered: bool) -> Result<(), TestCaseError> {
    let ranks = 0..job.hosts.len() as Rank;
    let views: Vec<Hierarchy> = ranks.clone().map(|rank| job.seen_by(rank, ordered)).collect();
    let mut levels = BTreeMap::new();
    for (rank, view) in (0..).zip(&views) {
        let expected = levels.entry(job.hosts[rank as usize]).or_insert_with(|| job.levels(rank, ordered));
        prop_assert_eq!(view.levels(), expected.as_slice());
        prop_assert_eq!(view.depth(), view.levels().len());
    }
    let clusters = job.clusters();
    let clusters = clusters.as_ref();
    prop_assert_eq!(views[0].shape().clusters, clusters.map_or(1, Clusters::count));
    if !views[0].shape().joined {
        prop_assert!(ordered && clusters.is_some());
        return Ok(());
    }
    let (plain, modules) = tree(&views, clusters, None)?;
    for (level, module) in &modules {
        let first = module.first().copied().unwrap_or(0);
        let all = ranks.clone().filter(|&rank| job.together(first, rank, *level));
        prop_assert!(all.eq(module.iter().copied()), "{:?} {:?}", level, module);
    }
    let top = plain.keys().map(|(level, members)| (*level, members.len())).max_by_key(|&(level, _)| level);
    prop_assert!(views.iter().all(|view| view.top_level_size() == top.map_or(1, |(_, size)| size)));

    let shown = show::collect((&job.hosts, &job.uppers, clusters), &job.localities, &job.spec, &job.hw, ordered);
    let shown: Found = shown.into_iter().map(|group| ((group.level, group.members.clone()), group.leader)).collect();
    prop_assert_eq!(&shown, &plain);

    for root in ranks {
        let (found, below) = tree(&views, clusters, Some(root))?;
        if clusters.is_some_and(|clusters| !clusters.may_cross(root)) {
            continue;
        }
        prop_assert_eq!(&below, &modules, "the root moves leaders only");
        if ordered {
            check_order(&found)?;
        }
    }
    if ordered { check_order(&plain) } else { Ok(()) }
}

/// A process as raw numbers: its node, its core (or a module per level), and how much of that is known.
type Raw = (u32, u32, [u32; 4], u32);

fn job() -> impl Strategy<Value = Job> {
    let raw = (0u32..5, 0u32..12, [0u32..3, 0u32..3, 0u32..3, 0u32..3], 0u32..12);
    let shape = (0u32..4, 0u32..3, 0usize..4, [0u32..4, 0u32..4, 0u32..4, 0u32..4]);
    let spec = (0u32..3, any::<[bool; 12]>());
    let switches = proptest::collection::vec([0u32..3, 0u32..3, 0u32..3], 41);
    (proptest::collection::vec(raw, 1..=40), shape, spec, switches).prop_map(|(raw, shape, spec, switches)| {
        let (order, binding, layers, cores) = shape;
        let hosts = hosts(&raw, order);
        let localities = raw.iter().map(|raw| locality(raw, binding)).collect();
        let tree = |node: usize| (0..layers).map(|layer| node as u32 >> (layer + 1)).collect();
        let wild = |node: usize| switches[node][..layers].to_vec();
        let uppers = (0..41).map(|node| if spec.0 == 0 { wild(node) } else { tree(node) }).collect();
        let of = |at: usize| Modules { modules: 1, cores: if spec.0 == 0 { cores[at] } else { 4 } };
        let hw = Hardware { l2: of(0), l3: of(1), numa: of(2), socket: of(3), processors: 0 };
        // The last one says whether nodes are left out, and all in them.
        let (picked, nodes) = (|level: &Level| spec.1[level.index() as usize], spec.1[11]);
        let listed = Level::ALL.into_iter().filter(|level| picked(level) && (nodes || *level > Level::Node)).collect();
        let spec = if spec.0 == 2 { LevelSpec::List(listed) } else { LevelSpec::Auto };
        Job { hosts, uppers, localities, hw, spec, sites: None }
    })
}

fn hosts(raw: &[Raw], order: u32) -> Vec<u32> {
    let mut hosts: Vec<u32> = raw.iter().map(|&(node, ..)| node).collect();
    match order {
        0 => {}
        1 => hosts.sort_unstable(),
        2 => hosts = (0..raw.len() as u32).map(|rank| rank % 4).collect(),
        _ => hosts = (0..raw.len() as u32).rev().collect(),
    }
    hosts
}

/// Modules that need not nest, or those of a core; some processes are bound to several cores or not at all.
fn locality(&(_, core, wild, known): &Raw, binding: u32) -> Locality {
    let some = |at: u32, number: u32| (known >= at).then_some(number);
    match binding {
        0 => Locality { l2: some(4, wild[0]), l3: some(3, wild[1]), numa: some(2, wild[2]), socket: some(1, wild[3]) },
        1 => Locality {
            l2: some(4, core / 2),
            l3: some(3, core / 3),
            numa: some(2, core / 3),
            socket: some(1, core / 6),
        },
        _ => Locality { l2: Some(core / 2), l3: Some(core / 4), numa: some(1, core / 4), socket: Some(core / 8) },
    }
}

proptest! {
    #[test]
    fn views_make_one_tree(job in job(), ordered in any::<bool>()) {
        check(&job, ordered)?;
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn so_do_those_of_several_clusters(job in job(), ordered: bool, of: [u32; 5], marks: [bool; 5]) {
        let site = |node: u32| of[node as usize % 5] % 3;
        // Few marks: some clusters have none here.
        let gateway = (0..41).map(|node: u32| marks[node as usize % 5] && node.is_multiple_of(3)).collect();
        check(&Job { sites: Some(Sites { of: (0..41).map(site).collect(), gateway }), ..job }, ordered)?;
    }
}

#[test]
fn without_nodes_ranks_join_directly() {
    let flat = |spec: &str, hosts: Vec<u32>, uppers| {
        let (localities, hw) = (vec![Locality::default(); hosts.len()], Hardware::default());
        let spec = LevelSpec::parse(spec).expect("levels");
        let job = Job { hosts, uppers, localities, hw, spec, sites: None };
        check(&job, false).expect("one tree");
        job.seen_by(1, false).groups(Some(2)).into_iter().map(|g| (g.level, g.members, g.leader)).collect::<Vec<_>>()
    };
    assert_eq!(flat("none", vec![0, 0, 0], vec![]), [(Level::Cluster, vec![0, 1, 2], 2)]);
    let uppers = vec![vec![5], vec![6]];
    assert_eq!(flat("switch", vec![0, 1, 1, 0], uppers.clone()), [(Level::Switch(1), vec![1, 2], 1)]);
    assert_eq!(flat("switch2", vec![0, 1, 1, 0], uppers), [(Level::Cluster, vec![0, 1, 2, 3], 2)]);
}
