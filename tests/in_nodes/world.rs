// SPDX-License-Identifier: BSD-3-Clause
//! A job on several nodes: messages of the simulator between them, heaps within.

use crate::job::Machine;
use coll_rust::endpoint::{Endpoint, Error, Rank, Result, Span, Tag};
use coll_rust::hier::Job;
use coll_rust::shm::exec::node::Node;
use coll_rust::shm::memory::heap::Heap;
use coll_rust::shm::op::Combine;
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::shm::thresholds::Thresholds;
use coll_rust::sim::{Rng, SimEndpoint, SimPost, SimTemp};
use coll_rust::topo::Group;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// The memory of a node, and who waits for a change of it.
pub struct Memory {
    heap: Heap,
    seen: Mutex<(Vec<u64>, Vec<Waker>)>,
}

impl Memory {
    pub fn new(heap: Heap) -> Memory {
        Memory { heap, seen: Mutex::default() }
    }

    /// Wakes those who wait, if anything has changed.
    fn look(&self, waiting: Option<&Waker>) {
        let words = self.heap.words();
        let mut seen = self.seen.lock().unwrap();
        let woken = if seen.0 == words { Vec::new() } else { std::mem::take(&mut seen.1) };
        seen.0 = words;
        seen.1.extend(waiting.cloned());
        drop(seen);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// The nodes of a machine.
pub struct Nodes {
    memories: Vec<Memory>,
    /// By rank, the number of its memory; `None`: alone on its node, or without shared memory.
    homes: Vec<Option<usize>>,
    teams: Vec<Option<Team>>,
}

impl Nodes {
    /// With so many leases for each process of each node; `None`: no team.
    pub fn new(machine: &Machine, rng: &mut Rng, mut leases: impl FnMut(&mut Rng) -> Option<usize>) -> Nodes {
        let mut teams: Vec<Option<Team>> = machine.hosts.iter().map(|_| None).collect();
        let config = Config {
            fragment: 128,
            fragments: [2, 4, 8][rng.below(3)],
            sets: [1, 2][rng.below(2)],
            short: [0, 100, 4096][rng.below(3)],
            ..Config::default()
        };
        let config = Config { shared_work_min: [0, 200, usize::MAX][rng.below(3)], ..config };
        let (mut memories, mut homes) = (Vec::new(), vec![None; teams.len()]);
        for host in 0..=machine.hosts.iter().copied().max().unwrap_or(0) {
            let ranks: Vec<Rank> =
                (0..).zip(&machine.hosts).filter(|&(_, &at)| at == host).map(|(rank, _)| rank).collect();
            let Some(leases) = leases(rng).filter(|_| ranks.len() > 1) else { continue };
            let heap = Heap::new(ranks.len(), leases, rng.below(2) == 0);
            // Only some have less.
            (0..ranks.len()).filter(|_| rng.below(2) == 0).for_each(|member| heap.limit(member, usize::MAX));
            for (member, &rank) in ranks.iter().enumerate() {
                teams[rank as usize] = Some(Team::new(heap.member(member), config));
            }
            ranks.iter().for_each(|&rank| homes[rank as usize] = Some(memories.len()));
            memories.push(Memory::new(heap));
        }
        Nodes { memories, homes, teams }
    }

    /// A rank's team.
    pub fn team(&self, rank: Rank) -> Option<&Team> {
        self.teams[rank as usize].as_ref()
    }

    /// A rank's part of its node.
    pub fn node<'a>(
        &'a self,
        rank: Rank,
        slot: usize,
        zero_copy: usize,
        op: Option<&'a dyn Combine>,
    ) -> Option<Node<'a>> {
        self.team(rank).map(|team| Node::new(team, slot, Thresholds::all(zero_copy), op))
    }

    /// A rank's future; it is polled again when something changes in its node's memory.
    pub fn watch<'n, F: Future>(&'n self, rank: Rank, future: F) -> Watching<'n, F> {
        Watching { memory: self.homes[rank as usize].map(|home| &self.memories[home]), future: Box::pin(future) }
    }
}

/// The endpoint of one of two operations at a time: lanes from `first` on.
pub struct Half<'e> {
    pub ep: &'e SimEndpoint,
    pub first: u8,
}

impl Half<'_> {
    fn tag(&self, tag: Tag) -> Tag {
        assert!(tag.lane < 4, "lane {}", tag.lane);
        Tag { lane: tag.lane + self.first, ..tag }
    }
}

impl Endpoint for Half<'_> {
    type Post<'a>
        = SimPost<'a>
    where
        Self: 'a;
    type Temp<'a>
        = SimTemp<'a>
    where
        Self: 'a;

    fn rank(&self) -> Rank {
        self.ep.rank()
    }

    fn size(&self) -> u32 {
        self.ep.size()
    }

    fn send(&self, to: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        self.ep.send(to, self.tag(tag), data)
    }

    fn tell(&self, to: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        self.ep.tell(to, self.tag(tag), data)
    }

    fn recv(&self, from: Rank, tag: Tag, data: Span) -> SimPost<'_> {
        self.ep.recv(from, self.tag(tag), data)
    }

    fn reduce_units(&self, left: Span, right: Span) {
        self.ep.reduce(left, right);
    }

    fn copy_units(&self, from: Span, to: Span) {
        self.ep.copy(from, to);
    }

    fn note(&self, error: Error) {
        self.ep.note(error);
    }

    fn noted(&self) -> Result<()> {
        self.ep.noted()
    }

    fn temp(&self, units: usize) -> Result<SimTemp<'_>> {
        self.ep.temp(units)
    }
}

/// A rank's part of an operation.
pub fn part<'a, E: Endpoint>(ep: &'a E, groups: &'a [Group], node: Option<Node<'a>>, commutative: bool) -> Job<'a, E> {
    Job { ep, groups, bytes: 1 << 16, segment: 1, window: 1, commutative, divisible: true, crowded: false, node }
}

/// A rank's future, and the memory that it may wait for.
pub struct Watching<'n, F> {
    pub memory: Option<&'n Memory>,
    pub future: Pin<Box<F>>,
}

impl<F: Future> Future for Watching<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.future.as_mut().poll(context);
        if let Some(memory) = self.memory {
            memory.look(polled.is_pending().then(|| context.waker()));
        }
        polled
    }
}

/// Both to the end, polled in turn.
pub async fn both(a: impl Future<Output = Result<()>>, b: impl Future<Output = Result<()>>) -> Result<()> {
    let (mut a, mut b) = (Box::pin(a), Box::pin(b));
    let mut done = [None, None];
    std::future::poll_fn(move |context| {
        for (i, done) in done.iter_mut().enumerate() {
            if done.is_none() {
                let polled = if i == 0 { a.as_mut().poll(context) } else { b.as_mut().poll(context) };
                if let Poll::Ready(result) = polled {
                    *done = Some(result);
                }
            }
        }
        match done {
            [Some(a), Some(b)] => Poll::Ready(a.and(b)),
            _ => Poll::Pending,
        }
    })
    .await
}
