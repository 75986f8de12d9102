// SPDX-License-Identifier: BSD-3-Clause
//! What one process of a job sees: `coll-rust probe`, which `coll-rust doctor` has mpiexec start.

pub mod choice;
pub mod component;
pub mod facts;
pub mod info;
mod mpi;
pub mod settings;
mod sibling;

use facts::{Facts, Room};
use std::collections::BTreeMap;
use std::env;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Arguments of `probe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// ompi_info of the Open MPI
    #[arg(long, default_value = "ompi_info")]
    pub ompi_info: PathBuf,
    /// The same in all processes of a job, and in no other job
    #[arg(long, default_value = "0")]
    pub token: String,
    /// Call MPI in another process, and tell what Open MPI chose there
    #[arg(long)]
    pub mpi: bool,
    /// Call MPI in this process
    #[arg(long)]
    pub mpi_alone: bool,
}

/// Runs in a process of a job.
pub fn run(args: &Args) -> ExitCode {
    if args.mpi_alone {
        return match mpi::collectives(&args.ompi_info) {
            Ok(library) => {
                println!("{library}");
                ExitCode::SUCCESS
            }
            Err(why) => {
                eprintln!("coll-rust probe: {why}");
                ExitCode::from(3)
            }
        };
    }
    if args.mpi {
        return listen(args);
    }
    let facts = look(args);
    facts::print(&facts);
    ExitCode::SUCCESS
}

/// Has another process call MPI in the place of this one, and reads what it says.
fn listen(args: &Args) -> ExitCode {
    let child = env::current_exe().and_then(|own| {
        let mut command = Command::new(own);
        command.args(["probe", "--mpi-alone", "--ompi-info"]).arg(&args.ompi_info);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    });
    let output = match child.and_then(|child| child.wait_with_output()) {
        Ok(output) => output,
        Err(error) => {
            eprintln!("coll-rust probe: cannot start itself: {error}");
            return ExitCode::from(3);
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let mut told = choice::parse(&said);
    told.library = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    print!("{}", choice::line(&told));
    said.lines().filter(|line| !choice::is_chatter(line)).for_each(|line| eprintln!("{line}"));
    ExitCode::from(output.status.code().map_or(128, |code| code as u8))
}

/// The number in the first of these variables that has one: they are those of the launchers of Open MPI, PMIx
/// and Slurm.
fn number(names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| env::var(name).ok()?.parse().ok())
}

fn look(args: &Args) -> Facts {
    let rank = number(&["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"]).unwrap_or(0);
    let local_rank = number(&["OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"]).unwrap_or(0);
    let local_size = number(&["OMPI_COMM_WORLD_LOCAL_SIZE"]).unwrap_or(1);
    // Before ompi_info, which takes a while: the sibling waits.
    let reads = sibling::read(&args.token, local_rank, local_size);
    let environment: BTreeMap<String, String> = env::vars().filter(|(name, _)| settings::matters(name)).collect();
    let (info, trouble) = ask(&args.ompi_info);
    let folders = component::folders(&info, env::var("HOME").ok().as_deref());
    Facts {
        rank,
        local_rank,
        host: read("/proc/sys/kernel/hostname").trim().to_owned(),
        pid_space: component::pid_space(),
        cpus: nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
            .map_or(0, |set| (0..nix::sched::CpuSet::count()).filter(|&i| set.is_set(i).unwrap_or(false)).count()),
        machine_cpus: online(),
        shm: room(Path::new("/dev/shm")),
        reads,
        ptrace_scope: read("/proc/sys/kernel/yama/ptrace_scope").trim().parse().unwrap_or(0),
        filtered: read("/proc/self/status")
            .lines()
            .any(|l| l.strip_prefix("Seccomp:").is_some_and(|n| n.trim() != "0")),
        file: component::find(&folders),
        folders,
        files: settings::in_files(&info),
        environment,
        info,
        trouble,
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Processors that are on, whoever may use them.
fn online() -> usize {
    nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok().flatten().map_or(0, |n| n as usize)
}

/// What a folder in memory has room for, tried by a file without a name.
fn room(folder: &Path) -> Room {
    let space = nix::sys::statvfs::statvfs(folder).map(|at| {
        let unit = at.fragment_size();
        (at.blocks() * unit, at.blocks_available() * unit)
    });
    let (total, free) = match space {
        Ok(space) => space,
        Err(error) => return Room { total: 0, free: 0, error: Some(error.to_string()) },
    };
    // Without a name: nothing is left behind, and processes of two PID name spaces may have the same number.
    let unnamed = nix::fcntl::OFlag::O_TMPFILE.bits();
    let written = std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(unnamed)
        .open(folder)
        .and_then(|mut to| to.write_all(&[1; 4096]));
    Room { total, free, error: written.err().map(|error| error.to_string()) }
}

/// What ompi_info says here, and what it complained of.
fn ask(ompi_info: &Path) -> (info::Info, Vec<String>) {
    let output = [ompi_info, Path::new("ompi_info")]
        .iter()
        .find_map(|program| Command::new(program).args(["--all", "--level", "9", "--parsable"]).output().ok());
    let Some(output) = output else {
        return (info::Info::default(), vec![format!("{} cannot be run", ompi_info.display())]);
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let about = |line: &&str| line.contains("mca_coll_rust") || line.contains("coll/rust");
    let trouble = errors.lines().chain(text.lines()).filter(about).filter(|l| !l.starts_with("mca:"));
    (info::parse(&text), trouble.map(|line| line.chars().take(300).collect()).take(3).collect())
}
