// SPDX-License-Identifier: BSD-3-Clause
//! Settings for tests, which are no parameters: environment variables `COLL_RUST_TEST_<NAME>`. A test gives
//! all ranks the same.

use super::Config;
use super::values::{integer, within};

/// Takes what the tests say. `variable` looks up an environment variable.
pub fn set_for_tests(config: &mut Config, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    let read = |name: &str, set: &mut dyn FnMut(&str) -> Result<(), String>| match variable(name) {
        Some(text) => set(&text).map_err(|why| format!("{name} = \"{text}\": {why}")),
        None => Ok(()),
    };
    // Bytes in a point-to-point message: longer ones go as several.
    read("COLL_RUST_TEST_MAX_MESSAGE", &mut |text| {
        config.max_message = within(text, 64, 1 << 30)?.ok_or("not a size")?;
        Ok(())
    })?;
    // The largest tag: with a small one, identities of operations come round sooner.
    read("COLL_RUST_TEST_MAX_TAG", &mut |text| {
        config.max_tag = Some(integer(text, 1 << 15, 1 << 30)? as i32);
        Ok(())
    })?;
    // The placement store: from how many processes on, and at which step a process is killed or pauses.
    read("COLL_RUST_TEST_STORE_FROM", &mut |text| {
        config.tests.store_from = integer(text, 1, 1 << 30)? as usize;
        Ok(())
    })?;
    let number = |text: &str| Ok::<_, String>(Some(integer(text, 0, 1 << 30)? as u32));
    read("COLL_RUST_TEST_STORE_KILL", &mut |text| {
        config.tests.store_kill = number(text)?;
        Ok(())
    })?;
    read("COLL_RUST_TEST_STORE_PAUSE", &mut |text| {
        config.tests.store_pause = number(text)?;
        Ok(())
    })
}
