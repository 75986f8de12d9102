// SPDX-License-Identifier: BSD-3-Clause
//! What is predicted of an operation: trees and ways.

use super::Args;
use component::predict::{Case, Kind, Node};
use component::shm::op::tree::Tree;
use component::shm::policy::{TABLE, Way};
use component::topo::{Level, LevelSpec};

/// Groups of trees are compared as they are, and made of groups of so many.
const DEGREES: [usize; 3] = [4, 8, 16];

/// One of them.
pub struct Setting {
    /// What it is called.
    pub name: String,
    /// The way that is forced.
    pub way: Option<Way>,
    /// The tree of each member.
    pub trees: Option<Vec<Tree>>,
}

/// What the arguments ask for.
///
/// # Errors
/// A way that the operation does not have, or not at this length.
pub fn all(args: &Args, node: &Node, kind: Kind, bytes: usize) -> Result<Vec<Setting>, String> {
    if args.compare {
        return Ok(compared(node, kind, bytes));
    }
    let Some(way) = args.way else {
        return Ok(vec![Setting { name: name(&args.levels), way: None, trees: node.trees(&args.levels) }]);
    };
    let gone = node.way(Case { kind, bytes, way: Some(way) }, None);
    if gone != way {
        let operation = kind.operation();
        let known: Vec<_> = TABLE.iter().filter(|row| row.way.serves(operation)).map(|row| row.name).collect();
        return Err(format!(
            "{} of {bytes} bytes among {} ranks cannot go by {}: {} would go instead. It has {}",
            kind.name(),
            node.size(),
            way.name(),
            gone.name(),
            known.join(", ")
        ));
    }
    Ok(vec![Setting { name: way.name().to_owned(), way: Some(way), trees: None }])
}

/// `auto`, flat, each way that can be forced, and each tree that differs from those before.
fn compared(node: &Node, kind: Kind, bytes: usize) -> Vec<Setting> {
    let case = |way| Case { kind, bytes, way };
    let mut settings = vec![Setting { name: "auto".to_owned(), way: None, trees: node.trees(&LevelSpec::Auto) }];
    settings.push(Setting { name: "none".to_owned(), way: None, trees: None });
    for row in TABLE.iter().filter(|row| row.way != Way::Tree && row.way.serves(kind.operation())) {
        if node.way(case(Some(row.way)), None) == row.way {
            settings.push(Setting { name: row.name.to_owned(), way: Some(row.way), trees: None });
        }
    }
    let inside = [Level::L2, Level::L3, Level::Numa, Level::Socket];
    let mut seen: Vec<Vec<Tree>> = Vec::new();
    for chosen in 0_u32..1 << inside.len() {
        let list = inside.into_iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, level)| level);
        let levels = LevelSpec::List(list.chain([Level::Node]).collect());
        let Some(trees) = node.groups(&levels) else { continue };
        let refined =
            |degree: usize| trees.iter().map(|tree| tree.refined(degree, |len| len > degree)).collect::<Vec<_>>();
        let by = DEGREES.map(|degree| (format!("{} by {degree}", name(&levels)), refined(degree)));
        for (name, trees) in [(name(&levels), trees.clone())].into_iter().chain(by) {
            if !seen.contains(&trees) && node.way(case(None), Some(&trees)) == Way::Tree {
                seen.push(trees.clone());
                settings.push(Setting { name, way: None, trees: Some(trees) });
            }
        }
    }
    settings
}

/// Levels as the parameter has them.
pub(super) fn name(levels: &LevelSpec) -> String {
    match levels {
        LevelSpec::Auto => "auto".to_owned(),
        LevelSpec::List(list) if list.is_empty() => "none".to_owned(),
        LevelSpec::List(list) => list.iter().map(|level| level.name()).collect::<Vec<_>>().join(","),
    }
}
