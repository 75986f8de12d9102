// SPDX-License-Identifier: BSD-3-Clause
//! What a core has under way at the same time.

use super::Time;

/// When those that are under way at the same time are done.
#[derive(Default)]
pub(super) struct Window {
    done: Vec<Time>,
    next: usize,
}

impl Window {
    /// When there is room for another one, where at most so many are under way.
    pub fn oldest(&self, most: u32) -> Time {
        if self.done.len() < most.max(1) as usize { 0 } else { self.done[self.next] }
    }

    /// Another one; returns when there was room for it.
    pub fn enter(&mut self, most: u32, done: Time) -> Time {
        let oldest = self.oldest(most);
        if self.done.len() < most.max(1) as usize {
            self.done.push(done);
        } else {
            self.done[self.next] = done;
            self.next = (self.next + 1) % self.done.len();
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn so_many_are_under_way_and_the_oldest_makes_room() {
        let mut window = Window::default();
        assert_eq!([5, 7, 6].map(|done| window.enter(2, done)), [0, 0, 5]);
        assert_eq!((window.oldest(2), window.enter(2, 9), window.oldest(2)), (7, 7, 6));
    }
}
