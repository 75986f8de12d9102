// SPDX-License-Identifier: BSD-3-Clause
//! Who may have messages with whom, where ranks are in several clusters, and by which way.

use super::HostEndpoint;
use super::post::{Post, PostState};
use super::posted::{Entry, SEND, Work};
use crate::endpoint::{Error, Rank, Result, Span, Tag};
use crate::ffi::base::config::config;
use crate::ffi::base::glue::{self, CR_ERR_INTERN, cr_proc};
use crate::ffi::base::{messages, name};
use crate::ffi::mpi::data::HostStream;
use crate::ffi::process::{counters, gateway};
use crate::relay::mail::Handle;
use crate::topo::Clusters;

/// The way of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Open MPI's point-to-point.
    Messages,
    /// The gateway of the caller's cluster.
    Gateway,
    /// There is none.
    None,
}

impl HostEndpoint {
    /// The way of messages with a rank. This is the one place that all messages pass.
    #[inline(always)]
    pub(super) fn way(&self, peer: Rank) -> Way {
        self.clusters.as_ref().map_or(Way::Messages, |clusters| way(clusters, self.rank, peer))
    }

    /// Of a message that no algorithm may ask for.
    #[cold]
    pub(super) fn refused(&self, peer: Rank) -> Post<'_> {
        debug_assert!(false, "a message between ranks {} and {peer} of different clusters", self.rank);
        messages::print(&format!(
            "coll/rust: ranks {} and {peer} are in different clusters, and not both on gateway nodes: an error of the component",
            self.rank
        ));
        Post { posted: PostState::Failed(Error::Mpi(CR_ERR_INTERN as i32)), ep: self }
    }

    /// Sends by the gateway.
    #[cold]
    #[inline(never)]
    pub(super) fn send_out(&self, to: Rank, tag: Tag, data: Span) -> Post<'_> {
        if let Some(kind) = self.kind {
            counters::sent(kind, tag.level, data.len() * self.dtype.info.size);
        }
        self.go_out(to, data, SEND, |remote, memory| gateway::send(remote, self.tag(tag), memory))
    }

    /// Receives by it.
    #[cold]
    #[inline(never)]
    pub(super) fn recv_from_out(&self, from: Rank, tag: Tag, data: Span) -> Post<'_> {
        let bytes = data.len() * self.dtype.info.size;
        self.go_out(from, data, bytes, |remote, memory| gateway::recv(remote, self.tag(tag), memory))
    }

    fn go_out(
        &self,
        peer: Rank,
        data: Span,
        expected: usize,
        post: impl FnOnce(gateway::Remote, HostStream) -> Result<Handle>,
    ) -> Post<'_> {
        let posted = self.needs(data).and_then(|()| self.remote(peer)).and_then(|remote| {
            // SAFETY: the span is valid memory of the operation until the post is done (contract of
            // `Endpoint`), or given up: the gateway's messages are when the endpoint goes.
            post(remote, HostStream::new(self.dtype, data.len(), data.ptr().cast()))
        });
        match posted {
            Ok(handle) => self.keep(Entry { work: Work::Gateway(handle), expected }),
            Err(error) => Post { posted: PostState::Failed(error), ep: self },
        }
    }

    /// What the gateway is to know of a rank of another cluster.
    fn remote(&self, peer: Rank) -> Result<gateway::Remote> {
        let mut name = cr_proc::default();
        // SAFETY: the communicator is alive, and the rank in it; fills in ours.
        let (code, comm) =
            unsafe { (glue::cr_comm_proc(self.comm, peer as i32, &mut name), glue::cr_comm_key(self.comm)) };
        let Some(clusters) = self.clusters.as_ref().filter(|_| code == 0) else {
            return Err(Error::Mpi(CR_ERR_INTERN as i32));
        };
        let (from, to) = (clusters.site(self.rank), clusters.site(peer));
        if name.job != name::own_name().job {
            return Err(gateway::other_job());
        }
        Ok(gateway::Remote { from, to, name, comm })
    }
}

/// The way between two ranks.
#[inline(never)]
fn way(clusters: &Clusters, me: Rank, peer: Rank) -> Way {
    match clusters.together(me, peer) {
        true => Way::Messages,
        false if !clusters.allows(me, peer) => Way::None,
        false if config().is_ok_and(|config| !config.gateways.is_empty()) => Way::Gateway,
        false => Way::Messages,
    }
}
