// SPDX-License-Identifier: BSD-3-Clause
//! What a process shows a gateway: the key, and the name of its job.

use crate::ffi::base::config::config;
use crate::ffi::base::glue::cr_proc;
use crate::ffi::base::name::own_name;
use crate::ffi::process::card::{card, settings};
use crate::params::PREFIX;
use crate::relay::key::{Key, check_access};
use nix::unistd::geteuid;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

/// In a card: what tells the job from all others, if it is that of rank 0.
const MARK: &str = "@gateway_job";
/// A file with a key is not longer.
const LONGEST: u64 = 64 << 10;

/// The key in the file that the parameter names.
pub fn key() -> Result<Key, String> {
    let path = config().map(|config| config.gateway_key.as_str()).unwrap_or_default();
    let wrong = |what: String| format!("{PREFIX}gateway_key = \"{path}\": {what}");
    // A pipe would be waited for.
    let open = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file = open.map_err(|error| wrong(format!("{error}; it must be there on all nodes that have leaders")))?;
    let about = file.metadata().map_err(|error| wrong(error.to_string()))?;
    if !about.is_file() {
        return Err(wrong("it is no file".to_owned()));
    }
    check_access(about.mode(), about.uid(), geteuid().as_raw()).map_err(wrong)?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
    Key::parse(&text, &stem).map_err(wrong)
}

/// Bytes that nobody can guess.
pub fn nonce() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map(|()| bytes).map_err(|error| format!("/dev/urandom: {error}"))
}

/// The line of this process's card, where there are gateways.
pub fn card_line() -> String {
    match config() {
        Ok(config) if !config.gateways.is_empty() => format!("{MARK}={}\n", own_mark()),
        _ => String::new(),
    }
}

fn own_mark() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let bytes = nonce().unwrap_or_default();
        bytes[..16].iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}

/// The name of this process's job, which no other job has: the runtime's number comes again after a while.
pub fn job() -> Result<String, String> {
    let own = own_name();
    let first = cr_proc { job: own.job, rank: 0 };
    let mark = match own.rank {
        0 => own_mark().to_owned(),
        _ => {
            let card = card(&first).map_err(|code| format!("rank 0 has not said what job this is (error {code})"))?;
            let found = settings(&card).find(|(key, _)| *key == MARK).map(|(_, mark)| mark.to_owned());
            found.ok_or("rank 0 has not said what job this is")?
        }
    };
    Ok(format!("{}-{mark}", own.job))
}
