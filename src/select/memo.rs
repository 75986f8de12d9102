// SPDX-License-Identifier: BSD-3-Clause
//! The last answer, for whoever asks the same again.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A question and its answer, which depends on nothing else that changes.
#[derive(Debug)]
pub struct Memo<Q, A>(Mutex<Option<(Q, A)>>);

impl<Q, A> Default for Memo<Q, A> {
    fn default() -> Memo<Q, A> {
        Memo(Mutex::new(None))
    }
}

impl<Q: PartialEq, A: Clone> Memo<Q, A> {
    /// The answer: the last one, if it was to the same question; else what `find` finds, which is kept unless
    /// it is an error. Nothing is locked meanwhile.
    pub fn answer<E>(&self, question: Q, find: impl FnOnce() -> Result<A, E>) -> Result<A, E> {
        if let Some((last, answer)) = &*self.lock()
            && *last == question
        {
            return Ok(answer.clone());
        }
        let answer = find()?;
        *self.lock() = Some((question, answer.clone()));
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Q, A)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn only_the_same_question_again_is_not_looked_into() {
        let (memo, found) = (Memo::default(), Cell::new(0));
        let ask = |question: i32| {
            let answer = memo.answer(question, || {
                found.set(found.get() + 1);
                if question < 0 { Err(question) } else { Ok(10 * question) }
            });
            (answer, found.get())
        };
        assert_eq!([ask(1), ask(1), ask(2), ask(1)], [(Ok(10), 1), (Ok(10), 1), (Ok(20), 2), (Ok(10), 3)]);
        assert_eq!([ask(-1), ask(-1), ask(1)], [(Err(-1), 4), (Err(-1), 5), (Ok(10), 5)], "errors are not kept");
    }
}
