// SPDX-License-Identifier: BSD-3-Clause
//! What the clock knows of the members, and what accesses do to their clocks.

use super::Time;
use super::caches::{Caches, LINE};
use super::machine::Machine;
use super::net::events::{Events, What};
use super::net::fabric::Fabric;
use super::spent::{Cause, Path, Record};
use super::window::Window;
use rustc_hash::FxHashMap;

/// Up to so many bytes are read and written as words are: each line by itself.
const WORDS: usize = 256;

/// What the clock knows of a member.
pub(super) struct Member {
    pub node: usize,
    pub core: u32,
    /// Instructions are so far.
    pub issued: Time,
    /// What they need is there.
    pub done: Time,
    /// Its stores so far are seen by others.
    pub stored: Time,
    /// Misses under way: when they are done, oldest first.
    pub misses: Window,
    /// Stores under way likewise.
    pub stores: Window,
    /// The lines whose change it waits for.
    pub awaits: Vec<usize>,
    /// One of them has changed already.
    pub looks_again: bool,
    /// Others look up pages of its memory until then.
    pub visits: Vec<Time>,
    /// It has been polled, and waits.
    pub idle: bool,
    /// While it was polled, a message was not there.
    pub mail: bool,
    pub by: [Time; Cause::COUNT],
    /// How it came to what its clock shows.
    pub path: Path,
    /// What it does, where that is recorded.
    pub record: Option<Record>,
}

impl Member {
    /// On this core of a node.
    pub fn new(node: usize, core: u32) -> Member {
        Member {
            node,
            core,
            issued: 0,
            done: 0,
            stored: 0,
            misses: Window::default(),
            stores: Window::default(),
            awaits: Vec::new(),
            looks_again: false,
            visits: Vec::new(),
            idle: false,
            mail: false,
            by: [0; Cause::COUNT],
            path: Path::default(),
            record: None,
        }
    }

    pub fn now(&self) -> Time {
        self.issued.max(self.done)
    }

    /// Time goes on to then.
    pub fn until(&mut self, then: Time, cause: Cause) {
        let since = self.now();
        if then > since {
            (self.issued, self.done) = (then, then);
            self.spent(since, cause);
        }
    }

    /// It waits until then for somebody, who came to that on this path.
    pub fn waits(&mut self, then: Time, path: Path) {
        if then > self.now() {
            self.until(then, Cause::Waiting);
            self.path = path;
        }
    }

    /// So its time since then was spent.
    fn spent(&mut self, since: Time, cause: Cause) {
        let now = self.now();
        self.by[cause as usize] += now - since;
        self.path.add(cause, now - since);
        if let Some(record) = self.record.as_mut().filter(|_| now > since) {
            record.span(cause, since, now);
        }
    }
}

pub(super) struct State<'m> {
    pub machine: &'m Machine,
    /// Those of each node.
    pub caches: Vec<Caches<'m>>,
    pub members: Vec<Member>,
    pub current: usize,
    /// Who waits for a line.
    pub waiting: FxHashMap<usize, Vec<usize>>,
    /// Who can go on, and since when; and what becomes of messages.
    pub events: Events,
    /// Where there are several nodes.
    pub fabric: Option<Fabric<'m>>,
}

impl State<'_> {
    pub fn load(&mut self, at: usize) {
        let (machine, member) = (self.machine, &self.members[self.current]);
        let access = self.caches[member.node].load(member.core, at, member.issued);
        // Who is late by so little does not wait, but is held up all the same.
        let by = access.held_up.filter(|_| member.record.is_some());
        let is_there = |m: &Member, core| (m.node, m.core) == (member.node, core);
        let by = by.and_then(|(core, written)| Some((self.members.iter().position(|m| is_there(m, core))?, written)));
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

    pub fn store(&mut self, at: usize) {
        let member = &mut self.members[self.current];
        // Stores are seen in their order, but the lines of several are asked for at the same time.
        let oldest = member.stores.oldest(self.machine.misses);
        let seen = self.caches[member.node].store(member.core, at, member.now().max(oldest)).max(member.stored);
        member.stores.enter(self.machine.misses, seen);
        member.stored = seen;
        let before = member.now();
        let mut path = member.path;
        path.add(Cause::Lines, seen - before);
        member.issued += self.machine.store;
        member.spent(before, Cause::Work);
        for waiting in self.waiting.remove(&(at / LINE)).unwrap_or_default() {
            let other = &mut self.members[waiting];
            // It may have gone on since, and wait for another one.
            if !other.awaits.contains(&(at / LINE)) {
                continue;
            }
            if !other.idle {
                other.looks_again = true;
                continue;
            }
            other.idle = false;
            other.awaits.clear();
            let since = other.now();
            if let Some(record) = &mut other.record {
                record.wait(self.current, [since, before, seen]);
            }
            other.waits(seen, path);
            other.until(other.now() + self.machine.wrong_guess, Cause::Work);
            other.misses = Window::default();
            self.events.push(other.now(), What::GoesOn(waiting as u32));
        }
    }

    pub fn copy(&mut self, at: usize, len: usize, writes: bool) {
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
        let [done, seen] = self.caches[member.node].stream(member.core, at, len, member.now(), writes);
        member.until(done, Cause::Copies);
        if writes {
            member.stored = member.stored.max(seen);
        }
    }

    /// Who goes on next: until then messages come and go. `None`: nobody can.
    pub fn next(&mut self) -> Option<usize> {
        loop {
            let (at, what) = self.events.pop()?;
            match (what, &mut self.fabric) {
                (What::GoesOn(member), _) => {
                    self.current = member as usize;
                    return Some(self.current);
                }
                (What::Leaves(id), Some(fabric)) => fabric.leave(&mut self.events, id, at),
                (What::Done(id), Some(fabric)) => {
                    let Some((rank, time, path)) = fabric.done(id) else { continue };
                    let member = &mut self.members[rank as usize];
                    if !std::mem::take(&mut member.idle) {
                        member.looks_again = true;
                        continue;
                    }
                    member.awaits.clear();
                    member.waits(time, path);
                    self.events.push(member.now(), What::GoesOn(rank));
                }
                _ => {}
            }
        }
    }

    /// What nobody waits for any more comes to its end.
    pub fn settle(&mut self) {
        while let Some((at, what)) = self.events.pop() {
            match (what, &mut self.fabric) {
                (What::Leaves(id), Some(fabric)) => fabric.leave(&mut self.events, id, at),
                (What::Done(id), Some(fabric)) => drop(fabric.done(id)),
                _ => {}
            }
        }
    }
}
