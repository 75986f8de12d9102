// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf machine`: a machine file for `coll-rust predict`.

mod network;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine::file::Machine;
use crate::machine::shape::{Core, Far, Shape};
use crate::machine::{combining, copies, lines, system, team};
use crate::mpi::Comm;
use crate::report::output::say;

/// Measure cores, caches and system calls of this machine, under mpiexec messages, too, and write a
/// machine file for `coll-rust predict`
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Write there instead of to the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What the machine is called
    #[arg(long, default_value = "measured", value_name = "TEXT")]
    name: String,
}

/// Bytes of a line.
const LINE: f64 = 64.0;
/// Readers of one line, or of one process' memory, at a time.
const MANY: usize = 8;
/// What nobody has measured, since the machine has too few cores for it.
const FEW: &str = "assumption: there are too few cores to measure it";

/// Measures and writes. The other ranks of a job wait without a core. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    let mine = if comm.rank() == 0 { begin(args).map(Some) } else { Ok(None) };
    comm.meet(None)?;
    let mine = comm.agree(mine)?;
    let found = network::measure(comm)?;
    let Some((mut out, mut machine)) = mine else { return Ok(()) };
    found.write(&mut machine);
    let text = machine.text();
    match (&mut out, &args.output) {
        (Some(file), Some(path)) => {
            file.write_all(text.as_bytes()).map_err(|source| failed(path, source))?;
            say(&format!("{} is written", path.display()))
        }
        _ => say(text.trim_end()),
    }
}

/// Opens the file before anything is measured for it, and measures the node.
fn begin(args: &Args) -> Result<(Option<File>, Machine)> {
    let out = args.output.as_deref().map(|path| File::create(path).map_err(|source| failed(path, source)));
    Ok((out.transpose()?, measure(args)?))
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}

fn measure(args: &Args) -> Result<Machine> {
    let usable = team::usable();
    let shape = Shape::read(&usable)?;
    let head = vec![
        "SPDX-License-Identifier: BSD-3-Clause".to_owned(),
        format!(
            "Measured by `mpiperf machine` {}. Keys and units: docs/reference/predict.md.",
            env!("CARGO_PKG_VERSION")
        ),
    ];
    let mut machine = Machine { name: args.name.clone(), head, ..Machine::default() };
    let parts = ["sockets", "numa_per_socket", "l3_per_numa", "l2_per_l3", "cores_per_l2"];
    for (key, count) in parts.into_iter().zip(shape.counts) {
        machine.count("shape", key, count);
    }
    machine.count("caches", "own", shape.caches[0] >> 10).count("caches", "l3_share", shape.caches[1] >> 10);
    let found = Found::of(&shape)?;
    found.between(&shape, &mut machine);
    found.together(&shape, &mut machine)?;
    found.alone(&shape, &mut machine)?;
    Ok(machine)
}

/// What was found between the first core and one at each distance.
struct Found {
    first: usize,
    /// A hit in the own caches, and a line from memory.
    latencies: [f64; 2],
    /// A line of a copy within the own caches, and of one from memory.
    copies: [f64; 2],
    pairs: Vec<(Far, lines::HandOver, copies::Copy)>,
    beyond_caches: usize,
}

impl Found {
    fn of(shape: &Shape) -> Result<Found> {
        let first = shape.cores[0].processor;
        let sharing = shape.counts[3] * shape.counts[4];
        // Twice the level-3 cache, within reason.
        let beyond_caches = (2 * shape.caches[1] * sharing).clamp(64 << 20, 1 << 30);
        let latencies = lines::own_and_memory(first, beyond_caches)?;
        let copies = [copies::own(first)?, copies::from_memory(&[first], beyond_caches)?];
        let pair = |far: Far| {
            let other = shape.at(far)[0].processor;
            Ok((far, lines::between(first, other)?, copies::between(first, other)?))
        };
        let pairs = shape.distances().map(pair).collect::<Result<_>>()?;
        Ok(Found { first, latencies, copies, pairs, beyond_caches })
    }

    fn between(&self, shape: &Shape, machine: &mut Machine) {
        machine.ns("handover", "own", self.latencies[0]);
        for (far, line, _) in &self.pairs {
            machine.ns("handover", far.name(), line.line);
        }
        for (far, line, _) in &self.pairs {
            let others = shape.at(*far);
            let served = match others.len() {
                // One writes, and two read at least.
                0..=2 => None,
                count => {
                    let readers: Vec<usize> =
                        others[1..count.min(MANY + 1)].iter().map(|core| core.processor).collect();
                    lines::served(others[0].processor, &readers).ok()
                }
            };
            machine.ns("serve", far.name(), served.unwrap_or(line.line / 10.0));
            if served.is_none() {
                machine.note(format!("{FEW}, so a tenth of the hand-over"));
            }
        }
        // What is read and what is written are charged alike: each is half of a copy within the own caches.
        let half = self.copies[0] / 2.0;
        machine.rate("copy", "own", LINE / half);
        for (far, _, copy) in &self.pairs {
            machine.rate("copy", far.name(), LINE / (copy.read - half).max(half));
        }
        for (far, _, copy) in &self.pairs {
            machine.rate("overwrite", far.name(), LINE / (copy.written - half).max(half));
        }
        machine.ns("memory", "latency", self.latencies[1]);
        machine.rate("memory", "copy", LINE / (self.copies[1] - half).max(half));
    }

    fn together(&self, shape: &Shape, machine: &mut Machine) -> Result<()> {
        let first = &shape.cores[0];
        let processors = |cores: Vec<&Core>| cores.iter().map(|core| core.processor).collect::<Vec<usize>>();
        let within = |level: usize| {
            let same = |core: &&Core| core.parts[level..] == first.parts[level..];
            processors(shape.cores.iter().filter(same).collect())
        };
        let (l3, socket) = (within(1), within(3));
        let mut turned = l3.clone();
        turned.rotate_left(1);
        machine.rate(
            "shared",
            "l3",
            match l3.len() {
                1 => LINE / self.copies[0],
                _ => copies::together(&l3, &turned)?,
            },
        );
        // From the next level-3 cache, or from memory.
        let beyond = |own: &[usize], level: usize| {
            let other = |core: &&Core| core.parts[level..] != first.parts[level..];
            let others = processors(shape.cores.iter().filter(other).collect());
            let from: Vec<usize> = others.into_iter().take(own.len()).collect();
            (from.len() == own.len()).then(|| copies::together(own, &from))
        };
        let from_memory = || Ok(l3.len() as f64 * LINE / copies::from_memory(&l3, self.beyond_caches)?);
        let (l3_link, note) = match beyond(&l3, 1) {
            Some(found) => (found?, None),
            None => (from_memory()?, Some("from memory: there is no other level-3 cache")),
        };
        machine.rate("shared", "l3_link", l3_link);
        note.into_iter().for_each(|note| machine.note(note));
        match beyond(&socket, 3) {
            Some(found) => {
                machine.rate("shared", "socket_link", found?);
            }
            None => machine.rate("shared", "socket_link", l3_link).note("unused: there is one socket"),
        }
        Ok(())
    }

    fn alone(&self, shape: &Shape, machine: &mut Machine) -> Result<()> {
        machine.ns("core", "store", system::store(self.first)?);
        // The nearest other core.
        let line = self.pairs.first().map(|(_, line, _)| *line);
        let misses = line.map_or(10.0, |line| (line.line / line.together).clamp(1.0, 64.0));
        machine.count("core", "misses", misses.round() as usize);
        let guess = line.map_or(5e-9, |line| (line.one_way - 2.0 * line.line).max(0.0));
        machine.ns("core", "wrong_guess", guess);
        if let Some(line) = line {
            machine.note(format!(
                "what one way of a ping-pong, {:.0} ns, takes longer than two hand-overs",
                line.one_way * 1e9
            ));
        }
        machine.ns("core", "call", 40e-9).note("assumption");
        machine.ns("core", "poll", 3e-9).note("assumption");
        machine.rate("core", "combine", combining::rate()?);
        let target = system::Target::start()?;
        let [call, page] = system::reading(&target, &[self.first])?;
        let copied = self.copies[0] * crate::node::PAGE as f64 / LINE;
        machine.ns("system_copy", "call", call.max(0.0)).ns("system_copy", "page", (page - copied).max(0.0));
        let many: Vec<usize> = shape.cores.iter().take(MANY).map(|core| core.processor).collect();
        match many.len() {
            1 => machine.ns("system_copy", "queued", page).note(format!("{FEW}, so what a page takes")),
            count => {
                let [_, crowded] = system::reading(&target, &many)?;
                machine.ns("system_copy", "queued", ((crowded - page) / (count - 1) as f64).max(0.0));
            }
        }
        Ok(())
    }
}
