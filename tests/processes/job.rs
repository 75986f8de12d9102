// SPDX-License-Identifier: BSD-3-Clause
//! A job of real processes. The test carries messages between them: in each round every process says
//! something, and hears what all of them said.

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use coll_rust::shm::pool::backing::Backing;

/// The most a job may take.
const LIMIT: Duration = Duration::from_secs(15);
/// The descriptor of a process' messages.
const WIRE: i32 = 3;
/// Tells a process what it is: case, rank, size, backing.
const ROLE: &str = "PROCESSES_ROLE";

/// Before the name of a folder: files in it have no names.
pub const UNNAMED: &str = "unnamed:";

/// What a process of a job sees of it.
pub struct Job {
    pub rank: usize,
    pub size: usize,
    pub backing: Backing,
    wire: UnixStream,
}

impl Job {
    /// The job that this process belongs to, and the name of its case. `None`: this is the test itself.
    pub fn of_this_process() -> Option<(String, Job)> {
        let role = env::var(ROLE).ok()?;
        let [case, rank, size, backing] = role.split('|').collect::<Vec<_>>()[..] else { panic!("{ROLE}={role}") };
        // SAFETY: the test has left the descriptor there for us.
        let wire = unsafe { UnixStream::from_raw_fd(WIRE) };
        let backing = match backing.strip_prefix(UNNAMED) {
            _ if backing == "memfd" => Backing::Memfd,
            Some(folder) => Backing::Unnamed(PathBuf::from(folder)),
            None => Backing::Folder(PathBuf::from(backing)),
        };
        Some((case.to_owned(), Job { rank: rank.parse().unwrap(), size: size.parse().unwrap(), backing, wire }))
    }

    /// Says something, and hears what all say: `None` for a process that has ended.
    pub fn exchange(&mut self, words: &[u8]) -> Vec<Option<Vec<u8>>> {
        send(&mut self.wire, words).unwrap();
        (0..self.size)
            .map(|_| receive(&mut self.wire).unwrap())
            .map(|said| (said[0] == 1).then(|| said[1..].to_vec()))
            .collect()
    }

    /// The same for messages of one length, where nobody ends.
    pub fn all<const N: usize>(&mut self, words: [u8; N]) -> Vec<[u8; N]> {
        self.exchange(&words).into_iter().map(|said| said.expect("alive").try_into().expect("one length")).collect()
    }

    /// Waits for all.
    pub fn barrier(&mut self) {
        self.exchange(&[]);
    }

    /// True when it is true of all.
    pub fn agree(&mut self, mine: bool) -> bool {
        self.all([u8::from(mine)]).iter().all(|&[theirs]| theirs == 1)
    }
}

fn send(to: &mut UnixStream, words: &[u8]) -> io::Result<()> {
    let mut message = (words.len() as u32).to_le_bytes().to_vec();
    message.extend_from_slice(words);
    to.write_all(&message)
}

fn receive(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut words = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut words)?;
    Ok(words)
}

/// How a job went.
pub struct Ended {
    pub statuses: Vec<ExitStatus>,
}

impl Ended {
    /// All processes ended well.
    pub fn well(&self) {
        self.but(&[]);
    }

    /// All processes but these ended well, and these by SIGKILL.
    pub fn but(&self, killed: &[usize]) {
        use std::os::unix::process::ExitStatusExt;
        for (rank, status) in self.statuses.iter().enumerate() {
            match killed.contains(&rank) {
                true => assert_eq!(status.signal(), Some(libc::SIGKILL), "rank {rank}: {status}"),
                false => assert!(status.success(), "rank {rank}: {status}"),
            }
        }
    }
}

/// Runs `case` as a job of `size` processes, started by the calling thread (they share its name spaces).
pub fn run(case: &str, size: usize, backing: &str) -> Ended {
    run_after(|_| Ok(()), case, size, backing).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// The same; each process calls `before` with its rank when it has one thread only. An error is that of a
/// process that could not start.
pub fn run_after(before: fn(usize) -> io::Result<()>, case: &str, size: usize, backing: &str) -> io::Result<Ended> {
    let mut children = Vec::new();
    let mut wires = Vec::new();
    for rank in 0..size {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(LIMIT)).unwrap();
        let child = start(move || before(rank), &format!("{case}|{rank}|{size}|{backing}"), &theirs);
        // Those that have started hear that all is over.
        children.push(child?);
        wires.push(Some(ours));
    }
    let deadline = Instant::now() + LIMIT;
    let late = carry(&mut wires, deadline).err();
    drop(wires);
    let statuses =
        children.iter_mut().map(|child| end(child, if late.is_some() { Instant::now() } else { deadline })).collect();
    if let Some(late) = late {
        panic!("{case} on {backing}: {late}");
    }
    Ok(Ended { statuses })
}

fn start(
    before: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    role: &str,
    wire: &UnixStream,
) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "processes::cases::play", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null());
    let fd = wire.as_raw_fd();
    // SAFETY: only system calls between fork and exec. A descriptor that is there already needs its flag
    // cleared.
    unsafe {
        command.pre_exec(move || {
            let moved = if fd == WIRE { libc::fcntl(fd, libc::F_SETFD, 0) } else { libc::dup2(fd, WIRE) };
            // No orphan survives a test that was killed.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if moved < 0 { Err(io::Error::last_os_error()) } else { before() }
        });
    }
    command.spawn()
}

/// Carries messages until all processes have hung up.
fn carry(wires: &mut [Option<UnixStream>], deadline: Instant) -> Result<(), String> {
    while wires.iter().any(Option::is_some) {
        let mut said = Vec::new();
        for (rank, slot) in wires.iter_mut().enumerate() {
            let heard = slot.as_mut().map(receive);
            match heard {
                Some(Ok(words)) => said.push([&[1][..], &words].concat()),
                Some(Err(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(format!("rank {rank} said nothing for {LIMIT:?}"));
                }
                _ => {
                    *slot = None;
                    said.push(vec![0]);
                }
            }
            if Instant::now() > deadline {
                return Err(format!("not done after {LIMIT:?}"));
            }
        }
        for slot in wires.iter_mut() {
            let Some(wire) = slot else { continue };
            if said.iter().any(|words| send(wire, words).is_err()) {
                *slot = None;
            }
        }
    }
    Ok(())
}

/// Waits for a process, and kills it when it is late.
fn end(child: &mut Child, deadline: Instant) -> ExitStatus {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Says that a test could not be made here, past the harness, which hides what a successful test prints.
pub fn skipped(test: &str, error: io::Error) {
    drop(writeln!(io::stderr(), "SKIPPED {test}: {error}"));
}

/// A folder of its own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let base = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { env::temp_dir() };
        let path = base.join(format!("coll-rust-test.{name}.{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
