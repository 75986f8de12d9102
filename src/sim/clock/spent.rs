// SPDX-License-Identifier: BSD-3-Clause
//! With what members spend their time.

use super::Time;

/// What a member spends its time with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Instructions that touch nothing shared.
    Work,
    /// Words and lines of other cores.
    Lines,
    /// Long copies.
    Copies,
    /// System calls that copy.
    System,
    /// Combining operands.
    Combining,
    /// Waiting for others.
    Waiting,
    /// Sending and receiving messages.
    Overhead,
    /// On the way between nodes.
    Latency,
    /// Bytes of messages between nodes.
    Transfer,
    /// Other messages at the sender's or the receiver's adapter.
    Nic,
    /// Other messages, and less room, between switches.
    Uplink,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 11;

    /// Every cause.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Work,
        Cause::Lines,
        Cause::Copies,
        Cause::System,
        Cause::Combining,
        Cause::Waiting,
        Cause::Overhead,
        Cause::Latency,
        Cause::Transfer,
        Cause::Nic,
        Cause::Uplink,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        [
            "work",
            "lines",
            "copies",
            "system",
            "combining",
            "waiting",
            "overhead",
            "latency",
            "transfer",
            "nic",
            "uplink",
        ][self as usize]
    }
}

/// The time since the start of an operation, by what it went with: along a chain of processes each of which
/// waited for the one before. The last member's is the critical path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// By [`Cause`].
    pub by: [Time; Cause::COUNT],
}

impl Path {
    /// So much longer.
    pub fn add(&mut self, cause: Cause, time: Time) {
        self.by[cause as usize] += time;
    }

    /// With another one behind it.
    pub fn and(mut self, other: &Path) -> Path {
        self.by.iter_mut().zip(other.by).for_each(|(by, more)| *by += more);
        self
    }

    /// All of it.
    pub fn time(&self) -> Time {
        self.by.iter().sum()
    }
}

/// What one operation took a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// From its start to its end.
    pub time: Time,
    /// With what, by [`Cause`].
    pub by: [Time; Cause::COUNT],
    /// How it came to its end.
    pub path: Path,
}

/// A while in which a member did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What.
    pub cause: Cause,
    /// When it began, from the start of the operation.
    pub from: Time,
    /// When it was over.
    pub to: Time,
}

/// A wait for another member that wrote a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who wrote it.
    pub by: usize,
    /// When the wait began.
    pub from: Time,
    /// When the word was written.
    pub written: Time,
    /// When it was seen.
    pub seen: Time,
}

/// What one member did in one operation, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    start: Time,
    /// All its time.
    pub spans: Vec<Span>,
    /// Its waits for others.
    pub waits: Vec<Wait>,
}

impl Record {
    /// Of an operation that starts then.
    pub(super) fn new(start: Time) -> Record {
        Record { start, ..Record::default() }
    }

    pub(super) fn span(&mut self, cause: Cause, from: Time, to: Time) {
        let (from, to) = (from - self.start, to - self.start);
        match self.spans.last_mut() {
            Some(last) if last.cause == cause && last.to == from => last.to = to,
            _ => self.spans.push(Span { cause, from, to }),
        }
    }

    pub(super) fn wait(&mut self, by: usize, [from, written, seen]: [Time; 3]) {
        let since = |time: Time| time.saturating_sub(self.start);
        self.waits.push(Wait { by, from: since(from), written: since(written), seen: since(seen) });
    }

    /// When the member was through.
    pub fn end(&self) -> Time {
        self.spans.last().map_or(0, |span| span.to)
    }
}

/// The critical path: whom the last member to come has waited for, and that one before, back to the start.
/// Each is a member and its wait, the latest first.
pub fn critical(records: &[Record]) -> Vec<(usize, Wait)> {
    let last = (0..records.len()).max_by_key(|&member| records[member].end());
    let mut at = last.map(|member| (member, records[member].end()));
    let mut path = Vec::new();
    while let Some((member, time)) = at {
        let held_up = |wait: &&Wait| wait.seen <= time && wait.seen > wait.from;
        let wait = records[member].waits.iter().rev().find(held_up);
        path.extend(wait.map(|&wait| (member, wait)));
        at = wait.map(|wait| (wait.by, wait.written));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_path_goes_back_to_who_waits_for_nobody() {
        let mut records = vec![Record::new(100), Record::new(100), Record::new(100)];
        records[0].span(Cause::Work, 100, 110);
        records[0].span(Cause::Work, 110, 120);
        records[1].wait(0, [105, 120, 130]);
        records[1].span(Cause::Waiting, 105, 130);
        // A word that has come before it is waited for holds nobody up.
        records[2].wait(0, [125, 110, 120]);
        records[2].wait(1, [101, 131, 140]);
        records[2].span(Cause::Waiting, 101, 140);
        assert_eq!(records[0].spans, [Span { cause: Cause::Work, from: 0, to: 20 }]);
        let path: Vec<_> = critical(&records).into_iter().map(|(member, wait)| (member, wait.by, wait.seen)).collect();
        assert_eq!(path, [(2, 1, 40), (1, 0, 30)]);
        assert_eq!(critical(&[]), []);
    }
}
