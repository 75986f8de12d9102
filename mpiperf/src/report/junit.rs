// SPDX-License-Identifier: BSD-3-Clause
//! What changed as a report of JUnit, which CI systems read: a test for each case.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use super::changes::{Change, Changes, Of};
use super::table::{named_size, verdict};
use crate::error::{Error, Result};
use crate::stats::Verdict;

/// The report.
pub fn junit(changes: &Changes) -> Result<String> {
    let text = write(changes).and_then(|text| String::from_utf8(text).map_err(std::io::Error::other));
    text.map_err(|error| Error::Measure(format!("the report of JUnit cannot be written: {error}")))
}

fn write(changes: &Changes) -> std::io::Result<Vec<u8>> {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let (tests, failures, errors) =
        (changes.all.len().to_string(), changes.slower().to_string(), changes.unknown().to_string());
    let suite = [("name", "mpiperf check"), ("tests", &tests), ("failures", &failures), ("errors", &errors)];
    out.write_event(Event::Start(BytesStart::new("testsuite").with_attributes(suite)))?;
    for change in &changes.all {
        case(&mut out, changes.of, change)?;
    }
    out.write_event(Event::End(BytesEnd::new("testsuite")))?;
    let mut text = out.into_inner();
    text.push(b'\n');
    Ok(text)
}

fn case(out: &mut Writer<Vec<u8>>, of: Of, change: &Change) -> std::io::Result<()> {
    let one = &change.comparison;
    let class = format!("mpiperf.{}", one.setting.operation);
    let ratios = if of == Of::Ratios { format!(", {}", change.name) } else { String::new() };
    let name = format!("{} {}, {} ranks{ratios}", one.setting.operation, named_size(&one.setting), one.processes);
    let time = change.new.filter(|_| of == Of::Times).map_or_else(|| "0".to_owned(), |time| format!("{time:.9}"));
    let start = BytesStart::new("testcase").with_attributes([("classname", &*class), ("name", &name), ("time", &time)]);
    let kind = match one.verdict {
        Verdict::Slower => "failure",
        Verdict::NoData => "error",
        _ => return out.write_event(Event::Empty(start)),
    };
    let said = match &one.ratio {
        Some(r) => format!("{:.3} times the baseline ({:.3} to {:.3})", r.ratio, r.low, r.high),
        None => verdict(one),
    };
    out.write_event(Event::Start(start))?;
    let attributes = [("message", &*said), ("type", kind)];
    out.write_event(Event::Start(BytesStart::new(kind).with_attributes(attributes)))?;
    out.write_event(Event::Text(BytesText::new(&format!("{name}: {said}"))))?;
    out.write_event(Event::End(BytesEnd::new(kind)))?;
    out.write_event(Event::End(BytesEnd::new("testcase")))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, results, row};
    use super::*;

    #[test]
    fn a_test_for_each_case() {
        let old = results(vec![
            row("x", "bcast", 8, 10e-6),
            row("x", "bcast", 64, 10e-6),
            row("x", "reduce", 8, 10e-6),
            row("x", "scan", 8, 10e-6),
        ]);
        let now = results(vec![row("x", "bcast", 8, 10e-6), row("x", "bcast", 64, 15e-6), empty("x", "reduce", 8)]);
        let text = junit(&Changes::new(&[old], &[now], 0.99, 0.1).unwrap()).unwrap();
        for part in [
            r#"<testsuite name="mpiperf check" tests="4" failures="1" errors="2">"#,
            r#"<testcase classname="mpiperf.bcast" name="bcast 8 B, 2 ranks" time="0.000010280"/>"#,
            r#"<failure message="1.500 times the baseline ("#,
            r#"<error message="no verdict: too few pairs of correct calls; not measured now" type="error">"#,
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let mut reader = quick_xml::Reader::from_str(&text);
        while reader.read_event().unwrap() != Event::Eof {}
    }
}
