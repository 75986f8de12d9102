// SPDX-License-Identifier: BSD-3-Clause
//! The file with a key: 64 hex digits on its first line, or `name: ` and 64 hex digits. Without a name there
//! the key is called as the file is, up to the last dot. Lines that follow do not count.

use super::hello::NAME;
use std::fmt;

/// A key, and what it is called.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// Both sides find the key by it; no secret.
    pub name: String,
    /// The secret.
    pub bytes: [u8; 32],
}

/// Without the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.name)
    }
}

impl Key {
    /// Reads the text of a file whose name without its ending is `stem`. The error says what to do, and
    /// nothing of the text.
    pub fn parse(text: &str, stem: &str) -> Result<Key, String> {
        let line = text.lines().next().unwrap_or_default().trim();
        let (name, digits) = line.rsplit_once(':').map_or((stem, line), |(name, digits)| (name.trim(), digits.trim()));
        if name.is_empty() || name.len() > NAME || name.contains(char::is_control) {
            return Err(format!("the name of the key must have 1 to {NAME} bytes"));
        }
        let wrong = || "its first line must be 64 hex digits, or a name, a colon and 64 hex digits".to_owned();
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Key { name: name.to_owned(), bytes })
    }
}

/// Whether a file with this mode and owner may hold a key of `user`, or what to do about it: nobody else may
/// read or write it.
pub fn check_access(mode: u32, owner: u32, user: u32) -> Result<(), String> {
    if owner != user && owner != 0 {
        return Err(format!("it belongs to user {owner}, and must belong to user {user}: chown it"));
    }
    if mode & 0o077 != 0 {
        return Err(format!("its mode is {:04o}, so that others have access to it: chmod 0600", mode & 0o7777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_name_of_its_file_or_its_own() {
        let digits = "0123456789abcdefABCDEF".repeat(3)[..64].to_owned();
        let key = Key::parse(&format!("{digits}\n"), "astro").unwrap();
        assert_eq!((key.name.as_str(), &key.bytes[..4]), ("astro", &[1, 0x23, 0x45, 0x67][..]));
        assert_eq!(Key::parse(&format!("bio: {digits}\nmore"), "astro").unwrap().name, "bio");
        assert_eq!(Key::parse(&format!("bio:{digits}"), "astro").unwrap().bytes, key.bytes);
        assert!(!format!("{key:?}").contains('1'));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_text() {
        for text in ["", "\n", "12", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65), "ü", &"ü".repeat(32), "a:"] {
            let error = Key::parse(text, "astro").unwrap_err();
            assert!(error.contains("64 hex digits"), "{text}: {error}");
        }
        assert!(Key::parse(&format!(":{}", "0".repeat(64)), "astro").unwrap_err().contains("name"));
        assert!(Key::parse(&"0".repeat(64), "").is_err());
    }

    #[test]
    fn nobody_else_may_have_access() {
        assert_eq!(check_access(0o100600, 7, 7), Ok(()));
        assert_eq!(check_access(0o100400, 0, 7), Ok(()));
        assert!(check_access(0o100640, 7, 7).unwrap_err().contains("mode is 0640"));
        assert!(check_access(0o100604, 7, 7).unwrap_err().contains("chmod 0600"));
        assert!(check_access(0o100600, 8, 7).unwrap_err().contains("chown"));
    }
}
