// SPDX-License-Identifier: BSD-3-Clause
//! Times the shared-memory operations between threads that are bound to a core each: what the protocol costs
//! without MPI.
//!
//!     cargo run --release --example shm_bench -- [members] [fragment] [fragments] [sets] [shared work from]
//!     [bypass from]

use coll_rust::endpoint::{Result, Span, Stream};
use coll_rust::shm::memory::heap::Heap;
use coll_rust::shm::op::{self, Combine};
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sync::wait::{Patience, Waiting, yield_now};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

struct Sum;

impl Combine for Sum {
    fn size(&self) -> usize {
        8
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        let (left, right) = (left.cast::<f64>(), right.cast::<f64>());
        // SAFETY: by the caller's promise.
        (0..count).for_each(|i| unsafe { *right.add(i) += *left.add(i) });
    }

    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        let (left, right, out) = (left.cast::<f64>(), right.cast::<f64>(), out.cast::<f64>());
        // SAFETY: by the caller's promise.
        (0..count).for_each(|i| unsafe { *out.add(i) = *left.add(i) + *right.add(i) });
    }
}

/// Bytes in one run.
struct Bytes(Span);

impl Stream for Bytes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn direct(&self) -> Option<Span> {
        Some(self.0)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("direct")
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("direct")
    }
}

fn block_on<T>(team: &Team, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut patience = Patience::default();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => return result,
            Poll::Pending if team.pause(&mut patience) => yield_now(),
            Poll::Pending => {}
        }
    }
}

fn bind(core: usize) {
    // SAFETY: a zeroed set is a set, and it is ours.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Best and median of several rounds, in ns per call.
fn time(team: &Team, calls: usize, mut call: impl FnMut()) -> (f64, f64) {
    let mut rounds: Vec<f64> = (0..15)
        .map(|_| {
            block_on(team, op::barrier::barrier(team.turn(0, 0, false).expect("open"))).expect("a barrier");
            let start = Instant::now();
            (0..calls).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / calls as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[rounds.len() / 2])
}

fn member(team: &Team, cores: usize) {
    bind(team.me() % cores);
    let say = |name: &str, bytes: usize, (best, median): (f64, f64)| {
        if team.me() == 0 {
            println!("{name:>24} {bytes:>8} B  best {best:>10.1} ns  median {median:>10.1} ns");
        }
    };
    if let Ok(Some(turn)) = block_on(team, team.open(0, 0, true)) {
        turn.finish();
    }
    let turn = || team.turn(0, 0, true).expect("open");
    let barrier = || block_on(team, op::barrier::barrier(turn())).expect("barrier");
    say("barrier", 0, time(team, 20_000, barrier));
    for bytes in [8, 56, 64, 512, 4096, 16384, 65536, 262_144, 1 << 20, 4 << 20] {
        let calls = (2_000_000 / (bytes + 200)).clamp(8, 10_000);
        let (mut input, mut output) = (vec![1.0_f64; bytes / 8], vec![0.0_f64; bytes / 8]);
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let data = Bytes(unsafe { Span::new(input.as_mut_ptr().cast(), bytes, 1) });
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let (from, to) = (unsafe { Span::new(input.as_mut_ptr().cast(), bytes / 8, 8) }, unsafe {
            Span::new(output.as_mut_ptr().cast(), bytes / 8, 8)
        });
        let bcast = || block_on(team, op::bcast::bcast(turn(), 0, &data, usize::MAX)).expect("bcast");
        say("bcast (runs ahead)", bytes, time(team, calls, bcast));
        let both = || {
            bcast();
            barrier();
        };
        say("bcast + barrier", bytes, time(team, calls, both));
        let allreduce =
            || block_on(team, op::allreduce::allreduce(turn(), &Sum, from, to, usize::MAX)).expect("allreduce");
        say("allreduce", bytes, time(team, calls, allreduce));
        let reduce = || {
            block_on(team, op::reduce::reduce(turn(), 0, &Sum, from, to)).expect("reduce");
            barrier();
        };
        say("reduce + barrier", bytes, time(team, calls, reduce));
    }
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let get = |i: usize, otherwise| numbers.get(i).copied().unwrap_or(otherwise);
    let (members, usual) = (get(0, 2), Config::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let waiting = Waiting { crowded: members > cores, ..Waiting::default() };
    let config = Config {
        shared_work_min: get(4, usual.shared_work_min),
        bypass_min: get(5, usual.bypass_min),
        fragment: get(1, usual.fragment),
        fragments: get(2, usual.fragments),
        sets: get(3, usual.sets.into()) as u8,
        waiting,
        ..usual
    };
    let heap = Heap::new(members, usize::MAX, false);
    std::thread::scope(|scope| {
        for me in 0..members {
            let heap = &heap;
            scope.spawn(move || member(&Team::new(heap.member(me), config), cores));
        }
    });
}
