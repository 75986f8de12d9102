// SPDX-License-Identifier: BSD-3-Clause
//! The program itself: its command line, its memory, and what others see when it is killed.

use crate::support::*;
use coll_rust::relay::frame::{ALL, Kind};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_coll-rust-gateway");

fn write_key(path: &Path) {
    std::fs::write(path, "01".repeat(32)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A gateway in a process of its own.
struct Program {
    child: Child,
    inside: SocketAddr,
    outside: SocketAddr,
}

impl Program {
    fn start(folder: &Path, cluster: &str, peer: &str, wire: SocketAddr) -> Program {
        write_key(&folder.join("astro.key"));
        let config = folder.join(format!("{cluster}.toml"));
        let text = format!(
            "cluster = \"{cluster}\"\ninside = \"127.0.0.1:0\"\noutside = \"127.0.0.1:0\"\nkeys = [\"astro.key\"]\n\
             memory_mib = 4\nprocesses = 8\n[peers.{peer}]\naddress = \"{wire}\"\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new(PROGRAM).arg(config).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        Program { child, inside: words[1].parse().unwrap(), outside: words[3].parse().unwrap() }
    }

    /// A number of KiB from its status.
    fn status(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn two_programs(folder: &Path) -> (Program, Program) {
    let (to_north, to_south) = (Wire::new().await, Wire::new().await);
    let north = Program::start(folder, "north", "south", to_south.address);
    let south = Program::start(folder, "south", "north", to_north.address);
    to_north.to(north.outside);
    to_south.to(south.outside);
    (north, south)
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_gateway_is_killed_every_process_knows_within_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let (mut north, south) = two_programs(folder.path()).await;
    let near = connect(north.inside, &Who::new("job", 0, 0, 0)).await.unwrap();
    let far = connect(south.inside, &Who::new("job", 0, 1, 0)).await.unwrap();
    let mut two = [near, far];
    ping_pong(&mut two, 0, 10).await;
    let [(_near, mut near_news), (_far, mut far_news)] = two;
    north.child.kill().unwrap();
    let killed = Instant::now();
    assert!(near_news.next().await.is_none());
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    // With the times that are the default.
    let (header, text) = far_news.text(Kind::Lost).await;
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    assert!(header.peer == ALL && text.contains("gateway of cluster north"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_restarted_does_not_pretend() {
    let folder = tempfile::tempdir().unwrap();
    let (to_north, to_south) = (Wire::new().await, Wire::new().await);
    let mut north = Program::start(folder.path(), "north", "south", to_south.address);
    let south = Program::start(folder.path(), "south", "north", to_north.address);
    to_north.to(north.outside);
    to_south.to(south.outside);
    let near = connect(north.inside, &Who::new("job", 0, 0, 0)).await.unwrap();
    let far = connect(south.inside, &Who::new("job", 0, 1, 0)).await.unwrap();
    let mut two = [near, far];
    ping_pong(&mut two, 0, 10).await;
    let killed = Instant::now();
    north.child.kill().unwrap();
    let again = Program::start(folder.path(), "north", "south", to_south.address);
    to_north.to(again.outside);
    let (_, text) = two[1].1.text(Kind::Lost).await;
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    assert!(text.contains("restarted"), "{text}");
    // The next job finds nothing wrong.
    let near = connect(again.inside, &Who::new("next", 0, 0, 0)).await.unwrap();
    let far = connect(south.inside, &Who::new("next", 0, 1, 0)).await.unwrap();
    ping_pong(&mut [near, far], 0, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_stopped_says_so_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut north, south) = two_programs(folder.path()).await;
    let near = connect(north.inside, &Who::new("job", 0, 0, 0)).await.unwrap();
    let far = connect(south.inside, &Who::new("job", 0, 1, 0)).await.unwrap();
    let mut two = [near, far];
    ping_pong(&mut two, 0, 10).await;
    let stopped = Instant::now();
    assert!(Command::new("kill").arg(north.child.id().to_string()).status().unwrap().success());
    let (_, text) = two[1].1.text(Kind::Lost).await;
    assert!(text.contains("the gateway of cluster north was stopped"), "{text}");
    assert!(north.child.wait().unwrap().success());
    assert!(stopped.elapsed() < Duration::from_secs(4), "{:?}", stopped.elapsed());
}

/// Eight processes send without end to eight that do not read: the gateways hold the 4 MiB of the job, and
/// what their connections need.
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_the_program_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (north, south) = two_programs(folder.path()).await;
    let before = [north.status("VmRSS"), south.status("VmRSS")];
    let mut kept = Vec::new();
    for rank in 0..8 {
        let (mut sender, receiver) = connect(north.inside, &Who::new("job", 0, 0, rank)).await.unwrap();
        let far = connect(south.inside, &Who::new("job", 0, 1, rank)).await.unwrap();
        let task = tokio::spawn(async move {
            for number in 0.. {
                // Also the shortest frames, which cost most beside their payload.
                let length = if number % 2 == 0 { 0 } else { 30_000 };
                let to = process(1, (rank + number) % 8);
                if sender.send(1, to, number, &vec![5; length]).await.is_err() {
                    return;
                }
            }
        });
        kept.push((receiver, far, task));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (program, before) in [(&north, before[0]), (&south, before[1])] {
        let grown = program.status("VmHWM") - before;
        println!("grown by {grown} KiB");
        assert!(grown < 10 * 1024, "grown by {grown} KiB");
    }
    for (_, _, task) in &kept {
        task.abort();
    }
}

#[test]
fn check_says_what_is_wrong_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    // The example as it is handed out, with a key where it looks for one.
    let example = include_str!("../../examples/gateway.toml");
    let text = example.replace("/etc/coll-rust-gateway/", "");
    assert_ne!(text, example);
    let check = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let ran = Command::new(PROGRAM).arg("--check").arg(&path).output().unwrap();
        let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
        (ran.status.code(), said)
    };
    let (code, said) = check(&text);
    assert!(code == Some(2) && said.contains("astro.key: No such file"), "{said}");
    write_key(&folder.path().join("astro.key"));
    let (code, said) = check(&text);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "ok: cluster north, with south; keys astro; 16 MiB for each of at most 64 jobs\n")
    );
    let (code, said) = check(&format!("colour = 1\n{text}"));
    assert!(code == Some(2) && said.contains("gateway.toml:1: unknown field `colour`"), "{said}");
    std::fs::set_permissions(folder.path().join("astro.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = check(&text);
    assert!(code == Some(2) && said.contains("chmod 0600"), "{said}");
    let ran = Command::new(PROGRAM).arg("/nowhere/gateway.toml").output().unwrap();
    assert!(ran.status.code() == Some(2) && String::from_utf8_lossy(&ran.stderr).contains("No such file"));
}
