// SPDX-License-Identifier: BSD-3-Clause
//! Ends of operations in which members access each other's private memory: whoever lends its memory waits for
//! the others, whatever goes wrong.

use super::{Turn, View};
use crate::endpoint::Result;
use crate::shm::memory::Member;
use crate::shm::memory::layout::word;
use crate::shm::protocol::reach::Reach;
use crate::sync::shared::Ordering;

impl Turn<'_> {
    /// Ends the operation as a reader, then waits until all others have done so too: they have read the
    /// caller's own memory.
    pub fn finish_together(self) -> impl Future<Output = Result<()>> {
        let others = self.others();
        self.finish_with(others)
    }

    /// As [`finish_together`](Turn::finish_together), for what may have gone wrong here: then the others are
    /// told so, in order that nobody waits for the caller, and are waited for all the same, since they may
    /// still read its memory.
    pub fn end_together(self, result: Result<()>) -> impl Future<Output = Result<()>> {
        let others = self.others();
        self.end_with(result, others)
    }

    /// The same where only these others read the caller's memory.
    pub async fn end_with(self, result: Result<()>, readers: impl Iterator<Item = Member> + Clone) -> Result<()> {
        if result.is_ok() {
            return self.finish_with(readers).await;
        }
        self.team.fail();
        // That others fail, too, is no news.
        let _ = self.all_over(readers).await;
        result
    }

    async fn finish_with(self, readers: impl Iterator<Item = Member> + Clone) -> Result<()> {
        let next = word(self.op.wrapping_add(1), 0);
        // SYNC(read): as in `acknowledge`.
        self.team.post(&self.control(self.me()).read.word, word(self.op, 0), next);
        if !self.known(next) {
            self.all_over(readers.clone()).await?;
            if readers.count() + 1 == self.size() {
                self.stream.behind.store(next, Ordering::Relaxed);
            }
        }
        self.finish();
        Ok(())
    }
}

impl<'t> View<'t> {
    /// Waits until a member is through with the operation.
    pub fn over(&self, member: Member) -> Reach<'t> {
        self.reader(member, word(self.op.wrapping_add(1), 0))
    }

    /// Waits until members are through with the operation that read the caller's own memory: also when one
    /// fails, the others read on.
    pub async fn all_over(&self, members: impl Iterator<Item = Member>) -> Result<()> {
        let mut result = Ok(());
        for member in members {
            let reach = self.over(member).alone();
            result = result.and(reach.await.map(drop));
        }
        result
    }

    /// Says that the caller is through with the operation, then waits until these members are so too: they
    /// read or write the caller's own memory. What has gone wrong here is told them first, so that nobody
    /// waits for the caller. What remains is to [`finish`](Turn::finish).
    pub async fn over_with(&self, result: Result<()>, members: impl Iterator<Item = Member>) -> Result<()> {
        if result.is_err() {
            return self.outlast(result, members).await;
        }
        let next = word(self.op.wrapping_add(1), 0);
        // SYNC(read): as in `acknowledge`.
        self.team.post(&self.control(self.me()).read.word, word(self.op, 0), next);
        self.all_over(members).await
    }

    /// Waits for members like [`over_with`](View::over_with), of a caller that is not through yet: it wants
    /// to know what they have said [last](View::last_words). They do not wait for it to be.
    pub async fn outlast(&self, result: Result<()>, members: impl Iterator<Item = Member>) -> Result<()> {
        if result.is_err() {
            self.team.fail();
            // That others fail, too, is no news.
            let _ = self.all_over(members).await;
            return result;
        }
        self.all_over(members).await
    }

    /// What a member says when it is through with an operation: the caller's own may be written until it is,
    /// if it waits for the readers then; another's be read from then on until the caller is through.
    pub fn last_words(&self, member: Member) -> *mut u8 {
        self.control(member).read.payload()
    }
}
