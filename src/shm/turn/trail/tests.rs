use super::*;
use crate::endpoint::{Blocks, Result, Span, Stream};
use crate::shm::copy::ThroughCaches;
use crate::shm::heap::Heap;
use crate::shm::layout::SHORT;
use crate::shm::op::{self, Combine};
use crate::shm::team::Team;
use crate::shm::turn::Turn;
use crate::shm::turn::slots::tests::opened;
use crate::sync::cache::ASKED;
use crate::sync::wait::Waiting;
use std::pin::Pin;
use std::task::{Context, Waker};

fn fragments(trail: &Trail) -> Vec<u32> {
    trail.fragments.iter().map(|f| f.load(Ordering::Relaxed)).collect()
}

#[test]
fn lines_of_short_slots_are_noted_one_by_one() {
    let trail = Trail::new(&Config { fragments: 4, ..Config::default() });
    trail.note(2 * 4096 + 60, 8);
    trail.note(2 * 4096 + 640, 64);
    trail.note(7 * 4096, 4096);
    let lines: Vec<_> = trail.lines.iter().map(|l| l.load(Ordering::Relaxed)).collect();
    assert_eq!(lines, [0, 0, 0b100_0000_0011, 0, 0, 0, 0, u64::MAX, 0]);
    assert_eq!(fragments(&trail), [0; 4]);
    trail.take_short(2, std::ptr::null());
    assert!(!trail.has_short(2) && trail.has_short(7));
}

#[test]
fn fragments_are_noted_from_their_beginnings_on() {
    let trail = Trail::new(&Config { fragments: 6, ..Config::default() });
    let base = 8 * 4096;
    trail.note(base + 100, 50);
    trail.note(base, 20);
    // As long as two and a bit.
    trail.note(base + 2 * 16384, 2 * 16384 + 7);
    assert_eq!(fragments(&trail), [150, 0, 16384, 16384, 7, 0]);
    // Beyond the queue: nothing to do.
    trail.note(base + 6 * 16384, 5);
    trail.take_set(2..3, std::ptr::null());
    trail.forget_set(3..4);
    assert_eq!(fragments(&trail), [150, 0, 0, 0, 7, 0]);
    assert!(trail.has_set(0) && !trail.has_set(2));
}

#[test]
fn who_has_written_something_short_that_rotates_asks_for_what_comes_next() {
    let _through_caches = ThroughCaches::begin();
    let config =
        Config { fragments: 32, sets: 2, rotates: true, still: 0, first_op: u32::MAX - 20, ..Config::default() };
    let teams = opened(2, config);
    let asked = |len: usize| {
        let turn = teams[0].turn(0, 0, true).expect("it is open");
        match len {
            0 => {}
            // Slots of longer messages lie elsewhere next time.
            4000 => _ = turn.mine(turn.slot_of(0, 1, len), len),
            _ => _ = turn.mine(turn.room(0, len), len),
        }
        ASKED.set(Some(Vec::new()));
        turn.finish();
        ASKED.take().unwrap()
    };
    for len in [0, 512, 2048, 4096, 4000].into_iter().cycle().take(50) {
        let asked = asked(len);
        let next = teams[0].turn(0, 0, true).expect("it is open");
        let begin = next.room(0, SHORT).addr();
        let wanted = if len == 4000 { 0 } else { (len / BYTES).min(ROTATED) };
        assert!((0..wanted).all(|line| asked.contains(&(begin + line * BYTES))), "{len}");
        let beyond = begin + wanted * BYTES..begin + SHORT;
        assert!(!asked.iter().any(|at| beyond.contains(at)), "{len}");
        next.finish();
    }
}

/// Adds bytes.
struct Add;

impl Combine for Add {
    fn size(&self) -> usize {
        1
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        for i in 0..count {
            // SAFETY: by the caller's promise.
            unsafe { *right.add(i) = right.add(i).read().wrapping_add(left.add(i).read()) };
        }
    }
}

/// Data in one run, or two blocks of so many bytes, one after the other.
struct Plain(Span, usize);

impl Stream for Plain {
    fn len(&self) -> usize {
        self.1
    }

    fn direct(&self) -> Option<Span> {
        Some(self.0)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }
}

impl Blocks for Plain {
    fn len(&self, _: usize) -> usize {
        self.1
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        Some(self.0.slice(members.start * self.1..members.end * self.1))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }
}

type Work<'w> = Pin<Box<dyn Future<Output = Result<()>> + 'w>>;

/// Runs one operation of both members.
fn run(mut works: [Work<'_>; 2]) {
    let mut over = [false; 2];
    for _ in 0..10_000 {
        for (work, over) in works.iter_mut().zip(&mut over) {
            *over = *over || work.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(Result::unwrap).is_ready();
        }
        if over == [true; 2] {
            return;
        }
    }
    panic!("it hangs");
}

/// An operation of one member, of blocks of so many bytes.
fn work<'t>(name: &'static str, team: &'t Team, len: usize) -> Work<'t> {
    Box::pin(async move {
        let turn = team.open(0, 0, true).await?.expect("there is memory");
        let me = team.me();
        let (mut first, mut second) = (vec![7; 2 * len], vec![0; 2 * len]);
        let (input, output) = (Span::new(first.as_mut_ptr(), len, 1), Span::new(second.as_mut_ptr(), len, 1));
        let both = |buffer: &mut Vec<u8>| Plain(Span::new(buffer.as_mut_ptr(), 2 * len, 1), len);
        let (own, out, all) = (Plain(input, len), both(&mut first), both(&mut second));
        match (name, me) {
            ("bcast", _) => op::bcast::bcast(turn, 0, &own, usize::MAX).await,
            ("gather", 0) => op::gather::receive(turn, Some(&own), &all, usize::MAX).await,
            ("gather", _) => op::gather::send(turn, 0, &own, usize::MAX).await,
            ("scatter", 0) => op::scatter::send(turn, &all, Some(&own), usize::MAX).await,
            ("scatter", _) => op::scatter::receive(turn, 0, &own, usize::MAX).await,
            ("allgather", _) => op::allgather::allgather(turn, Some(&own), &all, usize::MAX).await,
            ("alltoall", _) => op::alltoall::alltoall(turn, Some(&out), &all, usize::MAX).await,
            ("reduce", _) => op::reduce::reduce(turn, 0, &Add, input, output).await,
            ("allreduce", _) => op::allreduce::allreduce(turn, &Add, input, output, usize::MAX).await,
            ("reduce_scatter", _) => op::reduce_scatter::reduce_scatter(turn, &Add, input, |_| len / 2, output).await,
            ("scan", _) => op::scan::scan(turn, false, &Add, input, output).await,
            _ => op::barrier::barrier(turn).await,
        }
    })
}

/// Two members of one team.
fn pair(config: Config) -> Vec<Team> {
    let heap = Heap::new(2, 8, false);
    (0..2).map(|me| Team::new(heap.member(me), config)).collect()
}

/// Whether the trail of a member leads to the slots of operation `op`: the short one, the set.
fn leads(team: &Team, op: u32) -> [bool; 2] {
    let turn = team.turn(0, 0, true).expect("it is open");
    let trail = &turn.queues.expect("there is one").trail;
    let config = team.config();
    let found = [
        trail.has_short((op & (u32::from(config.shorts) - 1)) as usize),
        trail.has_set(set_of(op, config.sets) * (config.fragments / usize::from(config.sets))),
    ];
    // Another operation, which writes nothing.
    turn.finish();
    found
}

#[test]
fn operations_take_back_what_they_have_written() {
    let _through_caches = ThroughCaches::begin();
    // Who writes, and whether so many bytes are noted: the shared work of a long allreduce is not.
    for (name, writer) in [
        ("bcast", 0),
        ("gather", 1),
        ("scatter", 0),
        ("allgather", 1),
        ("alltoall", 0),
        ("reduce", 1),
        ("allreduce", 0),
        ("reduce_scatter", 0),
        ("scan", 0),
    ] {
        for len in [1000, 30_000] {
            if name == "allreduce" && len > 4096 {
                continue;
            }
            let teams = pair(Config::default());
            let both = |name| run([work(name, &teams[0], len), work(name, &teams[1], len)]);
            let first = Config::default().first_op;
            both(name);
            let noted = teams.iter().map(|team| leads(team, first)).collect::<Vec<_>>();
            assert!(noted[writer].contains(&true), "{name} of {len} bytes has noted nothing");
            (0..Config::default().lines).for_each(|_| both("barrier"));
            assert_eq!(leads(&teams[writer], first), [false; 2], "{name} of {len} bytes was not taken back");
        }
    }
}

#[test]
fn nothing_is_noted_where_processes_take_turns() {
    let waiting = Waiting { crowded: true, ..Waiting::default() };
    let config = Config { waiting, ..Config::default() };
    for name in ["bcast", "alltoall"] {
        let teams = pair(config);
        run([work(name, &teams[0], 30_000), work(name, &teams[1], 30_000)]);
        assert_eq!(leads(&teams[0], config.first_op), [false; 2], "{name}");
    }
}

#[test]
fn sets_whose_slots_rotate_are_not_noted() {
    let _through_caches = ThroughCaches::begin();
    for (rotates, sets_noted) in [(false, true), (true, false)] {
        let teams = pair(Config { rotates, ..Config::default() });
        for len in [1000, 30_000] {
            run([work("bcast", &teams[0], len), work("bcast", &teams[1], len)]);
        }
        let turns: Vec<_> = teams.iter().map(|team| team.turn(0, 0, true).expect("it is open")).collect();
        let trails: Vec<_> = turns.iter().map(|turn| &turn.queues.expect("there is one").trail).collect();
        let noted = trails.iter().any(|trail| fragments(trail).iter().any(|&bytes| bytes > 0));
        assert_eq!(noted, sets_noted, "{rotates}");
        assert!(trails.iter().any(|trail| (0..8).any(|slot| trail.has_short(slot))));
        turns.into_iter().for_each(Turn::finish);
    }
}

#[test]
fn nothing_is_taken_back_after_many_operations_without_queues() {
    for (between, taken) in [(WARM - 1, true), (WARM, false)] {
        let teams = pair(Config::default());
        let both = |name, len| run([work(name, &teams[0], len), work(name, &teams[1], len)]);
        // In slots, if not in one's own.
        both("scatter", 1000);
        (0..between).for_each(|_| both("barrier", 0));
        for team in &teams {
            let turn = team.turn(0, 0, true).expect("it is open");
            assert_eq!(turn.queues.expect("there is one").trail.is_warm(turn.op), taken, "{between}");
            turn.finish();
        }
    }
}

#[test]
fn who_is_far_ahead_looks_once_for_each_long_operation() {
    let _through_caches = ThroughCaches::begin();
    let teams = pair(Config::default());
    run([work("barrier", &teams[0], 8), work("barrier", &teams[1], 8)]);
    let op = Config::default().first_op + 1;
    // The other member does not come.
    let ends = work("bcast", &teams[0], 30_000).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(ends);
    assert!(leads(&teams[0], op)[1], "noted");
    assert!(!leads(&teams[0], op)[1], "forgotten when it was asked for");
}
