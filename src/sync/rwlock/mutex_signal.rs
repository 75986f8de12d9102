// SPDX-License-Identifier: BSD-3-Clause
//! N(mutex+signal): a mutex and a signal for each reader.
//!
//! A reader whose signal is up waits until it is down, then takes its mutex, which it holds inside. The
//! writer raises all signals, then takes all mutexes; it gives a mutex back, and lowers the signal. Only a
//! reader that finds its signal up writes it, to say that it sleeps.
//!
//! **Order of memory.** As with 2N-mutex, the mutex of a reader orders all. The signal orders nothing: a
//! reader that sees it late and takes its mutex beside the writer is inside before the writer, or after it.
//! Two things are asked of it. That it falls: the writer lowers it, or who finds the writer gone. And that
//! no reader sleeps on a signal that is down: its waiting is that of `waiting.rs`, by one word.

use super::waiting::{tell, until};
use super::{Area, Error, Kind, Step, Steps, Through};
use crate::sync::shared::Ordering;

const MAIN: usize = 0;
const SIGNAL: usize = 1;

const DOWN: u64 = 0;
const UP: u64 = 1;

/// N(mutex+signal).
#[derive(Debug)]
pub struct MutexSignal;

impl Kind for MutexSignal {
    const NAME: &'static str = "N(mutex+signal)";
    const NUMBER: u64 = 2;
    const LINES: usize = 2;

    fn set_up(area: &Area) -> Result<(), Error> {
        area.readers().try_for_each(|reader| area.mutex(reader, MAIN).set_up())
    }

    #[inline]
    fn enter(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error> {
        let signal = area.word(reader, SIGNAL);
        if signal.load(Ordering::Relaxed) != DOWN {
            until(signal, DOWN, area.writer(), |_| MutexSignal::mend_writer(area))?;
        }
        steps.at(Step::Signalled, reader)?;
        area.mutex(reader, MAIN).lock()?;
        steps.at(Step::Entered, reader)
    }

    #[inline]
    fn leave(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error> {
        area.mutex(reader, MAIN).unlock();
        steps.at(Step::Left, reader)
    }

    fn enter_to_write(area: &Area, steps: &impl Steps) -> Result<(), Error> {
        for reader in area.readers() {
            // Nobody sleeps on a signal that is down, and they all are.
            area.word(reader, SIGNAL).store(UP, Ordering::Relaxed);
            steps.at(Step::Signalled, reader)?;
        }
        for reader in area.readers() {
            if let Err(error) = area.mutex(reader, MAIN).lock() {
                release(area, &Through)?;
                return Err(error);
            }
            steps.at(Step::Entered, reader)?;
        }
        Ok(())
    }

    fn leave_written(area: &Area, steps: &impl Steps) -> Result<(), Error> {
        release(area, steps)
    }

    fn mend_reader(_area: &Area, _reader: usize) {}

    /// Its mutexes tell of its death themselves; the signals are up or down, and nobody else writes them.
    fn mend_writer(area: &Area) {
        area.readers().for_each(|reader| tell(area.word(reader, SIGNAL), DOWN));
    }
}

/// Gives all mutexes back that are the caller's, and lowers the signals. The mutex first: a reader then finds
/// it free.
fn release(area: &Area, steps: &impl Steps) -> Result<(), Error> {
    area.readers().try_for_each(|reader| {
        area.mutex(reader, MAIN).unlock();
        steps.at(Step::HalfLeft, reader)?;
        tell(area.word(reader, SIGNAL), DOWN);
        steps.at(Step::Left, reader)
    })
}
