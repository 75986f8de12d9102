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
        assert!(!p.help.contains('\n') && !p.help.contains("  "), "{}", p.name);
    }
}

#[test]
fn every_parameter_but_the_path_refuses_nonsense() {
    for p in TABLE.iter().filter(|p| p.name != "network_file") {
        let error = with(p.name, "12abc").unwrap_err();
        assert!(error.contains(p.name) && error.contains("12abc") && error.contains(&p.accepted()), "{error}");
    }
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

#[test]
fn unknown_names_are_found_with_a_hint() {
    let error = check_names(["PATH".into(), "OMPI_MCA_coll_rust_widnow".into()]).unwrap_err();
    assert!(error.contains("coll_rust_widnow") && error.contains("coll_rust_window"), "{error}");
    assert_eq!(check_names(["OMPI_MCA_coll_rust_window".into(), "OMPI_MCA_coll_tuned_x".into()]), Ok(()));
}

/// The page in docs/ is the one made from the table; `UPDATE_DOCS=1 cargo test` writes it.
#[test]
fn the_documentation_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/parameters.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, documentation()).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        documentation(),
        "run UPDATE_DOCS=1 cargo test params"
    );
}

/// Every key of the ready files is a parameter with a value that it accepts (or one of the few Open MPI keys named here).
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
