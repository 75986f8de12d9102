//! Barrier: everybody publishes, and waits for everybody.
//!
//! p − 1 cache lines per member, all on their way at the same time.

use super::all_wrote;
use crate::endpoint::Result;
use crate::shm::turn::Turn;

/// Returns when all members have called it.
#[inline(always)]
pub async fn barrier(turn: Turn<'_>) -> Result<()> {
    turn.line_free().await?;
    turn.publish(1);
    all_wrote(&turn, 1).await?;
    turn.finish();
    Ok(())
}
