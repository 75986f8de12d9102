// SPDX-License-Identifier: BSD-3-Clause
//! The levels of the machine, bottom to top, and the user's choice among them.

/// How many switch layers there can be.
pub const SWITCH_LAYERS: u8 = 4;

/// A level of the machine. The order is that of the machine, bottom to top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Cores that share a level-2 cache.
    L2,
    /// Cores that share a level-3 cache.
    L3,
    /// Cores of one NUMA node.
    Numa,
    /// Cores of one processor package.
    Socket,
    /// One computer.
    Node,
    /// Computers below one switch of this layer, 1 (leaf switches) to [`SWITCH_LAYERS`].
    Switch(u8),
    /// One cluster: the implicit top, where the network names no others.
    Cluster,
    /// Several clusters, joined by processes of their gateway nodes: the implicit top then.
    Grid,
}

impl Level {
    /// How many levels there are.
    pub const COUNT: usize = 11;

    /// Every level, bottom to top; `ALL[level.index()] == level`.
    pub const ALL: [Level; Level::COUNT] = [
        Level::L2,
        Level::L3,
        Level::Numa,
        Level::Socket,
        Level::Node,
        Level::Switch(1),
        Level::Switch(2),
        Level::Switch(3),
        Level::Switch(4),
        Level::Cluster,
        Level::Grid,
    ];

    /// Position from the bottom, below [`Level::COUNT`].
    pub const fn index(self) -> u8 {
        match self {
            Level::L2 => 0,
            Level::L3 => 1,
            Level::Numa => 2,
            Level::Socket => 3,
            Level::Node => 4,
            Level::Switch(0 | 1) => 5,
            Level::Switch(2) => 6,
            Level::Switch(3) => 7,
            Level::Switch(_) => 8,
            Level::Cluster => 9,
            Level::Grid => 10,
        }
    }

    /// The word for it in parameters and in what is shown.
    pub const fn name(self) -> &'static str {
        ["l2", "l3", "numa", "socket", "node", "switch1", "switch2", "switch3", "switch4", "cluster", "grid"]
            [self.index() as usize]
    }

    /// True for the parts of a computer: below [`Level::Node`].
    pub const fn in_node(self) -> bool {
        matches!(self, Level::L2 | Level::L3 | Level::Numa | Level::Socket)
    }
}

/// The levels that the user wants used. What the machine or the communicator does not have is dropped later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelSpec {
    /// Every level that the machine has.
    Auto,
    /// These levels, ascending. [`Level::Cluster`] and [`Level::Grid`] are always meant, and [`Level::Node`]
    /// with any level inside the node.
    List(Vec<Level>),
}

impl LevelSpec {
    /// Whether the choice is left to us.
    pub fn is_auto(&self) -> bool {
        *self == LevelSpec::Auto
    }

    /// The same without the levels inside the node: for those to whom all its processes are one group.
    pub fn from_node_up(&self) -> LevelSpec {
        let levels = Level::ALL.into_iter().filter(|level| !level.in_node() && self.holds(*level));
        LevelSpec::List(levels.collect())
    }

    /// Reads `auto`, `none` (flat: only the implicit top) or a comma list such as
    /// `l3,numa,socket,node,switch,cluster`.
    ///
    /// `switch` means all switch layers, `switch1` to `switch4` one of them. The order does not matter. A
    /// level inside the node brings `node` with it: a group above the node needs leaders that every process
    /// can compute, and other nodes do not know how a node is divided.
    ///
    /// # Errors
    /// A message that names the word, its column (from 1, in characters) and what is accepted.
    pub fn parse(text: &str) -> Result<LevelSpec, String> {
        match text.trim() {
            "auto" => return Ok(LevelSpec::Auto),
            "none" => return Ok(LevelSpec::List(Vec::new())),
            _ => {}
        }
        let mut list = Vec::new();
        let mut column = 1;
        for part in text.split(',') {
            let word = part.trim();
            let at = column + part.chars().take_while(|c| c.is_whitespace()).count();
            column += part.chars().count() + 1;
            let levels = levels_of(word).ok_or_else(|| refuse("unknown level", word, at))?;
            if levels.iter().any(|level| list.contains(level)) {
                return Err(refuse("repeated level", word, at));
            }
            list.extend_from_slice(levels);
        }
        if list.iter().any(|level| level.in_node()) && !list.contains(&Level::Node) {
            list.push(Level::Node);
        }
        list.sort_unstable();
        Ok(LevelSpec::List(list))
    }

    /// Whether the level is asked for, by name or by implication.
    pub fn holds(&self, level: Level) -> bool {
        match self {
            LevelSpec::Auto => true,
            LevelSpec::List(_) if level >= Level::Cluster => true,
            LevelSpec::List(list) if level == Level::Node => list.iter().any(|l| l.in_node() || *l == Level::Node),
            LevelSpec::List(list) => list.contains(&level),
        }
    }
}

/// The levels that a word of the list means.
fn levels_of(word: &str) -> Option<&'static [Level]> {
    const SWITCHES: usize = Level::Switch(1).index() as usize;
    if word == "switch" {
        return Some(&Level::ALL[SWITCHES..SWITCHES + SWITCH_LAYERS as usize]);
    }
    let at = Level::ALL.iter().position(|level| level.name() == word)?;
    Some(&Level::ALL[at..=at])
}

fn refuse(what: &str, word: &str, column: usize) -> String {
    format!(
        "{what} '{word}' at column {column}; accepted: auto, none, or a comma list of l2, l3, numa, socket, node, \
         switch (all layers), switch1 to switch{SWITCH_LAYERS}, cluster, grid, each at most once"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_index_and_table_agree() {
        for (i, level) in Level::ALL.iter().enumerate() {
            assert_eq!(level.index() as usize, i);
            assert_eq!(levels_of(level.name()), Some(&[*level][..]));
            assert_eq!(level.in_node(), i < 4);
        }
        assert!(Level::ALL.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn accepts_lists_in_any_order() {
        use Level::*;
        let list = |text| match LevelSpec::parse(text) {
            Ok(LevelSpec::List(list)) => list,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(LevelSpec::parse("auto"), Ok(LevelSpec::Auto));
        assert_eq!(LevelSpec::parse(" auto "), Ok(LevelSpec::Auto));
        assert_eq!(list("none"), []);
        assert_eq!(list("node,numa"), [Numa, Node]);
        assert_eq!(
            list("cluster, switch ,node,socket,numa,l3"),
            [L3, Numa, Socket, Node, Switch(1), Switch(2), Switch(3), Switch(4), Cluster]
        );
        assert_eq!(list("switch2,switch1"), [Switch(1), Switch(2)]);
    }

    #[test]
    fn a_level_inside_the_node_brings_the_node() {
        let spec = LevelSpec::parse("l2").expect("a level");
        assert_eq!(spec, LevelSpec::List(vec![Level::L2, Level::Node]));
        assert!(LevelSpec::List(vec![Level::L2]).holds(Level::Node));
        assert!(!LevelSpec::List(vec![Level::Switch(1)]).holds(Level::Node));
        assert!(LevelSpec::List(vec![]).holds(Level::Cluster));
        assert!(!LevelSpec::List(vec![]).holds(Level::Socket));
    }

    #[test]
    fn errors_name_word_and_column() {
        for (text, start) in [
            ("l3, nuna", "unknown level 'nuna' at column 5;"),
            ("", "unknown level '' at column 1;"),
            ("l3,,numa", "unknown level '' at column 4;"),
            ("numa,", "unknown level '' at column 6;"),
            ("numa,auto", "unknown level 'auto' at column 6;"),
            ("é,l3", "unknown level 'é' at column 1;"),
            ("switch5", "unknown level 'switch5' at column 1;"),
            ("l3,numa,l3", "repeated level 'l3' at column 9;"),
            ("switch,switch2", "repeated level 'switch2' at column 8;"),
            ("cluster,cluster", "repeated level 'cluster' at column 9;"),
        ] {
            let message = LevelSpec::parse(text).expect_err(text);
            assert!(message.starts_with(start), "{text}: {message}");
            assert!(message.contains("accepted: auto, none"), "{message}");
        }
    }
}
