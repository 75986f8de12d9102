//! The members of a team and their clocks.

use super::Time;
use super::caches::{Caches, Counts, LINE};
use super::machine::Machine;
use crate::sync::timed::{Watch, Watched};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Up to so many bytes are read and written as words are: each line by itself.
const WORDS: usize = 256;
/// More polls of a member in one operation are an endless wait.
const MOST_POLLS: u64 = 10_000_000;

/// What a member spends its time with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Instructions that touch nothing shared.
    Work,
    /// Words and lines of other cores.
    Lines,
    /// Long copies.
    Copies,
    /// System calls that copy.
    System,
    /// Combining operands.
    Combining,
    /// Waiting for others.
    Waiting,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// Every cause.
    pub const ALL: [Cause; Cause::COUNT] =
        [Cause::Work, Cause::Lines, Cause::Copies, Cause::System, Cause::Combining, Cause::Waiting];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        ["work", "lines", "copies", "system", "combining", "waiting"][self as usize]
    }
}

/// What one operation took a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// From its start to its end.
    pub time: Time,
    /// With what, by [`Cause`].
    pub by: [Time; Cause::COUNT],
}

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
    misses: Vec<Time>,
    next_miss: usize,
    /// The lines whose change it waits for.
    awaits: Vec<usize>,
    by: [Time; Cause::COUNT],
}

impl Member {
    fn now(&self) -> Time {
        self.issued.max(self.done)
    }

    /// Time goes on to then.
    fn until(&mut self, then: Time, cause: Cause) {
        let now = self.now();
        if then > now {
            self.by[cause as usize] += then - now;
            (self.issued, self.done) = (then, then);
        }
    }
}

struct State<'m> {
    machine: &'m Machine,
    caches: Caches<'m>,
    members: Vec<Member>,
    current: usize,
    /// Who waits for a line.
    waiting: HashMap<usize, Vec<usize>>,
    /// Who can go on, and since when.
    ready: BinaryHeap<Reverse<(Time, usize)>>,
}

impl State<'_> {
    fn load(&mut self, at: usize) {
        let (machine, member) = (self.machine, &mut self.members[self.current]);
        let access = self.caches.load(member.core, at, member.issued);
        if !access.missed {
            let hit = machine.handover[0];
            member.issued += hit;
            member.by[Cause::Work as usize] += hit;
            member.done = member.done.max(access.done);
            return;
        }
        let before = member.now();
        member.done = member.done.max(access.done);
        // The oldest miss must be over before another one begins.
        let most = machine.misses.max(1) as usize;
        if member.misses.len() < most {
            member.misses.push(access.done);
        } else {
            member.next_miss = (member.next_miss + 1) % most;
            let oldest = std::mem::replace(&mut member.misses[member.next_miss], access.done);
            member.issued = member.issued.max(oldest);
        }
        member.issued += machine.handover[0];
        member.by[Cause::Lines as usize] += member.now() - before;
    }

    fn store(&mut self, at: usize) {
        let member = &mut self.members[self.current];
        let seen = self.caches.store(member.core, at, member.now().max(member.stored));
        member.stored = seen;
        member.issued += self.machine.store;
        member.by[Cause::Work as usize] += self.machine.store;
        for waiting in self.waiting.remove(&(at / LINE)).unwrap_or_default() {
            let other = &mut self.members[waiting];
            // It may have gone on since, and wait for another one.
            if !other.awaits.contains(&(at / LINE)) {
                continue;
            }
            other.awaits.clear();
            other.until(seen, Cause::Waiting);
            other.until(other.now() + self.machine.wrong_guess, Cause::Work);
            other.misses.clear();
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

struct Told<'m>(RefCell<State<'m>>);

impl Watch for Told<'_> {
    fn load(&self, at: usize) {
        self.0.borrow_mut().load(at);
    }

    fn store(&self, at: usize) {
        self.0.borrow_mut().store(at);
    }

    fn read(&self, at: usize, len: usize) {
        self.0.borrow_mut().copy(at, len, false);
    }

    fn write(&self, at: usize, len: usize) {
        self.0.borrow_mut().copy(at, len, true);
    }

    fn awaits(&self, at: usize) {
        let mut state = self.0.borrow_mut();
        let current = state.current;
        state.members[current].awaits.push(at / LINE);
        state.waiting.entry(at / LINE).or_default().push(current);
    }

    fn system_copy(&self, theirs: usize, own: usize, len: usize, writes: bool) {
        let mut state = self.0.borrow_mut();
        let [call, page] = state.machine.system_copy;
        let pages = (theirs + len).div_ceil(4096) - theirs / 4096;
        let current = state.current;
        let member = &mut state.members[current];
        let begin = member.now() + call + page * pages as Time;
        member.until(begin, Cause::System);
        state.copy(theirs, len, writes);
        state.copy(own, len, !writes);
    }

    fn combine(&self, len: usize) {
        let mut state = self.0.borrow_mut();
        let (current, takes) = (state.current, state.machine.combine * len.div_ceil(LINE) as Time);
        let member = &mut state.members[current];
        member.until(member.now() + takes, Cause::Combining);
    }
}

/// The members of a team on the cores of a machine.
pub struct Clock {
    told: Rc<Told<'static>>,
    polls: Time,
    call: Time,
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
                misses: Vec::new(),
                next_miss: 0,
                awaits: Vec::new(),
                by: [0; Cause::COUNT],
            }
        };
        let state = State {
            machine,
            caches: Caches::new(machine),
            members: cores.iter().map(member).collect(),
            current: 0,
            waiting: HashMap::new(),
            ready: BinaryHeap::new(),
        };
        Clock { told: Rc::new(Told(RefCell::new(state))), polls: machine.poll, call: machine.call }
    }

    /// Does something as a member whose time does not count: preparations.
    pub fn apart<R>(&self, member: usize, what: impl FnOnce() -> R) -> R {
        self.told.0.borrow_mut().current = member;
        let _watched = Watched::by(Rc::<Told<'static>>::clone(&self.told));
        what()
    }

    /// Runs what each member does, all from the same moment on, and returns what that took each of them.
    ///
    /// # Panics
    /// When nobody can go on.
    pub fn run(&self, works: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) -> Vec<Spent> {
        let _watched = Watched::by(Rc::<Told<'static>>::clone(&self.told));
        let mut works: Vec<_> = works.into_iter().map(Some).collect();
        let start = {
            let mut state = self.told.0.borrow_mut();
            assert_eq!(works.len(), state.members.len(), "a future for each member");
            let start = state.members.iter().map(|member| member.now().max(member.stored)).max().unwrap_or(0);
            for member in &mut state.members {
                (member.issued, member.done, member.stored) = (start, start, start);
                (member.misses, member.next_miss, member.awaits) = (Vec::new(), 0, Vec::new());
                member.by = [0; Cause::COUNT];
                member.until(start + self.call, Cause::Work);
            }
            state.waiting.clear();
            let ready = state.members.iter().enumerate().map(|(number, member)| Reverse((member.now(), number)));
            state.ready = ready.collect();
            start
        };
        let mut left = works.len();
        let mut polls = 0;
        while left > 0 {
            let current = {
                let mut state = self.told.0.borrow_mut();
                let Some(Reverse((_, current))) = state.ready.pop() else {
                    let stuck: Vec<_> = (0..works.len()).filter(|&member| works[member].is_some()).collect();
                    drop(state);
                    panic!("nobody can go on; members {stuck:?} wait");
                };
                state.current = current;
                let member = &mut state.members[current];
                member.until(member.now() + self.polls, Cause::Work);
                current
            };
            polls += 1;
            assert!(polls < MOST_POLLS, "an endless wait");
            let Some(work) = works[current].as_mut() else { continue };
            if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                works[current] = None;
                left -= 1;
                continue;
            }
            let mut state = self.told.0.borrow_mut();
            if state.members[current].awaits.is_empty() {
                // It has given way for another reason, and goes on.
                let now = state.members[current].now();
                state.ready.push(Reverse((now, current)));
            }
        }
        let state = self.told.0.borrow();
        let spent = |member: &Member| Spent { time: member.now() - start, by: member.by };
        state.members.iter().map(spent).collect()
    }

    /// How often what happened so far.
    pub fn counts(&self) -> Counts {
        self.told.0.borrow().caches.counts
    }
}
