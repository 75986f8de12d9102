// SPDX-License-Identifier: BSD-3-Clause
//! The members of a team and their clocks.

use super::Time;
use super::caches::{Caches, Counts, LINE};
use super::machine::Machine;
use super::net::Places;
use super::net::endpoint::Carried;
use super::net::events::{Events, What};
use super::net::fabric::Fabric;
use super::net::network::LEVELS;
use super::net::pool::Pool;
use super::spent::{Cause, Path, Record, Spent};
use super::stacks::{Room, Stacks};
use super::state::{Member, State};
use super::window::Window;
use crate::sim::Traffic;
use crate::sync::timed::{Watch, Watched};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Between two operations members do something else, so that lines that were asked for have come: so it is
/// under a benchmark with synchronised starts, too.
const PAUSE: Time = 2_000_000;
/// More polls than this without an end are an endless wait.
const MOST_POLLS: u64 = 10_000_000;

/// A member's coroutine gives way to those who are behind it.
type GivesWay = Yielder<(), ()>;

/// Lets members whose clocks are behind go first before anything shared is touched: so all of it is touched
/// in the order of time.
pub(super) struct Told {
    pub state: RefCell<State<'static>>,
    /// That of the member that is running, while one is.
    running: Cell<Option<*const GivesWay>>,
    /// What members borrow.
    pub pool: Pool,
}

impl Told {
    fn suspend(&self, running: *const GivesWay) {
        // SAFETY: it is that of the coroutine that this runs in, which has not ended.
        unsafe { (*running).suspend(()) };
    }

    /// Lets those go first whose clocks are behind what the current member's will be after so long.
    fn in_order_after(&self, ahead: Time) {
        let Some(running) = self.running.get() else { return };
        let mut state = self.state.borrow_mut();
        let (current, then) = (state.current, state.members[state.current].now() + ahead);
        let goes_on = What::GoesOn(current as u32);
        if !state.events.is_first(then, goes_on) {
            state.events.push(then, goes_on);
            drop(state);
            self.suspend(running);
            self.running.set(Some(running));
        }
    }
}

impl Watch for Told {
    fn in_order(&self) {
        self.in_order_after(0);
    }

    fn load(&self, at: usize) {
        self.in_order();
        let request = {
            let mut state = self.state.borrow_mut();
            let Member { node, core, .. } = state.members[state.current];
            state.caches[node].request(core, at)
        };
        if request > 0 {
            self.in_order_after(request);
        }
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

    fn own(&self, at: usize) {
        self.in_order();
        let mut state = self.state.borrow_mut();
        let member = &state.members[state.current];
        let (node, core, now) = (member.node, member.core, member.now());
        state.caches[node].own(core, at, now);
    }

    fn awaits(&self, at: usize) {
        let mut state = self.state.borrow_mut();
        let current = state.current;
        let Member { node, core, .. } = state.members[current];
        // It was written since it was looked at: by somebody who was let go first meanwhile.
        state.members[current].looks_again |= !state.caches[node].has(core, at);
        state.members[current].awaits.push(at / LINE);
        state.waiting.entry(at / LINE).or_default().push(current);
    }

    fn system_copy(&self, of: usize, theirs: usize, own: usize, len: usize, writes: bool) {
        self.in_order();
        let mut state = self.state.borrow_mut();
        let [call, page, queued] = state.machine.system_copy;
        let pages = ((theirs + len).div_ceil(4096) - theirs / 4096) as Time;
        let current = state.current;
        let (node, now) = (state.members[current].node, state.members[current].now());
        let of = node * (state.members.len() / state.caches.len()) + of;
        // Who looks up pages takes the lock of the process and counts in each page: others' caches have both.
        let visits = &mut state.members[of].visits;
        visits.retain(|&until| until > now);
        let until = now + call + (page + queued * visits.len() as Time) * pages;
        visits.push(until);
        state.members[current].until(until, Cause::System);
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
    stacks: RefCell<Stacks>,
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
            Member::new(0, core)
        };
        Clock::of(machine, 1, cores.iter().map(member).collect(), None)
    }

    /// Of the ranks of a job on several nodes, which have messages with each other. Both are kept likewise.
    pub fn over(places: Places<'static>) -> Clock {
        let member = |rank| Member::new(places.node(rank) as usize, places.core(rank));
        let members = (0..places.size()).map(member).collect();
        Clock::of(places.machine, places.nodes as usize, members, Some(Fabric::new(places, true)))
    }

    fn of(machine: &'static Machine, nodes: usize, members: Vec<Member>, fabric: Option<Fabric<'static>>) -> Clock {
        let first = Caches::new(machine);
        let state = State {
            machine,
            caches: (1..nodes).map(|_| first.alike()).chain([first.alike()]).collect(),
            members,
            current: 0,
            waiting: FxHashMap::default(),
            events: Events::default(),
            fabric,
        };
        let told = Rc::new(Told { state: RefCell::new(state), running: Cell::new(None), pool: Pool::default() });
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
        state.settle();
        let end = state.members.iter().map(|member| member.now().max(member.stored)).max().unwrap_or(0);
        let start = end + PAUSE;
        let (call, recorded) = (state.machine.call, self.recorded.get());
        for member in &mut state.members {
            (member.issued, member.done, member.stored) = (start, start, start);
            (member.misses, member.stores) = (Window::default(), Window::default());
            member.awaits.clear();
            (member.looks_again, member.idle) = (false, false);
            (member.by, member.path) = ([0; Cause::COUNT], Path::default());
            member.record = recorded.then(|| Record::new(start));
            member.until(start + call, Cause::Work);
        }
        state.waiting.clear();
        for number in 0..state.members.len() {
            let now = state.members[number].now();
            state.events.push(now, What::GoesOn(number as u32));
        }
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
        let _carried = Carried::by(Rc::<Told>::clone(&self.told));
        let told = &*self.told;
        let mut coroutines: Vec<Option<Coroutine<(), (), (), Room>>> = works
            .into_iter()
            .map(|work| {
                let stack = self.stacks.borrow_mut().take(count);
                let body = move |running: &GivesWay, ()| poll_to_end(told, running, work);
                // SAFETY: the coroutines end, or are dropped, before this function returns: before what the
                // works borrow goes.
                Some(unsafe { Coroutine::with_stack_unchecked(stack, body) })
            })
            .collect();
        let mut left = count;
        while left > 0 {
            let next = told.state.borrow_mut().next();
            let Some(current) = next else {
                let stuck: Vec<_> = (0..count).filter(|&member| coroutines[member].is_some()).collect();
                panic!("nobody can go on; members {stuck:?} wait");
            };
            let Some(coroutine) = coroutines[current].as_mut() else { continue };
            if let CoroutineResult::Return(()) = coroutine.resume(()) {
                if let Some(ended) = coroutines[current].take() {
                    self.stacks.borrow_mut().give_back(ended.into_stack());
                }
                left -= 1;
            }
            told.running.set(None);
        }
        let state = told.state.borrow();
        let spent = |member: &Member| Spent { time: member.now() - start, by: member.by, path: member.path };
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
        let state = self.told.state.borrow();
        state.caches.iter().fold(Counts::default(), |sum, caches| sum.and(&caches.counts))
    }

    /// Messages and bytes so far, by [level](Places::level).
    pub fn traffic(&self) -> [Traffic; LEVELS] {
        self.told.state.borrow().fabric.as_ref().map(|fabric| fabric.traffic).unwrap_or_default()
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
            member.mail = false;
        }
        if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        let mut state = told.state.borrow_mut();
        let current = state.current;
        let member = &mut state.members[current];
        member.idle = !std::mem::take(&mut member.looks_again) && (member.mail || !member.awaits.is_empty());
        if !member.idle {
            member.awaits.clear();
            let now = member.now();
            state.events.push(now, What::GoesOn(current as u32));
        }
        drop(state);
        told.suspend(running);
    }
    panic!("an endless wait");
}
