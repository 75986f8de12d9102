// SPDX-License-Identifier: BSD-3-Clause
use super::*;

const GOOD: &str = include_str!("../../../machines/epyc-9654-2s.toml");

/// The message about the good file with this put for that.
fn wrong(that: &str, this: &str) -> String {
    assert!(GOOD.contains(that), "{that}");
    parse("m.toml", &GOOD.replacen(that, this, 1)).expect_err("a bad file")
}

/// The place of the start of a text: of the good file's line and, in it, the first such column.
fn place(text: &str) -> String {
    let at = GOOD.find(text).expect(text);
    let line = GOOD[..at].matches('\n').count() + 1;
    let column = GOOD[..at].rsplit('\n').next().map_or(0, |start| start.chars().count()) + 1;
    format!("m.toml:{line}:{column}: ")
}

#[test]
fn every_machine_file_is_read() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../machines"));
    let mut cores = BTreeMap::new();
    for file in std::fs::read_dir(folder).expect("machines/") {
        let path = file.expect("a file").path();
        let machine = read(&path).unwrap_or_else(|error| panic!("{error}"));
        cores.insert(path.file_stem().expect("a name").to_string_lossy().into_owned(), machine.shape.cores());
    }
    let published = [("epyc-9654-2s", 192), ("grace-4s", 288), ("kunpeng-920-2s", 128), ("xeon-8480-2s", 112)];
    let expected = published.into_iter().chain([("two-cores", 2)]);
    assert_eq!(cores, expected.map(|(name, cores)| (name.to_owned(), cores)).collect());
}

#[test]
fn units_are_converted() {
    let machine = parse("m.toml", GOOD).expect("a good file");
    let halved = parse("m.toml", &GOOD.replacen("l3_link = ", "l3_link = 0.5 # ", 1)).expect("a good file");
    assert_eq!(halved.shared[1], 128_000, "64 bytes at half a GB/s take 128 ns");
    assert_eq!((machine.shape.l3_per_numa, machine.caches[0]), (12, 1 << 20));
    // Twelve level-3 caches of the socket's only NUMA node: nothing lies between these distances.
    assert_eq!(machine.handover[4], machine.handover[3]);
}

#[test]
fn bad_files_name_line_and_column() {
    let told = wrong("wrong_guess", "wrong_gues");
    assert_eq!(told, format!("{}unknown key 'wrong_gues': did you mean 'wrong_guess'?", place("wrong_guess")));
    let told = wrong("[handover]", "[handovre]");
    let at = place("handover]");
    assert_eq!(told, format!("{at}unknown key 'handovre': did you mean 'handover'?"));
    let told = wrong("sockets = 2", "sockets = 2.5");
    let at = place("sockets = 2").replace(":1: ", ":11: ");
    assert_eq!(told, format!("{at}'sockets' must be a whole number from 1 to 512"));
    let told = wrong("misses = ", "misses = -");
    assert!(told.ends_with("'misses' must be a whole number from 1 to 512"), "{told}");
    let told = wrong("l2_per_l3 = 8", "l2_per_l3 = 80");
    assert_eq!(told, format!("{}[shape] makes 1920 cores of a node; at most 512 are simulated", place("shape]")));
    let told = wrong("own = ", "owner ");
    assert!(told.starts_with("m.toml:") && told.split(':').nth(2).is_some_and(|c| c.parse::<u32>().is_ok()), "{told}");
    let told = wrong("sockets = 2", "sockets = 2\nsockets = 3");
    assert!(told.contains("duplicate"), "{told}");
}

#[test]
fn what_is_missing_is_named() {
    let told = wrong("name = ", "# ");
    assert_eq!(told, "m.toml:1:1: the key 'name' is missing: the machine's name");
    let told = wrong("latency = ", "# ");
    assert_eq!(told, format!("{}[memory] lacks 'latency' (ns): the time until a core has a line", place("memory]")));
    // The other socket's distance is needed as there are two.
    let start = GOOD.find("[serve]").expect("[serve]");
    let node = start + GOOD[start..].find("\nnode").expect("node") + 1;
    let told = parse("m.toml", &format!("{}# {}", &GOOD[..node], &GOOD[node..])).expect_err("a bad file");
    assert!(told.ends_with("[serve] lacks 'node' (ns): from a core of another socket"), "{told}");
}

/// The page's tables are made of the keys.
#[test]
fn the_page_has_every_key() {
    let page = include_str!("../../../docs/reference/predict.md");
    for section in SECTIONS {
        assert!(page.contains(&format!("| **`[{}]`** | | {} |", section.name, section.what)), "[{}]", section.name);
        for key in section.keys {
            let row = format!("| `{}` | {} | {} |", key.name, key.unit.name(), key.what);
            assert!(page.contains(&row), "docs/reference/predict.md lacks: {row}");
        }
    }
    fn rows<T>(section: &Section<T>) -> Vec<String> {
        let head = format!("| **`[{}]`** | | {} |", section.name, section.what);
        let row = |key: &Key<T>| format!("| `{}` | {} | {} |", key.name, key.unit.name(), key.what);
        [head].into_iter().chain(section.keys.iter().map(row)).collect()
    }
    let uplink = Section { name: "", what: "", keys: &[network::UPLINK] };
    let rows = [rows(&network::NODE), rows(&network::INSIDE), rows(&network::SWITCH), rows(&uplink)[1..].to_vec()];
    for row in rows.into_iter().flatten() {
        assert!(page.contains(&row), "docs/reference/predict.md lacks: {row}");
    }
}

#[test]
fn networks_are_read_and_their_faults_have_a_place() {
    let network = parse("m.toml", GOOD).expect("a good file").network.expect("a network");
    assert_eq!((network.nodes(), network.nics, network.nic), (32 * 32 * 16, 1, 1280));
    assert_eq!((network.inside.lines, network.inside.eager, network.layers[2].messages.latency), (3, 4096, 2_200_000));
    let start = GOOD.find("[network]").expect("[network]");
    let without = parse("m.toml", &GOOD[..start]).expect("a file without a network");
    assert!(without.network.is_none());
    let told = wrong("uplink = 1600", "uplnk = 1600");
    assert_eq!(told, format!("{}unknown key 'uplnk': did you mean 'uplink'?", place("uplink = 1600")));
    let told = wrong("[network.switch2]", "[network.switch4]");
    assert_eq!(told, format!("{}the section [network.switch2] is missing", place("network]")));
    let told = wrong("gap = 3", "gap = -3");
    assert_eq!(
        told,
        format!("{}'gap' must be a number from 0 to 1000000 ns", place("gap = 3").replace(":1: ", ":7: "))
    );
    let last = format!("{GOOD}uplink = 1\n");
    let told = parse("m.toml", &last).expect_err("the last layer has no uplinks");
    assert!(told.ends_with(":1: [network.switch3] is the last layer: it has no 'uplink'"), "{told}");
    let told = wrong("[network.switch3]", "[network.switch5]");
    assert!(told.contains("unknown key"), "{told}");
    let told = wrong("lines = 3", "# ");
    assert_eq!(
        told,
        format!(
            "{}[network.node] lacks 'lines' (number): {}",
            place("node]        # all"),
            network::INSIDE.keys[1].what
        )
    );
}
