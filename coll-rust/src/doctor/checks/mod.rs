// SPDX-License-Identifier: BSD-3-Clause
//! What may be wrong. Each file has one family of causes.

mod found;
mod node;
mod selected;
mod settings;

use super::case::Case;
use super::finding::{Finding, merge};

/// All findings.
pub fn all(case: &Case) -> Vec<Finding> {
    let mut findings = found::check(case);
    findings.extend(settings::check(case));
    findings.extend(node::check(case));
    // What is known to be wrong explains a choice, or a job that failed.
    let explained = findings.iter().any(Finding::is_wrong);
    findings.extend(selected::check(case, explained));
    merge(findings)
}

#[cfg(test)]
mod tests;
