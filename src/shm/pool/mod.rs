// SPDX-License-Identifier: BSD-3-Clause
//! A process' own memory for its groups: one pool per process and backing, from which control blocks and
//! queues are leased.
//!
//! Layout: page 0 and some more hold the header (token, [`Sleepers`], then the boards of
//! [`crate::shm::pool::mailbox`], one per process of the node); the rest is handed out in pages. Every byte
//! is written by the owner only, but for the sleepers. The pool is as long as the process' share, sparse, and
//! has addresses for all of it, so that no lease needs another mapping anywhere. Pages count against the
//! [`Budget`] while they are reserved; how they come, and go back to the system: src/shm/pool/pages.rs.
//!
//! A group's pages are free again when the owner has dropped its side of the group and every other member has
//! announced that it is through with them. The pool looks for announcements whenever it leases and whenever a
//! group ends.

pub mod alloc;
pub mod backing;
pub mod locator;
pub mod mailbox;
pub mod mapping;
pub mod peer;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ptr;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::shm::memory::layout::{LOCKED, SLEEPERS, Sleepers};
use crate::shm::memory::{Contents, PAGE, Page};
use crate::shm::os::budget::{Budget, Usage};
use crate::shm::os::failure::Failure;
use crate::shm::os::lifelock;
use crate::shm::os::random;
use crate::shm::pool::alloc::{PageSet, Pages};
use crate::shm::pool::backing::{Backing, Store};
use crate::shm::pool::locator::{Locator, Place, pid_space};
use crate::shm::pool::mailbox::{Board, GroupId, Inbox, Outbox};
use crate::shm::pool::peer::Peer;
use crate::sync::atomic::AtomicU64;

mod pages;

/// Where the boards begin.
const BOARDS: usize = SLEEPERS + size_of::<Sleepers>();
const _: () = assert!(BOARDS <= PAGE);

/// A process' own memory for its groups.
#[derive(Debug)]
pub struct Pool {
    store: Store,
    budget: Arc<Budget>,
    locator: Locator,
    words: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pages: Pages,
    /// The number of all pages.
    end: Page,
    reserved: PageSet,
    /// How many are reserved.
    held: u32,
    /// By [`GroupId`].
    groups: Vec<Option<Record>>,
    vacant: BinaryHeap<Reverse<GroupId>>,
    /// By local rank.
    peers: Vec<Option<Known>>,
    /// Drafts of groups that have not been settled: the name stays so long.
    drafts: usize,
    /// Why the last lease was refused.
    refusal: Option<String>,
}

/// A peer, what it has announced, and what has been announced to it.
#[derive(Debug)]
struct Known {
    peer: Arc<Peer>,
    inbox: Inbox,
    outbox: Outbox,
    dead: bool,
}

/// What is leased for a group.
#[derive(Debug, Default)]
struct Record {
    leases: Vec<(Page, u32)>,
    /// Local ranks of the members that may still read it.
    missing: Vec<u32>,
    /// The owner has left the group.
    left: bool,
}

/// How a draft ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shm) enum Outcome {
    /// All members use the group.
    Confirmed,
    /// No member uses it.
    GivenUp,
    /// Nobody knows: the memory stays taken.
    Unknown,
}

impl Pool {
    /// Makes a pool as long as the budget says, for the process at `place`.
    pub fn create(backing: &Backing, place: Place, budget: &Arc<Budget>) -> Result<Arc<Pool>, Failure> {
        if place.local >= place.locals {
            return Err(Failure::new(format!("local rank {} of {} processes", place.local, place.locals)));
        }
        let pages = u32::try_from(budget.span() / PAGE as u64).unwrap_or(u32::MAX);
        let words = mailbox::board_words(pages);
        let header = header_pages(place, words);
        if header >= budget.bytes() / PAGE as u64 {
            let needed = (header + 1) * PAGE as u64;
            let what = format!(
                "a share of {} bytes is too small for {} processes: at least {needed} bytes",
                budget.bytes(),
                place.locals
            );
            return Err(Failure::new(what));
        }
        let token = random()?;
        let length = u64::from(pages) * PAGE as u64;
        let store = Store::create(backing, length)?;
        budget.take(header * PAGE as u64)?;
        store.reserve(0, header * PAGE as u64).inspect_err(|_| budget.give(header * PAGE as u64))?;
        store.map.open(0, header as u32).map_err(|e| Failure::of("cannot map a pool", e))?;
        // SAFETY: the first page is reserved, and nobody else knows of it.
        unsafe { ptr::copy_nonoverlapping(token.as_ptr(), store.map.start(), token.len()) };
        let locked = u64::from(lifelock::take(store.file()));
        // SAFETY: as above; aligned, since a page is.
        unsafe { store.map.start().wrapping_add(LOCKED).cast::<u64>().write(locked) };
        let path = store.path().map(Into::into);
        let pid = std::process::id() as i32;
        let locator = Locator { pid, pid_space: pid_space(), fd: store.fd(), length, token, place, path };
        let mut reserved = PageSet::new(pages);
        reserved.add(0, header as u32);
        let state = State {
            pages: Pages::new(header as Page, pages),
            end: pages,
            reserved,
            held: header as u32,
            groups: Vec::new(),
            vacant: BinaryHeap::new(),
            peers: (0..place.locals).map(|_| None).collect(),
            drafts: 0,
            refusal: None,
        };
        Ok(Arc::new(Pool { store, budget: budget.clone(), locator, words, state: Mutex::new(state) }))
    }

    /// Where the pool is.
    pub fn locator(&self) -> &Locator {
        &self.locator
    }

    /// What the pool holds now. Takes up what peers have announced.
    pub fn usage(&self) -> Usage {
        let mut state = self.lock();
        self.collect(&mut state);
        let leases = state.groups.iter().flatten().flat_map(|record| &record.leases);
        Usage {
            leased: leases.map(|&(_, count)| u64::from(count) * PAGE as u64).sum(),
            held: self.store.held(),
            groups: state.groups.iter().flatten().count(),
            peers: state.peers.iter().flatten().count(),
        }
    }

    /// Why the last lease was refused.
    pub fn refusal(&self) -> Option<String> {
        self.lock().refusal.clone()
    }

    /// Begins a group: its number, and the page of the caller's control block.
    pub(in crate::shm) fn begin_group(&self) -> Result<(GroupId, Page), Failure> {
        let mut state = self.lock();
        self.collect(&mut state);
        state.drafts += 1;
        let begun = self.begin(&mut state);
        drop(state);
        begun.inspect_err(|_| self.settled(Outcome::Unknown, 0))
    }

    /// A number and a control block for a new group.
    fn begin(&self, state: &mut State) -> Result<(GroupId, Page), Failure> {
        let group = match state.vacant.pop() {
            Some(Reverse(group)) => group,
            None if state.groups.len() < mailbox::groups(self.words) as usize => {
                state.groups.push(None);
                state.groups.len() as GroupId - 1
            }
            None => return Err(Failure::new(format!("{} groups at a time are the most", state.groups.len()))),
        };
        let control = self.take(state, 1, Contents::Zeros).inspect_err(|_| state.vacant.push(Reverse(group)))?;
        state.groups[group as usize] = Some(Record { leases: vec![(control, 1)], ..Record::default() });
        Ok((group, control))
    }

    /// The address of a page of the caller's own pool.
    pub(in crate::shm) fn address(&self, page: Page) -> *mut u8 {
        self.store.map.start().wrapping_add(page as usize * PAGE)
    }

    /// Leases `bytes` for a group.
    pub(in crate::shm) fn lease(&self, group: GroupId, bytes: usize, contents: Contents) -> Option<(Page, *mut u8)> {
        let mut state = self.lock();
        self.collect(&mut state);
        let count = u32::try_from(bytes.div_ceil(PAGE).max(1)).ok()?;
        match self.take(&mut state, count, contents) {
            Ok(page) => {
                state.groups[group as usize].as_mut()?.leases.push((page, count));
                Some((page, self.address(page)))
            }
            Err(failure) => {
                state.refusal = Some(failure.to_string());
                None
            }
        }
    }

    /// The other process' pool, mapped once however many groups there are with it.
    pub(in crate::shm) fn attach(&self, locator: &Locator) -> Result<Arc<Peer>, Failure> {
        let place = locator.place;
        if (locator.length, place.locals) != (self.locator.length, self.locator.place.locals) {
            let (length, locals) = (self.locator.length, self.locator.place.locals);
            let what = format!(
                "a pool of {} bytes among {} processes; here it is {length} among {locals}",
                locator.length, place.locals
            );
            return Err(Failure::new(what));
        }
        if place.local >= place.locals || place.local == self.locator.place.local {
            return Err(Failure::new(format!("local rank {} cannot be another process'", place.local)));
        }
        let mut state = self.lock();
        let known = &mut state.peers[place.local as usize];
        match known {
            Some(known) if known.peer.locator.token == locator.token => Ok(known.peer.clone()),
            // Of another job, say: their boards would be the same.
            Some(_) => Err(Failure::new(format!("local rank {} is known as another process already", place.local))),
            None => {
                let peer = Arc::new(Peer::attach(locator)?);
                let header = header_pages(place, self.words);
                peer.map.open(0, header as u32).map_err(|e| Failure::of("cannot map a pool", e))?;
                *known = Some(Known {
                    peer: peer.clone(),
                    inbox: Inbox::new(self.words),
                    outbox: Outbox::new(self.words),
                    dead: false,
                });
                Ok(peer)
            }
        }
    }

    /// Whether a page and a number for a group can be in a pool like this.
    pub(in crate::shm) fn has(&self, control: Page, group: GroupId) -> bool {
        group < mailbox::groups(self.words) && (1..(self.locator.length / PAGE as u64)).contains(&u64::from(control))
    }

    /// Says which local ranks will have to announce that they are through with a group.
    pub(in crate::shm) fn expect(&self, group: GroupId, missing: Vec<u32>) {
        if let Some(Some(record)) = self.lock().groups.get_mut(group as usize) {
            record.missing = missing;
        }
    }

    /// A draft is settled, or forgotten.
    pub(in crate::shm) fn settled(&self, outcome: Outcome, group: GroupId) {
        let mut state = self.lock();
        if outcome == Outcome::GivenUp {
            state.free(group);
            self.give_back(&mut state);
        }
        state.drafts -= 1;
        if state.drafts == 0 {
            self.store.forget_name();
        }
    }

    /// The owner leaves a group: announces to each member (local rank, its number for the group) that it is
    /// through with that member's pages. Its own are free when all have done the same.
    pub(in crate::shm) fn leave(&self, group: GroupId, members: impl Iterator<Item = (u32, GroupId)>) {
        let mut state = self.lock();
        for (local, its) in members {
            if let Some(known) = &mut state.peers[local as usize] {
                known.outbox.announce(self.board(local), its);
            }
        }
        if let Some(Some(record)) = state.groups.get_mut(group as usize) {
            record.left = true;
        }
        state.free_if_done(group);
        self.collect(&mut state);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The board for a local rank.
    fn board(&self, local: u32) -> Board<'_> {
        // SAFETY: our own pool.
        unsafe { board_at(self.store.map.start(), self.words, local) }
    }

    /// Takes up what peers have announced.
    fn collect(&self, state: &mut State) {
        let me = self.locator.place.local;
        let mut done = Vec::new();
        for (local, known) in (0..).zip(&mut state.peers) {
            let Some(known) = known else { continue };
            // SAFETY: a pool of the same layout (`attach` compares), which lives as long as its `Peer`.
            let board = unsafe { board_at(known.peer.map.start(), self.words, me) };
            known.inbox.poll(board, |group| {
                if let Some(Some(record)) = state.groups.get_mut(group as usize) {
                    record.missing.retain(|&missing| missing != local);
                    done.push(group);
                }
            });
        }
        done.into_iter().for_each(|group| state.free_if_done(group));
        self.give_back(state);
    }

    /// Takes the announcements of dead peers for granted: they read no more. Tells whether that has freed
    /// anything.
    fn bury(&self, state: &mut State) -> bool {
        for (local, known) in (0..).zip(&mut state.peers) {
            let Some(known) = known else { continue };
            known.dead = known.dead || known.peer.is_dead();
            if known.dead {
                state.groups.iter_mut().flatten().for_each(|record| record.missing.retain(|&missing| missing != local));
            }
        }
        let before = state.pages.left();
        (0..state.groups.len() as GroupId).for_each(|group| state.free_if_done(group));
        state.pages.left() > before
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.give(u64::from(state.held) * PAGE as u64);
    }
}

impl State {
    fn free_if_done(&mut self, group: GroupId) {
        if self.groups[group as usize].as_ref().is_some_and(|record| record.left && record.missing.is_empty()) {
            self.free(group);
        }
    }

    fn free(&mut self, group: GroupId) {
        if let Some(record) = self.groups.get_mut(group as usize).and_then(Option::take) {
            record.leases.iter().for_each(|&(first, count)| self.pages.give(first, count));
            self.vacant.push(Reverse(group));
        }
    }
}

/// Pages of the header of a pool with boards of `words` words.
fn header_pages(place: Place, words: usize) -> u64 {
    (BOARDS + place.locals as usize * words * 8).div_ceil(PAGE) as u64
}

/// The board for a local rank in the pool that starts at `start`.
///
/// # Safety
/// A pool with boards of `words` words starts there, its header is reserved, and it outlives the board.
unsafe fn board_at<'a>(start: *mut u8, words: usize, local: u32) -> Board<'a> {
    let first = start.wrapping_add(BOARDS + local as usize * words * 8).cast::<AtomicU64>();
    // SAFETY: aligned to 64 bytes, inside the header; written by its owner only, as atomics.
    Board::new(unsafe { slice::from_raw_parts(first, words) })
}
