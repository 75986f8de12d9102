// SPDX-License-Identifier: BSD-3-Clause
//! How each side shows the other that it has the key, without saying it: HMAC-SHA256 over a label, the whole
//! HELLO frame (so job, process, clusters and the process's nonce) and the gateway's nonce.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In CHALLENGE, behind the gateway's nonce.
    Gateway,
    /// In PROOF.
    Process,
}

/// What is signed; the labels keep one side's proof from being sent back as the other's.
fn mac(key: &[u8; 32], side: Side, hello: &[u8], nonce: &[u8; 32]) -> Option<Hmac<Sha256>> {
    // A key may have any length, so that this never fails.
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).ok()?;
    mac.update(match side {
        Side::Gateway => b"coll-rust relay 1: gateway\0",
        Side::Process => b"coll-rust relay 1: process\0",
    });
    mac.update(hello);
    mac.update(nonce);
    Some(mac)
}

/// The proof of one side: `hello` is the whole HELLO frame, `nonce` the gateway's.
pub fn make(key: &[u8; 32], side: Side, hello: &[u8], nonce: &[u8; 32]) -> [u8; 32] {
    mac(key, side, hello, nonce).map_or([0; 32], |mac| mac.finalize().into_bytes().into())
}

/// Whether `proof` is that of this side, in time that does not depend on where it differs.
pub fn holds(proof: &[u8], key: &[u8; 32], side: Side, hello: &[u8], nonce: &[u8; 32]) -> bool {
    mac(key, side, hello, nonce).is_some_and(|mac| mac.verify_slice(proof).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_what_it_was_made_of_only() {
        let proof = make(&[1; 32], Side::Process, b"hello", &[2; 32]);
        assert!(holds(&proof, &[1; 32], Side::Process, b"hello", &[2; 32]));
        assert!(!holds(&proof, &[3; 32], Side::Process, b"hello", &[2; 32]));
        assert!(!holds(&proof, &[1; 32], Side::Gateway, b"hello", &[2; 32]));
        assert!(!holds(&proof, &[1; 32], Side::Process, b"hallo", &[2; 32]));
        assert!(!holds(&proof, &[1; 32], Side::Process, b"hello", &[4; 32]));
        assert!(!holds(&proof[..31], &[1; 32], Side::Process, b"hello", &[2; 32]));
        assert!(!holds(&[0; 32], &[1; 32], Side::Process, b"hello", &[2; 32]));
    }

    /// Both sides may be built at different times: the bytes must not change.
    #[test]
    fn a_proof_is_always_the_same() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let known = "72a216c4a5db1b4cc674d6aa8b1cdefadf223d0c05532158e0bd1b8e3b463c86";
        assert_eq!(hex(make(&[1; 32], Side::Process, b"hello", &[2; 32])), known);
    }
}
