//! Slurm's host lists: `node[01-16,20],login` names seventeen nodes and one more.

/// The most names that one file may expand to.
pub(super) const LIMIT: usize = 1 << 20;

/// An error, behind its offset in the list, in characters.
pub(super) type Fault = (usize, String);

/// The names of a list with the offset, in characters, of the item each comes from.
///
/// An item may have several brackets (all combinations, the last one fastest). Numbers are filled with zeros to the width
/// of the range's lower end as written. At most `room` names.
pub(super) fn expand(text: &str, room: usize) -> Result<Vec<(usize, String)>, Fault> {
    let mut names = Vec::new();
    let mut start = 0;
    for item in items(text)? {
        let left = room - names.len();
        names.extend(expand_item(item, start, left)?.into_iter().map(|name| (start, name)));
        start += item.chars().count() + 1;
    }
    Ok(names)
}

/// The items of a list: cut at the commas outside brackets. Checks that brackets pair up.
fn items(text: &str) -> Result<Vec<&str>, Fault> {
    let mut items = Vec::new();
    let mut open = None;
    let mut from = 0;
    for (offset, (at, c)) in text.char_indices().enumerate() {
        match (c, open) {
            ('[', None) => open = Some(offset),
            ('[', Some(_)) => return Err((offset, "'[' inside brackets".to_string())),
            (']', Some(_)) => open = None,
            (']', None) => return Err((offset, "']' without '['".to_string())),
            (',', None) => {
                items.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if let Some(offset) = open {
        return Err((offset, "'[' is never closed".to_string()));
    }
    items.push(&text[from..]);
    Ok(items)
}

/// The names of one item, which starts at `start`.
fn expand_item(item: &str, start: usize, room: usize) -> Result<Vec<String>, Fault> {
    if item.is_empty() {
        return Err((start, "a name is missing".to_string()));
    }
    let too_many = || (start, format!("'{item}' expands to too many names (at most {LIMIT} in a file)"));
    let mut names = vec![String::new()];
    let mut offset = start;
    let mut rest = item;
    while let Some((plain, (inside, after))) = rest.split_once('[').and_then(|(p, r)| Some((p, r.split_once(']')?))) {
        offset += plain.chars().count() + 1;
        let mut numbers = Vec::new();
        for range in inside.split(',') {
            range_into(range, room, &mut numbers).map_err(|message| match message {
                Some(message) => (offset, message),
                None => too_many(),
            })?;
            offset += range.chars().count() + 1;
        }
        if names.len().saturating_mul(numbers.len()) > room {
            return Err(too_many());
        }
        names = names.iter().flat_map(|name| numbers.iter().map(move |n| format!("{name}{plain}{n}"))).collect();
        rest = after;
    }
    if names.len() > room {
        return Err(too_many());
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// Appends the numbers of `7` or `01-16`; an error without message means more than `room`.
fn range_into(range: &str, room: usize, numbers: &mut Vec<String>) -> Result<(), Option<String>> {
    let number = |text: &str| match text.parse::<u64>() {
        Ok(number) if text.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
        _ => Err(Some(format!("'{range}' is not a number or a range of numbers"))),
    };
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (number(low)?, number(high)?);
    if last < first {
        return Err(Some(format!("the range '{range}' is reversed")));
    }
    if last - first >= (room - numbers.len()) as u64 {
        return Err(None);
    }
    let width = low.len();
    if width > 64 {
        return Err(Some(format!("the number '{low}' has too many digits")));
    }
    numbers.extend((first..=last).map(|n| format!("{n:0width$}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        expand(text, LIMIT).unwrap_or_else(|error| panic!("{text}: {error:?}")).into_iter().map(|(_, n)| n).collect()
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
    }

    #[test]
    fn offsets_are_those_of_the_items() {
        let offsets: Vec<_> = expand("é[1-2],bc,d", LIMIT).expect("a list").into_iter().map(|(at, _)| at).collect();
        assert_eq!(offsets, [0, 0, 7, 10]);
    }

    #[test]
    fn errors_say_where() {
        for (text, at, message) in [
            ("n[1-2", 1, "'[' is never closed"),
            ("a,n[1-[2]]", 6, "'[' inside brackets"),
            ("n]", 1, "']' without '['"),
            ("a,,b", 2, "a name is missing"),
            ("", 0, "a name is missing"),
            ("n[1,4-2]", 4, "the range '4-2' is reversed"),
            ("n[]", 2, "'' is not a number or a range of numbers"),
            ("n[1]m[0x3]", 6, "'0x3' is not a number or a range of numbers"),
            ("n[+1]", 2, "'+1' is not a number or a range of numbers"),
            ("n[1-]", 2, "'1-' is not a number or a range of numbers"),
            ("n[99999999999999999999]", 2, "'99999999999999999999' is not a number or a range of numbers"),
        ] {
            assert_eq!(expand(text, LIMIT), Err((at, message.to_string())), "{text}");
        }
    }

    #[test]
    fn expansion_is_limited() {
        assert_eq!(names("n[1-1048576]").len(), LIMIT);
        for text in ["n[0-1048576]", "n[0-18446744073709551615]", "a[1-1024]b[0-1024]", "a,n[1-1048576]"] {
            let (_, message) = expand(text, LIMIT).expect_err(text);
            assert!(message.contains("too many names"), "{message}");
        }
        assert!(expand("a,b", 1).is_err() && expand("a", 0).is_err() && expand("n[1]", 0).is_err());
    }
}
