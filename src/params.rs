//! The parameters: one table, from which registration, `ompi_info`, parsing, checks, the docs and the tests are made.
#![forbid(unsafe_code)]

use crate::endpoint::MAX_LANES;
use crate::select::{Allreduce, Barrier, Bcast, Named, Reduce, Spec};
use crate::topo::LevelSpec;

/// Prefix of every parameter's full name.
pub const PREFIX: &str = "coll_rust_";

/// What the user asked to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// The tree of groups as text.
    pub hierarchy: bool,
    /// The tree of groups as Graphviz.
    pub dot: bool,
    /// The parameters in force.
    pub config: bool,
}

/// Parameters of one operation.
#[derive(Clone, Debug)]
pub struct OpConfig<A> {
    /// Levels of its hierarchy; `None`: those of [`Config::levels`].
    pub levels: Option<LevelSpec>,
    /// Its algorithms.
    pub algorithm: Spec<A>,
    /// Bytes in a segment (0: never cut); `None`: chosen by size. Not for Barrier.
    pub segment_size: Option<usize>,
}

impl<A: Named> Default for OpConfig<A> {
    fn default() -> Self {
        OpConfig { levels: None, algorithm: Spec::AUTO, segment_size: None }
    }
}

/// The parsed parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// Selection priority; negative: the component declines.
    pub priority: i32,
    /// 0: errors only.
    pub verbose: u8,
    /// Levels of the hierarchy.
    pub levels: LevelSpec,
    /// Bcast.
    pub bcast: OpConfig<Bcast>,
    /// Reduce.
    pub reduce: OpConfig<Reduce>,
    /// Allreduce.
    pub allreduce: OpConfig<Allreduce>,
    /// Barrier.
    pub barrier: OpConfig<Barrier>,
    /// Segments in flight per operation.
    pub window: u8,
    /// Rooted operations between two that synchronise; 0: never.
    pub flow_limit: u32,
    /// Largest tag to use; `None`: the largest that the point-to-point layer has.
    pub max_tag: Option<i32>,
    /// Path of the network file; empty: none.
    pub network_file: String,
    /// Bitwise equal sums for any placement.
    pub reproducible: bool,
    /// What to show at the start.
    pub show: Show,
    /// Print the counters at the end.
    pub report: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            priority: 45,
            verbose: 0,
            levels: LevelSpec::Auto,
            bcast: OpConfig::default(),
            reduce: OpConfig::default(),
            allreduce: OpConfig::default(),
            barrier: OpConfig::default(),
            window: 8,
            flow_limit: 64,
            max_tag: None,
            network_file: String::new(),
            reproducible: false,
            show: Show::default(),
            report: false,
        }
    }
}

/// One row of the table.
pub struct Param {
    /// Name without [`PREFIX`].
    pub name: &'static str,
    /// Default value, as text.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
    /// MPI_T verbosity level, 1 (end user, basic) to 9 (developer, all).
    pub level: u8,
    accepted: fn() -> String,
    set: fn(&mut Config, &str) -> Result<(), String>,
}

impl Param {
    /// The values that are understood.
    pub fn accepted(&self) -> String {
        (self.accepted)()
    }

    /// The full help text for `ompi_info`.
    pub fn full_help(&self) -> String {
        format!("{} Accepted: {}.", self.help, self.accepted())
    }
}

const LEVELS_HELP: &str = "auto, none (one flat group), or a comma list of l2, l3, numa, socket, node, switch (every layer) or \
                           switch1 to switch4, cluster";
const SIZE_HELP: &str = "auto, 0 (never cut), or a number of bytes with k, m or g after it for KiB, MiB, GiB";

fn levels_text() -> String {
    LEVELS_HELP.to_owned()
}
fn op_levels_text() -> String {
    format!("inherit (the value of coll_rust_levels), {LEVELS_HELP}")
}
fn size_text() -> String {
    SIZE_HELP.to_owned()
}
fn bool_text() -> String {
    "0, 1".to_owned()
}

fn integer(text: &str, from: i64, to: i64) -> Result<i64, String> {
    match text.trim().parse::<i64>() {
        Ok(n) if (from..=to).contains(&n) => Ok(n),
        Ok(_) => Err("out of range".to_owned()),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" | "false" | "no" => Ok(false),
        "1" | "true" | "yes" => Ok(true),
        _ => Err("neither yes nor no".to_owned()),
    }
}

/// Parses a size such as `64k`; `None` for "auto".
fn size(text: &str) -> Result<Option<usize>, String> {
    let text = text.trim();
    if text == "auto" {
        return Ok(None);
    }
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        suffix => return Err(format!("\"{suffix}\" is not k, m or g")),
    };
    let number: usize = digits.parse().map_err(|_| "not a size".to_owned())?;
    number.checked_mul(1 << shift).filter(|&n| n <= isize::MAX as usize).map(Some).ok_or_else(|| "too large".to_owned())
}

fn op_levels(text: &str) -> Result<Option<LevelSpec>, String> {
    match text.trim() {
        "inherit" => Ok(None),
        text => LevelSpec::parse(text).map(Some),
    }
}

macro_rules! levels_param {
    ($field:ident, $name:literal, $help:literal) => {
        Param {
            name: $name,
            default: "inherit",
            help: $help,
            level: 3,
            accepted: op_levels_text,
            set: |c, t| op_levels(t).map(|v| c.$field.levels = v),
        }
    };
}

macro_rules! algorithm_param {
    ($field:ident, $kind:ty, $name:literal, $help:literal) => {
        Param {
            name: $name,
            default: "auto",
            help: $help,
            level: 3,
            accepted: Spec::<$kind>::accepted,
            set: |c, t| Spec::parse(t).map(|v| c.$field.algorithm = v),
        }
    };
}

macro_rules! segment_param {
    ($field:ident, $name:literal, $help:literal) => {
        Param {
            name: $name,
            default: "auto",
            help: $help,
            level: 4,
            accepted: size_text,
            set: |c, t| size(t).map(|v| c.$field.segment_size = v),
        }
    };
}

/// Every parameter.
pub const TABLE: &[Param] = &[
    Param {
        name: "priority",
        default: "45",
        help: "Priority of the component: above tuned and han, below sync, self and accelerator. Negative: not used.",
        level: 6,
        accepted: || "a whole number from -1 to 100".to_owned(),
        set: |c, t| integer(t, -1, 100).map(|v| c.priority = v as i32),
    },
    Param {
        name: "verbose",
        default: "0",
        help: "0: errors only. 1: version and job once, from rank 0. 2: also a line per communicator and rank.",
        level: 8,
        accepted: || "0, 1, 2".to_owned(),
        set: |c, t| integer(t, 0, 2).map(|v| c.verbose = v as u8),
    },
    Param {
        name: "levels",
        default: "auto",
        help: "Levels of the hierarchy of groups. auto takes every level that the machine has and that groups the processes \
               anew. A level above the node, or within it, brings the node level with it.",
        level: 2,
        accepted: levels_text,
        set: |c, t| LevelSpec::parse(t).map(|v| c.levels = v),
    },
    levels_param!(bcast, "bcast_levels", "Levels of the hierarchy of Bcast."),
    algorithm_param!(
        bcast,
        Bcast,
        "bcast_algorithm",
        "Algorithm of Bcast, one for all levels or one per level; Allreduce uses it on the way down."
    ),
    segment_param!(
        bcast,
        "bcast_segment_size",
        "Segment size of Bcast in bytes: segments flow through all levels at once."
    ),
    levels_param!(reduce, "reduce_levels", "Levels of the hierarchy of Reduce."),
    algorithm_param!(
        reduce,
        Reduce,
        "reduce_algorithm",
        "Algorithm of Reduce, one for all levels or one per level; Allreduce uses it on the way up. Where an operation does \
         not commute, knomial stands in for reduce_scatter_gather."
    ),
    segment_param!(
        reduce,
        "reduce_segment_size",
        "Segment size of Reduce in bytes, rounded down to whole elements. User-defined operations are never cut."
    ),
    levels_param!(allreduce, "allreduce_levels", "Levels of the hierarchy of Allreduce."),
    algorithm_param!(
        allreduce,
        Allreduce,
        "allreduce_algorithm",
        "Composition of Allreduce: reduce_bcast reduces to rank 0 and broadcasts; the others run in the topmost group between \
         the way up and the way down. Where an operation does not commute, recursive_doubling stands in for rabenseifner and ring."
    ),
    segment_param!(
        allreduce,
        "allreduce_segment_size",
        "Segment size of Allreduce in bytes, rounded down to whole elements. User-defined operations are never cut."
    ),
    levels_param!(barrier, "barrier_levels", "Levels of the hierarchy of Barrier."),
    algorithm_param!(
        barrier,
        Barrier,
        "barrier_algorithm",
        "Algorithm of Barrier, one for all levels or one per level. Below the topmost group, members arrive by it and are \
         released along a tree."
    ),
    Param {
        name: "window",
        default: "8",
        help: "Segments of one operation that are in flight at a time.",
        level: 5,
        accepted: || format!("a whole number from 1 to {MAX_LANES}"),
        set: |c, t| integer(t, 1, i64::from(MAX_LANES)).map(|v| c.window = v as u8),
    },
    Param {
        name: "flow_limit",
        default: "64",
        help: "After so many Bcasts and Reduces on a communicator the next one synchronises first, so that a rank that runs ahead \
               cannot flood the others' buffers. 0: never.",
        level: 5,
        accepted: || "a whole number from 0 to 1000000".to_owned(),
        set: |c, t| integer(t, 0, 1_000_000).map(|v| c.flow_limit = v as u32),
    },
    Param {
        name: "max_tag",
        default: "auto",
        help: "Largest tag to use, where that is less than what the point-to-point layer has; a small one makes identities of \
               operations come round sooner, to test that.",
        level: 9,
        accepted: || "auto, or a whole number from 32768 to 1073741824".to_owned(),
        set: |c, t| {
            c.max_tag = if t.trim() == "auto" { None } else { Some(integer(t, 1 << 15, 1 << 30)? as i32) };
            Ok(())
        },
    },
    Param {
        name: "network_file",
        default: "",
        help: "File that says which switches the nodes hang on: lines of \"<node> <switch> [<switch above> ...]\", or Slurm's \
               topology.conf. Empty: no switch levels.",
        level: 2,
        accepted: || "the path of a readable file, or nothing".to_owned(),
        set: |c, t| {
            c.network_file = t.trim().to_owned();
            Ok(())
        },
    },
    Param {
        name: "reproducible",
        default: "0",
        help: "1: floating-point results of Reduce and Allreduce are bitwise equal for any placement of the same ranks, any root, \
               any segment size: values are combined along a fixed tree over the ranks.",
        level: 2,
        accepted: bool_text,
        set: |c, t| boolean(t).map(|v| c.reproducible = v),
    },
    Param {
        name: "show",
        default: "none",
        help: "Printed once, by rank 0 of MPI_COMM_WORLD: the tree of groups as text (hierarchy) or for Graphviz (dot), the parameters in force \
               (config).",
        level: 2,
        accepted: || "none, or a comma list of hierarchy, dot, config".to_owned(),
        set: |c, t| {
            c.show = Show::default();
            for word in t.split(',').map(str::trim) {
                match word {
                    "none" => {}
                    "hierarchy" => c.show.hierarchy = true,
                    "dot" => c.show.dot = true,
                    "config" => c.show.config = true,
                    _ => return Err(format!("\"{word}\" cannot be shown")),
                }
            }
            Ok(())
        },
    },
    Param {
        name: "report",
        default: "0",
        help: "1: every rank prints its counters in MPI_Finalize: calls handled and passed on, messages and bytes per level.",
        level: 2,
        accepted: bool_text,
        set: |c, t| boolean(t).map(|v| c.report = v),
    },
];

/// Parses values in the order of [`TABLE`]. The error is one message that names the parameter, its value and what is
/// accepted.
pub fn parse<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Config, String> {
    let mut config = Config::default();
    for (param, value) in TABLE.iter().zip(values) {
        (param.set)(&mut config, value)
            .map_err(|why| format!("{PREFIX}{} = \"{value}\": {why}. Accepted: {}.", param.name, param.accepted()))?;
    }
    Ok(config)
}

/// Looks for `OMPI_MCA_coll_rust_*` names that are no parameter. The error names the first, and the nearest known one.
pub fn check_names(names: impl IntoIterator<Item = String>) -> Result<(), String> {
    for name in names {
        let Some(short) = name.strip_prefix("OMPI_MCA_").and_then(|n| n.strip_prefix(PREFIX)) else { continue };
        if TABLE.iter().any(|p| p.name == short) {
            continue;
        }
        let nearest = TABLE.iter().min_by_key(|p| distance(p.name, short)).map_or("", |p| p.name);
        return Err(format!(
            "{PREFIX}{short} is set in the environment, but there is no such parameter (did you mean {PREFIX}{nearest}?). \
             All are listed by: ompi_info --param coll rust --level 9"
        ));
    }
    Ok(())
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let cost = if x == y { diagonal } else { 1 + diagonal.min(row[j]).min(row[j + 1]) };
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The documentation page, as Markdown.
pub fn documentation() -> String {
    let mut page = String::from(
        "# Parameters\n\nMade from the table in `src/params.rs`; `ompi_info --param coll rust --level 9` prints the same. Set one with\n\
         `mpiexec --mca coll_rust_<name> <value>`, in the environment as `OMPI_MCA_coll_rust_<name>`, or in a file for\n\
         `mpiexec --tune`. A value that is not understood stops the job with one message. All ranks of a job must have the same\n\
         values; that is checked when MPI starts.\n\n| parameter | default | what it does | accepted |\n|---|---|---|---|\n",
    );
    for p in TABLE {
        let default = if p.default.is_empty() { "(empty)" } else { p.default };
        page += &format!("| `{PREFIX}{}` | `{default}` | {} | {} |\n", p.name, p.help, p.accepted());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Config, String> {
        let known = TABLE.iter().any(|p| p.name == name);
        assert!(known, "{name}");
        parse(TABLE.iter().map(|p| if p.name == name { value } else { p.default }))
    }

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_type() {
        let parsed = parse(TABLE.iter().map(|p| p.default)).unwrap();
        assert_eq!(format!("{parsed:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn names_are_unique_and_help_is_there() {
        for (i, p) in TABLE.iter().enumerate() {
            assert!(TABLE[..i].iter().all(|q| q.name != p.name), "{}", p.name);
            assert!(p.help.len() > 20 && !p.accepted().is_empty() && (1..=9).contains(&p.level));
            assert!(!p.help.contains('\n') && !p.help.contains("  "), "{}", p.name);
        }
    }

    #[test]
    fn every_parameter_but_the_path_refuses_nonsense() {
        for p in TABLE.iter().filter(|p| p.name != "network_file") {
            let error = with(p.name, "12abc").unwrap_err();
            assert!(error.contains(p.name) && error.contains("12abc") && error.contains(&p.accepted()), "{error}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("64k"), Ok(Some(65536)));
        assert_eq!(size("2M"), Ok(Some(2 << 20)));
        assert_eq!(size("0"), Ok(Some(0)));
        assert_eq!(size("auto"), Ok(None));
        for wrong in ["", "k", "-1", "1.5k", "64kb", "99999999999999g", "18446744073709551615"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_names_are_found_with_a_hint() {
        let error = check_names(["PATH".into(), "OMPI_MCA_coll_rust_widnow".into()]).unwrap_err();
        assert!(error.contains("coll_rust_widnow") && error.contains("coll_rust_window"), "{error}");
        assert_eq!(check_names(["OMPI_MCA_coll_rust_window".into(), "OMPI_MCA_coll_tuned_x".into()]), Ok(()));
    }

    /// The page in docs/ is the one made from the table; `UPDATE_DOCS=1 cargo test` writes it.
    #[test]
    fn the_documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/parameters.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            documentation(),
            "run UPDATE_DOCS=1 cargo test params"
        );
    }

    /// Every key of the ready files is a parameter with a value that it accepts (or one of the few Open MPI keys named here).
    #[test]
    fn the_ready_files_hold_good_values() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mca-params");
        let mut files = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "conf") {
                continue;
            }
            files += 1;
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{}: {line}", path.display()));
                match key.trim() {
                    "coll" => assert_eq!(value.trim(), "rust,basic,libnbc,inter,self"),
                    "mpi_yield_when_idle" => assert_eq!(value.trim(), "1"),
                    key => {
                        let name = key.strip_prefix(PREFIX).unwrap_or_else(|| panic!("{}: {key}", path.display()));
                        with(name, value.trim()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                    }
                }
            }
        }
        assert!(files >= 4);
    }
}
