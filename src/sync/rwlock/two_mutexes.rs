// SPDX-License-Identifier: BSD-3-Clause
//! 2N-mutex: a signalling and a main mutex for each reader.
//!
//! A reader takes its signalling mutex, then its main one, and gives the first back; inside it holds the main
//! one. The writer takes all signalling mutexes, which stops newcomers, then all main ones.
//!
//! **Order of memory.** Reader r is inside while it holds main mutex r, the writer while it holds all. Two of
//! which one writes hold one mutex one after the other, and a mutex orders what its owners do. (An owner that
//! died is ordered by the kernel's mark.) Signalling mutexes order nothing: they keep a reader that comes
//! again from being faster than the writer, since a mutex goes to whom it pleases.

use super::{Area, Error, Kind, Step, Steps};

const SIGNALLING: usize = 0;
const MAIN: usize = 1;

/// 2N-mutex.
#[derive(Debug)]
pub struct TwoMutexes;

impl Kind for TwoMutexes {
    const NAME: &'static str = "2N-mutex";
    const NUMBER: u64 = 1;
    const LINES: usize = 2;

    fn set_up(area: &Area) -> Result<(), Error> {
        area.readers().try_for_each(|reader| {
            area.mutex(reader, SIGNALLING).set_up()?;
            area.mutex(reader, MAIN).set_up()
        })
    }

    fn enter(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error> {
        let (signalling, main) = (area.mutex(reader, SIGNALLING), area.mutex(reader, MAIN));
        signalling.lock()?;
        steps.at(Step::Signalled, reader)?;
        let entered = main.lock();
        steps.at(Step::Entered, reader)?;
        signalling.unlock();
        entered.map(|_| ())
    }

    fn leave(area: &Area, reader: usize, steps: &impl Steps) -> Result<(), Error> {
        area.mutex(reader, MAIN).unlock();
        steps.at(Step::Left, reader)
    }

    fn enter_to_write(area: &Area, steps: &impl Steps) -> Result<(), Error> {
        for (line, step) in [(SIGNALLING, Step::Signalled), (MAIN, Step::Entered)] {
            for reader in area.readers() {
                if let Err(error) = area.mutex(reader, line).lock() {
                    // Mutexes that are not the caller's stay as they are.
                    release(area, &super::Through)?;
                    return Err(error);
                }
                steps.at(step, reader)?;
            }
        }
        Ok(())
    }

    fn leave_written(area: &Area, steps: &impl Steps) -> Result<(), Error> {
        release(area, steps)
    }

    fn mend_reader(_area: &Area, _reader: usize) {}

    fn mend_writer(_area: &Area) {}
}

/// Gives all back that is the caller's. The main mutex of a reader first: it then finds it free.
fn release(area: &Area, steps: &impl Steps) -> Result<(), Error> {
    area.readers().try_for_each(|reader| {
        area.mutex(reader, MAIN).unlock();
        steps.at(Step::HalfLeft, reader)?;
        area.mutex(reader, SIGNALLING).unlock();
        steps.at(Step::Left, reader)
    })
}
