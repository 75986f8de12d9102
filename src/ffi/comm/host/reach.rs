//! Who may have messages with whom, where ranks are in several clusters.

use super::HostEndpoint;
use super::post::{Post, PostState};
use crate::endpoint::{Error, Rank};
use crate::ffi::base::glue::CR_ERR_INTERN;
use crate::ffi::base::messages;

impl HostEndpoint {
    /// Whether messages with a rank are possible: no algorithm asks for others. This is the one place that
    /// all messages pass.
    #[inline(always)]
    pub(super) fn reaches(&self, peer: Rank) -> bool {
        self.clusters.as_ref().is_none_or(|clusters| clusters.allows(self.rank, peer))
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
}
