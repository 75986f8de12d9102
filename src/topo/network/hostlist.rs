// SPDX-License-Identifier: BSD-3-Clause
//! Slurm's host lists: `node[01-16,20],login` names seventeen nodes and one more.
//!
//! Names are made one at a time and handed over, so that a list costs no more memory than who takes its names
//! keeps.

use std::fmt::Write;

use super::fault::short;

/// The most names that one file may expand to.
pub(super) const NAMES: usize = 1 << 20;

/// The most bytes that all of them may have together.
pub(super) const BYTES: usize = 32 << 20;

/// What is left of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    names: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { names: NAMES, bytes: BYTES }
    }
}

impl Budget {
    /// Takes a name of so many bytes; an error says what there is too much of.
    pub fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.names = self.names.checked_sub(1).ok_or_else(|| format!("names (at most {NAMES} in a file)"))?;
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or_else(|| format!("bytes (at most {} MiB for all names of a file)", BYTES >> 20))?;
        Ok(())
    }
}

/// Hands over the names of a list, each with the offset, in bytes, of the item that it comes from.
///
/// Commas and blanks separate items. An item may have several brackets (all combinations, the last one
/// fastest). Numbers are filled with zeros to the width of the range's lower end as written. `fault` makes an
/// error of an offset and a message.
pub(super) fn each<E>(
    text: &str,
    budget: &mut Budget,
    fault: impl Fn(usize, String) -> E,
    mut visit: impl FnMut(usize, &str) -> Result<(), E>,
) -> Result<(), E> {
    let mut name = String::new();
    for item in items(text) {
        let (start, item) = item.map_err(|(at, message)| fault(at, message))?;
        let mut item_names = Item::parse(item, start).map_err(|(at, message)| fault(at, message))?;
        while item_names.next(&mut name) {
            let too_many = |what| fault(start, format!("'{}' expands to too many {what}", short(item)));
            budget.take(name.len()).map_err(too_many)?;
            visit(start, &name)?;
        }
    }
    Ok(())
}

/// What is wrong, behind its offset in bytes.
type Wrong = (usize, String);

/// The items of a list with their offsets: cut at the commas and blanks outside brackets. Checks that
/// brackets pair up.
fn items(text: &str) -> impl Iterator<Item = Result<(usize, &str), Wrong>> {
    let mut from = 0;
    // Whether a name has to follow: at the start, and behind a comma.
    let mut due = true;
    std::iter::from_fn(move || {
        loop {
            let rest = &text[from..];
            let blanks = rest.len() - rest.trim_start().len();
            let at = from + blanks;
            if at == text.len() {
                return std::mem::take(&mut due).then(|| Err((at, "a name is missing".to_string())));
            }
            if text[at..].starts_with(',') {
                from = at + 1;
                if std::mem::replace(&mut due, true) {
                    (from, due) = (text.len(), false);
                    return Some(Err((at, "a name is missing".to_string())));
                }
                continue;
            }
            due = false;
            let end = item_end(&text[at..]);
            from = end.as_ref().map_or(text.len(), |end| at + end);
            return Some(end.map(|end| (at, &text[at..at + end])).map_err(|(offset, what)| (at + offset, what)));
        }
    })
}

/// Where the item that a text begins with ends.
fn item_end(text: &str) -> Result<usize, Wrong> {
    let mut open = None;
    for (at, c) in text.char_indices() {
        match (c, open) {
            ('[', None) => open = Some(at),
            ('[', Some(_)) => return Err((at, "'[' inside brackets".to_string())),
            (']', Some(_)) => open = None,
            (']', None) => return Err((at, "']' without '['".to_string())),
            (c, None) if c == ',' || c.is_whitespace() => return Ok(at),
            _ => {}
        }
    }
    open.map_or(Ok(text.len()), |at| Err((at, "'[' is never closed".to_string())))
}

/// Numbers from `first` to `last`, as wide as written.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    last: u64,
    width: usize,
}

/// The most brackets in an item.
const BRACKETS: usize = 16;

/// A bracket of an item: the text before it, all its ranges, those not yet begun, and the number it stands
/// at. Ranges are read again and again: a list of them would cost more than the file.
struct Bracket<'a> {
    before: &'a str,
    inside: &'a str,
    rest: Option<&'a str>,
    range: Range,
    number: u64,
}

impl<'a> Bracket<'a> {
    /// A bracket whose ranges are good.
    fn new(before: &'a str, inside: &'a str) -> Bracket<'a> {
        let range = Range { first: 0, last: 0, width: 0 };
        let mut bracket = Bracket { before, inside, rest: Some(inside), range, number: 0 };
        bracket.begin();
        bracket
    }

    /// Begins the next range; false if it is the first one.
    fn begin(&mut self) -> bool {
        let next = self.rest.unwrap_or(self.inside);
        let fresh = next.len() == self.inside.len();
        let (text, rest) = next.split_once(',').map_or((next, None), |(text, rest)| (text, Some(rest)));
        self.rest = rest;
        self.range = range(text).unwrap_or(self.range);
        self.number = self.range.first;
        !fresh
    }

    /// Goes on to the next number; false at the end, and at the first one again.
    fn advance(&mut self) -> bool {
        if self.number < self.range.last {
            self.number += 1;
            return true;
        }
        self.begin()
    }
}

/// An item of a list, and how far its names have been made.
struct Item<'a> {
    brackets: Vec<Bracket<'a>>,
    after: &'a str,
    finished: bool,
}

impl<'a> Item<'a> {
    /// An item whose brackets pair up, at `start` of its list.
    fn parse(item: &'a str, start: usize) -> Result<Item<'a>, Wrong> {
        let mut brackets = Vec::new();
        let (mut rest, mut at) = (item, start);
        while let Some((before, (inside, after))) =
            rest.split_once('[').and_then(|(b, r)| Some((b, r.split_once(']')?)))
        {
            if brackets.len() == BRACKETS {
                return Err((at + before.len(), format!("more than {BRACKETS} brackets in a name")));
            }
            at += before.len() + 1;
            for text in inside.split(',') {
                range(text).map_err(|message| (at, message))?;
                at += text.len() + 1;
            }
            brackets.push(Bracket::new(before, inside));
            rest = after;
        }
        Ok(Item { brackets, after: rest, finished: false })
    }

    /// Writes the next name; false at the end.
    fn next(&mut self, name: &mut String) -> bool {
        if self.finished {
            return false;
        }
        name.clear();
        for bracket in &self.brackets {
            name.push_str(bracket.before);
            let _ = write!(name, "{:0width$}", bracket.number, width = bracket.range.width);
        }
        name.push_str(self.after);
        self.finished = !self.brackets.iter_mut().rev().any(Bracket::advance);
        true
    }
}

/// `7` or `01-16`.
fn range(text: &str) -> Result<Range, String> {
    let number = |digits: &str| match digits.parse::<u64>() {
        Ok(number) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
        _ => Err(format!("'{}' is not a number or a range of numbers", short(text))),
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(low)?, number(high)?);
    if last < first {
        return Err(format!("the range '{}' is reversed", short(text)));
    }
    if low.len() > 64 {
        return Err(format!("the number '{}' has too many digits", short(low)));
    }
    Ok(Range { first, last, width: low.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, budget: &mut Budget) -> Result<Vec<(usize, String)>, Wrong> {
        let mut names = Vec::new();
        each(
            text,
            budget,
            |at, message| (at, message),
            |at, name| {
                names.push((at, name.to_string()));
                Ok(())
            },
        )?;
        Ok(names)
    }

    fn names(text: &str) -> Vec<String> {
        let expanded = expand(text, &mut Budget::default()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        expanded.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn ranges_lists_and_padding() {
        assert_eq!(names("a"), ["a"]);
        assert_eq!(names("n[08-11,20],login"), ["n08", "n09", "n10", "n11", "n20", "login"]);
        assert_eq!(names("n[9-11]"), ["n9", "n10", "n11"]);
        assert_eq!(names("n[098-101]"), ["n098", "n099", "n100", "n101"]);
        assert_eq!(names("n[5]x"), ["n5x"]);
        assert_eq!(names("r[0-1]n[1-2]-ib"), ["r0n1-ib", "r0n2-ib", "r1n1-ib", "r1n2-ib"]);
        assert_eq!(names("[1-2]"), ["1", "2"]);
        assert_eq!(names("n[18446744073709551614-18446744073709551615]").len(), 2);
        assert_eq!(names(" a, b\tc[1-2] ,d "), ["a", "b", "c1", "c2", "d"]);
    }

    #[test]
    fn the_examples_of_the_manual() {
        assert_eq!(names("tux[0-3,12,18-20]").join(" "), "tux0 tux1 tux2 tux3 tux12 tux18 tux19 tux20");
        assert_eq!(names("s[0-2,4-8,12]").join(" "), "s0 s1 s2 s4 s5 s6 s7 s8 s12");
    }

    #[test]
    fn offsets_are_those_of_the_items() {
        let names = expand("é[1-2],bc,d", &mut Budget::default()).expect("a list");
        let offsets: Vec<_> = names.into_iter().map(|(at, _)| at).collect();
        assert_eq!(offsets, [0, 0, 8, 11]);
    }

    #[test]
    fn errors_say_where() {
        for (text, at, message) in [
            ("n[1-2", 1, "'[' is never closed"),
            ("a,n[1-[2]]", 6, "'[' inside brackets"),
            ("n]", 1, "']' without '['"),
            ("a,,b", 2, "a name is missing"),
            ("a,", 2, "a name is missing"),
            (",a", 0, "a name is missing"),
            ("", 0, "a name is missing"),
            ("n[1,4-2]", 4, "the range '4-2' is reversed"),
            ("n[]", 2, "'' is not a number or a range of numbers"),
            ("n[1]m[0x3]", 6, "'0x3' is not a number or a range of numbers"),
            ("n[+1]", 2, "'+1' is not a number or a range of numbers"),
            ("n[1-]", 2, "'1-' is not a number or a range of numbers"),
            (&"[1]".repeat(17), 48, "more than 16 brackets in a name"),
            ("n[1, 2]", 4, "' 2' is not a number or a range of numbers"),
            ("n[99999999999999999999]", 2, "'99999999999999999999' is not a number or a range of numbers"),
        ] {
            assert_eq!(expand(text, &mut Budget::default()), Err((at, message.to_string())), "{text}");
        }
    }

    #[test]
    fn names_and_bytes_are_limited() {
        let count = |text: &str| {
            let mut budget = Budget::default();
            let mut count = 0;
            each(
                text,
                &mut budget,
                |_, message| message,
                |_, _| {
                    count += 1;
                    Ok(())
                },
            )
            .map(|()| count)
        };
        assert_eq!(count("n[1-1048576]"), Ok(NAMES));
        for text in ["n[0-1048576]", "n[0-18446744073709551615]", "a[1-1024]b[0-1024]", "a,n[1-1048576]"] {
            assert!(count(text).is_err_and(|message| message.contains("too many names")), "{text}");
        }
        let long = format!("{}[1-1048576]", "x".repeat(4000));
        let message = count(&long).expect_err("4 GiB");
        assert!(
            message.ends_with("...' expands to too many bytes (at most 32 MiB for all names of a file)"),
            "{message}"
        );
        assert!(message.len() < 200);
    }
}
