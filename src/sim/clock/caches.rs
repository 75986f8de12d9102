// SPDX-License-Identifier: BSD-3-Clause
//! Which core has which line, and what an access takes.
//!
//! A line has a core that wrote it last, and those who have read it since. Whoever is among them reads it
//! for nothing; another one gets it from the writer, and while the line's home serves it, others wait. A
//! store takes the line from all who have it: it is done when the furthest of them has answered. That is the
//! directory of MESI and MOESI protocols, without their messages: see Molka, Hackenberg, Schöne, Nagel,
//! "Cache Coherence Protocol and Memory Performance of the Intel Haswell-EP Architecture" (ICPP 2015), and
//! Ramos, Hoefler, "Modeling communication in cache-coherent SMP systems" (HPDC 2013), for the costs.

use super::Time;
use super::machine::{Distance, Machine};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Lines that are kept together.
const TOGETHER: usize = 64;
/// Whose cores share what [`Machine::shared`] is about: a level-3 cache, its link to the others, a socket's
/// link. As indices of [`places`](super::machine::Shape::places).
const SHARED_AT: [usize; 3] = [1, 1, 3];
/// What of that a line crosses that comes from there; `None`: from memory.
fn crossing(source: Option<Distance>) -> [bool; 3] {
    match source {
        Some(from) => [from >= Distance::L3, from > Distance::L3, from == Distance::Node],
        None => [false, true, false],
    }
}

/// The most cores of a node.
pub const MAX_CORES: usize = 512;

/// A set of cores.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Cores([u64; MAX_CORES / 64]);

impl Cores {
    fn only(core: u32) -> Cores {
        let mut cores = Cores::default();
        cores.add(core);
        cores
    }

    fn add(&mut self, core: u32) {
        self.0[core as usize / 64] |= 1 << (core % 64);
    }

    fn has(&self, core: u32) -> bool {
        self.0[core as usize / 64] >> (core % 64) & 1 == 1
    }

    fn meets(&self, other: &Cores) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    /// Whether all of them are among others.
    fn within(&self, others: &Cores) -> bool {
        self.0.iter().zip(&others.0).all(|(one, others)| one & !others == 0)
    }
}

/// By [`Distance`] but the last, which no core is beyond: all cores that are at most so far from one.
type Near = [Cores; Distance::COUNT - 1];

/// Those of each core.
fn near(machine: &Machine) -> Rc<[Near]> {
    let cores = machine.shape.cores();
    let of = |core| {
        let mut near = Near::default();
        for other in 0..cores {
            let far = machine.shape.distance(core, other) as usize;
            near.iter_mut().skip(far).for_each(|cores| cores.add(other));
        }
        near
    };
    (0..cores).map(of).collect()
}

/// The distance of this number in [`Near`], or the last.
fn nth(found: Option<usize>) -> Distance {
    Distance::ALL[found.unwrap_or(Distance::COUNT - 1)]
}

/// What is known of a line.
#[derive(Clone, Copy, Default)]
struct Line {
    /// It has been written, by this core last.
    owner: Option<u32>,
    /// All who have it.
    holders: Cores,
    /// The latest store is seen from then on.
    seen_from: Time,
    /// Its home serves others until then.
    busy_until: Time,
    /// The latest store was made then.
    written: Time,
    /// How many bytes its writer had touched when it wrote it.
    age: u64,
}

/// How often what happened: the lines that came from each [`Distance`], those from memory, those that a
/// store took from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines of other cores, by distance.
    pub lines: [u64; Distance::COUNT],
    /// Lines from memory.
    pub memory: u64,
    /// Stores that took a line from others.
    pub taken: u64,
}

impl Counts {
    /// What has happened since then.
    pub fn since(&self, then: &Counts) -> Counts {
        let mut lines = self.lines;
        lines.iter_mut().zip(then.lines).for_each(|(now, then)| *now -= then);
        Counts { lines, memory: self.memory - then.memory, taken: self.taken - then.taken }
    }

    /// And what has happened elsewhere.
    pub fn and(&self, other: &Counts) -> Counts {
        let mut lines = self.lines;
        lines.iter_mut().zip(other.lines).for_each(|(sum, more)| *sum += more);
        Counts { lines, memory: self.memory + other.memory, taken: self.taken + other.taken }
    }

    /// In the mean of so many calls.
    pub fn shared_by(&self, calls: u64) -> Counts {
        Counts { lines: self.lines.map(|n| n / calls), memory: self.memory / calls, taken: self.taken / calls }
    }
}

/// What an access by a core takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The value is there.
    pub done: Time,
    /// It came from somewhere else.
    pub missed: bool,
    /// It had been written, but was not seen yet: by which core, and when.
    pub held_up: Option<(u32, Time)>,
}

/// All caches of a node.
pub struct Caches<'m> {
    machine: &'m Machine,
    near: Rc<[Near]>,
    blocks: FxHashMap<usize, Box<[Line; TOGETHER]>>,
    /// Bytes that each core has touched.
    touched: Vec<u64>,
    /// What cores [share](SHARED_AT) is free from then on.
    free: [Vec<Time>; 3],
    /// What has happened.
    pub counts: Counts,
}

impl<'m> Caches<'m> {
    /// Those of another node that is alike, with nothing in them.
    pub fn alike(&self) -> Caches<'m> {
        let (machine, near) = (self.machine, Rc::clone(&self.near));
        let (touched, free) = (vec![0; self.touched.len()], self.free.each_ref().map(|free| vec![0; free.len()]));
        Caches { machine, near, blocks: FxHashMap::default(), touched, free, counts: Counts::default() }
    }

    /// Of a machine, with nothing in them.
    pub fn new(machine: &'m Machine) -> Caches<'m> {
        let cores = machine.shape.cores() as usize;
        assert!(cores <= MAX_CORES, "a node of {cores} cores; at most {MAX_CORES}");
        Caches {
            machine,
            near: near(machine),
            blocks: FxHashMap::default(),
            touched: vec![0; cores],
            free: SHARED_AT.map(|level| vec![0; machine.shape.places(cores as u32 - 1)[level] as usize + 1]),
            counts: Counts::default(),
        }
    }

    fn line(&mut self, number: usize) -> &mut Line {
        let block = self.blocks.entry(number / TOGETHER).or_insert_with(|| Box::new([Line::default(); TOGETHER]));
        &mut block[number % TOGETHER]
    }

    /// Where a core gets a line: the nearest that has it, as the far ones need not be asked, but for a line
    /// that its writer alone has. `None`: from memory.
    fn source(&self, line: &Line, core: u32) -> Option<Distance> {
        let own = self.machine.caches[0] as u64 + self.machine.caches[1] as u64;
        let still = |owner: u32| self.touched[owner as usize] - line.age <= own;
        match line.owner {
            Some(owner) if still(owner) => {
                Some(nth(self.near[core as usize].iter().position(|near| near.meets(&line.holders))))
            }
            _ => None,
        }
    }

    /// How far the furthest core is from which a store takes a line, if there is any other one.
    fn furthest(&self, line: &Line, core: u32) -> Option<Distance> {
        let far = nth(self.near[core as usize].iter().position(|near| line.holders.within(near)));
        (far != Distance::Own).then_some(far)
    }

    /// Whether a core has what was written last.
    pub fn has(&mut self, core: u32, at: usize) -> bool {
        self.line(at / LINE).holders.has(core)
    }

    /// Until a request for a word by a core has come to where the word is: what is written there meanwhile is
    /// read. 0: the core has it.
    pub fn request(&mut self, core: u32, at: usize) -> Time {
        let line = *self.line(at / LINE);
        match self.source(&line, core) {
            _ if line.holders.has(core) => 0,
            Some(from) => self.machine.handover[from as usize] / 2,
            None => self.machine.memory[0] / 2,
        }
    }

    /// A core that is so far reads a word.
    pub fn load(&mut self, core: u32, at: usize, now: Time) -> Access {
        let line = *self.line(at / LINE);
        if line.holders.has(core) {
            let done = now.max(line.seen_from) + self.machine.handover[Distance::Own as usize];
            return Access { done, missed: false, held_up: None };
        }
        let source = self.source(&line, core);
        let begin = now.max(line.seen_from).max(line.busy_until);
        let held_up = line.owner.filter(|_| line.seen_from > now).map(|owner| (owner, line.written));
        let (serve, takes) = match source {
            Some(from) => {
                self.counts.lines[from as usize] += 1;
                (self.machine.serve[from as usize], self.machine.handover[from as usize])
            }
            None => {
                self.counts.memory += 1;
                (0, self.machine.memory[0])
            }
        };
        let line = self.line(at / LINE);
        line.busy_until = begin + serve;
        line.holders.add(core);
        let through = self.crosses(core, begin, crossing(source).map(u64::from));
        Access { done: through.max(begin + takes), missed: true, held_up }
    }

    /// So many lines come to a core, from `now` on, through each of what cores share. Returns when the last
    /// one is through.
    fn crosses(&mut self, core: u32, now: Time, lines: [u64; 3]) -> Time {
        let places = self.machine.shape.places(core);
        let mut done = now;
        for (level, &lines) in lines.iter().enumerate().filter(|(_, lines)| **lines > 0) {
            let free = &mut self.free[level][places[SHARED_AT[level]] as usize];
            *free = (*free).max(now) + lines * self.machine.shared[level];
            done = done.max(*free);
        }
        done
    }

    /// A core writes a word, and asks for its line now. Returns from when on that is seen.
    pub fn store(&mut self, core: u32, at: usize, now: Time) -> Time {
        let written = now;
        let line = *self.line(at / LINE);
        let mut seen_from = now.max(line.seen_from);
        if let Some(furthest) = self.furthest(&line, core) {
            self.counts.taken += 1;
            seen_from = seen_from.max(line.busy_until) + self.machine.handover[furthest as usize];
        } else {
            // It may have been asked for before, and not have come yet.
            seen_from = seen_from.max(line.busy_until);
            seen_from += if line.owner.is_none() { self.machine.memory[0] } else { 0 };
        }
        let age = self.touched[core as usize];
        let holders = Cores::only(core);
        *self.line(at / LINE) = Line { owner: Some(core), holders, seen_from, busy_until: seen_from, written, age };
        seen_from
    }

    /// What a core gets in a message is there: it has written it itself, or an adapter has, to memory.
    pub fn lands(&mut self, core: Option<u32>, at: usize, len: usize) {
        for number in at / LINE..(at + len).div_ceil(LINE) {
            let age = core.map_or(0, |core| self.touched[core as usize]);
            let holders = core.map_or_else(Cores::default, Cores::only);
            let line = self.line(number);
            *line = Line { owner: core, holders, age, ..*line };
        }
    }

    /// A core asks for a line, which it will write, and goes on meanwhile.
    pub fn own(&mut self, core: u32, at: usize, now: Time) {
        let line = *self.line(at / LINE);
        let takes = match self.furthest(&line, core) {
            Some(furthest) => self.machine.handover[furthest as usize],
            None if line.owner.is_none() => self.machine.memory[0],
            None => return,
        };
        self.counts.taken += u64::from(line.owner.is_some());
        let busy_until = now.max(line.busy_until).max(line.seen_from) + takes;
        let age = self.touched[core as usize];
        *self.line(at / LINE) = Line { owner: Some(core), holders: Cores::only(core), busy_until, age, ..line };
    }

    /// A core reads or writes many bytes, one line after the other. Returns when it is through, and when what
    /// it writes is seen: the first line that others have is waited for, but not by the core.
    pub fn stream(&mut self, core: u32, at: usize, len: usize, now: Time, writes: bool) -> [Time; 2] {
        let (mut takes, mut waits, mut late) = (0, false, 0);
        let mut lines = [0_u64; 3];
        for number in at / LINE..(at + len).div_ceil(LINE) {
            self.touched[core as usize] += LINE as u64;
            let line = *self.line(number);
            let has = line.holders.has(core);
            let alone = has && line.holders == Cores::only(core);
            let source = self.source(&line, core);
            takes += match source {
                _ if (has && !writes) || alone => self.machine.stream[Distance::Own as usize],
                Some(_) if writes => {
                    let far = self.furthest(&line, core);
                    self.counts.taken += 1;
                    late = late.max(far.map_or(0, |far| self.machine.handover[far as usize]));
                    far.map_or(self.machine.stream[0], |far| self.machine.overwrite[far as usize])
                }
                Some(from) => {
                    self.counts.lines[from as usize] += 1;
                    lines.iter_mut().zip(crossing(source)).for_each(|(lines, crosses)| *lines += u64::from(crosses));
                    let (first, each) = (self.machine.handover[from as usize], self.machine.stream[from as usize]);
                    // The first one is waited for; the processor sees that others follow, and asks for them.
                    if std::mem::replace(&mut waits, true) { each } else { first.max(each) }
                }
                None => {
                    self.counts.memory += 1;
                    lines[1] += 1;
                    self.machine.memory[1]
                }
            };
            let age = self.touched[core as usize];
            let line = self.line(number);
            match writes {
                true => *line = Line { owner: Some(core), holders: Cores::only(core), age, ..*line },
                false => line.holders.add(core),
            }
            if line.owner.is_none() {
                // Read from memory: whoever comes next has it from here.
                (line.owner, line.age) = (Some(core), age);
            }
        }
        let done = self.crosses(core, now, lines).max(now + takes);
        [done, done + late]
    }
}
