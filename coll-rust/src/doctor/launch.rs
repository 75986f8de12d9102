// SPDX-License-Identifier: BSD-3-Clause
//! The jobs that the doctor has mpiexec run.

use super::Args;
use super::case::Ended;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// How often it is seen whether a job has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a launcher has to clean up.
const GRACE: Duration = Duration::from_secs(5);

/// What a job printed, and how it ended.
pub struct Job {
    /// Output and errors, one after the other.
    pub output: String,
    /// How it ended.
    pub ended: Ended,
}

/// mpiexec and its arguments.
pub struct Launcher {
    /// As found in PATH.
    pub program: String,
    /// mpiexec refused until it was told to oversubscribe.
    pub oversubscribed: bool,
    arguments: Vec<String>,
    ompi_info: PathBuf,
    limit: Duration,
}

impl Launcher {
    /// Finds it, and ompi_info beside it.
    pub fn find(args: &Args, limit: Duration) -> Result<Launcher, String> {
        let program = in_path(&args.mpiexec).ok_or_else(|| {
            format!("there is no {}: install Open MPI, or name its launcher with --mpiexec", args.mpiexec)
        })?;
        let beside = program.with_file_name("ompi_info");
        let ompi_info = if beside.exists() { beside } else { PathBuf::from("ompi_info") };
        let mut arguments = vec!["-n".to_owned(), args.ranks.to_string()];
        arguments.extend(args.mpiexec_args.iter().cloned());
        Ok(Launcher { program: program.display().to_string(), oversubscribed: false, arguments, ompi_info, limit })
    }

    /// For messages.
    pub fn describe(&self) -> String {
        format!("{} {}", self.program, self.arguments.join(" "))
    }

    /// The job whose processes say what they see. It needs no MPI.
    pub fn facts(&mut self) -> Result<Job, String> {
        let job = self.run(&["--token", &token()], &[])?;
        if job.ended == Ended::Code(0) || !job.output.contains("slots") || job.output.contains("coll-rust-probe:") {
            return Ok(job);
        }
        self.arguments.insert(0, "--oversubscribe".to_owned());
        self.oversubscribed = true;
        self.run(&["--token", &token()], &[])
    }

    /// The job that calls MPI, and in which Open MPI says what it selects.
    pub fn collectives(&self) -> Result<Job, String> {
        let verbose = [("OMPI_MCA_coll_base_verbose", "10"), ("OMPI_MCA_coll_rust_verbose", "2")];
        let yields: &[(&str, &str)] = if self.oversubscribed { &[("OMPI_MCA_mpi_yield_when_idle", "1")] } else { &[] };
        self.run(&["--mpi"], &[&verbose, yields].concat())
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Job, String> {
        let own = std::env::current_exe().map_err(|error| format!("this program's own path cannot be had: {error}"))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(own).arg("probe").arg("--ompi-info").arg(&self.ompi_info).args(arguments);
        command.envs(variables.iter().copied());
        // Whoever asks as root has decided so; these jobs do nothing but look.
        for project in ["OMPI", "PRTE"] {
            command.env(format!("{project}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{project}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{} cannot be run: {error}", self.program))?;
        let readers = [reader(child.stdout.take()), reader(child.stderr.take())];
        let ended = wait(&mut child, self.limit).map_err(|error| format!("{}: {error}", self.program))?;
        let output = readers.map(|reader| reader.join().unwrap_or_default()).concat();
        Ok(Job { output, ended })
    }
}

/// The program of that name, or path, as a shell would find it.
fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).is_file().then(|| std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name)));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Another one for each job.
fn token() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("{:x}-{:x}", std::process::id(), now)
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end, and makes one when the time is over: mpiexec takes its processes with it.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Ended> {
    let start = Instant::now();
    let mut late = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if late { Ended::TooLate } else { Ended::Code(status.code().unwrap_or(-1)) });
        }
        if !late && start.elapsed() > limit {
            late = true;
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        if late && start.elapsed() > limit + GRACE {
            child.kill()?;
        }
        std::thread::sleep(PAUSE);
    }
}

/// How a job ended and what it said last.
pub fn evidence(job: &Job, hint: &str) -> String {
    let ended = match job.ended {
        Ended::Code(code) => format!(" (exit code {code})"),
        Ended::TooLate => " in time (--timeout)".to_owned(),
    };
    let said = last_lines(&job.output, 12);
    if said.is_empty() { format!("{ended}{hint}") } else { format!("{ended}{hint} It said:\n{said}") }
}

/// The last lines that are words.
pub fn last_lines(output: &str, number: usize) -> String {
    let words = |line: &&str| {
        !line.trim().is_empty()
            && !line.starts_with("---")
            && !line.contains("coll:base")
            && !line.contains("mca: base")
    };
    let lines: Vec<&str> = output.lines().filter(words).collect();
    lines[lines.len().saturating_sub(number)..].join("\n")
}
