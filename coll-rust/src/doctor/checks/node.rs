// SPDX-License-Identifier: BSD-3-Clause
//! What a node may refuse: room in /dev/shm, other processes' memory, processors of one's own.

use super::super::case::Case;
use super::super::finding::Finding;
use crate::probe::facts::{Facts, Reads};
use std::collections::{BTreeMap, BTreeSet};

/// Below so many bytes for each process of a node, shared memory does not suffice.
const LEAST: u64 = 1 << 20;
/// Below so many, many communicators may not find room.
const ENOUGH: u64 = 8 << 20;

/// Looks at every node.
pub fn check(case: &Case) -> Vec<Finding> {
    let mut nodes: BTreeMap<&str, Vec<&Facts>> = BTreeMap::new();
    for facts in &case.facts {
        nodes.entry(facts.host.as_str()).or_default().push(facts);
    }
    let mut findings = Vec::new();
    for (host, ranks) in &nodes {
        for facts in ranks {
            findings.extend(room(host, facts, ranks.len()).map(|finding| finding.by(facts.rank)));
        }
        match spaces(host, ranks) {
            Some(finding) => findings.push(finding),
            None => {
                findings.extend(ranks.iter().filter_map(|facts| blocked(facts).map(|finding| finding.by(facts.rank))))
            }
        }
    }
    findings.extend(unbound(case));
    findings
}

fn room(host: &str, facts: &Facts, ranks: usize) -> Option<Finding> {
    let (shm, ranks) = (&facts.shm, ranks as u64);
    let place = format!("/dev/shm on {host}");
    let why = "Without shared memory, messages take over within the node: several times as slow.";
    let mend = "rm the files that dead jobs have left in /dev/shm (ls -l /dev/shm)\nor mount -o remount,size=50% /dev/shm (containers: --shm-size=4g)".to_owned();
    let mib = |bytes: u64| bytes >> 20;
    match &shm.error {
        Some(error) if shm.total == 0 || !error.contains("ENOSPC") && !error.contains("No space") => {
            Some(Finding::wrong(
                "shm-missing",
                format!("no file can be written to /dev/shm: {error}"),
                place,
                why,
                "mount -t tmpfs -o mode=1777,size=50% tmpfs /dev/shm".to_owned(),
            ))
        }
        Some(_) => Some(Finding::wrong(
            "shm-full",
            format!("/dev/shm is full: {} MiB in all", mib(shm.total)),
            place,
            why,
            mend,
        )),
        None if shm.free < LEAST * ranks => {
            let what = format!(
                "/dev/shm is full: {} KiB of {} MiB are left for {ranks} processes",
                shm.free >> 10,
                mib(shm.total)
            );
            Some(Finding::wrong("shm-full", what, place, why, mend))
        }
        None if shm.free < ENOUGH * ranks => {
            let what = format!(
                "/dev/shm is small: {} of {} MiB are left for {ranks} processes",
                mib(shm.free),
                mib(shm.total)
            );
            Some(Finding::note("shm-small", what, place, "Programs with many communicators may use it up.", mend))
        }
        None => None,
    }
}

/// Processes of a node in different PID name spaces.
fn spaces(host: &str, ranks: &[&Facts]) -> Option<Finding> {
    let spaces: BTreeSet<u64> = ranks.iter().map(|facts| facts.pid_space).filter(|&space| space != 0).collect();
    (spaces.len() > 1).then(|| {
        Finding::wrong(
            "pid-name-spaces",
            format!("the {} processes of {host} are in {} PID name spaces", ranks.len(), spaces.len()),
            format!("/proc/self/ns/pid of the processes on {host}"),
            "Processes do not know each other by number: they cannot read each other's memory, and long messages are copied twice.",
            "start all processes of a node in one container, or each with the host's processes (docker --pid=host, apptainer without --pid)".to_owned(),
        )
    })
}

fn blocked(facts: &Facts) -> Option<Finding> {
    let Reads::Fails(error) = &facts.reads else { return None };
    let (place, mend) = match (facts.ptrace_scope, facts.filtered) {
        (1.., _) => (
            format!("/proc/sys/kernel/yama/ptrace_scope is {} on {}", facts.ptrace_scope, facts.host),
            "sysctl kernel.yama.ptrace_scope=0",
        ),
        (_, true) => (
            format!("a filter of system calls (Seccomp in /proc/self/status) on {}", facts.host),
            "containers: docker run --cap-add=SYS_PTRACE, or a seccomp profile that allows process_vm_readv and process_vm_writev",
        ),
        _ => (
            format!("the kernel on {}", facts.host),
            "run all processes of a node as one user in one container (user name space)",
        ),
    };
    Some(Finding::wrong(
        "read-blocked",
        format!("process_vm_readv from another process of the node is refused: {error}"),
        place,
        "Long messages within the node are copied twice instead of once.",
        mend.to_owned(),
    ))
}

/// Processes that may run anywhere.
fn unbound(case: &Case) -> Option<Finding> {
    let free = |f: &&Facts| f.machine_cpus > 1 && f.cpus >= f.machine_cpus;
    let first = case.facts.iter().find(free)?;
    let ranks = case.facts.iter().filter(free).map(|f| f.rank).collect();
    let place = if case.oversubscribed { "more ranks than slots" } else { "mpiexec --bind-to" };
    let finding = Finding::note(
        "unbound",
        format!("ranks are bound to no processors: each may use all {}", first.machine_cpus),
        place.to_owned(),
        "Caches, NUMA nodes and sockets are no levels then: the scheduler moves the processes.",
        "mpiexec --bind-to core, with at most as many ranks as cores".to_owned(),
    );
    Some(Finding { ranks, ..finding })
}
