// SPDX-License-Identifier: BSD-3-Clause
//! Files with keys.

use coll_rust::relay::key::{Key, check_access};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a file that are read: a key is on its first line.
const MOST: u64 = 4096;

/// Reads a key if nobody else may. Mode and owner are those of the file that is read, not of the path.
pub fn load(path: &Path) -> Result<Key, String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    check_access(about.mode(), about.uid(), nix::unistd::geteuid().as_raw())?;
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Key::parse(&text, &stem)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    pub(crate) fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("astro.key");
        write(&path, &"ab".repeat(32), 0o600);
        assert_eq!(load(&path).unwrap().name, "astro");
        write(&path, &"ab".repeat(32), 0o640);
        assert!(load(&path).unwrap_err().contains("chmod 0600"));
        assert!(load(folder.path()).unwrap_err().contains("no file"));
        assert!(load(&folder.path().join("none")).is_err());
    }
}
