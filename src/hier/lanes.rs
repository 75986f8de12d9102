// SPDX-License-Identifier: BSD-3-Clause
//! Segments in flight.
//!
//! Lane i of w handles segments i, i + w, i + 2w, … one after the other, each through all levels, with tags
//! of its own. So a lane is an ordinary unsegmented operation, lanes need no order among them, and at most w
//! segments (and their temporary buffers) are about at a time.

use crate::endpoint::Result;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::task::Poll;

#[cfg(feature = "clock")]
mod due {
    use std::cell::Cell;

    thread_local! {
        static DUE: Cell<Option<u8>> = const { Cell::new(None) };
    }

    /// Until the next call of this only that lane can go on: to look at the others of a million ranks takes
    /// most of the time. `None`: any lane.
    pub fn only(lane: Option<u8>) {
        DUE.set(lane);
    }

    pub(super) fn is_due(lane: usize) -> bool {
        DUE.get().is_none_or(|due| usize::from(due) == lane)
    }
}

#[cfg(feature = "clock")]
pub use due::only;

/// Whether a lane may have something to do.
fn is_due(lane: usize) -> bool {
    #[cfg(feature = "clock")]
    return due::is_due(lane);
    #[cfg(not(feature = "clock"))]
    {
        let _ = lane;
        true
    }
}

/// How many segments `total` units make; at least 1.
pub fn segments(total: usize, segment: usize) -> usize {
    total.div_ceil(segment.max(1)).max(1)
}

/// Runs `work(lane, units)` for every segment of `total` units, `window` at a time. Ends with the first
/// error.
pub async fn lanes<W, F>(total: usize, segment: usize, window: u8, work: W) -> Result<()>
where
    W: Fn(u8, Range<usize>) -> F,
    F: Future<Output = Result<()>>,
{
    let count = segments(total, segment);
    if count == 1 {
        return work(0, 0..total).await;
    }
    let width = usize::from(window.max(1)).min(count);
    let work = &work;
    let lane = |lane: usize| async move {
        for s in (lane..count).step_by(width) {
            let start = s * segment;
            work(lane as u8, start..total.min(start + segment)).await?;
        }
        Ok(())
    };
    let mut running: Vec<Option<Pin<Box<_>>>> = (0..width).map(|i| Some(Box::pin(lane(i)))).collect();
    poll_fn(move |context| {
        let mut pending = false;
        for (lane, slot) in running.iter_mut().enumerate() {
            let Some(future) = slot else { continue };
            if !is_due(lane) {
                pending = true;
                continue;
            }
            match future.as_mut().poll(context) {
                Poll::Pending => pending = true,
                Poll::Ready(Ok(())) => *slot = None,
                Poll::Ready(error) => return Poll::Ready(error),
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    #[test]
    fn every_segment_runs_once_in_its_lane_in_order() {
        for total in 0..40 {
            for segment in 1..12 {
                for window in 1..=8 {
                    let seen = Mutex::new(Vec::new());
                    let future = lanes(total, segment, window, |lane, range| {
                        seen.lock().unwrap().push((lane, range));
                        async { Ok(()) }
                    });
                    let mut future = std::pin::pin!(future);
                    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
                    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
                    for lane in 0..8 {
                        let starts: Vec<_> = seen.iter().filter(|s| s.0 == lane).map(|s| s.1.start).collect();
                        assert!(starts.is_sorted());
                    }
                    seen.sort_by_key(|s| s.1.start);
                    assert_eq!(seen.iter().map(|s| s.1.len()).sum::<usize>(), total);
                    assert!(seen.windows(2).all(|w| w[0].1.end == w[1].1.start));
                    assert_eq!(seen.len(), segments(total, segment));
                }
            }
        }
    }
}
