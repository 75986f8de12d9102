// SPDX-License-Identifier: BSD-3-Clause
//! `coll-rust predict --nodes`: what an operation takes over several nodes.

use super::{Args, places, target};
use crate::values::shown;
use comfy_table::{CellAlignment, Table, presets};
use component::predict::cluster::{self, Cluster, Predicted, Settings, many};
use component::predict::{Case, Kind};
use component::select::{Allreduce, Barrier, Bcast, Family, Reduce, Spec};
use component::sim::clock::net::network::{LEVELS, level_name};
use component::sim::clock::net::{Network, Places};
use component::sim::clock::{Cause, Machine};
use component::topo::{Level, LevelSpec};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

/// The form of the JSON object; another number: another form.
const SCHEMA: u32 = 1;

/// More ranks than this have too much shared memory, caches and stacks.
const MOST_RANKS: u32 = 1 << 17;

/// How an operation goes.
struct Setting {
    name: String,
    levels: LevelSpec,
    settings: Settings,
}

/// A line of the report.
struct Row {
    case: Case,
    nodes: u32,
    ranks: u32,
    setting: String,
    took: Predicted,
}

/// Predicts and reports.
///
/// # Errors
/// What cannot be, and what to do.
pub fn report(args: &Args, machine: &'static Machine) -> Result<String, String> {
    let Some(network) = &machine.network else {
        return Err(format!("{}: the machine file has no section [network], which --nodes needs", machine.name));
    };
    let rows = rows(args, machine, network)?;
    Ok(if args.json { to_json(args, machine, &rows) } else { table(args, machine, &rows) })
}

fn rows(args: &Args, machine: &'static Machine, network: &'static Network) -> Result<Vec<Row>, String> {
    let cores = machine.shape.cores();
    let all = [cores];
    let counts = if args.ranks.is_empty() { &all[..] } else { &args.ranks };
    let mut rows = Vec::new();
    for &kind in &args.operation {
        if !cluster::has(kind) {
            return Err(format!(
                "{} over several nodes is not predicted: there are barrier, bcast, reduce, allreduce",
                kind.name()
            ));
        }
        let sizes = if kind == Kind::Barrier { &[0][..] } else { &args.bytes.0 };
        for (nodes, each, bytes) in args.nodes.iter().flat_map(|nodes| {
            counts.iter().flat_map(move |each| sizes.iter().map(move |bytes| (*nodes, *each, *bytes)))
        }) {
            if each > cores {
                return Err(format!(
                    "{each} ranks to a node: {} has {cores} cores, and each rank has one",
                    machine.name
                ));
            }
            if u64::from(nodes) > network.nodes() {
                return Err(format!("{nodes} nodes: the network of {} has room for {}", machine.name, network.nodes()));
            }
            let case = Case { kind, bytes, way: None };
            let job = || Places { machine, network, cores: places(machine, args.map, each), nodes };
            let first = rows.len();
            for setting in settings(args, case, &job())? {
                let what = format!("{} {bytes} B, {nodes} nodes, {}", kind.name(), setting.name);
                let took = match !args.messages && cluster::shares(kind, &setting.levels, &setting.settings) {
                    true => shared(args, job(), case, &setting, &what),
                    false => {
                        let bar = bar(nodes * each, "ranks", &what);
                        let tick = |done: u32| bar.set_position(done.into());
                        many::many(job(), &setting.levels, case, &setting.settings, tick).map_err(|e| failed(&what, e))
                    }
                }?;
                rows.push(Row { case, nodes, ranks: nodes * each, setting: setting.name, took });
            }
            rows[first..].sort_by_key(|row| row.took.time);
        }
    }
    Ok(rows)
}

/// Through the shared memory of nodes.
fn shared(
    args: &Args,
    places: Places<'static>,
    case: Case,
    setting: &Setting,
    what: &str,
) -> Result<Predicted, String> {
    let ranks = places.size();
    let buffers = case.bytes.saturating_mul(2 * ranks as usize);
    if ranks > MOST_RANKS || buffers > super::MOST {
        return Err(format!(
            "{what}: more than {MOST_RANKS} ranks, or {} GiB of buffers, are not simulated with their shared memory, \
             as that is really done: take fewer, or --messages",
            super::MOST >> 30
        ));
    }
    let calls = [args.warm, args.rounds].map(|calls| calls as usize);
    let bar = bar(args.warm + args.rounds, "calls", what);
    let cluster = Cluster::new(places, &setting.levels);
    cluster
        .time(case, &setting.settings, calls, |done| bar.set_position(done as u64))
        .map_err(|error| failed(what, error))
}

fn failed(what: &str, error: component::endpoint::Error) -> String {
    format!("{what}: {error:?}")
}

fn bar(all: u32, of: &str, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(all.into()), target());
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {of} {{elapsed}} {{msg}}")) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

fn parsed<A: Family>(option: &str, text: Option<&String>) -> Result<Spec<A>, String> {
    let spec = text.map_or(Ok(Spec::AUTO), |text| Spec::parse(text)).map_err(|error| format!("{option}: {error}"))?;
    Ok(spec)
}

/// What the arguments ask for.
fn settings(args: &Args, case: Case, places: &Places<'_>) -> Result<Vec<Setting>, String> {
    let option = |wanted: Kind| args.algorithm.as_ref().filter(|_| case.kind == wanted);
    let settings = Settings {
        barrier: parsed::<Barrier>("--algorithm", option(Kind::Barrier))?,
        bcast: parsed::<Bcast>("--algorithm or --down", option(Kind::Bcast).or(args.down.as_ref()))?,
        reduce: parsed::<Reduce>("--algorithm or --up", option(Kind::Reduce).or(args.up.as_ref()))?,
        allreduce: parsed::<Allreduce>("--algorithm", option(Kind::Allreduce))?,
        segment: args.segment,
    };
    if args.compare {
        return Ok(compared(case.kind, &settings, places));
    }
    let name = match &args.algorithm {
        Some(algorithm) => format!("{} {algorithm}", super::settings::name(&args.levels)),
        None => super::settings::name(&args.levels),
    };
    Ok(vec![Setting { name, levels: args.levels.clone(), settings }])
}

/// The built-in choice, and each algorithm along each list of levels whose groups differ.
fn compared(kind: Kind, settings: &Settings, places: &Places<'_>) -> Vec<Setting> {
    let auto = Setting { name: "auto".to_owned(), levels: LevelSpec::Auto, settings: settings.clone() };
    let mut all = vec![auto];
    let inside = [Level::L3, Level::Numa, Level::Socket, Level::Node];
    let mut seen = Vec::new();
    for chosen in 0_u32..1 << (inside.len() + 1) {
        let list = inside.into_iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, level)| level);
        let above = (1..=4).map(Level::Switch).filter(|_| chosen >> inside.len() == 1);
        let mut list: Vec<Level> = list.chain(above).collect();
        if list.iter().any(|level| level.in_node()) && !list.contains(&Level::Node) {
            continue;
        }
        list.sort_unstable();
        let name = super::settings::name(&LevelSpec::List(list.iter().filter(|l| !is_upper(l)).copied().collect()));
        let name = match (chosen >> inside.len(), name.as_str()) {
            (0, _) => name,
            (_, "none") => "switch".to_owned(),
            _ => format!("{name},switch"),
        };
        let levels = LevelSpec::List(list);
        let groups = cluster::groups::groups(places, &levels).0;
        if seen.contains(&groups) {
            continue;
        }
        seen.push(groups);
        for (algorithm, settings) in algorithms(kind, settings) {
            all.push(Setting { name: format!("{name} {algorithm}"), levels: levels.clone(), settings });
        }
    }
    all
}

fn is_upper(level: &Level) -> bool {
    matches!(level, Level::Switch(2..))
}

/// Each algorithm of the operation, on all levels.
fn algorithms(kind: Kind, settings: &Settings) -> Vec<(String, Settings)> {
    fn each<A: Family>(settings: &Settings, set: impl Fn(&mut Settings, Spec<A>)) -> Vec<(String, Settings)> {
        let with = |row: &component::select::Row| {
            let mut settings = settings.clone();
            set(&mut settings, Spec::parse(row.name).unwrap_or(Spec::AUTO));
            (row.name.to_owned(), settings)
        };
        A::ROWS.iter().map(with).collect()
    }
    match kind {
        Kind::Barrier => each::<Barrier>(settings, |settings, spec| settings.barrier = spec),
        Kind::Bcast => each::<Bcast>(settings, |settings, spec| settings.bcast = spec),
        Kind::Reduce => each::<Reduce>(settings, |settings, spec| settings.reduce = spec),
        _ => each::<Allreduce>(settings, |settings, spec| settings.allreduce = spec),
    }
}

/// The levels that have messages, by number and name.
fn levels(rows: &[Row]) -> Vec<(usize, &'static str)> {
    let has = |level: &usize| rows.iter().any(|row| row.took.traffic[*level].messages > 0);
    (0..LEVELS).filter(has).map(|level| (level, level_name(level))).collect()
}

/// For scripts: times in nanoseconds.
fn to_json(args: &Args, machine: &Machine, rows: &[Row]) -> String {
    let ns = |time: u64| time as f64 / 1000.0;
    let row = |row: &Row| {
        let path: Map<String, Value> = Cause::ALL
            .into_iter()
            .filter(|cause| *cause != Cause::Waiting)
            .map(|cause| (cause.name().to_owned(), json!(ns(row.took.path.by[cause as usize]))))
            .collect();
        let levels: Map<String, Value> = levels(rows)
            .into_iter()
            .map(|(level, name)| {
                let traffic = row.took.traffic[level];
                (name.to_owned(), json!({ "messages": traffic.messages, "bytes": traffic.units }))
            })
            .collect();
        json!({
            "operation": row.case.kind.name(), "bytes": row.case.bytes, "nodes": row.nodes, "ranks": row.ranks,
            "setting": row.setting, "time_ns": ns(row.took.time), "path_ns": path, "levels": levels,
            "lines": row.took.counts.lines.iter().skip(1).sum::<u64>(),
        })
    };
    let value = json!({
        "schema": SCHEMA, "machine": machine.name, "cores": machine.shape.cores(),
        "map": format!("{:?}", args.map).to_lowercase(), "rows": rows.iter().map(row).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

/// For people: times in microseconds. Causes that are nowhere on a critical path are left out.
fn table(args: &Args, machine: &Machine, rows: &[Row]) -> String {
    let best = |row: &Row| {
        let same = |other: &&Row| (other.case, other.nodes, other.ranks) == (row.case, row.nodes, row.ranks);
        rows.iter().filter(same).map(|other| other.took.time).min().unwrap_or(0).max(1)
    };
    let causes: Vec<Cause> =
        Cause::ALL.into_iter().filter(|cause| rows.iter().any(|row| row.took.path.by[*cause as usize] > 0)).collect();
    let levels = levels(rows);
    let mut head: Vec<String> = ["operation", "nodes", "ranks", "bytes", "setting", "µs"].map(str::to_owned).to_vec();
    head.extend(args.compare.then(|| "/ best".to_owned()));
    head.extend(causes.iter().map(|cause| cause.name().to_owned()));
    let lines = |row: &Row| row.took.counts.lines.iter().skip(1).sum::<u64>();
    let has_lines = rows.iter().any(|row| lines(row) > 0);
    head.extend(has_lines.then(|| "lines moved".to_owned()));
    head.extend(levels.iter().flat_map(|(_, name)| [(*name).to_owned(), "MB".to_owned()]));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(&head);
    let us = |time: u64| format!("{:.2}", time as f64 / 1e6);
    for row in rows {
        let mut cells = vec![
            row.case.kind.name().to_owned(),
            row.nodes.to_string(),
            row.ranks.to_string(),
            shown(row.case.bytes),
            row.setting.clone(),
            us(row.took.time),
        ];
        cells.extend(args.compare.then(|| format!("{:.2}", row.took.time as f64 / best(row) as f64)));
        cells.extend(causes.iter().map(|cause| us(row.took.path.by[*cause as usize])));
        cells.extend(has_lines.then(|| lines(row).to_string()));
        cells.extend(levels.iter().flat_map(|(level, _)| {
            let traffic = row.took.traffic[*level];
            [traffic.messages.to_string(), format!("{:.3}", traffic.units as f64 / 1e6)]
        }));
        table.add_row(cells);
    }
    for (at, head) in head.iter().enumerate() {
        if let Some(column) = table.column_mut(at).filter(|_| !["operation", "setting"].contains(&head.as_str())) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!(
        "{}, nodes of {} cores; ranks of a node on {}.\nTimes of the last rank in µs, and the critical path by what it \
         went with; messages of all ranks by level, and their megabytes.\n\n{}\n",
        machine.name,
        machine.shape.cores(),
        args.map.text(),
        table.trim_fmt()
    )
}
