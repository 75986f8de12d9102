// SPDX-License-Identifier: BSD-3-Clause
//! N-MCS: a queue for each reader, in which it and the writer take turns.
//!
//! The queue of J. Mellor-Crummey and M. Scott (1991) has a word for its end, and its members' links. A queue
//! here has two members at most, its reader and the writer (writers come one at a time), so one word holds
//! all: a count for each, which is odd while that one is in the queue. One atomic addition enters, and tells
//! whether the other is ahead; one leaves, and tells whether the other waits: then who leaves hands the
//! queue over, in a line on which only the other waits. Order of arrival is kept, so no signal is needed.
//!
//! What is handed over is the count with which the other one entered. So a handing over that comes too late
//! (from one who did it in the place of a dead, below) means nothing to an entry after that.
//!
//! **Order of memory.** Counts are changed by read-modify-writes that acquire and release, so each sees what
//! went before all earlier ones of that queue. Who enters and finds the other's count even: the other has
//! left, and what it did inside was before. Who finds it odd waits for what the other releases when it hands
//! over, after what it did inside. Who was not behind does not look at its line at all.
//!
//! **In the place of a dead.** Who has locked the slot of a reader that is gone, or the mutex of writers,
//! leaves in its place if its count is odd, and hands over to the other if that is in the queue. If the dead
//! was ahead, or has left without handing over, the other waits for just that. If the dead waited, the other
//! is inside and does not look at its line: its next entry has another count. What is written so is written
//! before the place of the dead is taken again, so never over a handing over that is awaited.

use super::waiting::{tell, until};
use super::{Area, Error, Kind, MOST_READERS, Step, Steps, Through};
use crate::sync::shared::{Ordering, SharedU64};

/// The counts of both.
const QUEUE: usize = 0;
/// Whose turn it is: two lines, each written by the one and awaited by the other.
const READERS_TURN: usize = 1;
const WRITERS_TURN: usize = 2;

/// Who is in a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Its count is the upper half, and goes round by itself.
    Reader,
    /// Its count is the lower half, and may not carry into the upper.
    Writer,
}

impl Who {
    fn other(self) -> Who {
        if self == Who::Reader { Who::Writer } else { Who::Reader }
    }

    #[inline(always)]
    fn count(self, queue: u64) -> u64 {
        match self {
            Who::Reader => queue >> 32,
            Who::Writer => queue & u64::from(u32::MAX),
        }
    }

    fn turn(self, area: &Area, reader: usize) -> &SharedU64 {
        area.word(reader, if self == Who::Reader { READERS_TURN } else { WRITERS_TURN })
    }
}

fn is_in(count: u64) -> bool {
    count & 1 == 1
}

/// Enters the queue: the count with which one did, and whether the other is ahead.
#[inline(always)]
fn enter(area: &Area, reader: usize, who: Who) -> (u64, bool) {
    who.turn(area, reader).store(0, Ordering::Relaxed);
    let one = if who == Who::Reader { 1 << 32 } else { 1 };
    let before = area.word(reader, QUEUE).fetch_add(one, Ordering::AcqRel);
    (who.count(before.wrapping_add(one)), is_in(who.other().count(before)))
}

/// Leaves the queue: with what count the other one is in it, if it is.
#[inline(always)]
fn leave(area: &Area, reader: usize, who: Who) -> Option<u64> {
    let queue = area.word(reader, QUEUE);
    let before = match who {
        Who::Reader => queue.fetch_add(1 << 32, Ordering::AcqRel),
        // Only writers change this half, and one at a time.
        Who::Writer if queue.load(Ordering::Relaxed) as u32 == u32::MAX => {
            queue.fetch_sub(u32::MAX.into(), Ordering::AcqRel)
        }
        Who::Writer => queue.fetch_add(1, Ordering::AcqRel),
    };
    Some(who.other().count(before)).filter(|count| is_in(*count))
}

/// Tells the other one that it is its turn.
#[inline(always)]
fn hand_over(area: &Area, reader: usize, who: Who, other: Option<u64>) {
    if let Some(count) = other {
        tell(who.other().turn(area, reader), count);
    }
}

/// Leaves in the place of one who is gone; the caller has locked what shows that.
fn mend(area: &Area, reader: usize, gone: Who) {
    let queue = area.word(reader, QUEUE).load(Ordering::Acquire);
    let other = match is_in(gone.count(queue)) {
        true => leave(area, reader, gone),
        // It may have died before it handed over.
        false => Some(gone.other().count(queue)).filter(|count| is_in(*count)),
    };
    hand_over(area, reader, gone, other);
}

/// N-MCS.
#[derive(Debug)]
pub struct Mcs;

impl Kind for Mcs {
    const NAME: &'static str = "N-MCS";
    const NUMBER: u64 = 3;
    const LINES: usize = 3;

    fn set_up(_area: &Area) -> Result<(), Error> {
        Ok(())
    }

    #[inline]
    fn enter(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error> {
        let (count, behind) = enter(area, reader, Who::Reader);
        steps.at(Step::Signalled, reader)?;
        if behind {
            let turn = Who::Reader.turn(area, reader);
            let waited = until(turn, count, area.writer(), |_| Mcs::mend_writer(area));
            if let Err(error) = waited {
                hand_over(area, reader, Who::Reader, leave(area, reader, Who::Reader));
                return Err(error);
            }
        }
        steps.at(Step::Entered, reader)
    }

    #[inline]
    fn leave(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error> {
        let other = leave(area, reader, Who::Reader);
        steps.at(Step::HalfLeft, reader)?;
        hand_over(area, reader, Who::Reader, other);
        steps.at(Step::Left, reader)
    }

    /// Into all queues first, so that all newcomers are behind.
    fn enter_to_write(area: &Area, steps: &impl Steps) -> Result<(), Error> {
        let mut ahead = [0_u64; MOST_READERS.div_ceil(64)];
        for reader in area.readers() {
            let (_, behind) = enter(area, reader, Who::Writer);
            ahead[reader / 64] |= u64::from(behind) << (reader % 64);
            steps.at(Step::Signalled, reader)?;
        }
        for reader in area.readers() {
            if ahead[reader / 64] >> (reader % 64) & 1 == 1 {
                let (turn, queue) = (Who::Writer.turn(area, reader), area.word(reader, QUEUE));
                let count = Who::Writer.count(queue.load(Ordering::Relaxed));
                let waited = until(turn, count, area.slot(reader), |_| {
                    area.taken(reader).store(0, Ordering::Relaxed);
                    mend(area, reader, Who::Reader);
                });
                if let Err(error) = waited {
                    Mcs::leave_written(area, &Through)?;
                    return Err(error);
                }
            }
            steps.at(Step::Entered, reader)?;
        }
        Ok(())
    }

    fn leave_written(area: &Area, steps: &impl Steps) -> Result<(), Error> {
        area.readers().try_for_each(|reader| {
            let other = leave(area, reader, Who::Writer);
            steps.at(Step::HalfLeft, reader)?;
            hand_over(area, reader, Who::Writer, other);
            steps.at(Step::Left, reader)
        })
    }

    fn mend_reader(area: &Area, reader: usize) {
        mend(area, reader, Who::Reader);
    }

    fn mend_writer(area: &Area) {
        area.readers().for_each(|reader| mend(area, reader, Who::Writer));
    }
}
