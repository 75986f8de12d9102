// SPDX-License-Identifier: BSD-3-Clause
//! Runs of pages in a pool: who has which. Numbers only, no memory.
//!
//! First fit: the lowest run that is long enough. So the pool fills from the bottom, and pages that have been
//! reserved once are used again before new ones are.

use std::collections::BTreeMap;

use crate::shm::memory::Page;

/// The free pages of a pool.
#[derive(Debug)]
pub struct Pages {
    /// First page and length of every free run; no two of them touch.
    free: BTreeMap<Page, u32>,
    /// Sum of their lengths.
    left: u32,
}

impl Pages {
    /// Pages `first..end` are free.
    pub fn new(first: Page, end: Page) -> Pages {
        let left = end.saturating_sub(first);
        let free = if left == 0 { BTreeMap::new() } else { BTreeMap::from([(first, left)]) };
        Pages { free, left }
    }

    /// Number of free pages.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Takes `count` pages in a row, and returns the first.
    pub fn take(&mut self, count: u32) -> Option<Page> {
        if count == 0 || count > self.left {
            return None;
        }
        let (&first, &length) = self.free.iter().find(|&(_, &length)| length >= count)?;
        self.free.remove(&first);
        if length > count {
            self.free.insert(first + count, length - count);
        }
        self.left -= count;
        Some(first)
    }

    /// First page and length of every free run, ascending.
    pub fn runs(&self) -> impl Iterator<Item = (Page, u32)> {
        self.free.iter().map(|(&first, &length)| (first, length))
    }

    /// Gives back pages that were taken.
    ///
    /// # Panics
    /// When one of them is free: handing out a page twice would be worse.
    pub fn give(&mut self, first: Page, count: u32) {
        if count == 0 {
            return;
        }
        let (mut start, mut length) = (first, count);
        if let Some((&after, &more)) = self.free.range(first..).next() {
            assert!(first + count <= after, "pages {first}+{count} given back twice");
            if first + count == after {
                self.free.remove(&after);
                length += more;
            }
        }
        if let Some((&before, &more)) = self.free.range(..first).next_back() {
            assert!(before + more <= first, "pages {first}+{count} given back twice");
            if before + more == first {
                start = before;
                length += more;
            }
        }
        self.free.insert(start, length);
        self.left += count;
    }
}

/// A set of page numbers.
#[derive(Debug)]
pub struct PageSet(Vec<u64>);

impl PageSet {
    /// The empty set of pages below `end`.
    pub fn new(end: Page) -> PageSet {
        PageSet(vec![0; (end as usize).div_ceil(64)])
    }

    /// Whether a page is in the set.
    pub fn has(&self, page: Page) -> bool {
        self.0[page as usize / 64] >> (page % 64) & 1 == 1
    }

    /// Adds pages.
    pub fn add(&mut self, first: Page, count: u32) {
        let end = first + count;
        let mut page = first;
        while page < end {
            let here = (64 - page % 64).min(end - page);
            self.0[page as usize / 64] |= u64::MAX >> (64 - here) << (page % 64);
            page += here;
        }
    }

    /// Takes pages out.
    pub fn remove(&mut self, first: Page, count: u32) {
        let end = first + count;
        let mut page = first;
        while page < end {
            let here = (64 - page % 64).min(end - page);
            self.0[page as usize / 64] &= !(u64::MAX >> (64 - here) << (page % 64));
            page += here;
        }
    }

    /// `first..first + count` cut into the longest runs of which all pages are in the set, or none is.
    pub fn runs(&self, first: Page, count: u32) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let end = first + count;
        let mut page = first;
        while page < end {
            let inside = self.has(page);
            let word = self.0[page as usize / 64] >> (page % 64);
            let alike = if inside { word.trailing_ones() } else { word.trailing_zeros() };
            let count = alike.min(64 - page % 64).min(end - page);
            match runs.last_mut() {
                Some(run) if run.inside == inside => run.count += count,
                _ => runs.push(Run { first: page, count, inside }),
            }
            page += count;
        }
        runs
    }
}

/// A run of pages of which all are in a set, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first page.
    pub first: Page,
    /// Number of pages.
    pub count: u32,
    /// Whether they are in the set.
    pub inside: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Page = 3;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Take(u32),
        Give(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![(0u32..20).prop_map(Step::Take), any::<usize>().prop_map(Step::Give)];
        prop::collection::vec(step, 0..if cfg!(miri) { 20 } else { 200 })
    }

    /// The oracle: one flag per page.
    fn first_fit(taken: &[bool], count: u32) -> Option<Page> {
        let count = count as usize;
        let at = |start: usize| taken[start..start + count].iter().all(|t| !t);
        (count > 0 && count <= taken.len()).then(|| (0..=taken.len() - count).find(|&s| at(s)))??.try_into().ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]
        #[test]
        fn first_fit_of_free_pages(total in 0u32..100, steps in steps()) {
            let mut pages = Pages::new(FIRST, FIRST + total);
            let mut taken = vec![false; total as usize];
            let mut held: Vec<(Page, u32)> = Vec::new();
            for step in steps {
                match step {
                    Step::Take(count) => {
                        let page = pages.take(count);
                        prop_assert_eq!(page, first_fit(&taken, count).map(|p| p + FIRST));
                        if let Some(page) = page {
                            taken[(page - FIRST) as usize..][..count as usize].fill(true);
                            held.push((page, count));
                        }
                    }
                    Step::Give(which) => if !held.is_empty() {
                        let (page, count) = held.swap_remove(which % held.len());
                        taken[(page - FIRST) as usize..][..count as usize].fill(false);
                        pages.give(page, count);
                    }
                }
                prop_assert_eq!(pages.left() as usize, taken.iter().filter(|t| !**t).count());
            }
            for (page, count) in held {
                pages.give(page, count);
            }
            // All is one run again.
            prop_assert_eq!(pages.take(total), (total > 0).then_some(FIRST));
        }

        #[test]
        fn runs_tell_the_set(adds in prop::collection::vec((0u32..192, 0u32..129), 0..6),
            removed in prop::collection::vec((0u32..192, 0u32..129), 0..3), first in 0u32..150, count in 0u32..171) {
            let mut set = PageSet::new(320);
            adds.iter().for_each(|&(page, count)| set.add(page, count));
            removed.iter().for_each(|&(page, count)| set.remove(page, count));
            let mut next = first;
            let mut last = None;
            for run in set.runs(first, count) {
                prop_assert_eq!(run.first, next);
                prop_assert!(run.count > 0 && last != Some(run.inside));
                for page in run.first..run.first + run.count {
                    let among = |ranges: &[(u32, u32)]| ranges.iter().any(|&(a, n)| (a..a + n).contains(&page));
                    prop_assert_eq!(among(&adds) && !among(&removed), run.inside);
                }
                next += run.count;
                last = Some(run.inside);
            }
            prop_assert_eq!(next, first + count);
        }
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn a_page_is_given_back_once() {
        let mut pages = Pages::new(0, 8);
        let page = pages.take(4).unwrap();
        pages.give(page, 4);
        pages.give(page + 1, 1);
    }
}
