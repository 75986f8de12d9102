// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::shm::memory::heap::Heap;
use crate::shm::op::block::Rooms;
use crate::shm::op::is_within;
use crate::shm::thresholds::Thresholds;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[test]
fn where_memory_cannot_be_read_nothing_is_to_be_read() {
    for (readable, expected) in [(false, usize::MAX), (true, 5)] {
        let team = Team::new(Heap::new(2, usize::MAX, readable).member(0), Config::default());
        team.set_thresholds(Thresholds::all(5).into());
        assert_eq!(*team.thresholds(false, true), Thresholds::all(expected));
    }
}

#[test]
fn what_lies_still_is_short_whichever_way_a_member_comes() {
    // Short slots, what lies still there, from where on reductions share the work, and whether members take
    // turns.
    let configs = [
        (4096, 1024, 8192, false),
        (4096, 9999, 8192, true),
        (4096, 9999, 200, true),
        (0, 1024, 8192, false),
        (300, 64, 100, true),
        (4096, 1024, 0, false),
    ];
    let limits = [usize::MAX, 1000, 57, 30, 1, 0];
    let all = configs.into_iter().flat_map(|config| [2, 3, 9, 64].map(|size| (config, size)));
    for ((config, size), limit) in all.flat_map(|one| limits.map(|limit| (one, limit))) {
        for learned in [false, true] {
            lies_still_only_what_is_short(config, size, limit, learned);
        }
    }
}

fn lies_still_only_what_is_short(of: (usize, u32, usize, bool), size: usize, limit: usize, learned: bool) {
    let (short, still, shared_work_min, crowded) = of;
    let mut config = Config { short, still, shared_work_min, rotates: !crowded, whole: 0, ..Config::default() };
    config.waiting.crowded = crowded;
    let team = Team::new(Heap::new(size, usize::MAX, true).member(0), config);
    match learned {
        false => team.set_thresholds(Thresholds { bcast: limit, ..Thresholds::all(usize::MAX) }.into()),
        true => team.learn(Thresholds { scatter: limit, ..Thresholds::all(usize::MAX) }.into()),
    }
    let config = team.config();
    // Reductions have another limit: see `op::reduce`.
    let reduced = config.shared_work_min.min(if crowded { config.whole as usize } else { usize::MAX });
    let rooms = Rooms::new(&team, false, 0, limit);
    for len in 0..5000 {
        let is_short = is_within(config.whole, len, limit.min(reduced));
        let lies_still = is_short && (len <= LINE || len <= config.still as usize);
        assert!(lies_still || !team.lies_still(len), "{of:?}: {size} members, {len} of {limit}");
        assert!(rooms.hold(len) || !team.share_lies_still(len), "{of:?}: {size} members, a share of {len}, {limit}");
    }
    assert!(team.lies_still(LINE) && team.share_lies_still(team.short_shares()[0]));
    let most = (config.still as usize).min(limit - limit.min(1)).min(reduced - reduced.min(1)).max(LINE);
    assert!(team.lies_still(most), "{of:?}: {most} bytes do, too");
}

#[test]
fn what_was_refused_stays_so_after_a_failure() {
    let heap = Heap::new(2, 0, false);
    let teams = [0, 1].map(|member| Team::new(heap.member(member), Config::default()));
    let mut context = Context::from_waker(Waker::noop());
    let mut open = |team: &Team| match pin!(team.open(0, 1, false)).poll(&mut context) {
        Poll::Pending => "waits",
        Poll::Ready(Ok(None)) => "refused",
        Poll::Ready(_) => "other",
    };
    assert_eq!([0, 1, 0].map(|member| open(&teams[member])), ["waits", "refused", "refused"]);
    teams.iter().for_each(Team::fail);
    assert_eq!(teams.each_ref().map(open), ["refused"; 2], "the others take another way");
}
