// SPDX-License-Identifier: BSD-3-Clause
//! A mutex that processes share, whose next owner is told that the last one died with it.
//!
//! It is the C library's (`PTHREAD_MUTEX_ROBUST`): the kernel walks the list of what a thread has locked
//! when the thread ends, however it ends, and marks each (set_robust_list(2)). It walks over 2048 at most,
//! so nobody may hold more. The mark is an atomic read-modify-write after the last store of who died; who
//! locks next sees these stores.
//!
//! Whoever shares the memory is trusted: the C library keeps addresses of its list in it, so a process that
//! overwrites a mutex harms the others. The store checks what it reads, but not that.
//!
//! Under the model checker a word stands for it, and `die` for the kernel.

use super::Error;
use crate::sync::shared::SharedU64;

/// How a mutex was left by its last owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It unlocked it.
    Unlocked,
    /// It ended with it.
    Died,
}

/// The mutex in a cache line of shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Robust<'a>(&'a SharedU64);

impl<'a> Robust<'a> {
    /// The mutex in the line that begins with `word`: others use none of the line before
    /// [`BEHIND`](super::BEHIND).
    pub(super) fn at(word: &'a SharedU64) -> Robust<'a> {
        Robust(word)
    }
}

#[cfg(not(loom))]
mod system {
    use super::*;
    use std::mem::MaybeUninit;

    const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= 8 * super::super::BEHIND);
    const _: () = assert!(align_of::<libc::pthread_mutex_t>() <= 8);

    impl Robust<'_> {
        fn mutex(self) -> *mut libc::pthread_mutex_t {
            self.0.as_ptr().cast()
        }

        /// Makes it one, unlocked, before anybody else knows the memory.
        pub fn set_up(self) -> Result<(), Error> {
            let mut kind = MaybeUninit::uninit();
            // SAFETY: the attributes are ours. The line has room for a mutex, and lives as long as it is
            // borrowed; others use it only when they were told that all is set up.
            let codes = unsafe {
                let kind: *mut libc::pthread_mutexattr_t = kind.as_mut_ptr();
                [
                    libc::pthread_mutexattr_init(kind),
                    libc::pthread_mutexattr_setpshared(kind, libc::PTHREAD_PROCESS_SHARED),
                    libc::pthread_mutexattr_setrobust(kind, libc::PTHREAD_MUTEX_ROBUST),
                    libc::pthread_mutexattr_settype(kind, libc::PTHREAD_MUTEX_ERRORCHECK),
                    libc::pthread_mutex_init(self.mutex(), kind),
                ]
            };
            codes.into_iter().find(|code| *code != 0).map_or(Ok(()), |code| Err(Error::System(code)))
        }

        /// Waits until it is the caller's.
        pub fn lock(self) -> Result<Left, Error> {
            // SAFETY: it was set up.
            self.taken(unsafe { libc::pthread_mutex_lock(self.mutex()) })
        }

        /// The same without waiting; `None`: somebody who lives has it.
        pub fn try_lock(self) -> Result<Option<Left>, Error> {
            // SAFETY: it was set up.
            match unsafe { libc::pthread_mutex_trylock(self.mutex()) } {
                libc::EBUSY => Ok(None),
                code => self.taken(code).map(Some),
            }
        }

        fn taken(self, code: i32) -> Result<Left, Error> {
            match code {
                0 => Ok(Left::Unlocked),
                libc::EOWNERDEAD => {
                    // SAFETY: it is the caller's. If the caller dies now too, the next one is told again.
                    unsafe { libc::pthread_mutex_consistent(self.mutex()) };
                    Ok(Left::Died)
                }
                code => Err(Error::System(code)),
            }
        }

        /// Gives it back. One that is not the caller's is left alone.
        pub fn unlock(self) {
            // SAFETY: it was set up; this kind of mutex checks whose it is.
            unsafe { libc::pthread_mutex_unlock(self.mutex()) };
        }
    }
}

#[cfg(loom)]
mod modelled {
    use super::*;
    use crate::sync::model;
    use crate::sync::shared::Ordering;
    use std::cell::RefCell;

    const FREE: u64 = 0;
    const HELD: u64 = 1;
    const DEAD: u64 = 2;

    loom::thread_local! {
        static MINE: RefCell<Vec<&'static SharedU64>> = RefCell::new(Vec::new());
    }

    /// What the kernel does when the calling thread ends with what it holds.
    pub fn die() {
        MINE.with(|mine| {
            for word in mine.take() {
                word.store(DEAD, Ordering::Release);
            }
        });
        model::wake_all();
    }

    impl Robust<'_> {
        /// Nothing: zero is unlocked.
        pub fn set_up(self) -> Result<(), Error> {
            Ok(())
        }

        /// Waits until it is the caller's.
        pub fn lock(self) -> Result<Left, Error> {
            loop {
                if let Some(left) = self.try_lock()? {
                    return Ok(left);
                }
                model::sleep_unless(|| self.0.load(Ordering::Relaxed) != HELD);
            }
        }

        /// The same without waiting.
        pub fn try_lock(self) -> Result<Option<Left>, Error> {
            for (was, left) in [(FREE, Left::Unlocked), (DEAD, Left::Died)] {
                if self.0.compare_exchange(was, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    let word: *const SharedU64 = self.0;
                    // SAFETY: the model's memory outlives its threads.
                    MINE.with(|mine| mine.borrow_mut().push(unsafe { &*word }));
                    return Ok(Some(left));
                }
            }
            Ok(None)
        }

        /// Whether who had it is dead, and nobody has taken it since.
        pub fn is_left(self) -> bool {
            self.0.load(Ordering::Relaxed) != HELD
        }

        /// Gives it back.
        pub fn unlock(self) {
            MINE.with(|mine| mine.borrow_mut().retain(|word| !std::ptr::eq(*word, self.0)));
            self.0.store(FREE, Ordering::Release);
            model::wake_all();
        }
    }
}

#[cfg(loom)]
pub use modelled::die;
