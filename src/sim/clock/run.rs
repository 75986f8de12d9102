// SPDX-License-Identifier: BSD-3-Clause
//! The members of a team and their clocks.

use super::Time;
use super::caches::{Caches, Counts, LINE};
use super::machine::Machine;
use super::spent::{Cause, Record, Spent};
use super::window::Window;
use crate::sync::timed::{Watch, Watched};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Up to so many bytes are read and written as words are: each line by itself.
const WORDS: usize = 256;
/// Bytes of a member's stack.
const STACK: usize = 1 << 20;
/// More polls than this without an end are an endless wait.
const MOST_POLLS: u64 = 10_000_000;

/// What the clock knows of a member.
struct Member {
    core: u32,
    /// Instructions are so far.
    issued: Time,
    /// What they need is there.
    done: Time,
    /// Its stores so far are seen by others.
    stored: Time,
    /// Misses under way: when they are done, oldest first.
    misses: Window,
    /// Stores under way likewise.
    stores: Window,
    /// The lines whose change it waits for.
    awaits: Vec<usize>,
    /// One of them has changed already.
    looks_again: bool,
    by: [Time; Cause::COUNT],
    /// What it does, where that is recorded.
    record: Option<Record>,
}

impl Member {
    fn now(&self) -> Time {
        self.issued.max(self.done)
    }

    /// Time goes on to then.
    fn until(&mut self, then: Time, cause: Cause) {
        let since = self.now();
        if then > since {
            (self.issued, self.done) = (then, then);
            self.spent(since, cause);
        }
    }

    /// So its time since then was spent.
    fn spent(&mut self, since: Time, cause: Cause) {
        let now = self.now();
        self.by[cause as usize] += now - since;
        if let Some(record) = self.record.as_mut().filter(|_| now > since) {
            record.span(cause, since, now);
        }
    }
}

struct State<'m> {
    machine: &'m Machine,
    caches: Caches<'m>,
    members: Vec<Member>,
    current: usize,
    /// Who waits for a line.
    waiting: FxHashMap<usize, Vec<usize>>,
    /// Who can go on, and since when.
    ready: BinaryHeap<Reverse<(Time, usize)>>,
}

impl State<'_> {
    fn load(&mut self, at: usize) {
        let (machine, member) = (self.machine, &self.members[self.current]);
        let access = self.caches.load(member.core, at, member.issued);
        // Who is late by so little does not wait, but is held up all the same.
        let by = access.held_up.filter(|_| member.record.is_some());
        let by = by.and_then(|(core, written)| Some((self.members.iter().position(|m| m.core == core)?, written)));
        let member = &mut self.members[self.current];
        // Only what makes it later counts: causes add up to the time.
        let before = member.now();
        if !access.missed {
            member.issued += machine.handover[0];
            member.done = member.done.max(access.done);
            member.spent(before, Cause::Work);
            return;
        }
        member.done = member.done.max(access.done);
        // The oldest miss must be over before another one begins.
        if let (Some((by, written)), Some(record)) = (by, &mut member.record) {
            record.wait(by, [before, written, access.done]);
        }
        let oldest = member.misses.enter(machine.misses, access.done);
        member.issued = member.issued.max(oldest) + machine.handover[0];
        member.spent(before, Cause::Lines);
    }

    fn store(&mut self, at: usize) {
        let member = &mut self.members[self.current];
        // Stores are seen in their order, but the lines of several are asked for at the same time.
        let oldest = member.stores.oldest(self.machine.misses);
        let seen = self.caches.store(member.core, at, member.now().max(oldest)).max(member.stored);
        member.stores.enter(self.machine.misses, seen);
        member.stored = seen;
        let before = member.now();
        member.issued += self.machine.store;
        member.spent(before, Cause::Work);
        for waiting in self.waiting.remove(&(at / LINE)).unwrap_or_default() {
            let other = &mut self.members[waiting];
            // It may have gone on since, and wait for another one.
            if !other.awaits.contains(&(at / LINE)) {
                continue;
            }
            other.awaits.clear();
            let since = other.now();
            if let Some(record) = &mut other.record {
                record.wait(self.current, [since, before, seen]);
            }
            other.until(seen, Cause::Waiting);
            other.until(other.now() + self.machine.wrong_guess, Cause::Work);
            other.misses = Window::default();
            self.ready.push(Reverse((other.now(), waiting)));
        }
    }

    fn copy(&mut self, at: usize, len: usize, writes: bool) {
        if len <= WORDS {
            for line in at / LINE..(at + len).div_ceil(LINE) {
                match writes {
                    true => self.store(line * LINE),
                    false => self.load(line * LINE),
                }
            }
            return;
        }
        let member = &mut self.members[self.current];
        let done = self.caches.stream(member.core, at, len, member.now(), writes);
        member.until(done, Cause::Copies);
        if writes {
            member.stored = member.stored.max(done);
        }
    }
}

/// A member's coroutine gives way to those who are behind it.
type GivesWay = Yielder<(), ()>;

/// Lets members whose clocks are behind go first before anything shared is touched: so all of it is touched
/// in the order of time.
struct Told {
    state: RefCell<State<'static>>,
    /// That of the member that is running, while one is.
    running: Cell<Option<*const GivesWay>>,
}

impl Told {
    fn suspend(&self, running: *const GivesWay) {
        // SAFETY: it is that of the coroutine that this runs in, which has not ended.
        unsafe { (*running).suspend(()) };
    }
}

impl Watch for Told {
    fn in_order(&self) {
        let Some(running) = self.running.get() else { return };
        let mut state = self.state.borrow_mut();
        let (current, now) = (state.current, state.members[state.current].now());
        let is_first = state.ready.peek().is_none_or(|Reverse(first)| (now, current) <= *first);
        if !is_first {
            state.ready.push(Reverse((now, current)));
            drop(state);
            self.suspend(running);
            self.running.set(Some(running));
        }
    }

    fn load(&self, at: usize) {
        self.in_order();
        self.state.borrow_mut().load(at);
    }

    fn store(&self, at: usize) {
        self.state.borrow_mut().store(at);
    }

    fn read(&self, at: usize, len: usize) {
        self.in_order();
        self.state.borrow_mut().copy(at, len, false);
    }

    fn write(&self, at: usize, len: usize) {
        self.in_order();
        self.state.borrow_mut().copy(at, len, true);
    }

    fn awaits(&self, at: usize) {
        let mut state = self.state.borrow_mut();
        let current = state.current;
        let core = state.members[current].core;
        // It was written since it was looked at: by somebody who was let go first meanwhile.
        state.members[current].looks_again |= !state.caches.has(core, at);
        state.members[current].awaits.push(at / LINE);
        state.waiting.entry(at / LINE).or_default().push(current);
    }

    fn system_copy(&self, theirs: usize, own: usize, len: usize, writes: bool) {
        self.in_order();
        let mut state = self.state.borrow_mut();
        let [call, page] = state.machine.system_copy;
        let pages = (theirs + len).div_ceil(4096) - theirs / 4096;
        let current = state.current;
        let member = &mut state.members[current];
        member.until(member.now() + call + page * pages as Time, Cause::System);
        state.copy(theirs, len, writes);
        state.copy(own, len, !writes);
    }

    fn combine(&self, len: usize) {
        let mut state = self.state.borrow_mut();
        let (current, takes) = (state.current, state.machine.combine * len.div_ceil(LINE) as Time);
        let member = &mut state.members[current];
        member.until(member.now() + takes, Cause::Combining);
    }
}

/// What a member does.
pub type Work<'w> = Pin<Box<dyn Future<Output = ()> + 'w>>;

/// The members of a team on the cores of a machine.
pub struct Clock {
    told: Rc<Told>,
    /// Stacks of coroutines that have ended, for the next ones.
    stacks: RefCell<Vec<DefaultStack>>,
    recorded: Cell<bool>,
}

impl Clock {
    /// Member i is on core `cores[i]`. The machine is kept for as long as the program runs.
    ///
    /// # Panics
    /// A core that the machine does not have.
    pub fn new(machine: &'static Machine, cores: &[u32]) -> Clock {
        let count = machine.shape.cores();
        let member = |&core: &u32| {
            assert!(core < count, "core {core} of {count}");
            Member {
                core,
                issued: 0,
                done: 0,
                stored: 0,
                misses: Window::default(),
                stores: Window::default(),
                awaits: Vec::new(),
                looks_again: false,
                by: [0; Cause::COUNT],
                record: None,
            }
        };
        let state = State {
            machine,
            caches: Caches::new(machine),
            members: cores.iter().map(member).collect(),
            current: 0,
            waiting: FxHashMap::default(),
            ready: BinaryHeap::new(),
        };
        let told = Rc::new(Told { state: RefCell::new(state), running: Cell::new(None) });
        Clock { told, stacks: RefCell::default(), recorded: Cell::new(false) }
    }

    /// Does something as a member outside of all operations: preparations.
    pub fn apart<R>(&self, member: usize, what: impl FnOnce() -> R) -> R {
        self.told.state.borrow_mut().current = member;
        let _watched = Watched::by(Rc::<Told>::clone(&self.told));
        what()
    }

    /// All clocks show the same time, and nobody waits: when that is.
    fn begin(&self) -> Time {
        let mut state = self.told.state.borrow_mut();
        let start = state.members.iter().map(|member| member.now().max(member.stored)).max().unwrap_or(0);
        let (call, recorded) = (state.machine.call, self.recorded.get());
        for member in &mut state.members {
            (member.issued, member.done, member.stored) = (start, start, start);
            (member.misses, member.stores) = (Window::default(), Window::default());
            member.awaits.clear();
            member.by = [0; Cause::COUNT];
            member.record = recorded.then(|| Record::new(start));
            member.until(start + call, Cause::Work);
        }
        state.waiting.clear();
        let ready = state.members.iter().enumerate().map(|(number, member)| Reverse((member.now(), number)));
        state.ready = ready.collect();
        start
    }

    /// Runs what each member does, all from the same moment on, and returns what that took each of them.
    ///
    /// # Panics
    /// When nobody can go on, or one of them panics.
    pub fn run(&self, works: Vec<Work<'_>>) -> Vec<Spent> {
        let count = works.len();
        assert_eq!(count, self.told.state.borrow().members.len(), "a future for each member");
        let start = self.begin();
        let _watched = Watched::by(Rc::<Told>::clone(&self.told));
        let told = &*self.told;
        let mut coroutines: Vec<Option<Coroutine<(), (), (), DefaultStack>>> = works
            .into_iter()
            .map(|work| {
                let kept = self.stacks.borrow_mut().pop();
                let stack = kept.unwrap_or_else(|| DefaultStack::new(STACK).expect("memory for a stack"));
                let body = move |running: &GivesWay, ()| poll_to_end(told, running, work);
                // SAFETY: the coroutines end, or are dropped, before this function returns: before what the
                // works borrow goes.
                Some(unsafe { Coroutine::with_stack_unchecked(stack, body) })
            })
            .collect();
        let mut left = count;
        while left > 0 {
            let next = {
                let mut state = told.state.borrow_mut();
                let next = state.ready.pop().map(|Reverse((_, member))| member);
                state.current = next.unwrap_or(0);
                next
            };
            let Some(current) = next else {
                let stuck: Vec<_> = (0..count).filter(|&member| coroutines[member].is_some()).collect();
                panic!("nobody can go on; members {stuck:?} wait");
            };
            let Some(coroutine) = coroutines[current].as_mut() else { continue };
            if let CoroutineResult::Return(()) = coroutine.resume(()) {
                self.stacks.borrow_mut().extend(coroutines[current].take().map(Coroutine::into_stack));
                left -= 1;
            }
            told.running.set(None);
        }
        let state = told.state.borrow();
        let spent = |member: &Member| Spent { time: member.now() - start, by: member.by };
        state.members.iter().map(spent).collect()
    }

    /// From now on what members do in an operation is recorded, or not.
    pub fn record(&self, is: bool) {
        self.recorded.set(is);
    }

    /// What they did in the latest one, if it was.
    pub fn take_records(&self) -> Vec<Record> {
        let members = &mut self.told.state.borrow_mut().members;
        members.iter_mut().filter_map(|member| member.record.take()).collect()
    }

    /// How often what happened so far.
    pub fn counts(&self) -> Counts {
        self.told.state.borrow().caches.counts
    }
}

/// Polls what a member does until it is done; while it waits for words, others run.
fn poll_to_end(told: &Told, running: &GivesWay, mut work: Work<'_>) {
    for _ in 0..MOST_POLLS {
        told.running.set(Some(running));
        {
            let mut state = told.state.borrow_mut();
            let (current, poll) = (state.current, state.machine.poll);
            let member = &mut state.members[current];
            member.until(member.now() + poll, Cause::Work);
        }
        if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        let mut state = told.state.borrow_mut();
        let current = state.current;
        let member = &mut state.members[current];
        if std::mem::take(&mut member.looks_again) || member.awaits.is_empty() {
            member.awaits.clear();
            let now = member.now();
            state.ready.push(Reverse((now, current)));
        }
        drop(state);
        told.suspend(running);
    }
    panic!("an endless wait");
}
