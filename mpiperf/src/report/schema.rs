// SPDX-License-Identifier: BSD-3-Clause
//! The JSON Schema of results files, made from the types.

use super::Results;
use crate::error::{Error, Result};

/// The schema, as `docs/reference/mpiperf.schema.json` holds it.
pub fn text() -> Result<String> {
    let mut schema = schemars::schema_for!(Results);
    schema.insert("title".to_owned(), "Results of mpiperf".into());
    let text = serde_json::to_string_pretty(&schema);
    text.map(|text| text + "\n").map_err(|error| Error::Measure(format!("the schema cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/mpiperf.schema.json");
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(published == text().unwrap(), "mpiperf schema > docs/reference/mpiperf.schema.json");
    }
}
