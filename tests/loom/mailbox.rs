// SPDX-License-Identifier: BSD-3-Clause
//! The models of the boards on which processes say that they are through with memory.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use coll_rust::shm::pool::mailbox::{Board, Inbox, Outbox};
use coll_rust::sync::atomic::{AtomicU64, Ordering};

struct Shared {
    /// i's board for j.
    board: Vec<AtomicU64>,
    /// j's page of each group: j writes, i reads.
    pages: Vec<UnsafeCell<u32>>,
    /// Which incarnation of each group j has begun: stands for the handshake over point-to-point.
    begun: Vec<AtomicU64>,
}

/// SAFETY: loom checks every access to the cells.
unsafe impl Sync for Shared {}

fn shared(groups: usize) -> Arc<Shared> {
    Arc::new(Shared {
        board: (0..3).map(|_| AtomicU64::new(0)).collect(),
        pages: (0..groups).map(|_| UnsafeCell::new(0)).collect(),
        begun: (0..groups).map(|_| AtomicU64::new(0)).collect(),
    })
}

/// j makes a group `incarnations` times under one number, i reads its page each time and leaves; j writes the
/// page again only after the announcement. A page that is written while it is read, a lost or a doubled
/// announcement fail.
fn reuse(incarnations: u64) {
    let shared = shared(1);
    let reader = {
        let shared = shared.clone();
        thread::spawn(move || {
            let mut outbox = Outbox::new(3);
            for n in 1..=incarnations {
                while shared.begun[0].load(Ordering::Acquire) < n {
                    thread::yield_now();
                }
                // SAFETY: j writes no more until this thread has announced.
                shared.pages[0].with(|page| assert_eq!(u64::from(unsafe { *page }), n));
                outbox.announce(Board::new(&shared.board), 0);
            }
        })
    };
    let mut inbox = Inbox::new(3);
    for n in 1..=incarnations {
        // SAFETY: i is through with the page.
        shared.pages[0].with_mut(|page| unsafe { *page = n as u32 });
        shared.begun[0].store(n, Ordering::Release);
        let mut heard = 0;
        while heard == 0 {
            inbox.poll(Board::new(&shared.board), |group| {
                assert_eq!(group, 0);
                heard += 1;
            });
            thread::yield_now();
        }
        assert_eq!(heard, 1);
    }
    reader.join().unwrap();
    inbox.poll(Board::new(&shared.board), |group| panic!("announced twice: {group}"));
}

/// Who sees the count sees what is counted: it would not look again.
#[test]
fn what_is_counted_is_seen() {
    loom::model(|| {
        let shared = shared(65);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut outbox = Outbox::new(3);
                [64, 0].into_iter().for_each(|group| outbox.announce(Board::new(&shared.board), group));
            })
        };
        let mut inbox = Inbox::new(3);
        let mut heard = Vec::new();
        for _ in 0..2 {
            inbox.poll(Board::new(&shared.board), |group| heard.push(group));
        }
        reader.join().unwrap();
        inbox.poll(Board::new(&shared.board), |group| heard.push(group));
        heard.sort_unstable();
        assert_eq!(heard, [0, 64]);
    });
}

#[test]
fn a_number_is_used_again() {
    loom::model(|| reuse(2));
}

#[test]
fn two_groups_in_two_words() {
    loom::model(|| {
        let shared = shared(65);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut outbox = Outbox::new(3);
                for group in [64, 0] {
                    // SAFETY: j writes no more until this thread has announced.
                    shared.pages[group as usize].with(|page| assert_eq!(unsafe { *page }, 0));
                    outbox.announce(Board::new(&shared.board), group);
                }
            })
        };
        let mut inbox = Inbox::new(3);
        let mut heard = Vec::new();
        while heard.len() < 2 {
            inbox.poll(Board::new(&shared.board), |group| {
                // SAFETY: i is through with the page.
                shared.pages[group as usize].with_mut(|page| unsafe { *page = 7 });
                heard.push(group);
            });
            thread::yield_now();
        }
        reader.join().unwrap();
        heard.sort_unstable();
        assert_eq!(heard, [0, 64]);
    });
}
