// SPDX-License-Identifier: BSD-3-Clause
//! The simulated clock is honest: it repeats itself to the picosecond, a dearer machine takes longer for the
//! reason that is dearer, a worse tree is told as worse, and what it computes is right.

use component::predict::{Case, Kind, Node, Prediction};
use component::shm::thresholds::Thresholds;
use component::sim::clock::machine::{Machine, Shape};
use component::sim::clock::{Cause, Distance};
use component::topo::LevelSpec;

/// Two sockets of six level-3 caches of eight cores. No machine that can be bought: its numbers are round.
fn machine() -> Machine {
    let ns = |ns: u64| ns * 1000;
    Machine {
        name: "round numbers".into(),
        shape: Shape { sockets: 2, numa_per_socket: 1, l3_per_numa: 6, l2_per_l3: 8, cores_per_l2: 1 },
        handover: [ns(1), ns(10), ns(25), ns(100), ns(100), ns(200)],
        serve: [0, ns(2), ns(5), ns(10), ns(10), ns(20)],
        stream: [ns(1), ns(3), ns(4), ns(10), ns(10), ns(25)],
        overwrite: [ns(1), ns(3), ns(4), ns(10), ns(10), ns(25)],
        memory: [ns(100), ns(5)],
        shared: [250, 1000, 400],
        store: 500,
        caches: [1 << 20, 4 << 20],
        misses: 6,
        wrong_guess: ns(8),
        call: ns(40),
        poll: ns(3),
        combine: ns(2),
        system_copy: [ns(300), ns(60), ns(100)],
        network: None,
    }
}

/// The mean of some calls among the first so many cores; `levels`: of a tree.
fn predict(machine: Machine, members: u32, kind: Kind, bytes: usize, levels: Option<&str>) -> Prediction {
    let cores: Vec<u32> = (0..members).collect();
    let node = Node::new(Box::leak(Box::new(machine)), &cores, Thresholds::UNKNOWN);
    let trees = levels.map(|levels| node.trees(&LevelSpec::parse(levels).unwrap()).expect("there is a tree"));
    node.time(Case { kind, bytes, way: None }, trees.as_deref(), 9, 9).unwrap()
}

#[test]
fn two_runs_are_equal_to_the_picosecond() {
    for kind in Kind::ALL {
        let bytes = if kind == Kind::Barrier { 0 } else { 1000 };
        let [one, other] = [(); 2].map(|()| predict(machine(), 12, kind, bytes, None));
        assert_eq!(one, other, "{kind:?}");
        assert!(one.time > 0);
    }
}

#[test]
fn times_are_made_of_their_causes() {
    for (kind, bytes) in [(Kind::Bcast, 8), (Kind::Allreduce, 8), (Kind::Reduce, 4096), (Kind::Alltoall, 512)] {
        let found = predict(machine(), 16, kind, bytes, None);
        let sum: u64 = found.by.iter().sum();
        assert!(sum.abs_diff(found.time) <= found.time / 10, "{kind:?}: {} of {}", sum, found.time);
    }
}

#[test]
fn what_is_dearer_takes_longer_and_is_the_cause() {
    let usual = predict(machine(), 16, Kind::Allreduce, 8, None);
    let mut far = machine();
    far.handover[Distance::Numa as usize] *= 4;
    let found = predict(far, 16, Kind::Allreduce, 8, None);
    let more = |cause: Cause| found.by[cause as usize].saturating_sub(usual.by[cause as usize]);
    assert!(found.time > usual.time * 3 / 2, "{} after {}", found.time, usual.time);
    assert!(
        more(Cause::Lines) + more(Cause::Waiting) > (found.time - usual.time) * 9 / 10,
        "{found:?} after {usual:?}"
    );
    let mut slow = machine();
    slow.combine *= 50;
    let found = predict(slow, 8, Kind::Reduce, 4096, None);
    let share = found.by[Cause::Combining as usize] + found.by[Cause::Waiting as usize];
    assert!(share > found.time * 8 / 10, "{found:?}");
}

#[test]
fn lines_that_others_have_are_dearer_to_write_where_the_machine_says_so() {
    let usual = predict(machine(), 8, Kind::Bcast, 1 << 18, None);
    let mut slow = machine();
    slow.overwrite[Distance::L3 as usize] *= 4;
    let found = predict(slow, 8, Kind::Bcast, 1 << 18, None);
    assert!(found.time > usual.time * 3 / 2, "{} after {}", found.time, usual.time);
}

#[test]
fn readers_of_one_process_hold_each_other_up() {
    // All members of a broadcast read the root; of two, one does.
    let predict = |queued: u64, members: u32| {
        let machine = Machine { system_copy: [300_000, 60_000, queued], ..machine() };
        let cores: Vec<u32> = (0..members).collect();
        let node = Node::new(Box::leak(Box::new(machine)), &cores, Thresholds::all(1 << 14));
        node.time(Case { kind: Kind::Bcast, bytes: 1 << 16, way: None }, None, 3, 3).unwrap().time
    };
    assert_eq!(predict(0, 2), predict(1_000_000, 2));
    assert!(predict(1_000_000, 8) > 2 * predict(0, 8));
}

#[test]
fn a_worse_tree_is_told_as_worse() {
    // Neighbours apart, and far ones together: every edge crosses the sockets.
    let [near, far] = [1, 48].map(|apart| {
        let cores: Vec<u32> = (0..32).map(|i| if apart == 1 { i } else { i / 2 + i % 2 * apart }).collect();
        let node = Node::new(Box::leak(Box::new(machine())), &cores, Thresholds::UNKNOWN);
        let trees = node.trees(&LevelSpec::parse("l3,node").unwrap());
        node.time(Case { kind: Kind::Barrier, bytes: 0, way: None }, trees.as_deref(), 9, 9).unwrap()
    });
    assert!(far.counts.lines[Distance::Node as usize] > 0 && near.counts.lines[Distance::Node as usize] == 0);
    assert!(far.time > near.time, "{} for {}", far.time, near.time);
    // In one group the root gets a line of each other member; in a tree, of few.
    let both = |kind, bytes| [None, Some("l3,node")].map(|levels| predict(machine(), 96, kind, bytes, levels));
    let [flat, tree] = both(Kind::Reduce, 8);
    assert!(tree.time * 3 < flat.time * 2, "{} for {}", tree.time, flat.time);
    let [flat, tree] = both(Kind::Barrier, 0);
    let all = |found: &Prediction| found.counts.lines.iter().sum::<u64>();
    assert!(all(&tree) * 5 < all(&flat), "{} for {}", all(&tree), all(&flat));
}

/// Four times as many members, in four times as many caches of one socket, take a little longer; in one group
/// they take much longer.
#[test]
fn short_operations_along_a_tree_grow_slowly() {
    let mut socket = machine();
    (socket.shape.sockets, socket.shape.l3_per_numa) = (1, 12);
    for kind in [Kind::Barrier, Kind::Bcast, Kind::Reduce, Kind::Allreduce] {
        let bytes = if kind == Kind::Barrier { 0 } else { 8 };
        let time = |members, levels| predict(socket.clone(), members, kind, bytes, levels).time;
        let [tree, flat] = [Some("l3,node"), None].map(|levels| [24, 96].map(|members| time(members, levels)));
        assert!(tree[1] < tree[0] * 7 / 4, "{kind:?}: {tree:?}");
        assert!(flat[1] > flat[0] * 2 && flat[1] > tree[1], "{kind:?}: {flat:?} and {tree:?}");
    }
}

/// Where members wait for a line that nobody writes, that is said, not waited for.
#[test]
#[should_panic(expected = "nobody can go on; members [0] wait")]
fn a_deadlock_is_told() {
    use component::sim::clock::{Clock, Work};
    use component::sync::timed::awaits;
    let word = component::sync::shared::SharedU64::new(0);
    let clock = Clock::new(Box::leak(Box::new(machine())), &[0]);
    let work: Work<'_> = Box::pin(std::future::poll_fn(|_| {
        word.load(component::sync::shared::Ordering::Acquire);
        awaits(&word);
        std::task::Poll::<()>::Pending
    }));
    clock.run(vec![work]);
}

/// A root that writes for each member in turn goes on while the ones before read. (With one slot, in which
/// it waits for each, it takes four times as long for each of 96.)
#[test]
fn a_scatter_among_many_does_not_wait_for_each() {
    let each = |members| predict(machine(), members, Kind::Scatter, 4096, None).time / u64::from(members);
    let (few, many) = (each(32), each(96));
    assert!(many < few * 3, "{many} ps for each of 96, {few} for each of 32");
}
