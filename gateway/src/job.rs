// SPDX-License-Identifier: BSD-3-Clause
//! Jobs and their processes. A job is known by its name and its key: with another key it is another job.
//!
//! Order of locks: a link's state, the job's, a process's. None is held while something is waited for.

use crate::config::Config;
use crate::counters::{Counters, Seldom, count};
use crate::link::Link;
use coll_rust::relay::frame::{self, ALL, Header, Kind};
use coll_rust::relay::hello::Hello;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tracing::info;

/// Locks; what a task that panicked left behind is used on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What tells jobs apart, here and between gateways.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobId {
    /// SHA-256 of its name.
    pub hash: [u8; 32],
    /// The name of its key.
    pub key: String,
}

impl JobId {
    /// Of a job with this name.
    pub fn new(job: &str, key: &str) -> JobId {
        JobId { hash: Sha256::digest(job.as_bytes()).into(), key: key.to_owned() }
    }
}

/// What the whole gateway has in common.
pub struct Shared {
    /// What it was told.
    pub config: Config,
    /// What it counts.
    pub counters: Counters,
    /// How often it logs refusals.
    pub seldom: Seldom,
    jobs: Mutex<HashMap<JobId, Arc<Job>>>,
}

/// A frame for a process.
pub struct Item {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The link whose credit it takes until it is delivered, and the link's epoch.
    pub from: Option<(Arc<Link>, u64)>,
}

/// What a process's connection does next.
pub enum Next {
    /// Hands this over.
    Item(Item),
    /// Waits.
    Wait,
    /// Closes: nothing follows.
    End,
}

#[derive(Default)]
struct Outbox {
    queue: VecDeque<Item>,
    /// The connection that reads it.
    connected: bool,
    /// It was connected, and is not any more: what comes is thrown away.
    gone: bool,
    /// Nothing follows what is in the queue.
    closing: bool,
}

/// A process of this cluster; it may not be connected yet.
pub struct Process {
    /// `jobid << 32 | vpid`.
    pub number: u64,
    outbox: Mutex<Outbox>,
    /// Something is in the outbox.
    pub ready: Notify,
}

impl Process {
    fn new(number: u64) -> Arc<Process> {
        Arc::new(Process { number, outbox: Mutex::default(), ready: Notify::new() })
    }

    /// Puts a frame into its queue; false if it is gone.
    pub fn push(&self, item: Item) -> bool {
        let mut outbox = lock(&self.outbox);
        if outbox.gone {
            return false;
        }
        outbox.queue.push_back(item);
        drop(outbox);
        self.ready.notify_waiters();
        true
    }

    /// The last frame that it gets.
    pub fn push_last(&self, bytes: Vec<u8>) {
        self.push(Item { bytes, from: None });
        lock(&self.outbox).closing = true;
        self.ready.notify_waiters();
    }

    /// The next frame, if there is one.
    pub fn pop(&self) -> Next {
        let mut outbox = lock(&self.outbox);
        match outbox.queue.pop_front() {
            Some(item) => Next::Item(item),
            None if outbox.closing => Next::End,
            None => Next::Wait,
        }
    }

    /// Its connection has ended: returns what it did not get.
    fn leave(&self) -> VecDeque<Item> {
        let mut outbox = lock(&self.outbox);
        (outbox.connected, outbox.gone) = (false, true);
        std::mem::take(&mut outbox.queue)
    }

    fn tell_lost(&self, cluster: u16, peer: u64, text: &str) {
        if lock(&self.outbox).connected {
            let header = Header { cluster, peer, ..Header::plain(Kind::Lost, 0) };
            self.push(Item { bytes: frame::encode(header, text.as_bytes()), from: None });
        }
    }
}

struct Inner {
    name: Option<String>,
    clusters: Vec<String>,
    links: BTreeMap<String, Arc<Link>>,
    processes: HashMap<u64, Arc<Process>>,
    connected: u64,
    /// Whether a process was ever connected, and since when none is.
    used: bool,
    idle: Instant,
}

/// A job, at this gateway.
pub struct Job {
    /// See there.
    pub id: JobId,
    /// The key.
    pub secret: [u8; 32],
    /// Bytes of messages held for it.
    pub held: Arc<AtomicU64>,
    inner: Mutex<Inner>,
}

/// For the counters.
pub struct Gauges {
    /// Connected processes.
    pub processes: u64,
    /// Sessions that are up.
    pub links: u64,
    /// Bytes.
    pub held: u64,
}

impl Job {
    /// A name for logs: what the first process called it, or a part of the hash.
    pub fn label(&self) -> String {
        let hash = || self.id.hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let name = lock(&self.inner).name.clone().unwrap_or_else(hash);
        name.replace(['"', '\\'], "_")
    }

    /// For the counters.
    pub fn gauges(&self) -> Gauges {
        let links: Vec<_> = lock(&self.inner).links.values().cloned().collect();
        let links = links.iter().filter(|link| link.is_up()).count() as u64;
        let held = self.held.load(std::sync::atomic::Ordering::Relaxed);
        Gauges { processes: lock(&self.inner).connected, links, held }
    }

    /// The way to a cluster, by the index that processes use; an error text otherwise.
    pub fn link(&self, cluster: u16) -> Result<Arc<Link>, String> {
        let inner = lock(&self.inner);
        let name = inner.clusters.get(usize::from(cluster)).ok_or("DATA for a cluster that HELLO did not name")?;
        inner.links.get(name).cloned().ok_or_else(|| format!("DATA for {name}, the own cluster"))
    }

    /// The process with this number, connected or not.
    pub fn process(&self, number: u64) -> Arc<Process> {
        lock(&self.inner).processes.entry(number).or_insert_with(|| Process::new(number)).clone()
    }

    /// The index that processes use for a cluster.
    pub fn index(&self, cluster: &str) -> Option<u16> {
        lock(&self.inner).clusters.iter().position(|name| name == cluster).map(|index| index as u16)
    }

    /// Tells all connected processes that a process, or all of a cluster, cannot be reached.
    pub fn tell_lost(&self, cluster: &str, peer: u64, text: &str) {
        let Some(index) = self.index(cluster) else { return };
        let processes: Vec<_> = lock(&self.inner).processes.values().cloned().collect();
        processes.iter().for_each(|process| process.tell_lost(index, peer, text));
    }

    /// Tells a process what was lost before it came.
    fn tell_old_losses(&self, process: &Process) {
        let links: Vec<_> = lock(&self.inner).links.values().cloned().collect();
        for link in links {
            let Some(index) = self.index(&link.peer) else { continue };
            match link.lost() {
                Some(text) => process.tell_lost(index, ALL, &text),
                None => link.crashed().iter().for_each(|(peer, text)| process.tell_lost(index, *peer, text)),
            }
        }
    }

    /// A process's connection has ended.
    pub fn leave(&self, process: &Process, clean: bool, why: &str) {
        for item in process.leave() {
            if let Some((link, epoch)) = item.from {
                link.delivered(process.number, item.bytes.len() - frame::HEADER, epoch);
            }
        }
        let links: Vec<_> = {
            let mut inner = lock(&self.inner);
            inner.connected = inner.connected.saturating_sub(1);
            inner.idle = Instant::now();
            inner.links.values().cloned().collect()
        };
        links.iter().for_each(|link| link.say_left(process.number, u64::from(clean), why));
    }

    /// Whether it can be forgotten: none of its processes is connected for `linger`, and what they sent has
    /// arrived; or none ever was, and the other gateways have done with it.
    fn finished(&self, linger: Duration) -> bool {
        let (used, connected, idle, links) = {
            let inner = lock(&self.inner);
            (inner.used, inner.connected, inner.idle.elapsed(), inner.links.values().cloned().collect::<Vec<_>>())
        };
        let over = |link: &Arc<Link>| !link.is_open() || (used && (link.drained() || idle > 4 * linger));
        connected == 0 && idle > linger && links.iter().all(over)
    }

    fn end(&self, number: u64, text: &str) {
        let links: Vec<_> = lock(&self.inner).links.values().cloned().collect();
        links.iter().for_each(|link| link.end(number, text));
    }
}

impl Shared {
    /// With no jobs yet.
    pub fn new(config: Config) -> Shared {
        Shared { config, counters: Counters::default(), seldom: Seldom::default(), jobs: Mutex::default() }
    }

    /// All jobs.
    pub fn all_jobs(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).values().cloned().collect()
    }

    fn job(&self, jobs: &mut HashMap<JobId, Arc<Job>>, id: &JobId, secret: &[u8; 32]) -> Result<Arc<Job>, String> {
        if let Some(job) = jobs.get(id) {
            return Ok(job.clone());
        }
        if jobs.len() >= self.config.jobs {
            return Err(format!("this gateway serves {} jobs already: wait, or raise `jobs` there", jobs.len()));
        }
        let (links, processes) = (BTreeMap::new(), HashMap::new());
        let (clusters, idle) = (Vec::new(), Instant::now());
        let inner = Inner { name: None, clusters, links, processes, connected: 0, used: false, idle };
        let held = Arc::default();
        let job = Arc::new(Job { id: id.clone(), secret: *secret, held, inner: Mutex::new(inner) });
        jobs.insert(id.clone(), job.clone());
        count(&self.counters.jobs);
        Ok(job)
    }

    /// The way to a cluster, made if there is none.
    fn make_link(self: &Arc<Shared>, job: &Arc<Job>, peer: &str) -> Arc<Link> {
        let (link, new) = {
            let mut inner = lock(&job.inner);
            let new = !inner.links.contains_key(peer);
            let link = inner.links.entry(peer.to_owned()).or_insert_with(|| Link::new(self, job, peer)).clone();
            (link, new)
        };
        if new {
            tokio::spawn(crate::dial::keep(self.clone(), link.clone()));
        }
        link
    }

    /// A process that has the key comes in, or the text says why not.
    pub fn join(self: &Arc<Shared>, hello: &Hello, secret: &[u8; 32]) -> Result<(Arc<Job>, Arc<Process>), String> {
        let mut jobs = lock(&self.jobs);
        let job = self.job(&mut jobs, &JobId::new(&hello.job, &hello.key), secret)?;
        let (process, back) = {
            let mut inner = lock(&job.inner);
            if inner.clusters.is_empty() {
                inner.clusters = hello.clusters.clone();
                inner.name = Some(hello.job.clone());
                info!(job = hello.job, key = hello.key, clusters = hello.clusters.join(","), "job has come");
            }
            if inner.clusters != hello.clusters {
                return Err("it names other clusters than the job's other processes, or in another order".to_owned());
            }
            if inner.connected >= self.config.processes {
                let most = self.config.processes;
                return Err(format!("{most} processes of this job are connected already: raise `processes` there"));
            }
            let process = inner.processes.entry(hello.process).or_insert_with(|| Process::new(hello.process)).clone();
            let mut outbox = lock(&process.outbox);
            if outbox.connected {
                return Err("this process is connected already".to_owned());
            }
            let back = outbox.gone;
            *outbox = Outbox { connected: true, queue: std::mem::take(&mut outbox.queue), ..Outbox::default() };
            drop(outbox);
            (inner.connected, inner.used) = (inner.connected + 1, true);
            (process, back)
        };
        // While the table is locked the job cannot be taken out of it; from here on its process keeps it.
        drop(jobs);
        let others = hello.clusters.iter().filter(|&cluster| *cluster != self.config.cluster);
        let links: Vec<_> = others.map(|cluster| self.make_link(&job, cluster)).collect();
        if !links.iter().all(|link| link.expect(process.number)) {
            job.leave(&process, true, "");
            let most = self.config.processes;
            return Err(format!("messages for {most} processes of this job were served: raise `processes` there"));
        }
        if back {
            links.iter().for_each(|link| link.say_left(process.number, 2, ""));
        }
        job.tell_old_losses(&process);
        Ok((job, process))
    }

    /// Another gateway that has the key asks for a job's link.
    pub fn link(self: &Arc<Shared>, id: &JobId, peer: &str, secret: &[u8; 32]) -> Result<Arc<Link>, String> {
        let mut jobs = lock(&self.jobs);
        let job = self.job(&mut jobs, id, secret)?;
        Ok(self.make_link(&job, peer))
    }

    /// Forgets jobs that are over.
    pub fn sweep(&self) {
        let mut jobs = lock(&self.jobs);
        let over: Vec<_> = jobs.values().filter(|job| job.finished(self.config.patience)).cloned().collect();
        over.iter().for_each(|job| drop(jobs.remove(&job.id)));
        drop(jobs);
        for job in over {
            info!(job = job.label(), "job has gone");
            job.end(0, &format!("the job has no process left in cluster {}", self.config.cluster));
        }
    }

    /// The gateway stops: tells all other gateways.
    pub fn end_all(&self) {
        let text = format!("the gateway of cluster {} was stopped", self.config.cluster);
        let jobs: Vec<_> = lock(&self.jobs).drain().collect();
        jobs.iter().for_each(|(_, job)| job.end(1, &text));
    }
}
