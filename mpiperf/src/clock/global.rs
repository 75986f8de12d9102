// SPDX-License-Identifier: BSD-3-Clause
//! The clock of rank 0 on every rank.

use super::Scheme;
use super::exchange::{ask, in_turn, serve};
use super::fit::{Affine, History, Map, Point};
use super::node::Nodes;
use super::timer::Timer;
use crate::error::Result;
use crate::mpi::Comm;
use crate::node::Counts;

/// This process's view of the clock of rank 0: `offset + slope · local`.
pub struct Global {
    /// The local timer.
    pub timer: Timer,
    /// Uncertainty of the offset (half of the least round trip), seconds, the largest over all ranks. Ranks
    /// that share a clock have its resolution instead.
    pub uncertainty: f64,
    /// By how much the clocks turned out to be wrong when they were synchronised the last time after the
    /// first, seconds, the largest over all ranks; 0 before.
    pub correction: f64,
    /// The largest difference of a clock's rate from rank 0's that is corrected for; 1e-6 is a microsecond
    /// per second.
    pub drift: f64,
    /// All ranks read one and the same clock (hierarchical scheme on one node), and ping-pongs do not
    /// contradict it.
    pub shared: bool,
    /// On some node there are more ranks than cores.
    pub oversubscribed: bool,
    /// There, where the node's processes have to know of each other how far they are without the MPI library,
    /// since they take turns on its cores; unless they can get no shared memory.
    pub counts: Option<Counts>,
    /// How the offsets are found.
    pub scheme: Scheme,
    map: Map,
    error: f64,
    history: History,
    nodes: Nodes,
    /// Local time of the last synchronisation.
    synchronised: f64,
}

impl Global {
    /// Finds the offsets. Collective.
    pub fn synchronise(comm: &Comm, mut timer: Timer, scheme: Scheme) -> Result<Global> {
        let nodes = Nodes::find(comm)?;
        let same = nodes.share(&mut timer)?.is_some();
        let counts = if nodes.oversubscribed { Counts::new(&nodes.local)? } else { None };
        let mut global = Global {
            timer,
            uncertainty: 0.0,
            correction: 0.0,
            drift: 0.0,
            shared: false,
            oversubscribed: nodes.oversubscribed,
            counts,
            scheme,
            map: Map::IDENTITY,
            error: 0.0,
            history: History::default(),
            nodes,
            synchronised: 0.0,
        };
        global.measure(comm, same)?;
        global.correction = 0.0;
        Ok(global)
    }

    /// Measures again and corrects offset and drift. Collective.
    pub fn resynchronise(&mut self, comm: &Comm) -> Result<()> {
        let same = self.refine(comm)?;
        self.measure(comm, same)
    }

    /// The global time, seconds.
    #[inline(always)]
    pub fn now(&self) -> f64 {
        self.map.global_at(self.timer.now())
    }

    /// The global time at local time `t` (see [`Timer::now`]), seconds.
    #[inline(always)]
    pub fn global_at(&self, t: f64) -> f64 {
        self.map.global_at(t)
    }

    /// The local time at global time `t`, seconds.
    #[inline(always)]
    pub fn local_at(&self, t: f64) -> f64 {
        self.map.local_at(t)
    }

    /// Global minus local time now, seconds.
    pub fn offset(&self) -> f64 {
        let now = self.timer.now();
        self.map.global_at(now) - now
    }

    /// Bound of the error of this rank's offset, seconds.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Seconds since the clocks were synchronised.
    pub fn age(&self) -> f64 {
        self.timer.now() - self.synchronised
    }

    /// Whether this rank is on the node of rank 0 and counts as rank 0 does, so that its true offset is 0.
    /// Collective.
    pub fn counts_like_root(&self, comm: &Comm) -> Result<bool> {
        let own = self.timer.origin();
        let mut words = [own.zero, own.period.to_bits(), self.timer.source() as u64];
        let mine = words;
        comm.bcast(&mut words, 0)?;
        let mut root = [u64::from(comm.rank() == 0)];
        self.nodes.local.bcast(&mut root, 0)?;
        Ok(root[0] == 1 && words == mine && self.timer.shareable())
    }

    /// Puts this rank's clock wrong by `seconds`, until the clocks are synchronised again: to see whether it
    /// is noticed.
    pub fn disturb(&mut self, seconds: f64) {
        self.map.global += seconds;
    }

    /// Lets each node's leader measure the rate of its counter better, and changes what was measured before
    /// to the new way to count. Whether this rank counts as its leader does. Collective.
    fn refine(&mut self, comm: &Comm) -> Result<bool> {
        let before = self.timer.origin();
        if self.nodes.leads() {
            self.timer.refine()?;
        }
        let same = self.nodes.share(&mut self.timer)?.is_some();
        let mut change = before.change(&self.timer.origin());
        if !same {
            change = Affine::IDENTITY;
        }
        let mut root = [change.ratio, change.shift];
        comm.bcast(&mut root, 0)?;
        let root = Affine { ratio: root[0], shift: root[1] };
        self.history.change(&change, &root);
        self.map = self.map.changed(&change, &root);
        Ok(same)
    }

    /// One round of the scheme. `same`: this rank counts as its node's leader does.
    fn measure(&mut self, comm: &Comm, same: bool) -> Result<()> {
        let old = self.map;
        let shared = match self.scheme {
            Scheme::Linear => self.linear(comm)?,
            Scheme::Ring => self.ring(comm)?,
            Scheme::Hierarchical => self.hierarchical(same)?,
        };
        let now = self.timer.now();
        self.synchronised = now;
        let correction = (self.map.global_at(now) - old.global_at(now)).abs();
        let not_shared = f64::from(u8::from(!shared || !self.nodes.single));
        let mut worst = [self.error, (self.map.rate - 1.0).abs(), correction, not_shared];
        comm.max(&mut worst)?;
        [self.uncertainty, self.drift, self.correction, _] = worst;
        self.shared = worst[3] == 0.0;
        Ok(())
    }

    /// Takes a measurement in.
    fn learn(&mut self, point: Point) {
        (self.map, self.error) = self.history.add(point);
    }

    /// The clock of rank 0 of a communicator over which others were measured.
    fn be_root(&mut self) {
        self.map = Map::IDENTITY;
        self.error = self.timer.resolution();
    }

    fn linear(&mut self, comm: &Comm) -> Result<bool> {
        let timer = self.timer;
        match in_turn(comm, || timer.now())? {
            Some(found) => self.learn(found.point()),
            None => self.be_root(),
        }
        Ok(false)
    }

    /// First the odd ranks ask those before them, then the even ones; rank 0 sums up.
    fn ring(&mut self, comm: &Comm) -> Result<bool> {
        let (rank, size, timer) = (comm.rank(), comm.size(), self.timer);
        let mut found = None;
        for phase in [1, 0] {
            if rank % 2 == phase && rank > 0 {
                found = Some(ask(comm, rank - 1, || timer.now())?);
            } else if rank % 2 != phase && rank + 1 < size {
                serve(comm, rank + 1, || timer.now())?;
            }
        }
        let own = found.map_or([0.0, 0.0], |search| [search.offset(), search.point().error]);
        let mut sums = comm.gather(&own, 0)?;
        for i in 1..sums.len() / 2 {
            sums[2 * i] += sums[2 * i - 2];
            sums[2 * i + 1] += sums[2 * i - 1];
        }
        let mut total = [0.0f64; 2];
        comm.scatter(&sums, &mut total, 0)?;
        match found {
            Some(search) => {
                let local = search.point().local;
                self.learn(Point { local, global: local + total[0], error: total[1] });
            }
            None => self.be_root(),
        }
        Ok(false)
    }

    /// Leaders by the linear scheme; on each node the leader's map for all who read the same counter, unless
    /// ping-pongs contradict.
    fn hierarchical(&mut self, same: bool) -> Result<bool> {
        let timer = self.timer;
        if self.nodes.leads() {
            match in_turn(&self.nodes.leaders, || timer.now())? {
                Some(found) => self.learn(found.point()),
                None => self.be_root(),
            }
        }
        let mut leader = [self.map.local, self.map.global, self.map.rate, self.error];
        self.nodes.local.bcast(&mut leader, 0)?;
        let map = Map { local: leader[0], global: leader[1], rate: leader[2] };
        let Some(found) = in_turn(&self.nodes.local, || timer.now())? else {
            return Ok(true);
        };
        if same && found.same_clock() {
            self.history.clear();
            (self.map, self.error) = (map, leader[3]);
            return Ok(true);
        }
        let point = found.point();
        self.learn(Point { local: point.local, global: map.global_at(point.global), error: point.error + leader[3] });
        Ok(false)
    }
}
