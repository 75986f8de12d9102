// SPDX-License-Identifier: BSD-3-Clause
//! How a process tells another one that it is through with a group's memory: a board of bits.
//!
//! Every process has in its own pool one [`Board`] per process of the node (position: local rank in the job),
//! which it alone writes and only that process reads. A process numbers the groups it is in ([`GroupId`]: an
//! index into its own table, lowest free first). What a group leases is one unit of release: *i* is through
//! with all that *j* leased for its group *g* when *i*'s side of the group is dropped, and says so by
//! **flipping bit g** of its board for *j*, then counting up the board's `news`. *j* remembers the bits it
//! has seen and looks at the boards when it allocates or frees; nobody waits.
//!
//! Why it is right:
//!
//! * **Order.** *i* flips the bit by a release store after its last read of *j*'s pages; *j* loads it by
//!   acquire before it hands the pages out and writes them: `SYNC(pages read by i are j's to write)`. `news`
//!   is stored with release after the flip, so that a *j* that sees the count sees every flip counted. A flip
//!   that is seen early is simply taken early.
//! * **Never full.** There is a bit for each group there can be, so there is nothing to wait or to retry for,
//!   and a message arrives though its writer never calls again. (A ring of messages of the same size holds
//!   1/32 of them.)
//! * **No lost flip, no ABA.** *j* uses the number *g* again only when each peer of the group has flipped its
//!   bit and *j* has seen it. So between two flips of a bit lies one look at it, and a flip always means the
//!   incarnation of *g* that is in the table.
//! * **No wrap.** A bit has two states, and both mean "flipped" against what was seen before. `news` is 64
//!   bits wide; wrapping it would do no harm, because it is compared for being equal.
//! * **A first look.** A board starts as zeros, as does what has been seen; *i* flips nothing before it has
//!   confirmed a group with *j*, which it does only when it knows that *j* has attached its pool.
//! * **A dead peer** flips no more. Being dead it reads no more either, so that *j* may take its release for
//!   granted once it knows (`Pool` asks when memory is short). What it wrote stays mapped.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Number of a group in its owner's table.
pub type GroupId = u32;

/// Words of a board in a cache line.
pub const LINE_WORDS: usize = 8;

/// The most words of a board.
const MAX_WORDS: usize = 17 * LINE_WORDS;

/// Words of each board in pools of `pages` pages: one bit per page, as far as 8640 groups. The same for all
/// pools of a job.
pub const fn board_words(pages: u32) -> usize {
    let words = (1 + (pages as usize).div_ceil(64)).next_multiple_of(LINE_WORDS);
    if words < MAX_WORDS { words } else { MAX_WORDS }
}

/// Number of groups that boards of so many words can tell apart.
pub const fn groups(words: usize) -> u32 {
    (words as u32 - 1) * 64
}

/// One process' messages to another one. The first word is `news`; the others hold the bits.
#[derive(Clone, Copy)]
pub struct Board<'a>(&'a [AtomicU64]);

impl<'a> Board<'a> {
    /// The board that lies in `words`.
    pub fn new(words: &'a [AtomicU64]) -> Board<'a> {
        Board(words)
    }
}

/// What the caller has written on one of its boards: who has it is the board's only writer, and need not read
/// it.
#[derive(Debug)]
pub struct Outbox {
    news: u64,
    written: Box<[u64]>,
}

impl Outbox {
    /// For a board of `words` words that nothing has been written on.
    pub fn new(words: usize) -> Outbox {
        Outbox { news: 0, written: vec![0; words - 1].into() }
    }

    /// Says that the caller is through with what the reader of the board leased for its `group`: once per
    /// group.
    pub fn announce(&mut self, board: Board, group: GroupId) {
        let index = group as usize / 64;
        self.written[index] ^= 1 << (group % 64);
        // SYNC(pages read by i are j's to write): release.
        board.0[1 + index].store(self.written[index], Ordering::Release);
        self.news = self.news.wrapping_add(1);
        // SYNC(flips counted are seen): release.
        board.0[0].store(self.news, Ordering::Release);
    }
}

/// What has been seen of a peer's board.
#[derive(Debug)]
pub struct Inbox {
    news: u64,
    seen: Box<[u64]>,
}

impl Inbox {
    /// For a board of `words` words that nothing has been written on.
    pub fn new(words: usize) -> Inbox {
        Inbox { news: 0, seen: vec![0; words - 1].into() }
    }

    /// Calls `each` with every group that the peer has announced since the last call.
    pub fn poll(&mut self, board: Board, mut each: impl FnMut(GroupId)) {
        // SYNC(flips counted are seen): acquire.
        let news = board.0[0].load(Ordering::Acquire);
        if news == self.news {
            return;
        }
        self.news = news;
        for (index, (word, seen)) in board.0[1..].iter().zip(&mut self.seen).enumerate() {
            // SYNC(pages read by i are j's to write): acquire.
            let bits = word.load(Ordering::Acquire);
            let mut flipped = bits ^ *seen;
            *seen = bits;
            while flipped != 0 {
                each(index as u32 * 64 + flipped.trailing_zeros());
                flipped &= flipped - 1;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::thread;

    fn board(words: usize) -> Vec<AtomicU64> {
        (0..words).map(|_| AtomicU64::new(0)).collect()
    }

    fn poll(inbox: &mut Inbox, words: &[AtomicU64]) -> Vec<GroupId> {
        let mut got = Vec::new();
        inbox.poll(Board::new(words), |group| got.push(group));
        got
    }

    #[test]
    fn sizes() {
        assert_eq!((board_words(1), groups(board_words(1))), (8, 448));
        assert_eq!((board_words(449), groups(board_words(449))), (16, 960));
        assert_eq!((board_words(u32::MAX), groups(board_words(u32::MAX))), (136, 8640));
    }

    #[test]
    fn each_announcement_arrives_once() {
        let words = board(16);
        let (mut inbox, mut outbox) = (Inbox::new(16), Outbox::new(16));
        assert!(poll(&mut inbox, &words).is_empty());
        for round in 0..3 {
            for group in [0, 63, 64, 447, 959] {
                outbox.announce(Board::new(&words), group);
            }
            assert_eq!(poll(&mut inbox, &words), [0, 63, 64, 447, 959], "round {round}");
            assert!(poll(&mut inbox, &words).is_empty());
        }
    }

    #[test]
    fn news_may_wrap() {
        let words = board(8);
        words[0].store(u64::MAX, Ordering::Relaxed);
        let mut inbox = Inbox { news: u64::MAX, ..Inbox::new(8) };
        let mut outbox = Outbox { news: u64::MAX, ..Outbox::new(8) };
        outbox.announce(Board::new(&words), 5);
        assert_eq!(words[0].load(Ordering::Relaxed), 0);
        assert_eq!(poll(&mut inbox, &words), [5]);
    }

    /// One thread reads a page and says so, the other one writes it then: for tools that notice accesses
    /// which nothing puts in order.
    #[test]
    fn a_page_is_written_again_when_it_has_been_read() {
        struct Page(UnsafeCell<u64>);
        // SAFETY: who may access it, says the board.
        unsafe impl Sync for Page {}

        let (words, written, page) = (board(8), AtomicU64::new(0), Page(UnsafeCell::new(0)));
        let (words, written, page) = (&words, &written, &page);
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut outbox = Outbox::new(8);
                for n in 1..=rounds {
                    while written.load(Ordering::Acquire) < n {
                        thread::yield_now();
                    }
                    // SAFETY: the other thread writes no more until this one has announced.
                    assert_eq!(unsafe { *page.0.get() }, n);
                    outbox.announce(Board::new(words), 70);
                }
            });
            let mut inbox = Inbox::new(8);
            for n in 1..=rounds {
                // SAFETY: the other thread reads no more until this one has said that it may.
                unsafe { *page.0.get() = n };
                written.store(n, Ordering::Release);
                while poll(&mut inbox, words) != [70] {
                    thread::yield_now();
                }
            }
        });
    }
}
