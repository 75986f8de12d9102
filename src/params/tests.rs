// SPDX-License-Identifier: BSD-3-Clause
//! The table of parameters, its documentation, and what is said of wrong values.

use super::*;

fn with(name: &str, value: &str) -> Result<Config, String> {
    let known = TABLE.iter().any(|p| p.name == name);
    assert!(known, "{name}");
    parse(TABLE.iter().map(|p| if p.name == name { value } else { p.default }))
}

#[test]
fn the_defaults_of_the_table_are_those_of_the_type() {
    let parsed = parse(TABLE.iter().map(|p| p.default)).unwrap();
    assert_eq!(format!("{parsed:?}"), format!("{:?}", Config::default()));
}

#[test]
fn names_are_unique_and_help_is_there() {
    for (i, p) in TABLE.iter().enumerate() {
        assert!(TABLE[..i].iter().all(|q| q.name != p.name), "{}", p.name);
        assert!(p.help.len() > 20 && !p.accepted().is_empty() && (1..=9).contains(&p.level));
        for text in [p.help, p.details] {
            assert!(!text.contains('\n') && !text.contains("  "), "{}", p.name);
        }
    }
}

/// `ompi_info` prints the help as one line: what the parameter is, in a sentence, and not much more.
#[test]
fn help_is_short_and_begins_with_a_sentence() {
    for p in TABLE {
        assert!(p.help.chars().count() <= HELP_MAX, "{}: {} characters", p.name, p.help.chars().count());
        let first = p.help.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let is_sentence = first.starts_with(|c: char| c.is_ascii_uppercase()) && first.ends_with('.');
        assert!(is_sentence && first.split(' ').count() >= 3, "{}: {first}", p.name);
        assert!(p.details.is_empty() || p.details.ends_with(['.', ')']), "{}", p.name);
    }
}

/// Earlier names are understood, and are nobody else's.
#[test]
fn earlier_names_stay() {
    let renamed = ["shm_limit", "wait", "zero_copy", "zero_copy_min"];
    for was in renamed {
        assert_eq!(TABLE.iter().filter(|p| p.was.contains(&was)).count(), 1, "{was}");
        assert!(TABLE.iter().all(|p| p.name != was), "{was}");
        assert_eq!(unknown(&[&format!("coll_rust_{was}")]), None);
    }
}

/// What Open MPI stores for a value is a number that tells it from others.
#[test]
fn kinds_fit_their_values() {
    for p in TABLE {
        match p.kind {
            Kind::Text => assert_eq!(p.kind.number(p.default), None, "{}", p.name),
            kind => assert!(kind.number(p.default).is_some(), "{}", p.name),
        }
        if let Kind::Choice(words) = p.kind {
            assert_eq!(words[0], p.default, "{}", p.name);
            for (number, word) in words.iter().enumerate() {
                assert_eq!(p.kind.number(word), Some(number as i64));
                with(p.name, word).unwrap();
            }
        }
        assert_eq!(p.kind.number("12abc"), None, "{}", p.name);
    }
    assert_eq!(Kind::Size { auto: true }.number("64k"), Some(65536));
    assert_eq!(Kind::Size { auto: true }.number("auto"), Some(-1));
    assert_eq!(Kind::Size { auto: false }.number("auto"), None);
    assert_eq!(Kind::Bool.number("yes"), Some(1));
}

/// Tests reach what is no parameter by the environment, and a wrong value there is noticed too.
#[test]
fn settings_for_tests() {
    let set = |name: &'static str, text: &'static str| {
        let mut config = Config::default();
        set_for_tests(&mut config, |asked| (asked == name).then(|| text.to_owned()))
            .map(|()| (config.max_message, config.max_tag))
    };
    assert_eq!(set("COLL_RUST_TEST_MAX_MESSAGE", "1k"), Ok((1024, None)));
    assert_eq!(set("COLL_RUST_TEST_MAX_TAG", "32768"), Ok((256 << 20, Some(32768))));
    for name in ["MAX_MESSAGE", "MAX_TAG", "STORE_FROM", "STORE_KILL", "STORE_PAUSE"] {
        let name: &'static str = format!("COLL_RUST_TEST_{name}").leak();
        assert!(set(name, "12abc").is_err_and(|why| why.contains(name)));
    }
}

#[test]
fn every_parameter_but_the_paths_refuses_nonsense() {
    for p in TABLE.iter().filter(|p| p.name != "network_file") {
        let error = with(p.name, "12abc").unwrap_err();
        assert!(error.contains(p.name) && error.contains("12abc") && error.contains(&p.accepted()), "{error}");
    }
}

#[test]
fn gateways_need_a_key() {
    assert!(with("gateway", "head:7000").is_err_and(|why| why.contains("coll_rust_gateway_key")));
    assert!(with("gateway", "none").is_ok() && with("gateway_key", "/home/me/key").is_ok());
    assert!(with("gateway_key", "astro.key").is_err_and(|why| why.contains("does not begin with /")));
}

#[test]
fn sizes() {
    assert_eq!(values::size("64k"), Ok(Some(65536)));
    assert_eq!(values::size("2M"), Ok(Some(2 << 20)));
    assert_eq!(values::size("0"), Ok(Some(0)));
    assert_eq!(values::size("auto"), Ok(None));
    for wrong in ["", "k", "-1", "1.5k", "64kb", "99999999999999g", "18446744073709551615"] {
        assert!(values::size(wrong).is_err(), "{wrong}");
    }
}

fn unknown(names: &[&str]) -> Option<String> {
    unknown_names(names.iter().map(|name| ((*name).to_owned(), "in the environment".to_owned())))
}

/// A name that does not exist is told with where it is set, once, and with the nearest one.
#[test]
fn unknown_names_are_found_with_a_hint() {
    let message =
        unknown(&["coll_rust_widnow", "coll_rust_window", "ompi_coll_rust_zerocopy", "coll_rust_widnow"]).unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].contains("coll_rust_widnow, which is set in the environment"), "{message}");
    assert!(lines[0].contains("did you mean coll_rust_window?"), "{message}");
    assert!(lines[1].contains("did you mean coll_rust_shm_zero_copy?"), "{message}");
    let known =
        ["coll_rust_window", "ompi_coll_rust_window", "coll_tuned_x", "coll_rust_wait", "coll_rust_minor_version"];
    assert_eq!(unknown(&known), None);
    assert_eq!(from_environment("OMPI_MCA_coll_rust_x"), Some("coll_rust_x"));
    assert_eq!(from_environment("PATH"), None);
}

/// A message about a value says where it was set.
#[test]
fn a_wrong_value_is_told_with_its_place() {
    let values = TABLE.iter().map(|p| match p.name {
        "window" => Value { text: "12abc", place: "in f.conf, line 3" },
        _ => Value::from(p.default),
    });
    let error = parse(values).unwrap_err();
    assert!(error.starts_with("coll_rust_window = \"12abc\" (in f.conf, line 3): not a whole number"), "{error}");
}

/// Times are taken whole, or what is wrong with them is named by its place.
#[test]
fn times_of_ways() {
    let times = |text| with("shm_times", text).map(|config| config.shm.times);
    assert_eq!((times("auto"), times("measure")), (Ok(Times::Usual), Ok(Times::Measured)));
    let given = Times::Given([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15]]);
    assert_eq!(times("1/2/3,4/5/6,7/8/9, 10/11/12 ,13/14/15"), Ok(given));
    for (wrong, why) in [
        ("", "1 ways instead of 5"),
        ("1/2/3,4/5/6", "2 ways instead of 5"),
        ("1/2/3,4/5/6,7/8,1/2/3,1/2/3", "way 3 (\"7/8\") has 2 times instead of 3"),
        ("1/2/3,4/5/6,7/8/9,1/0/3,1/2/3", "\"0\" of way 4"),
        ("1/2/3,4/5/6,7/8/9,1/2/3,1/2/x", "\"x\" of way 5"),
    ] {
        assert!(times(wrong).is_err_and(|error| error.contains(why)), "{wrong}");
    }
}

#[test]
fn reports() {
    let report = |text| with("report", text).map(|config| config.report);
    assert_eq!(report("1"), Ok(Report::Ranks));
    assert_eq!(report("0"), report("none"));
    assert_eq!(report("json:/a b"), Ok(Report::Json("/a b".into())));
    for wrong in ["", "json:", "json", "sums", "2"] {
        assert!(report(wrong).is_err(), "{wrong}");
    }
}

/// The page in docs/ is the one made from the table; `UPDATE_DOCS=1 cargo test` writes it.
#[test]
fn the_documentation_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/parameters.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, documentation()).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        documentation(),
        "run UPDATE_DOCS=1 cargo test params"
    );
}

/// Every key of the ready files is a parameter with a value that it accepts (or one of the few Open MPI keys
/// named here).
#[test]
fn the_ready_files_hold_good_values() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mca-params");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "conf") {
            continue;
        }
        files += 1;
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{}: {line}", path.display()));
            match key.trim() {
                "coll" => assert_eq!(value.trim(), "rust,basic,libnbc,inter,self"),
                "mpi_yield_when_idle" => assert_eq!(value.trim(), "1"),
                key => {
                    let name = key.strip_prefix(PREFIX).unwrap_or_else(|| panic!("{}: {key}", path.display()));
                    with(name, value.trim()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                }
            }
        }
    }
    assert!(files >= 4);
}
