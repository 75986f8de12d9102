// SPDX-License-Identifier: BSD-3-Clause
//! Where, when and how a run was made: everything needed to repeat it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::{Scheme, Source};
use crate::error::Result;
use crate::mpi::{self, Comm};

/// Where, when and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Version of mpiperf.
    pub mpiperf: String,
    /// Its git commit, where the build knew it.
    pub commit: Option<String>,
    /// What the user calls this variant or library; by default the library's name and version.
    pub label: String,
    /// Start of the run, UTC.
    pub date: String,
    /// The command line.
    pub command: Vec<String>,
    /// Name and version of the MPI library in one line.
    pub library: String,
    /// All that the library says of itself.
    pub library_text: String,
    /// Number of processes.
    pub processes: usize,
    /// Each of them.
    pub ranks: Vec<Rank>,
    /// Processor model of rank 0's host.
    pub processor: String,
    /// Cores online on rank 0's host.
    pub cores: usize,
    /// Operating system and its version on rank 0's host.
    pub kernel: String,
    /// Load of rank 0's host when the run began: over 1, 5 and 15 minutes.
    #[serde(default)]
    pub load: Option<[f64; 3]>,
    /// The timer and the clock.
    pub clock: Option<ClockAbout>,
    /// Environment variables of rank 0 that change what MPI libraries do.
    pub environment: Vec<(String, String)>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its host.
    pub host: String,
    /// The processors it may run on, as `0-3,8`.
    pub cpus: String,
}

/// The timer and the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockAbout {
    /// Which counter.
    pub source: Source,
    /// Its resolution, seconds; the coarsest of all ranks.
    pub resolution: f64,
    /// How the offsets were found.
    pub scheme: Scheme,
    /// Their uncertainty, seconds; the largest over all ranks.
    pub uncertainty: f64,
}

/// What begins the names of variables that change what MPI libraries do.
const VARIABLES: [&str; 10] =
    ["OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "FI_", "UCX_", "MV2_", "OMP_"];
/// … but these are what `mpiexec` of Open MPI 4.1 tells its own processes, different in every job.
const INTERNAL: [&str; 3] = ["OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_MCA_initial_"];
/// Length of what ranks tell rank 0.
const TEXT: usize = 256;

impl About {
    /// Collects everything. Collective; complete on rank 0.
    pub fn collect(comm: &Comm, label: Option<&str>) -> Result<About> {
        let library_text = library_text()?;
        let library = library_name(&library_text);
        let mine = Rank { host: host(), cpus: cpu_list(&affinity()) };
        Ok(About {
            mpiperf: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("MPIPERF_COMMIT").filter(|c| !c.is_empty()).map(str::to_owned),
            label: label.unwrap_or(&library).to_owned(),
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            command: std::env::args().collect(),
            library,
            library_text,
            processes: comm.size(),
            ranks: gather(comm, &mine)?,
            processor: processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: std::thread::available_parallelism().map_or(0, usize::from).max(online()),
            kernel: kernel(),
            load: load(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default()),
            clock: None,
            environment: environment(std::env::vars()),
        })
    }

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        let mut names: Vec<&str> = self.ranks.iter().map(|r| r.host.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }
}

/// What the MPI library says of itself.
pub fn library_text() -> Result<String> {
    // Longer than MPI_MAX_LIBRARY_VERSION_STRING of any library.
    let mut text = vec![0u8; 16384];
    let mut len = 0;
    // SAFETY: the buffer is long enough, and `len` is a local.
    crate::call!(MPI_Get_library_version(text.as_mut_ptr().cast(), &mut len))?;
    text.truncate(len.max(0) as usize);
    Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').trim().to_owned())
}

/// Name and version out of what a library says of itself: `Open MPI 4.1.4`.
pub fn library_name(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let after = |mark: &str| {
        let from = text.find(mark)? + mark.len();
        text[from..].split_whitespace().next().map(|v| v.trim_matches(&[',', 'v', ':'][..]).to_owned())
    };
    if let Some(version) = first.starts_with("Open MPI").then(|| after("Open MPI")).flatten() {
        format!("Open MPI {version}")
    } else if let Some(version) = after("MPICH Version:") {
        format!("MPICH {version}")
    } else if first.starts_with("Intel(R) MPI Library") {
        format!("Intel MPI {}", after("Library").unwrap_or_default())
    } else {
        first.chars().take(40).collect()
    }
}

fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is as long as said.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
        return "unknown".to_owned();
    }
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

fn kernel() -> String {
    let part = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", part("ostype").trim(), part("osrelease").trim())
}

fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find(|l| l.starts_with("model name") || l.starts_with("Model"));
    model.and_then(|l| l.split_once(':')).map_or("unknown", |(_, name)| name.trim()).to_owned()
}

fn load(loadavg: &str) -> Option<[f64; 3]> {
    let mut numbers = loadavg.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

fn online() -> usize {
    // SAFETY: asks for a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(0) as usize
}

/// The processors that the calling thread may run on; none where the system does not say.
pub fn affinity() -> Vec<usize> {
    // SAFETY: all zeroes are a set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as long as said.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return vec![];
    }
    // SAFETY: the numbers are below the length of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Ascending numbers as `0-3,8`.
fn cpu_list(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let text: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            run => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    text.join(",")
}

fn environment(all: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let starts = |name: &str, with: &[&str]| with.iter().any(|v| name.starts_with(v));
    let mut found: Vec<_> = all.filter(|(name, _)| starts(name, &VARIABLES) && !starts(name, &INTERNAL)).collect();
    found.sort_unstable();
    found
}

/// What every rank says of itself, on rank 0.
fn gather(comm: &Comm, mine: &Rank) -> Result<Vec<Rank>> {
    let mut text = [0u8; TEXT];
    let line = format!("{}\n{}", mine.host, mine.cpus);
    let n = line.len().min(TEXT);
    text[..n].copy_from_slice(&line.as_bytes()[..n]);
    let all: Vec<u8> = comm.gather(&text, 0)?;
    let ranks = all.chunks_exact(TEXT).map(|one| {
        let end = one.iter().position(|b| *b == 0).unwrap_or(TEXT);
        let line = String::from_utf8_lossy(&one[..end]);
        let (host, cpus) = line.split_once('\n').unwrap_or((&line, ""));
        Rank { host: host.to_owned(), cpus: cpus.to_owned() }
    });
    Ok(ranks.collect())
}

/// Whether the library chooses collective components by the info key `ompi_comm_coll_preference`.
pub fn prefers_components() -> Result<bool> {
    Ok(library_text()?.starts_with("Open MPI"))
}

/// Whether the library knows a control variable (MPI's tool interface) of this name.
pub fn has_variable(name: &str) -> bool {
    let Ok(name) = std::ffi::CString::new(name) else { return false };
    let (mut provided, mut index) = (0, 0);
    // SAFETY: plain numbers in, plain numbers out; finalised only if initialised.
    unsafe {
        if mpi::ffi::MPI_T_init_thread(0, &mut provided) != 0 {
            return false;
        }
        let found = mpi::ffi::MPI_T_cvar_get_index(name.as_ptr(), &mut index) == 0;
        mpi::ffi::MPI_T_finalize();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
        let mpich = "MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 12:34:45 CDT 2022\n";
        let intel = "Intel(R) MPI Library 2021.17 for Linux* OS\n";
        assert_eq!(library_name(open), "Open MPI 4.1.4");
        assert_eq!(library_name(mpich), "MPICH 4.0.2");
        assert_eq!(library_name(intel), "Intel MPI 2021.17");
        assert_eq!(library_name("Some other MPI 1.0"), "Some other MPI 1.0");
        assert_eq!(library_name(""), "");
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list(&[]), "");
        assert_eq!(cpu_list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert!(!affinity().is_empty(), "this test runs on some processor");
    }

    #[test]
    fn processors() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Fast CPU @ 2 GHz\n"), "Fast CPU @ 2 GHz");
        assert_eq!(processor(""), "unknown");
        assert_eq!((load("0.5 1.25 2 1/200 5"), load("x")), (Some([0.5, 1.25, 2.0]), None));
    }

    #[test]
    fn only_what_matters_to_mpi() {
        let all = [
            ("OMPI_MCA_coll", "rust"),
            ("HOME", "/"),
            ("FI_PROVIDER", "tcp"),
            ("OMPI_MCA_orte_hnp_uri", "1.0"),
            ("MPIR_CVAR_X", "1"),
        ];
        let found = environment(all.iter().map(|(n, v)| (n.to_string(), v.to_string())));
        let names: Vec<&str> = found.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["FI_PROVIDER", "MPIR_CVAR_X", "OMPI_MCA_coll"]);
    }
}
