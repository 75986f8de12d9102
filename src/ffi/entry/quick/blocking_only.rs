// SPDX-License-Identifier: BSD-3-Clause
//! Short ways of operations that have no nonblocking one.

use super::At;
use crate::ffi::base::glue::cr_call;
use crate::ffi::base::kind::has_equal_blocks;
use crate::ffi::call::plain::PlainBlocks;
use crate::ffi::call::plain::{blocks, stream};
use crate::shm::op::neighbor;
use crate::shm::op::short::reductions::Scattered;
use std::slice;

impl At<'_, true> {
    /// Reduce_scatter and Reduce_scatter_block.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn reduce_scatter(self, call: &cr_call) -> Option<i32> {
        let (team, side) = (self.team, &call.recv);
        if side.big != 0 {
            return None;
        }
        let all = match side.counts.is_null() {
            true => None,
            // SAFETY: significant, so that it has an element for each member, by the caller's promise.
            false => Some(unsafe { slice::from_raw_parts(side.counts.cast::<i32>(), team.size()) }),
        };
        let each = side.count;
        let counts = move |member: usize| all.map_or(each, |all| usize::try_from(all[member]).unwrap_or(0));
        let count = (0..team.size()).map(counts).try_fold(0, usize::checked_add)?;
        // SAFETY: by the caller's promise.
        let reduction = unsafe { self.reduction(Scattered(counts), call, side, count) }?;
        self.finish(reduction.bytes(), reduction)
    }

    /// Gatherv.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn gatherv(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.gather_of::<PlainBlocks>(call) }
    }

    /// Scatterv.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn scatterv(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.scatter_of::<PlainBlocks>(call) }
    }

    /// Allgatherv.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn allgatherv(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.allgather_of::<PlainBlocks>(call) }
    }

    /// Alltoallv.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn alltoallv(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.alltoall_of::<PlainBlocks>(call) }
    }

    /// Operations with several datatypes: no plain data.
    ///
    /// # Safety
    /// None: unsafe to be like the others.
    #[inline(always)]
    pub unsafe fn mixed(self, _: &cr_call) -> Option<i32> {
        None
    }

    /// Neighbor_allgather, and its vector form. As all neighbourhood operations, it takes a turn with a queue
    /// whatever its lengths.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn neighbor_allgather(self, call: &cr_call) -> Option<i32> {
        let edges = self.edges()?;
        // SAFETY: significant, so live by the caller's promise; as below.
        let (into, own) = unsafe { (blocks(&call.recv)?, stream(&call.send)?) };
        let (me, zero_copy) = (self.team.me(), self.zero_copy(None, |from| from.allgather));
        match self.finish(0, neighbor::spreading(me, edges, &own, &into, zero_copy))? {
            0 => self.end(neighbor::fill(me, edges, &own, &into)),
            failed => Some(failed),
        }
    }

    /// Neighbor_alltoall, and its vector form.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn neighbor_alltoall(self, call: &cr_call) -> Option<i32> {
        let edges = self.edges()?;
        // SAFETY: significant, so live by the caller's promise; as below.
        let (into, out) = unsafe { (blocks(&call.recv)?, blocks(&call.send)?) };
        let zero_copy = self.zero_copy(None, |from| from.alltoall.from);
        self.finish(0, neighbor::exchanging(edges, &out, &into, zero_copy))
    }

    /// The edges to neighbours, where all are on this node, and calls have sides to speak of.
    #[inline(always)]
    fn edges(&self) -> Option<&neighbor::Edges> {
        let around = self.comm.neighborhood()?;
        // Without neighbours on one side there are no arrays.
        if (has_equal_blocks(self.kind) && around.known_connected() != Some(true))
            || around.degrees().0.min(around.degrees().1) == 0
        {
            return None;
        }
        around.known_within()
    }
}
