// SPDX-License-Identifier: BSD-3-Clause
//! Whether a process reads the memory of the next one on its node. They meet in a folder of files, in which
//! each says its number and an address.

use super::facts::Reads;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::env;
use std::fs;
use std::hint::black_box;
use std::io::IoSliceMut;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long one waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads from the next process of the node, and lets the one before read.
pub fn read(token: &str, local_rank: u32, local_size: u32) -> Reads {
    if local_size < 2 {
        return Reads::Alone;
    }
    let folder = env::temp_dir().join(format!("coll-rust-doctor.{token}"));
    let _ = fs::create_dir(&folder);
    let reads = meet(&folder, token, local_rank, local_size);
    // The last one that goes takes the folder away.
    let _ = fs::remove_dir(&folder);
    reads
}

fn meet(folder: &Path, token: &str, local_rank: u32, local_size: u32) -> Reads {
    let name = |rank: u32, what: &str| folder.join(format!("{rank}.{what}"));
    let next = (local_rank + 1) % local_size;
    let previous = (local_rank + local_size - 1) % local_size;
    let mine: Vec<u8> = word(token, local_rank);
    let told = format!("{} {} ", std::process::id(), black_box(mine.as_ptr()) as usize);
    if fs::write(name(local_rank, "new"), told)
        .and_then(|()| fs::rename(name(local_rank, "new"), name(local_rank, "here")))
        .is_err()
    {
        return Reads::NotMet;
    }
    let reads = match wait_for(&name(next, "here")).and_then(|text| parse(&text)) {
        Some((pid, address)) => peek(pid, address, &word(token, next)),
        None => Reads::NotMet,
    };
    let _ = fs::write(name(local_rank, "done"), " ");
    // Mine must be there until it has been read.
    let _ = wait_for(&name(previous, "done"));
    let _ = fs::remove_file(name(previous, "done"));
    let _ = fs::remove_file(name(local_rank, "here"));
    black_box(&mine);
    reads
}

/// What a process shows.
fn word(token: &str, local_rank: u32) -> Vec<u8> {
    format!("coll-rust {token} {local_rank}").into_bytes()
}

fn parse(text: &str) -> Option<(i32, usize)> {
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn wait_for(path: &PathBuf) -> Option<String> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(text) = fs::read_to_string(path) {
            return Some(text);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

fn peek(pid: i32, address: usize, expected: &[u8]) -> Reads {
    let mut got = vec![0; expected.len()];
    let there = RemoteIoVec { base: address, len: expected.len() };
    match process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(&mut got)], &[there]) {
        Ok(_) if got == expected => Reads::Works,
        Ok(_) => Reads::Fails("it read the memory of another process".to_owned()),
        Err(error) => Reads::Fails(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_processes_of_a_node_read_in_a_ring() {
        let token = format!("test-{}", std::process::id());
        let work = |rank| {
            let token = token.clone();
            std::thread::spawn(move || read(&token, rank, 3))
        };
        let threads: Vec<_> = (0..3).map(work).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Reads::Works);
        }
        assert!(!env::temp_dir().join(format!("coll-rust-doctor.{token}")).exists());
    }

    #[test]
    fn memory_of_nobody_is_refused() {
        assert!(matches!(peek(std::process::id() as i32, 8, b"x"), Reads::Fails(_)));
    }
}
