// SPDX-License-Identifier: BSD-3-Clause
//! Short operations: all that a member has for others fits its line, or one slot, and travels at once.
//!
//! Each member that has something waits until its room is free, writes there and publishes that. Then it
//! reads what the others have published, one after the other, and is done. What is written and read, and by
//! whom, each operation says once, as a [`Short`] ([`rooted`], [`exchange`], [`reductions`]). How it waits
//! is no matter of the operation's: [`go_on`] is the only text, for [blocking](now) calls as for all that
//! are [suspended](run) where they would wait: nonblocking and persistent ones, and those over several
//! levels.
//!
//! A suspended operation begins [`go_on`] anew when it is polled, and a [`Cursor`] says what is done. A
//! blocking call is never pending: the compiler sees that its cursor is not needed, and keeps all in
//! registers.

pub mod exchange;
pub mod reductions;
pub mod rooted;

use crate::endpoint::{Error, Result};
use crate::shm::memory::Member;
use crate::shm::memory::layout::UNSAID;
use crate::shm::op::unequal::{Taken, fits, refused};
use crate::shm::protocol::reach::Reach;
use crate::shm::protocol::turn::waits::Runs;
use crate::shm::protocol::turn::{Current, Travel, Turn};
use std::future::{poll_fn, ready};
use std::iter;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An operation as one member sees it, which is short or goes a [longer](Short::long) way.
pub trait Short: Sized + Send + Sync {
    /// Whether all that the caller writes and reads is short.
    fn fits(&self, turn: &Turn<'_>) -> bool;

    /// For how many bytes the caller wants [room](crate::shm::protocol::turn::View::room_taken); `None`: it
    /// writes nothing.
    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        let _ = turn;
        None
    }

    /// Writes what the caller has for others.
    ///
    /// # Safety
    /// The room is free.
    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let _ = turn;
        Ok(())
    }

    /// Whether all who read what the caller writes read all of it, so that its word says how long that is: as
    /// long as the [room](Short::room) that it wants.
    const SAYS: bool = false;

    /// Whether the caller has something else for each reader, so that its word [says that](Short::word).
    const DEALS: bool = false;

    /// Whether the sources [say](Short::SAYS) that, or [deal](Short::DEALS).
    const COMPARES: bool = false;

    /// What the caller's word says of the lengths for its readers.
    #[inline(always)]
    fn word(&self, turn: &Turn<'_>) -> u8 {
        let _ = turn;
        UNSAID
    }

    /// Notes what that does not say; the room is free.
    #[inline(always)]
    fn note(&self, turn: &Turn<'_>) {
        let _ = turn;
    }

    /// Whether what a source has published is not of the length that is [awaited](Short::awaits).
    #[inline(always)]
    fn differs(&self, turn: &Turn<'_>, source: Member, len: usize) -> bool {
        turn.differs(source, len)
    }

    /// Copies what the caller, `me`, has for itself, as the others have something to read meanwhile.
    #[inline(always)]
    fn keep(&self, me: Member) -> Result<()> {
        let _ = me;
        Ok(())
    }

    /// Whether the caller has nothing to read if it writes: then it publishes and ends in one.
    const WRITES_OR_READS: bool = false;

    /// Whom the caller reads from, in this order.
    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        let _ = turn;
        iter::empty()
    }

    /// How many bytes a source has for the caller, and where as far as the caller knows: not where the source
    /// chooses a set, and has not published. `None`: it does not write.
    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        let _ = (turn, source);
        None
    }

    /// Reads what a source has for the caller.
    ///
    /// # Safety
    /// It is published.
    #[inline(always)]
    unsafe fn read(&self, turn: &Turn<'_>, source: Member) -> Result<()> {
        let _ = (turn, source);
        Ok(())
    }

    /// Takes what a source has that says another length than [awaited](Short::awaits): whether that is all of
    /// it. Where operands must be as long as one another, an error.
    #[cold]
    fn take_other<'a>(&'a self, turn: Current<'a>, source: Member) -> Taken<'a> {
        let _ = (turn, source);
        refused()
    }

    /// Does what takes the contents of all sources.
    ///
    /// # Safety
    /// All have published.
    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        let _ = turn;
        Ok(())
    }

    /// The operation where it is not short. What always is need not say more than this: it fails the team.
    #[inline(always)]
    fn long(self, turn: Turn<'_>) -> impl Future<Output = Result<()>> + Send {
        drop(turn);
        ready(Err(Error::Peer))
    }
}

/// How far a suspended operation has come.
struct Cursor<'t, 'o> {
    /// For how many bytes the caller has room, if it wants to write.
    room: Option<usize>,
    /// It has done so, and what it has for itself.
    written: bool,
    /// So many sources have been read.
    read: usize,
    /// The wait for the next one, if it has begun: how long it lasts already counts.
    wait: Option<Reach<'t>>,
    /// What a source of another length has is being taken.
    other: Option<Taken<'o>>,
    /// All that has come so far was no longer than the place for it.
    whole: bool,
}

/// How [`go_on`] waits.
trait Wait<'t, 'o> {
    /// Why it stops before it is done.
    type Stop: From<Error>;
    /// Whether it may be begun anew.
    const RESUMES: bool;

    /// Waits until one word has come, which has been looked at in vain.
    fn reach(
        &mut self,
        cursor: &mut Cursor<'t, 'o>,
        begin: impl FnOnce() -> Reach<'t>,
    ) -> std::result::Result<(), Self::Stop>;

    /// Takes what has another length.
    fn take(
        &mut self,
        cursor: &mut Cursor<'t, 'o>,
        begin: impl FnOnce() -> Taken<'o>,
    ) -> std::result::Result<bool, Self::Stop>;
}

/// The caller's thread waits.
struct Spins<R>(R);

impl<'t, 'o, R: Runs> Wait<'t, 'o> for Spins<R> {
    type Stop = Error;
    const RESUMES: bool = false;

    #[inline(always)]
    fn reach(&mut self, _: &mut Cursor<'t, 'o>, begin: impl FnOnce() -> Reach<'t>) -> Result<()> {
        match begin().late() {
            None => Ok(()),
            Some(late) => self.0.reach(late),
        }
    }

    #[inline(always)]
    fn take(&mut self, _: &mut Cursor<'t, 'o>, begin: impl FnOnce() -> Taken<'o>) -> Result<bool> {
        self.0.run(begin)
    }
}

/// The operation is suspended.
struct Polls<'c, 'w>(&'c mut Context<'w>);

/// Why a suspended operation stops.
enum Stop {
    Pending,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl<'t, 'o> Wait<'t, 'o> for Polls<'_, '_> {
    type Stop = Stop;
    const RESUMES: bool = true;

    fn reach(
        &mut self,
        cursor: &mut Cursor<'t, 'o>,
        begin: impl FnOnce() -> Reach<'t>,
    ) -> std::result::Result<(), Stop> {
        let Some(mut wait) = cursor.wait.take().or_else(|| begin().late()) else { return Ok(()) };
        match Pin::new(&mut wait).poll(self.0) {
            Poll::Ready(seen) => Ok(seen.map(drop)?),
            Poll::Pending => {
                cursor.wait = Some(wait);
                Err(Stop::Pending)
            }
        }
    }

    fn take(
        &mut self,
        cursor: &mut Cursor<'t, 'o>,
        begin: impl FnOnce() -> Taken<'o>,
    ) -> std::result::Result<bool, Stop> {
        let mut other = cursor.other.take().unwrap_or_else(begin);
        match other.as_mut().poll(self.0) {
            Poll::Ready(whole) => Ok(whole?),
            Poll::Pending => {
                cursor.other = Some(other);
                Err(Stop::Pending)
            }
        }
    }
}

/// Goes on with an operation that fits, whose room is free if it wants any, until it is done or would have to
/// wait. The step that is still to be published when it ends, if one is.
#[inline(always)]
fn go_on<'t: 'o, 'o, O: Short, W: Wait<'t, 'o>>(
    turn: &Turn<'t>,
    operation: &'o O,
    cursor: &mut Cursor<'t, 'o>,
    wait: &mut W,
) -> std::result::Result<Option<u32>, W::Stop> {
    if !cursor.written {
        if cursor.room.is_some() {
            // SAFETY: the room is free.
            unsafe { operation.write(turn) }?;
            if O::SAYS
                && let Some(len) = cursor.room
            {
                turn.note_length(len, Travel::AtOnce);
            }
            if O::DEALS {
                operation.note(turn);
            }
            if O::WRITES_OR_READS {
                return Ok(Some(1));
            }
            turn.publish(1);
        }
        operation.keep(turn.me())?;
        cursor.written = true;
    }
    let (first, mut read) = (turn.first_steps(), 0);
    for source in operation.sources(turn) {
        let Some((len, from)) = operation.awaits(turn, source) else { continue };
        read += 1;
        if W::RESUMES && read <= cursor.read {
            continue;
        }
        if (W::RESUMES && cursor.wait.is_some()) || !first.has(source) {
            wait.reach(cursor, || turn.wrote_at(source, from, len))?;
        }
        if O::COMPARES && operation.differs(turn, source, len) {
            let current = turn.current();
            cursor.whole &= wait.take(cursor, || operation.take_other(current, source))?;
        } else {
            // SAFETY: published, and as long as awaited.
            unsafe { operation.read(turn, source) }?;
        }
        cursor.read = read;
    }
    if read + 1 == turn.size() {
        turn.met();
    }
    // SAFETY: all have published.
    unsafe { operation.end(turn) }?;
    Ok(None)
}

/// The end of an operation that [went on](go_on) so far. What the caller has for itself it copies last where
/// it only writes: whatever becomes of that, the operation is over for the others.
#[inline(always)]
fn finish<O: Short>(turn: Turn<'_>, operation: &O, left: Option<u32>) -> Result<()> {
    let me = turn.me();
    match left {
        None => {
            turn.finish();
            Ok(())
        }
        Some(step) => {
            turn.publish_and_finish(step);
            operation.keep(me)
        }
    }
}

/// The same operation, in which the caller's word says how long what it writes is.
#[inline(always)]
fn saying<'t, O: Short>(turn: Turn<'t>, operation: &O, room: Option<usize>) -> Turn<'t> {
    match room {
        Some(len) if O::SAYS => turn.saying(len),
        Some(_) if O::DEALS => {
            let word = operation.word(&turn);
            turn.saying_as(word)
        }
        _ => turn,
    }
}

/// An operation that [fits](Short::fits), by a caller that blocks.
#[inline(always)]
pub fn now<O: Short>(turn: Turn<'_>, runs: impl Runs, operation: &O) -> Result<()> {
    let room = operation.room(&turn);
    let turn = saying(turn, operation, room);
    if let Some(len) = room
        && let Some(wait) = turn.room_taken(len)
    {
        runs.run(move || wait)?;
    }
    let mut cursor = Cursor { room, written: false, read: 0, wait: None, other: None, whole: true };
    let left = go_on(&turn, operation, &mut cursor, &mut Spins(runs))?;
    finish(turn, operation, left).and(fits(cursor.whole))
}

/// An operation, short or not, suspended where it would wait. A short one uses turn and operation where they
/// lie, and holds nothing of the long way: so all of it is small, and memory for it is soon found.
#[inline(always)]
#[expect(clippy::manual_async_fn, reason = "an `async fn` holds its arguments twice")]
pub fn run<O: Short>(mut turn: Turn<'_>, operation: O) -> impl Future<Output = Result<()>> {
    async move {
        if !operation.fits(&turn) {
            return Box::pin(operation.long(turn)).await;
        }
        let room = operation.room(&turn);
        turn = saying(turn, &operation, room);
        if let Some(len) = room
            && let Some(wait) = turn.room_taken(len)
        {
            wait.await?;
        }
        let mut cursor = Cursor { room, written: false, read: 0, wait: None, other: None, whole: true };
        let left = poll_fn(|context| match go_on(&turn, &operation, &mut cursor, &mut Polls(context)) {
            Err(Stop::Pending) => Poll::Pending,
            Err(Stop::Failed(error)) => Poll::Ready(Err(error)),
            Ok(left) => Poll::Ready(Ok(left)),
        })
        .await?;
        finish(turn, &operation, left).and(fits(cursor.whole))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
