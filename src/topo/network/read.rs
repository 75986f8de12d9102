// SPDX-License-Identifier: BSD-3-Clause
//! The bytes of a network file.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use super::Network;

/// The most bytes that a file may have.
pub const FILE_BYTES: usize = 8 << 20;

impl Network {
    /// The text of a network file. What is not a file is refused at once: nobody waits for a FIFO's other
    /// side or for the end of `/dev/zero`.
    ///
    /// # Errors
    /// What is wrong, without the file's name.
    pub fn load(path: &str) -> Result<String, String> {
        let cannot = |error: std::io::Error| format!("cannot be read: {error}");
        let file =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).map_err(cannot)?;
        let kind = file.metadata().map_err(cannot)?.file_type();
        if !kind.is_file() {
            let what = match kind {
                kind if kind.is_dir() => "a folder",
                kind if kind.is_fifo() => "a FIFO",
                _ => "a device",
            };
            return Err(format!("cannot be read: it is {what}, not a file"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
        if bytes.len() > FILE_BYTES {
            return Err(format!("has more than {} MiB", FILE_BYTES >> 20));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
            format!("is not text: line {line} has a byte that is not UTF-8")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_not_a_file_is_an_error_at_once() {
        let folder = std::env::temp_dir().join(format!("coll-rust-network.{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        assert!(std::process::Command::new("mkfifo").arg(path("fifo")).status().is_ok_and(|status| status.success()));
        fs::File::create(path("large")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        fs::write(path("bytes"), b"a s\nb \xff\n").expect("a file");
        fs::write(path("good"), "a s\n").expect("a file");
        for (name, message) in [
            (path(""), "cannot be read: it is a folder, not a file"),
            (path("fifo"), "cannot be read: it is a FIFO, not a file"),
            ("/dev/zero".to_string(), "cannot be read: it is a device, not a file"),
            (path("none"), "cannot be read: No such file or directory (os error 2)"),
            (path("large"), "has more than 8 MiB"),
            (path("bytes"), "is not text: line 2 has a byte that is not UTF-8"),
        ] {
            assert_eq!(Network::load(&name), Err(message.to_string()), "{name}");
        }
        assert_eq!(Network::load(&path("good")).as_deref(), Ok("a s\n"));
        fs::remove_dir_all(&folder).expect("gone");
    }
}
