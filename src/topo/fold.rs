// SPDX-License-Identifier: BSD-3-Clause
//! The tree of a large communicator on one screen: of siblings that are alike, one is shown.

use std::collections::HashMap;
use std::fmt::Write;

use super::level::Level;
use super::shown::{Shown, count, ranges};
use crate::endpoint::Rank;

/// Lines of a screen: a longer tree is folded.
pub(super) const SCREEN: usize = 25;

/// Longest list of ranks in a line, in characters.
const RANKS: usize = 48;

/// The groups as text, one line per group that differs from those before it beside it. `module` names a
/// group; the last group is the top.
pub(super) fn folded(groups: &[Shown], module: impl Fn(&Shown) -> String) -> String {
    let shapes = shapes(groups);
    let mut text = String::new();
    let mut open: Vec<(Line, usize)> =
        groups.len().checked_sub(1).map(|top| (Line::Group(top), 1)).into_iter().collect();
    while let Some((line, depth)) = open.pop() {
        let indent = 2 * depth;
        match line {
            Line::Group(at) => {
                let Shown { members, leader, below, .. } = &groups[at];
                let ranks = brief(members);
                let _ = writeln!(text, "{:indent$}{}: ranks {ranks}, leader {leader}", "", module(&groups[at]));
                let mut lines = Vec::new();
                for alike in alike(below, &shapes) {
                    lines.push((Line::Group(alike[0]), depth + 1));
                    if let [_, first, .., last] | [_, first @ last] = alike[..] {
                        lines.push((Line::Alike(alike.len() - 1, first, last), depth + 1));
                    }
                }
                open.extend(lines.into_iter().rev());
            }
            Line::Alike(more, first, last) => {
                let (first, last) = (module(&groups[first]), module(&groups[last]));
                let names = if more == 1 { first } else { format!("{first} to {last}") };
                let _ = writeln!(text, "{:indent$}and {more} more alike: {names}", "");
            }
        }
    }
    text
}

/// A line to come: a group with what is below it, or so many others like it, from the first to the last one.
enum Line {
    Group(usize),
    Alike(usize, usize, usize),
}

/// A number for each group, equal for those that are alike: level, number of members, and what is below.
fn shapes(groups: &[Shown]) -> Vec<usize> {
    let mut known: HashMap<(Level, usize, Vec<usize>), usize> = HashMap::new();
    let mut shapes: Vec<usize> = Vec::with_capacity(groups.len());
    for group in groups {
        // Groups stand behind those below them.
        let mut below: Vec<usize> = group.below.iter().map(|&at| shapes[at]).collect();
        below.sort_unstable();
        let next = known.len();
        shapes.push(*known.entry((group.level, group.members.len(), below)).or_insert(next));
    }
    shapes
}

/// Siblings, those that are alike together, in the order of the first of each.
fn alike(siblings: &[usize], shapes: &[usize]) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for &at in siblings {
        match sets.iter_mut().find(|set| shapes[set[0]] == shapes[at]) {
            Some(set) => set.push(at),
            None => sets.push(vec![at]),
        }
    }
    sets
}

/// Ascending ranks in few characters: runs, and steps as in `0-2256 by 48`; how many they are, where even
/// that is long.
fn brief(ranks: &[Rank]) -> String {
    let step = ranks.get(1).map_or(1, |second| second - ranks[0]);
    let text = match ranks {
        [first, _, .., last] if step > 1 && ranks.windows(2).all(|pair| pair[1] - pair[0] == step) => {
            if ranks.len() > 3 { format!("{first}-{last} by {step}") } else { ranges(ranks) }
        }
        _ => ranges(ranks),
    };
    match (text.len() > RANKS, ranks) {
        (true, [first, .., last]) => format!("{first}..{last} ({})", count(ranks.len(), "rank", "s")),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::hardware::{Hardware, Modules};
    use super::super::locality::Locality;
    use super::super::show::hierarchy;
    use super::super::{LevelSpec, Network, View};
    use super::*;

    /// 48 nodes of 48 ranks on four switches, each with two sockets of four NUMA nodes of six; `odd` changes
    /// the ranks' nodes.
    fn large(ranks: u32, odd: impl Fn(u32) -> u32) -> String {
        let hosts: Vec<u32> = (0..ranks).map(|rank| odd(rank) / 48).collect();
        let names: Vec<String> = (0..48).map(|node| format!("node{node:02}")).collect();
        let place = |rank: u32| format!("SK{}:NM{}", rank % 48 / 24, rank % 48 / 6);
        let localities: Vec<Locality> = (0..ranks).map(|rank| Locality::parse(&place(rank))).collect();
        let file: String = (0..48).map(|node| format!("node{node:02} leaf{} top\n", node / 12)).collect();
        let network = Network::parse("n", &file).expect("a network");
        let hw = Hardware {
            socket: Modules { modules: 2, cores: 24 },
            numa: Modules { modules: 8, cores: 6 },
            ..Hardware::default()
        };
        hierarchy(&View {
            hosts: &hosts,
            names: &names,
            localities: &localities,
            network: Some(&network),
            spec: &LevelSpec::Auto,
            hw,
            ordered: false,
        })
    }

    #[test]
    fn ranks_in_few_characters() {
        assert_eq!(brief(&[0, 1, 2, 5]), "0-2,5");
        assert_eq!(brief(&[0, 48, 96, 144]), "0-144 by 48");
        assert_eq!(brief(&[0, 48, 96]), "0,48,96");
        assert_eq!(brief(&(0..99).map(|n| n * n).collect::<Vec<_>>()), "0..9604 (99 ranks)");
    }

    #[test]
    fn many_ranks_fit_a_screen() {
        assert_eq!(
            large(2304, |rank| rank),
            "2304 processes on 48 nodes\n\
             \x20 switch2 top: ranks 0-1728 by 576, leader 0\n\
             \x20   switch1 leaf0: ranks 0-528 by 48, leader 0\n\
             \x20     node node00: ranks 0,24, leader 0\n\
             \x20       socket node00/0: ranks 0-18 by 6, leader 0\n\
             \x20         numa node00/0: ranks 0-5, leader 0\n\
             \x20         and 3 more alike: numa node00/1 to numa node00/3\n\
             \x20       and 1 more alike: socket node00/1\n\
             \x20     and 11 more alike: node node01 to node node11\n\
             \x20   and 3 more alike: switch1 leaf1 to switch1 leaf3\n"
        );
    }

    /// One node has fewer ranks: it is shown by itself, and so is what it hangs on; the rest stays folded.
    #[test]
    fn what_differs_is_shown() {
        let text = large(2300, |rank| rank);
        assert!(text.lines().count() <= SCREEN, "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        for shown in [
            "and 2 more alike: switch1 leaf1 to switch1 leaf2",
            "switch1 leaf3:",
            "node node47:",
            "numa node47/7: ranks 2298-2299",
        ] {
            assert!(text.contains(shown), "{shown} in {text}");
        }
    }

    /// Every rank is in the text of a tree that differs everywhere: nothing is left out but what is alike.
    #[test]
    fn as_many_ranks_are_shown_as_there_are() {
        let text = large(2304, |rank| if rank == 100 { 2200 } else { rank });
        assert!(text.contains("2304 processes on 48 nodes") && text.contains("and"), "{text}");
        assert!(text.contains("node node02:") && text.contains("node node45:"), "{text}");
        assert!(text.lines().count() <= 2 * SCREEN, "{text}");
    }
}
