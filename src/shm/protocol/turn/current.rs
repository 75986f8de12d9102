// SPDX-License-Identifier: BSD-3-Clause
//! What is under way on a stream, for what is seldom called.

use super::View;
use crate::endpoint::mismatch;
use crate::shm::protocol::team::{Stream, Team};
use crate::sync::shared::Ordering;

/// The operation that is under way on a stream, told in as few words as can be: they stay in registers on
/// the way to what is seldom called.
#[derive(Clone, Copy)]
pub struct Current<'t> {
    team: &'t Team,
    stream: &'t Stream,
}

impl<'t> From<Current<'t>> for View<'t> {
    /// As the caller saw it when it began.
    fn from(current: Current<'t>) -> View<'t> {
        let Current { team, stream } = current;
        let controls = stream.controls.get().and_then(|controls| controls.as_deref());
        let controls = controls.unwrap_or_else(|| mismatch("a stream without lines has no operations"));
        let queues = stream.queues.get().and_then(|queues| queues.as_deref());
        let view = View::of(team, stream, controls, queues, stream.next.load(Ordering::Relaxed));
        View { blocking: stream.is_blocking(), ..view }
    }
}

impl<'t> View<'t> {
    /// The operation, of which all else can be [told](Current) again.
    #[inline(always)]
    pub fn current(&self) -> Current<'t> {
        Current { team: self.team, stream: self.stream }
    }
}
