//! How a short way ends in its operation.

/// Does an operation [`At`](super::At) a door, or starts it; `len`: as for
/// [`needs_queue`](super::needs_queue). A macro, since no function that is given the operation as an `async`
/// closure takes as little: a future within another took 40 instructions more, of a Bcast's 530.
///
/// `$still`: whether all that the caller sends and gets [lies still](crate::shm::team::Team::lies_still). A
/// door contains no other blocking calls: so they are short, lie close together, and keep the operation in
/// registers. On a Zen 4 short calls of two ranks took 0.81 to 1.04 of the time before (docs/findings.md,
/// "Operations in registers"). `$limit`: from how many bytes on data are read elsewhere, which these do not
/// ask.
macro_rules! go {
    ($at:ident, $len:expr, |$turn:ident| $operation:expr) => {
        if BLOCKING {
            let patience = Cell::default();
            let $turn = $at.turn::<false>($len, &patience)?;
            $at.finish($operation)
        } else {
            $at.begin($len, async move |$turn: Turn<'_>| $operation.await)
        }
    };
    ($at:ident, $len:expr, $still:expr, $limit:expr, |$turn:ident, $zero_copy:ident| $operation:expr) => {
        if !BLOCKING {
            let $zero_copy = $limit;
            $at.begin($len, async move |$turn: Turn<'_>| $operation.await)
        } else if $still {
            let (patience, $zero_copy) = (Cell::default(), usize::MAX);
            let $turn = $at.turn::<true>($len, &patience)?.of_what_lies_still();
            $at.finish($operation)
        } else {
            out_of_line(move || {
                let (patience, $zero_copy) = (Cell::default(), $limit);
                let $turn = $at.turn::<false>($len, &patience)?;
                $at.finish($operation)
            })
        }
    };
    // Blocking ones by a plain function, unless that gives the turn back.
    ($at:ident, $len:expr, $still:expr, $limit:expr, |$turn:ident, $zero_copy:ident| $now:expr, else $operation:expr) => {
        if !BLOCKING {
            let $zero_copy = $limit;
            $at.begin($len, async move |$turn: Turn<'_>| $operation.await)
        } else if $still {
            let (patience, $zero_copy) = (Cell::default(), usize::MAX);
            let $turn = $at.turn::<true>($len, &patience)?.of_what_lies_still();
            match $now {
                Ok(result) => $at.end(result),
                Err($turn) => $at.finish($operation),
            }
        } else {
            out_of_line(move || {
                let (patience, $zero_copy) = (Cell::default(), $limit);
                let $turn = $at.turn::<false>($len, &patience)?;
                match $now {
                    Ok(result) => $at.end(result),
                    Err($turn) => $at.finish($operation),
                }
            })
        }
    };
    // Blocking ones by a plain function, which finds out whether they lie still, and gives the turn back
    // where they do not; then by another one, likewise.
    ($at:ident, $len:expr, |$turn:ident| $still:expr, else $limit:expr, |$zero_copy:ident| $now:expr, else $operation:expr) => {
        if BLOCKING {
            let patience = Cell::default();
            let $turn = $at.turn::<true>($len, &patience)?;
            match $still {
                Ok(result) => $at.end(result),
                Err($turn) => out_of_line(move || {
                    let $zero_copy = $limit;
                    match $now {
                        Ok(result) => $at.end(result),
                        Err($turn) => $at.finish($operation),
                    }
                }),
            }
        } else {
            let $zero_copy = $limit;
            $at.begin($len, async move |$turn: Turn<'_>| $operation.await)
        }
    };
}
pub(super) use go;

/// Not a part of the caller.
#[inline(never)]
pub(super) fn out_of_line<R>(long: impl FnOnce() -> R) -> R {
    long()
}
