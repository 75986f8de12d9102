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
use crate::shm::reach::Reach;
use crate::shm::turn::Turn;
use crate::shm::turn::waits::Runs;
use std::future::poll_fn;
use std::iter;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An operation as one member sees it, which is short or goes a [longer](Short::long) way.
pub trait Short: Sized {
    /// Whether all others wait for the one whom the caller reads from.
    const FROM_ROOT: bool = false;

    /// Whether all that the caller writes and reads is short.
    fn fits(&self, turn: &Turn<'_>) -> bool;

    /// For how many bytes the caller wants [room](crate::shm::turn::View::room_taken); `None`: it writes
    /// nothing.
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

    /// Does what takes the contents of all sources.
    ///
    /// # Safety
    /// All have published.
    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        let _ = turn;
        Ok(())
    }

    /// The operation where it is not short.
    fn long(self, turn: Turn<'_>) -> impl Future<Output = Result<()>>;
}

/// How far a suspended operation has come.
struct Cursor<'t> {
    /// The caller wants to write.
    writes: bool,
    /// It has done so, and what it has for itself.
    written: bool,
    /// So many sources have been read.
    read: usize,
    /// The wait for the next one, if it has begun: how long it lasts already counts.
    wait: Option<Reach<'t>>,
}

/// How [`go_on`] waits.
trait Wait<'t> {
    /// Why it stops before it is done.
    type Stop: From<Error>;
    /// Whether it may be begun anew.
    const RESUMES: bool;

    /// Waits until one word has come, which has been looked at in vain.
    fn reach(
        &mut self,
        cursor: &mut Cursor<'t>,
        begin: impl FnOnce() -> Reach<'t>,
    ) -> std::result::Result<(), Self::Stop>;
}

/// The caller's thread waits.
struct Spins<R>(R);

impl<'t, R: Runs> Wait<'t> for Spins<R> {
    type Stop = Error;
    const RESUMES: bool = false;

    #[inline(always)]
    fn reach(&mut self, _: &mut Cursor<'t>, begin: impl FnOnce() -> Reach<'t>) -> Result<()> {
        match begin().late() {
            None => Ok(()),
            Some(late) => self.0.reach(late),
        }
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

impl<'t> Wait<'t> for Polls<'_, '_> {
    type Stop = Stop;
    const RESUMES: bool = true;

    fn reach(&mut self, cursor: &mut Cursor<'t>, begin: impl FnOnce() -> Reach<'t>) -> std::result::Result<(), Stop> {
        let Some(mut wait) = cursor.wait.take().or_else(|| begin().late()) else { return Ok(()) };
        match Pin::new(&mut wait).poll(self.0) {
            Poll::Ready(seen) => Ok(seen.map(drop)?),
            Poll::Pending => {
                cursor.wait = Some(wait);
                Err(Stop::Pending)
            }
        }
    }
}

/// Goes on with an operation that fits, whose room is free if it wants any, until it is done or would have to
/// wait. The step that is still to be published when it ends, if one is.
#[inline(always)]
fn go_on<'t, O: Short, W: Wait<'t>>(
    turn: &Turn<'t>,
    operation: &O,
    cursor: &mut Cursor<'t>,
    wait: &mut W,
) -> std::result::Result<Option<u32>, W::Stop> {
    if !cursor.written {
        if cursor.writes {
            // SAFETY: the room is free.
            unsafe { operation.write(turn) }?;
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
            wait.reach(cursor, || {
                let reach = turn.wrote_at(source, from, len);
                if O::FROM_ROOT { reach.from_root() } else { reach }
            })?;
        }
        // SAFETY: published.
        unsafe { operation.read(turn, source) }?;
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

/// An operation that [fits](Short::fits), by a caller that blocks.
#[inline(always)]
pub fn now<O: Short>(turn: Turn<'_>, runs: impl Runs, operation: &O) -> Result<()> {
    let room = operation.room(&turn);
    if let Some(len) = room
        && let Some(wait) = turn.room_taken(len)
    {
        runs.run(move || wait)?;
    }
    let mut cursor = Cursor { writes: room.is_some(), written: false, read: 0, wait: None };
    let left = go_on(&turn, operation, &mut cursor, &mut Spins(runs))?;
    finish(turn, operation, left)
}

/// An operation, short or not, suspended where it would wait.
#[inline(always)]
pub async fn run<O: Short>(turn: Turn<'_>, operation: O) -> Result<()> {
    if operation.fits(&turn) { suspended(turn, operation).await } else { operation.long(turn).await }
}

/// The same of one that fits.
pub(super) async fn suspended<O: Short>(turn: Turn<'_>, operation: O) -> Result<()> {
    let room = operation.room(&turn);
    if let Some(len) = room
        && let Some(wait) = turn.room_taken(len)
    {
        wait.await?;
    }
    let mut cursor = Cursor { writes: room.is_some(), written: false, read: 0, wait: None };
    let left = poll_fn(|context| match go_on(&turn, &operation, &mut cursor, &mut Polls(context)) {
        Err(Stop::Pending) => Poll::Pending,
        Err(Stop::Failed(error)) => Poll::Ready(Err(error)),
        Ok(left) => Poll::Ready(Ok(left)),
    })
    .await?;
    finish(turn, &operation, left)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::rooted::Barrier;
    use super::*;
    use crate::shm::heap::Heap;
    use crate::shm::team::{Config, Team};
    use std::cell::RefCell;
    use std::pin::pin;
    use std::task::Waker;

    /// An exchange of nothing that writes down what it does.
    struct Noted<'n>(&'n RefCell<String>);

    impl Noted<'_> {
        fn note(&self, what: impl std::fmt::Display) -> Result<()> {
            *self.0.borrow_mut() += &what.to_string();
            Ok(())
        }
    }

    impl Short for Noted<'_> {
        fn fits(&self, _: &Turn<'_>) -> bool {
            true
        }
        fn room(&self, _: &Turn<'_>) -> Option<usize> {
            Some(0)
        }
        unsafe fn write(&self, _: &Turn<'_>) -> Result<()> {
            self.note('w')
        }
        fn keep(&self, _: Member) -> Result<()> {
            self.note('k')
        }
        fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
            turn.others()
        }
        fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
            Some((0, turn.payload(source)))
        }
        unsafe fn read(&self, _: &Turn<'_>, source: Member) -> Result<()> {
            self.note(source)
        }
        unsafe fn end(&self, _: &Turn<'_>) -> Result<()> {
            self.note('e')
        }
        async fn long(self, turn: Turn<'_>) -> Result<()> {
            suspended(turn, self).await
        }
    }

    #[test]
    fn what_is_suspended_goes_on_where_it_was() {
        let context = &mut Context::from_waker(Waker::noop());
        let heap = Heap::new(3, usize::MAX, true);
        let teams = [0, 1, 2].map(|me| Team::new(heap.member(me), Config::default()));
        let mut opening: Vec<_> = teams.iter().map(|team| Box::pin(team.open(0, 0, false))).collect();
        let mut turns = [None, None, None];
        while turns.iter().any(Option::is_none) {
            for (open, turn) in opening.iter_mut().zip(&mut turns).filter(|(_, turn)| turn.is_none()) {
                if let Poll::Ready(opened) = open.as_mut().poll(context) {
                    *turn = opened.unwrap();
                }
            }
        }
        let mut turn = |me: usize| turns[me].take().expect("it is open");
        let log = RefCell::default();
        let mut noted = pin!(run(turn(0), Noted(&log)));
        let mut others = [1, 2].map(|me| Box::pin(run(turn(me), Barrier)));
        // The first one to come waits for the other one, the second one for nobody.
        assert!(others[0].as_mut().poll(context).is_pending());
        assert_eq!(*log.borrow(), "");
        for (comes, so_far) in [(false, "wk1"), (false, "wk1"), (true, "wk12e")] {
            if comes {
                assert!(others[1].as_mut().poll(context).is_ready());
            }
            assert_eq!(noted.as_mut().poll(context).is_ready(), comes);
            assert_eq!(*log.borrow(), so_far);
        }
        assert!(others[0].as_mut().poll(context).is_ready());
    }
}
