// SPDX-License-Identifier: BSD-3-Clause
//! Set-ups as data, each with one thing wrong.

use super::super::case::{Case, Ended};
use super::super::finding::Finding;
use super::*;
use crate::probe::choice;
use crate::probe::component::File;
use crate::probe::facts::{Facts, Reads, Room};
use crate::probe::info::{self, Value};
use crate::probe::settings::Setting;

const LOG: &str = "\
[a:1] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[a:1] coll:base:comm_select: component available: rust, priority: 45
[a:1] coll:base:comm_select: component available: tuned, priority: 30
[a:1] coll:base:comm_select: selecting        rust, priority  45, Enabled
";

fn healthy() -> Case {
    let facts = |rank| Facts {
        rank,
        local_rank: rank,
        host: "a".to_owned(),
        pid_space: 7,
        cpus: 1,
        machine_cpus: 4,
        shm: Room { total: 1 << 30, free: 1 << 30, error: None },
        reads: Reads::Works,
        file: Some(File { path: "/c/mca_coll_rust.so".to_owned(), built_for: "4.1.4".to_owned(), hash: 1 }),
        folders: vec!["/c".to_owned()],
        info: info::parse(info::tests::HEALTHY),
        ..Facts::default()
    };
    Case {
        ranks: 2,
        facts: vec![facts(0), facts(1)],
        choices: vec![choice::parse(LOG); 2],
        ended: Ended::Code(0),
        ..Case::default()
    }
}

/// The only finding of a healthy set-up with a change.
fn after(change: impl FnOnce(&mut Case)) -> Finding {
    let mut case = healthy();
    change(&mut case);
    let mut findings = all(&case);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

fn both(case: &mut Case, change: impl Fn(&mut Facts)) {
    case.facts.iter_mut().for_each(change);
}

#[test]
fn a_healthy_set_up_has_no_findings() {
    assert_eq!(all(&healthy()), []);
}

#[test]
fn not_found_names_the_folders() {
    let nothing = |f: &mut Facts| (f.info.rust, f.file) = (None, None);
    let found = after(|case| both(case, nothing));
    assert_eq!((found.id, found.ranks.as_slice()), ("not-found", &[0, 1][..]));
    assert!(found.place.contains("/c") && found.mend.contains("OMPI_MCA_mca_base_component_path="), "{found:?}");
    let found = after(|case| {
        both(case, nothing);
        both(case, |f| {
            f.info.path.source = "environment".to_owned();
            f.info.release = "5.0.7".to_owned();
            f.environment.insert("OMPI_MCA_mca_base_component_path".to_owned(), "/pmix".to_owned());
        });
    });
    assert!(found.place.contains("OMPI_MCA_mca_base_component_path in the processes' environment"), "{found:?}");
    assert!(found.mend.contains("OMPI_MCA_opal_mca_base_component_path="), "{found:?}");
}

#[test]
fn a_node_without_the_file_is_named() {
    let found = after(|case| {
        let f = &mut case.facts[1];
        (f.info.rust, f.file, f.host) = (None, None, "b".to_owned());
    });
    assert_eq!((found.id, found.ranks.as_slice()), ("missing-on-node", &[1][..]));
    assert!(found.what.contains("node b"), "{found:?}");
}

#[test]
fn another_open_mpi_is_named_whether_it_loads_or_not() {
    for loads in [true, false] {
        let found = after(|case| {
            both(case, |f| {
                f.file.as_mut().unwrap().built_for = "5.0.7".to_owned();
                if !loads {
                    f.info.rust = None;
                }
            });
        });
        assert_eq!(found.id, "wrong-open-mpi");
        assert!(found.what.contains("5.0.7, and this is Open MPI 4.1.4"), "{found:?}");
    }
}

#[test]
fn excluded_names_file_and_line() {
    for (coll, excludes) in [("^rust", true), ("tuned,basic", true), ("^tuned", false), ("rust,basic", false)] {
        let mut case = healthy();
        both(&mut case, |f| {
            f.info.coll = Value { value: coll.to_owned(), source: "file (/etc/x.conf:4)".to_owned() };
        });
        let findings = all(&case);
        assert_eq!(!findings.is_empty(), excludes, "{coll}");
        if let Some(found) = findings.first() {
            assert_eq!(
                (found.id, found.place.as_str(), found.mend.as_str()),
                ("excluded", "/etc/x.conf:4", "sed -i '4d' '/etc/x.conf'")
            );
        }
    }
}

#[test]
fn a_low_priority_names_who_comes_first() {
    let found =
        after(|case| case.choices = vec![choice::parse(&LOG.replace("tuned, priority: 30", "tuned, priority: 60"))]);
    assert_eq!(found.id, "priority-too-low");
    assert!(found.what.contains("tuned (60)"), "{found:?}");
    assert!(healthy().offers().len() == 2 && after(negative).what.contains("-1: it declines"));
}

fn negative(case: &mut Case) {
    case.choices.clear();
    both(case, |f| {
        let value = Value { value: "-1".to_owned(), source: "environment".to_owned() };
        f.info.priorities.insert("rust".to_owned(), value);
    });
}

#[test]
fn components_above_by_design_are_no_finding() {
    let log = LOG.replace("tuned, priority: 30", "sync, priority: 50");
    let mut case = healthy();
    case.choices = vec![choice::parse(&log)];
    assert_eq!(all(&case), []);
}

#[test]
fn nodes_refuse_room_and_reading() {
    let full = after(|case| both(case, |f| f.shm.free = 0));
    assert!(full.id == "shm-full" && full.place == "/dev/shm on a", "{full:?}");
    let missing = after(|case| {
        both(case, |f| f.shm = Room { total: 0, free: 0, error: Some("ENOENT: No such file".to_owned()) })
    });
    assert_eq!(missing.id, "shm-missing");
    let small = after(|case| both(case, |f| f.shm.free = 10 << 20));
    assert!(small.id == "shm-small" && !small.is_wrong(), "{small:?}");
    let refused = |f: &mut Facts| f.reads = Reads::Fails("EPERM".to_owned());
    let scope = after(|case| both(case, |f| (f.ptrace_scope, f.reads) = (1, Reads::Fails("EPERM".to_owned()))));
    assert!(scope.id == "read-blocked" && scope.mend.contains("sysctl"), "{scope:?}");
    let filter = after(|case| {
        both(case, refused);
        both(case, |f| f.filtered = true);
    });
    assert!(filter.id == "read-blocked" && filter.mend.contains("seccomp"), "{filter:?}");
    // It explains why they cannot read, so that is not told too.
    let spaces = after(|case| {
        both(case, refused);
        case.facts[1].pid_space = 8;
    });
    assert_eq!(spaces.id, "pid-name-spaces");
}

#[test]
fn typing_errors_are_named_with_what_was_meant() {
    let line = |name: &str, value: &str| Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        place: "/h/mca-params.conf:2".to_owned(),
    };
    let found = after(|case| both(case, |f| f.files = vec![line("coll_rust_widnow", "2")]));
    assert_eq!((found.id, found.place.as_str()), ("unknown-parameter", "/h/mca-params.conf:2"));
    assert_eq!(found.mend, "sed -i '2s/coll_rust_widnow/coll_rust_window/' '/h/mca-params.conf'");
    let found = after(|case| both(case, |f| f.files = vec![line("coll_rust_window", "12abc")]));
    assert!(found.id == "wrong-value" && found.what.contains("12abc"), "{found:?}");
    // An earlier name, and a value that a launcher has handed on.
    let mut case = healthy();
    both(&mut case, |f| {
        f.files = vec![line("coll_rust_zero_copy", "off"), line("coll_rust_window", "3")];
        f.environment.insert("OMPI_MCA_coll_rust_window".to_owned(), "3".to_owned());
    });
    assert_eq!(all(&case), []);
}

#[test]
fn ranks_that_differ_are_named() {
    let found = after(|case| case.facts[1].info.rust = Some("0.1.0 (build other)".to_owned()));
    assert!(found.id == "builds-differ" && found.what.contains("rank 1 on a has 0.1.0 (build other)"), "{found:?}");
    let found = after(|case| {
        case.facts[1].environment.insert("OMPI_MCA_coll_rust_window".to_owned(), "3".to_owned());
    });
    assert!(found.id == "settings-differ" && found.what.contains("not set on rank 0"), "{found:?}");
}

#[test]
fn a_job_that_fails_for_no_known_reason_is_shown() {
    let found = after(|case| (case.ended, case.last_lines) = (Ended::Code(6), "bus error".to_owned()));
    assert!(found.id == "job-failed" && found.what.contains("bus error"), "{found:?}");
    let found = after(|case| case.ended = Ended::TooLate);
    assert!(found.id == "job-failed" && found.what.contains("in time"), "{found:?}");
    let found = after(|case| case.choices[1].rust = false);
    assert_eq!(found.id, "not-selected");
}

#[test]
fn unbound_ranks_are_a_note() {
    let found = after(|case| both(case, |f| f.cpus = 4));
    assert!(found.id == "unbound" && !found.is_wrong() && found.ranks == [0, 1], "{found:?}");
}
