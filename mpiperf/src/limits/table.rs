// SPDX-License-Identifier: BSD-3-Clause
//! Both tables as text.

use super::floors::{Basics, Floor, Found, GROUPS, best};
use super::ground::CONTENTS;
use super::ways::{Cut, Way};
use crate::report::units::{bytes, time};
use crate::report::whole::{Style, table};

/// The columns of the table of ways.
const COLUMNS: [(Way, &str); 12] = [
    (Way::Copy, "copy"),
    (Way::OneQueue, "one way: queue"),
    (Way::OneOwned, "one way: owned"),
    (Way::OneRead, "one way: read"),
    (Way::OneDivided, "one way: divided"),
    (Way::BothQueue, "exchange: queue"),
    (Way::BothOwned, "exchange: owned"),
    (Way::BothRead, "exchange: read"),
    (Way::CombineAll, "combine: all"),
    (Way::CombineOwned, "combine: owned"),
    (Way::CombineShared, "combine: shared"),
    (Way::CombineDirect, "combine: direct"),
];

/// The name of a way in tables.
fn name(way: Option<Way>) -> &'static str {
    way.and_then(|way| COLUMNS.iter().find(|column| column.0 == way)).map_or("one line", |column| column.1)
}

/// What a number's spread is, and how the message was cut.
fn cell(found: &Found) -> Option<String> {
    let (median, scatter) = (found.median()?, found.scatter()?);
    let text = format!("{} ±{:.0}%", time(median), 100.0 * scatter);
    Some(match found.cut {
        Cut::Whole => text,
        Cut::Lines => format!("{text} lines"),
        Cut::Pieces(piece) if piece < 1024 => format!("{text} {piece}"),
        Cut::Pieces(piece) => format!("{text} {}k", piece / 1024),
    })
}

/// Everything, line by line.
pub fn all(sizes: &[usize], found_basics: &Basics, found: &[Found], found_floors: &[Floor]) -> Vec<String> {
    let mut lines = vec![basics(found_basics, found), String::new()];
    lines.push(
        "medians, ± half of what lies between the quartiles; of queues the best cut: lines, or bytes of a piece".into(),
    );
    lines.push(ways(sizes, found));
    lines.push(String::new());
    lines.push(floors(sizes, found_floors));
    lines
}

/// The table of ways.
fn ways(sizes: &[usize], found: &[Found]) -> String {
    let heading: Vec<&str> = std::iter::once("size").chain(COLUMNS.map(|column| column.1)).collect();
    let row = |size: &usize| {
        let cells = COLUMNS.iter().map(|(way, _)| best(found, *way, *size).and_then(cell));
        let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        std::iter::once(bytes(*size)).chain(cells).collect::<Vec<_>>()
    };
    table(&heading, &sizes.iter().map(row).collect::<Vec<_>>(), 0, false, Style::Plain)
}

/// What does not depend on the size.
fn basics(basics: &Basics, found: &[Found]) -> String {
    let scatter = |way: Way| {
        let bytes = if way == Way::Owned { CONTENTS } else { 0 };
        let scatter = best(found, way, bytes).and_then(Found::scatter);
        scatter.map_or_else(|| "-".to_owned(), |s| format!("±{:.0}%", 100.0 * s))
    };
    format!(
        "two readings of the clock are {} apart, a call that does nothing takes {} {}\none line from core to core takes {} {} where the reader still \
         holds it, {} {} where the writer has taken it back before",
        time(basics.timer),
        time(basics.empty),
        scatter(Way::Empty),
        time(basics.held),
        scatter(Way::PingPong),
        time(basics.owned),
        scatter(Way::Owned)
    )
}

/// The table of floors.
fn floors(sizes: &[usize], floors: &[Floor]) -> String {
    let heading: Vec<&str> = std::iter::once("floor of").chain(GROUPS.iter().map(|group| group.operations)).collect();
    let row = |size: &usize| {
        let cells = GROUPS.iter().map(|group| {
            let here = floors.iter().find(|f| f.bytes == *size && f.operations == group.operations);
            here.map_or_else(|| "-".to_owned(), |f| format!("{:>9}  {}", time(f.time), name(f.way)))
        });
        std::iter::once(format!("{:>8}", bytes(*size))).chain(cells).collect::<Vec<_>>()
    };
    table(&heading, &sizes.iter().map(row).collect::<Vec<_>>(), heading.len(), false, Style::Plain)
}

#[cfg(test)]
mod tests {
    use super::super::floors::tests::{BASICS, found};
    use super::*;

    #[test]
    fn every_sized_way_has_its_column() {
        assert_eq!(COLUMNS.map(|column| column.0), Way::SIZED);
        assert!(GROUPS.iter().flat_map(|group| group.ways).all(|way| name(Some(*way)) != name(None)));
    }

    #[test]
    fn rows_are_aligned() {
        let all = [
            found(Way::Copy, 8, Cut::Whole, 50e-9),
            found(Way::OneQueue, 8, Cut::Lines, 150e-9),
            found(Way::CombineShared, 8, Cut::Pieces(8), 0.3e-6),
        ];
        let text = ways(&[8], &all);
        let (heading, line) = text.split_once('\n').unwrap();
        assert!(line.contains("50.00 ns ±5%") && line.contains("150.0 ns ±5% lines"), "{line}");
        assert!(line.contains("300.0 ns ±5% 8") && line.ends_with("  -"), "{line}");
        assert_eq!(line.chars().count(), heading.chars().count());
        let long = ways(&[1 << 20], &[found(Way::OneQueue, 1 << 20, Cut::Pieces(65536), 1e-4)]);
        assert!(long.contains("100.0 µs ±5% 64k"), "{long}");
    }

    #[test]
    fn floors_name_their_way() {
        let floor = |bytes, way| Floor { operations: GROUPS[0].operations, bytes, time: 1e-7, way };
        let text = floors(&[8, 64, 128], &[floor(8, None), floor(64, Some(Way::OneRead))]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("bcast, gather, scatter") && lines[0].contains("allreduce"));
        assert!(lines[1].contains("100.0 ns  one line") && lines[2].contains("100.0 ns  one way: read"), "{lines:?}");
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["128", "B", "-", "-", "-"]);
    }

    #[test]
    fn what_is_unknown_is_not_shown_as_a_number() {
        let unknown = found(Way::Owned, 56, Cut::Lines, f64::NAN);
        let text = basics(&Basics { owned: f64::NAN, ..BASICS }, &[unknown]);
        assert!(text.contains("20.00 ns") && text.contains("holds it, - - where"), "{text}");
    }
}
