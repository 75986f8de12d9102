// SPDX-License-Identifier: BSD-3-Clause
//! Machine files: what the cores, caches and links of a node take (docs/reference/predict.md).

pub mod network;
pub mod schema;
#[cfg(test)]
mod tests;

use component::sim::clock::caches::MAX_CORES;
use component::sim::clock::machine::Machine;
use schema::{Key, SECTIONS, Section, Unit};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads a machine file.
///
/// # Errors
/// A message with the file, the line and the column from 1, in characters, what is wrong and what to do.
pub fn read(path: &Path) -> Result<Machine, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: cannot read this machine file: {error}", path.display()))?;
    parse(&path.display().to_string(), &text)
}

/// The same of a file's text.
///
/// # Errors
/// As for [`read`].
pub fn parse(file: &str, text: &str) -> Result<Machine, String> {
    parsed(text).map_err(|(at, what)| {
        let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{file}:{line}:{column}: {what}")
    })
}

/// Where something is wrong, as a byte's number, and what.
type Fault = (usize, String);
type Table<'t> = BTreeMap<&'t str, (usize, &'t Spanned<DeValue<'t>>)>;

fn parsed(text: &str) -> Result<Machine, Fault> {
    let root = DeTable::parse(text)
        .map_err(|error| (error.span().map_or(0, |span: Range<usize>| span.start), error.message().to_owned()))?;
    let names = ["name", network::NETWORK].into_iter();
    let names: Vec<&str> = names.chain(SECTIONS.iter().map(|section| section.name)).collect();
    let tables = entries(root.get_ref(), &names, "the file")?;
    let mut machine = schema::blank();
    let (at, name) = tables.get("name").ok_or((0, "the key 'name' is missing: the machine's name".to_owned()))?;
    machine.name = name.get_ref().as_str().ok_or((*at, "'name' must be a text in quotes".to_owned()))?.to_owned();
    for section in SECTIONS {
        let Some((at, value)) = tables.get(section.name) else {
            return Err((text.len(), format!("the section [{}] is missing: {}", section.name, section.what)));
        };
        let wrong = || (*at, format!("'{0}' must be a section: [{0}]", section.name));
        fill(&mut machine, section, *at, value.get_ref().as_table().ok_or_else(wrong)?)?;
        if section.name == "shape" {
            fits(&machine, *at)?;
        }
    }
    if let Some((at, value)) = tables.get(network::NETWORK) {
        machine.network = Some(network::parsed(*at, value)?);
    }
    Ok(machine)
}

/// A table's entries, none of which is unknown.
fn entries<'t>(table: &'t DeTable<'t>, names: &[&str], whole: &str) -> Result<Table<'t>, Fault> {
    let entry = |(key, value): (&'t Spanned<std::borrow::Cow<'t, str>>, &'t Spanned<DeValue<'t>>)| {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        if names.contains(&name) {
            return Ok((name, (at, value)));
        }
        let near = names.iter().map(|known| (strsim::damerau_levenshtein(name, known), known)).min();
        let hint = match near {
            Some((far, known)) if far <= 1 + known.len() / 3 => format!("did you mean '{known}'?"),
            _ => format!("{whole} has {}", names.join(", ")),
        };
        Err((at, format!("unknown key '{name}': {hint}")))
    };
    // In the order of the file: the first one that is wrong is told.
    let mut found: Vec<_> = table.iter().collect();
    found.sort_by_key(|(key, _)| key.span().start);
    found.into_iter().map(entry).collect()
}

fn fill(machine: &mut Machine, section: &Section, at: usize, table: &DeTable<'_>) -> Result<(), Fault> {
    let names: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
    let values = entries(table, &names, &format!("[{}]", section.name))?;
    let mut nearer = 0;
    for key in section.keys {
        let kept = match values.get(key.name) {
            // Nothing ever asks for it.
            None if key.distance.is_some_and(|distance| !schema::has(&machine.shape, distance)) => nearer,
            _ => wanted(&values, section.name, key, at)?,
        };
        (key.set)(machine, kept);
        nearer = kept;
    }
    Ok(())
}

/// What a machine keeps of the value of a key that must be there.
fn wanted<T>(values: &Table<'_>, section: &str, key: &Key<T>, at: usize) -> Result<u64, Fault> {
    match values.get(key.name) {
        Some((_, value)) => number(key, value),
        None => Err((at, format!("[{section}] lacks '{}' ({}): {}", key.name, key.unit.name(), key.what))),
    }
}

/// What a machine keeps of a key's value.
fn number<T>(key: &Key<T>, value: &Spanned<DeValue<'_>>) -> Result<u64, Fault> {
    let whole = |digits: &str, radix| i64::from_str_radix(digits, radix).ok().map(|n| n as f64);
    let number = match value.get_ref() {
        DeValue::Integer(integer) => whole(integer.as_str(), integer.radix()),
        DeValue::Float(float) if key.unit.has_fractions() => float.as_str().parse().ok(),
        _ => None,
    };
    let (least, most) = key.unit.limits();
    match number.filter(|n| (least..=most).contains(n)) {
        Some(number) => Ok(key.unit.kept(number)),
        None => {
            let kind = if key.unit.has_fractions() { "a number" } else { "a whole number" };
            let unit = if key.unit == Unit::Count { String::new() } else { format!(" {}", key.unit.name()) };
            Err((value.span().start, format!("'{}' must be {kind} from {least} to {most}{unit}", key.name)))
        }
    }
}

fn fits(machine: &Machine, at: usize) -> Result<(), Fault> {
    let shape = &machine.shape;
    let parts = [shape.sockets, shape.numa_per_socket, shape.l3_per_numa, shape.l2_per_l3, shape.cores_per_l2];
    let cores: u64 = parts.into_iter().map(u64::from).product();
    match cores <= MAX_CORES as u64 {
        true => Ok(()),
        false => Err((at, format!("[shape] makes {cores} cores of a node; at most {MAX_CORES} are simulated"))),
    }
}
