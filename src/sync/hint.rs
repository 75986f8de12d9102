//! What the compiler should take for the usual way, which it lays out in one run: where little of a call is in the caches, each jump elsewhere costs as much as some ten instructions.

#[cold]
#[inline(always)]
fn seldom() {}

/// The condition, which holds as a rule.
#[inline(always)]
pub fn likely(holds: bool) -> bool {
    if !holds {
        seldom();
    }
    holds
}

/// The condition, which seldom holds.
#[inline(always)]
pub fn unlikely(holds: bool) -> bool {
    if holds {
        seldom();
    }
    holds
}
