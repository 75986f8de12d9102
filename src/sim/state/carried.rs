// SPDX-License-Identifier: BSD-3-Clause
//! Messages that go by gateways: what a frame that moved has done.

#![forbid(unsafe_code)]

use super::super::gateways::{Next, Outcome};
use super::super::region::PostId;
use super::super::{Failure, Posted, Side};
use super::{Action, State};
use crate::endpoint::Span;
use std::task::Waker;

impl State {
    /// Moves a frame; returns who waits for what is done now.
    pub(in crate::sim) fn carry(&mut self, next: Next) -> Vec<Waker> {
        let Some(gateways) = &mut self.gateways else { return Vec::new() };
        let outcome = gateways.step(next);
        self.follow(outcome)
    }

    /// Posts a message.
    pub(super) fn post_by_gateway(&mut self, id: PostId, span: Span) {
        let Some(gateways) = &mut self.gateways else { return };
        let outcome = gateways.post(id, self.posts[id].posted, self.unit, span);
        // At most this post is over, and nobody waits for it yet.
        let _ = self.follow(outcome);
    }

    fn follow(&mut self, outcome: Outcome) -> Vec<Waker> {
        outcome.next.into_iter().for_each(|next| self.enable(Action::Gateway(next)));
        if let Some(rank) = outcome.garbled {
            self.fail(Failure::Panic { rank, message: "a frame came that no process sends".to_owned() });
        }
        if let Some(id) = outcome.overwritten {
            self.fail(Failure::Overwritten { post: self.posts[id].posted });
        }
        let mut woken = Vec::new();
        for id in outcome.over {
            let is_send = self.posts[id].posted.side == Side::Send;
            woken.extend(if is_send { self.finish_now_or_later(id) } else { self.arrived(id) });
        }
        woken
    }

    /// The message that a receive matched is there.
    pub(super) fn arrived(&mut self, recv: PostId) -> Option<Waker> {
        let send = self.posts[recv].partner;
        let Posted { rank, peer, tag, units, .. } = self.posts[send].posted;
        let (round, port_round) = (self.posts[send].round, self.posts[send].port_round);
        (self.posts[recv].round, self.posts[recv].port_round) = (round, port_round);
        self.stats.message(rank, peer, tag.level, units);
        self.stats.rounds = self.stats.rounds.max(round);
        self.stats.port_rounds = self.stats.port_rounds.max(port_round);
        self.finish(recv)
    }
}
