// SPDX-License-Identifier: BSD-3-Clause
//! The models of operations: in one file, though a long one, since all are told in the same few words
//! (`config`, `needs`, `model`, `block_on`), and `ci/test-loom.sh` names them.

use super::memory::{Modelled, Needs};
use coll_rust::endpoint::{Error, Result, Span};
use coll_rust::shm::copy;
use coll_rust::shm::memory::layout::LINES;
use coll_rust::shm::op::{self, Combine};
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sim::{SimBlocks, SimStream};
use coll_rust::sync::wait::{Mode, Patience, Waiting, yield_now};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Operations begin just before the numbers wrap around.
const FIRST: u32 = u32::MAX - 1;

fn config(fragments: usize, sets: usize, mode: Mode) -> Config {
    let waiting = Waiting { mode, crowded: false, yields: false, spin: 1 };
    Config {
        fragment: 64,
        fragments,
        sets: sets as u8,
        short: 0,
        shared_work_min: usize::MAX,
        waiting,
        first_op: FIRST,
        ..Config::default()
    }
}

fn needs(config: &Config, members: usize, queues: bool) -> Needs {
    let fragment = config.fragment.max(128 * members).next_multiple_of(64);
    Needs {
        members,
        grain: fragment,
        fragment,
        fragments: config.fragments,
        short: config.short,
        shorts: usize::from(config.shorts),
        lines: (0..LINES).collect(),
        queues,
        poor: Vec::new(),
    }
}

/// The executor of a blocking operation, in a model: who has looked in vain lets others run.
fn block_on<T>(team: &Team, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut patience = Patience::default();
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
        match team.config().waiting.mode {
            // Straight to sleep: the pauses before are no part of the protocol.
            Mode::Block => (0..3).filter(|_| team.pause(&mut patience)).for_each(|_| yield_now()),
            _ => yield_now(),
        }
    }
}

fn model(needs: Needs, config: Config, preemptions: usize, member: impl Fn(&Team) + Send + Sync + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    // Three threads make too many interleavings to see them all. Of two all are seen, unless the environment
    // limits them too.
    let seconds = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let most = seconds("LOOM_SECONDS_WHOLE");
    let most = if needs.members > 2 { seconds("LOOM_SECONDS").or(Some(20)) } else { most };
    builder.max_duration = most.map(Duration::from_secs);
    builder.check(move || {
        let memory = Modelled::new(&needs);
        let others: Vec<_> = (1..needs.members)
            .map(|me| {
                let memory = memory.clone();
                loom::thread::spawn(move || member(&Team::new(memory.member(me), config)))
            })
            .collect();
        member(&Team::new(memory.member(0), config));
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn bcast(team: &Team, root: usize, value: u8, len: usize) {
    let data = SimStream::direct(&vec![if team.me() == root { value } else { 0 }; len]);
    block_on(team, async {
        let turn = team.open(0, 0, len > 56).await?.expect("memory");
        op::bcast::bcast(turn, root, &data, usize::MAX).await
    })
    .unwrap();
    assert_eq!(data.contents(), vec![value; len]);
}

fn barrier(team: &Team) {
    block_on(team, async { op::barrier::barrier(team.open(0, 0, false).await?.expect("memory")).await }).unwrap();
}

#[test]
fn a_payload_arrives_with_its_flag() {
    let config = config(1, 1, Mode::Yield);
    model(needs(&config, 2, false), config, 3, |team| {
        bcast(team, 0, 7, 8);
        bcast(team, 1, 8, 8);
    });
}

#[test]
fn a_line_is_used_again_only_when_all_have_read_it() {
    let config = config(1, 1, Mode::Yield);
    model(needs(&config, 2, false), config, 1, |team| {
        for value in 0..9 {
            bcast(team, 0, value + 1, 8);
        }
    });
}

#[test]
fn a_set_holds_another_whole_message_only_when_all_have_read_it() {
    for sets in [1, 2] {
        let mut config = config(sets, sets, Mode::Yield);
        config.waiting.crowded = true;
        model(needs(&config, 2, true), config, 1, |team| {
            (0..3).for_each(|value| bcast(team, 0, value + 1, 200));
            bcast(team, 1, 9, 100);
        });
    }
}

#[test]
fn a_short_slot_is_used_again_only_when_all_have_read_it() {
    let config = Config { short: 64, shorts: 1, ..config(1, 1, Mode::Yield) };
    model(needs(&config, 2, true), config, 1, |team| {
        bcast(team, 0, 7, 60);
        bcast(team, 0, 8, 60);
    });
}

#[test]
fn who_has_another_length_learns_it_with_the_flag() {
    let config = Config { short: 64, shorts: 1, ..config(1, 1, Mode::Yield) };
    for lens in [[60, 58], [60, 64], [8, 60]] {
        model(needs(&config, 2, true), config, 1, move |team| {
            let len: usize = lens[team.me()];
            let data = SimStream::direct(&vec![if team.me() == 0 { 7 } else { 0 }; len]);
            let result = block_on(team, async {
                let turn = team.open(0, 0, true).await?.expect("memory");
                op::bcast::bcast(turn, 0, &data, usize::MAX).await
            });
            assert_eq!(result, if len < lens[0] { Err(Error::Lengths) } else { Ok(()) });
            let given = lens[0].min(len);
            assert_eq!(data.contents(), [vec![7; given], vec![0; len - given]].concat());
            // They are in step.
            bcast(team, 1, 9, 60);
        });
    }
}

/// Of blocks of so many bytes for all but member 0, which has them, the last one has another length at its
/// reader. All are in step afterwards.
fn scatter_unlike(team: &Team, lens: &[usize], last: usize) {
    let me = team.me();
    let result = block_on(team, async {
        let turn = team.open(0, 0, true).await?.expect("memory");
        if me == 0 {
            let block = |member: usize| vec![member as u8; if member == 0 { 0 } else { lens[member - 1] }];
            let all = SimBlocks::run(&(0..team.size()).map(block).collect::<Vec<_>>());
            return op::scatter::send(turn, &all, None::<&SimStream>, usize::MAX).await;
        }
        let len = if me < team.size() - 1 { lens[me - 1] } else { last };
        let own = SimStream::direct(&vec![0; len]);
        let result = op::scatter::receive(turn, 0, &own, usize::MAX).await;
        let given = lens[me - 1].min(len);
        assert_eq!(own.contents(), [vec![me as u8; given], vec![0; len - given]].concat());
        result
    });
    let cut = me == team.size() - 1 && last < lens[me - 1];
    assert_eq!(result, if cut { Err(Error::Lengths) } else { Ok(()) });
    bcast(team, 0, 9, 8);
}

#[test]
fn who_has_another_block_learns_it_with_the_flag() {
    let config = Config { short: 64, shorts: 1, ..config(1, 1, Mode::Yield) };
    for [len, last] in [[16, 8], [8, 16], [60, 58], [58, 60], [60, 8]] {
        model(needs(&config, 2, true), config, 1, move |team| scatter_unlike(team, &[len], last));
    }
}

#[test]
fn who_has_another_block_than_others_learns_it_with_the_flag() {
    let config = Config { short: 128, shorts: 1, ..config(1, 1, Mode::Yield) };
    model(needs(&config, 3, true), config, 1, |team| {
        scatter_unlike(team, &[8, 8], 4);
        scatter_unlike(team, &[8, 16], 8);
        scatter_unlike(team, &[16, 40], 48);
    });
}

#[test]
fn three_members_read_a_payload() {
    let config = config(1, 1, Mode::Yield);
    model(needs(&config, 3, false), config, 1, |team| {
        bcast(team, 0, 1, 8);
        bcast(team, 2, 2, 8);
    });
}

#[test]
fn a_slot_is_used_again_only_when_it_has_been_read() {
    for (fragments, sets) in [(1, 1), (2, 1), (2, 2)] {
        let config = config(fragments, sets, Mode::Yield);
        model(needs(&config, 2, true), config, 1, |team| {
            // Three fragments, then one of the next operation, then one from the other side.
            bcast(team, 0, 5, 600);
            bcast(team, 0, 6, 100);
            bcast(team, 1, 7, 300);
        });
    }
}

#[test]
fn a_set_that_was_gone_on_in_is_used_again_only_when_it_has_been_read() {
    for (fragments, sets) in [(2, 2), (4, 2)] {
        let config = Config { rotates: true, ..config(fragments, sets, Mode::Yield) };
        let len = fragments / sets * 256 + 200;
        model(needs(&config, 2, true), config, 1, move |team| {
            // The last step is in the set of the next operation.
            bcast(team, 0, 5, len);
            bcast(team, 0, 6, 100);
            bcast(team, 1, 7, 300);
        });
    }
}

#[test]
fn what_is_short_and_rotates_lies_where_something_was_that_has_been_read() {
    let config = Config { rotates: true, short: 128, still: 64, ..config(2, 2, Mode::Yield) };
    model(needs(&config, 2, true), config, 1, |team| {
        bcast(team, 0, 5, 100);
        bcast(team, 0, 6, 100);
        // In the set of the first.
        bcast(team, 0, 7, 100);
    });
}

#[test]
fn what_is_short_and_rotates_waits_for_a_set_that_was_gone_on_in() {
    let config = Config { rotates: true, short: 128, still: 64, ..config(2, 2, Mode::Yield) };
    model(needs(&config, 2, true), config, 1, |team| {
        // The last step is in the set of the next operation.
        bcast(team, 0, 5, 456);
        bcast(team, 0, 6, 100);
    });
}

#[test]
fn a_set_holds_another_short_exchange_only_when_all_have_read_it() {
    let config = Config { rotates: true, fragment: 640, short: 640, still: 576, ..config(1, 1, Mode::Yield) };
    model(needs(&config, 2, true), config, 1, |team| {
        alltoall(team, 600);
        alltoall(team, 600);
    });
}

fn alltoall(team: &Team, len: usize) {
    let block = |from: usize, to: usize| vec![(1 + 2 * from + to) as u8; len];
    let out = SimBlocks::run(&[0, 1].map(|to| block(team.me(), to)));
    let into = SimBlocks::run(&[vec![0; len], vec![0; len]]);
    block_on(team, async {
        let turn = team.open(0, 0, len > 56).await?.expect("memory");
        op::alltoall::alltoall(turn, Some(&out), &into, usize::MAX).await
    })
    .unwrap();
    (0..2).for_each(|from| assert_eq!(into.contents(from), block(from, team.me())));
}

#[test]
fn two_exchange_lines() {
    let config = config(1, 1, Mode::Yield);
    model(needs(&config, 2, false), config, 3, |team| alltoall(team, 8));
}

#[test]
fn a_short_slot_holds_another_exchange_only_when_all_have_read_it() {
    let config = Config { short: 64, shorts: 1, ..config(1, 1, Mode::Yield) };
    model(needs(&config, 2, true), config, 1, |team| {
        alltoall(team, 60);
        alltoall(team, 60);
    });
}

#[test]
fn a_set_holds_another_exchange_only_when_all_have_read_it() {
    let mut config = config(1, 1, Mode::Yield);
    config.waiting.crowded = true;
    model(needs(&config, 2, true), config, 1, |team| {
        alltoall(team, 200);
        alltoall(team, 200);
    });
}

struct Xor;

impl Combine for Xor {
    fn size(&self) -> usize {
        8
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        for i in 0..count {
            // SAFETY: by the caller's promise.
            unsafe { *right.cast::<u64>().add(i) ^= *left.cast::<u64>().add(i) };
        }
    }
}

/// To `root`, or to all.
fn reduce(team: &Team, root: Option<usize>, count: usize) -> Result<()> {
    let mut input = vec![1_u64 << team.me(); count];
    let mut output = vec![0_u64; count];
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    let span = |data: &mut Vec<u64>| unsafe { Span::new(data.as_mut_ptr().cast(), count, 8) };
    let (from, to) = (span(&mut input), span(&mut output));
    block_on(team, async {
        let turn = team.open(0, 0, count > 7).await?.expect("memory");
        match root {
            Some(root) => op::reduce::reduce(turn, root, &Xor, from, to).await,
            None => op::allreduce::allreduce(turn, &Xor, from, to, usize::MAX).await,
        }
    })?;
    assert!(root.is_some_and(|root| root != team.me()) || output == vec![(1 << team.size()) - 1; count]);
    Ok(())
}

fn allreduce(team: &Team, count: usize) -> Result<()> {
    reduce(team, None, count)
}

#[test]
fn everybody_combines_everything() {
    let config = config(2, 2, Mode::Yield);
    model(needs(&config, 2, true), config, 2, |team| {
        allreduce(team, 2).unwrap();
        allreduce(team, 40).unwrap();
        barrier(team);
    });
}

#[test]
fn the_work_is_shared() {
    let config = Config { shared_work_min: 0, ..config(1, 1, Mode::Yield) };
    // Three parts of three elements each.
    let needs = Needs { grain: 24, ..needs(&config, 3, true) };
    model(needs, config, 1, |team| allreduce(team, 9).unwrap());
}

#[test]
fn a_relay_combines_half() {
    let mut config = config(1, 1, Mode::Yield);
    config.waiting.crowded = true;
    // Three pieces of 48 elements in one slot.
    model(needs(&config, 3, true), config, 1, |team| reduce(team, Some(0), 144).unwrap());
}

#[test]
fn a_relay_reads_what_the_root_has() {
    let mut config = config(1, 1, Mode::Yield);
    config.waiting.crowded = true;
    model(needs(&config, 3, true), config, 1, |team| reduce(team, Some(1), 96).unwrap());
}

/// Member `root` has blocks of `len` bytes for all.
fn scatter(team: &Team, root: usize, len: usize) {
    let block = |member: usize| vec![(root * 8 + member + 1) as u8; len];
    let own = SimStream::direct(&vec![0; len]);
    block_on(team, async {
        let turn = team.open(0, 0, true).await?.expect("memory");
        if team.me() == root {
            let all = SimBlocks::run(&(0..team.size()).map(block).collect::<Vec<_>>());
            op::scatter::send(turn, &all, Some(&own), usize::MAX).await
        } else {
            op::scatter::receive(turn, root, &own, usize::MAX).await
        }
    })
    .unwrap();
    assert_eq!(own.contents(), block(team.me()));
}

#[test]
fn a_place_is_used_again_only_when_its_reader_has_read() {
    let mut config = Config { short: 64, ..config(1, 1, Mode::Yield) };
    config.waiting.crowded = true;
    // Places of half the ring are watched apart.
    let needs = Needs { grain: 128, ..needs(&config, 2, true) };
    model(needs, config, 1, |team| scatter(team, 0, 300));
}

#[test]
fn all_places_are_used_again_only_when_all_have_read() {
    let mut config = Config { short: 64, ..config(1, 1, Mode::Yield) };
    config.waiting.crowded = true;
    // The block is dealt in one portion, and the second operation uses the same set.
    model(needs(&config, 2, true), config, 2, |team| {
        scatter(team, 0, 100);
        scatter(team, 0, 100);
    });
}

#[test]
fn a_block_arrives_before_the_next_one_is_there() {
    let mut config = Config { short: 64, ..config(1, 1, Mode::Yield) };
    config.waiting.crowded = true;
    // A block for each of the two others, each in a place of its own.
    let needs = Needs { grain: 128, ..needs(&config, 3, true) };
    model(needs, config, 1, |team| scatter(team, 0, 100));
}

/// Member `root` gets blocks of `len` bytes of all.
fn gather(team: &Team, root: usize, len: usize) {
    let block = |member: usize| vec![(root * 8 + member + 1) as u8; len];
    let own = SimStream::direct(&block(team.me()));
    let all = SimBlocks::run(&vec![vec![0; len]; team.size()]);
    block_on(team, async {
        let turn = team.open(0, 0, true).await?.expect("memory");
        if team.me() == root {
            op::gather::receive(turn, Some(&own), &all, usize::MAX).await
        } else {
            op::gather::send(turn, root, &own, usize::MAX).await
        }
    })
    .unwrap();
    if team.me() == root {
        (0..team.size()).for_each(|of| assert_eq!(all.contents(of), block(of)));
    }
}

#[test]
fn a_piece_of_a_block_stays_until_the_root_has_read_it() {
    for (fragments, sets) in [(1, 1), (2, 1), (2, 2)] {
        let config = config(fragments, sets, Mode::Yield);
        model(needs(&config, 2, true), config, 1, |team| {
            gather(team, 0, 600);
            gather(team, 1, 300);
        });
    }
}

#[test]
fn a_half_of_a_set_stays_until_the_root_has_read_it() {
    let mut config = Config { whole: 0, whole_gathered: 64, ..config(4, 1, Mode::Yield) };
    config.waiting.crowded = true;
    model(needs(&config, 2, true), config, 1, |team| {
        gather(team, 0, 1200);
        gather(team, 1, 300);
    });
}

#[test]
fn one_combines_for_all() {
    for (fragments, count) in [(1, 40), (2, 70)] {
        let mut config = Config { shared_work_min: 0, ..config(fragments, 1, Mode::Yield) };
        config.waiting.crowded = true;
        model(needs(&config, 2, true), config, 2, move |team| allreduce(team, count).unwrap());
    }
}

#[test]
fn all_decide_alike_when_one_gets_no_memory() {
    for poor in [vec![], vec![0], vec![1], vec![0, 1]] {
        let config = config(1, 1, Mode::Yield);
        let rich = poor.is_empty();
        let needs = Needs { poor, ..needs(&config, 2, true) };
        model(needs, config, 3, move |team| {
            let turn = block_on(team, team.open(0, 0, true)).unwrap();
            assert_eq!(turn.is_some(), rich);
            match turn {
                Some(turn) => block_on(team, op::barrier::barrier(turn)).unwrap(),
                None => barrier(team),
            }
        });
    }
}

/// Who has waited in vain, since the other one has failed, may use again what that one was reading.
#[test]
fn who_fails_reads_no_more() {
    let config = config(1, 1, Mode::Yield);
    model(needs(&config, 2, true), config, 3, |team| {
        let mut seen = 0;
        let ended = block_on(team, async {
            let turn = team.open(0, 0, true).await?.expect("memory");
            let slot = turn.slot(0, 0);
            if team.me() == 0 {
                // SAFETY: its own, and free.
                unsafe { copy::write(slot, &raw const seen, 1) };
                turn.publish(1);
                let waited = turn.read(1, 1).await;
                // SAFETY: the other one reads it no more.
                unsafe { copy::write(slot, &raw const seen, 1) };
                waited.map(drop)
            } else {
                turn.wrote(0, 1).await?;
                // SAFETY: published.
                unsafe { copy::read(&raw mut seen, slot, 1, false) };
                // The turn is dropped before it is finished.
                Ok(())
            }
        });
        assert_eq!(ended, if team.me() == 0 { Err(Error::Peer) } else { Ok(()) });
        assert!(team.has_failed());
    });
}

#[test]
fn no_wake_up_is_lost() {
    let config = config(2, 1, Mode::Block);
    model(needs(&config, 2, false), config, 3, |team| {
        barrier(team);
        bcast(team, 0, 3, 8);
    });
}

#[test]
fn no_wake_up_is_lost_where_the_end_wakes() {
    let config = config(1, 1, Mode::Block);
    model(needs(&config, 2, false), config, 3, |team| bcast(team, 0, 3, 8));
}

#[test]
fn no_wake_up_is_lost_between_steps() {
    let config = config(1, 1, Mode::Block);
    model(needs(&config, 2, true), config, 2, |team| bcast(team, 1, 3, 600));
}

#[test]
fn no_wake_up_is_lost_at_the_end_of_an_operation() {
    let config = config(1, 1, Mode::Block);
    model(needs(&config, 2, false), config, 3, |team| {
        block_on(team, async {
            let turn = team.open(0, 0, false).await?.expect("memory");
            // The other one has nothing to read: it ends the operation without counting a step.
            if team.me() == 0 {
                turn.read(1, 1).await?;
            }
            turn.finish();
            Result::Ok(())
        })
        .unwrap();
    });
}
