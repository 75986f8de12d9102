//! What the system is asked for that has no state.

use super::failure::Failure;
use std::io;

/// Sixteen random bytes.
pub fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0u8; 16];
    let mut done = 0;
    while done < bytes.len() {
        // SAFETY: the rest of `bytes` starts there and is so long.
        let got = unsafe { libc::getrandom(bytes[done..].as_mut_ptr().cast(), bytes.len() - done, 0) };
        match got {
            0.. => done += got as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(Failure::of("getrandom", error));
                }
            }
        }
    }
    Ok(bytes)
}

/// Bytes of a page of the system.
pub fn system_page() -> u64 {
    // SAFETY: only a query.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
