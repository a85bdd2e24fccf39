//! Signatures of commits in the format of OpenSSH, with keys of type Ed25519.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::Ed25519KeyPair;
use sha2::{Digest as _, Sha512};

use crate::ssh::PrivateKey;
use crate::ssh::encoding::put_string;
use crate::ssh::private_key::{ED25519 as ALGORITHM, ed25519_blob};
use crate::{Error, Result};

const MAGIC: &[u8] = b"SSHSIG";
/// What the signature is for: git refuses signatures that were made for something else.
const NAMESPACE: &str = "git";
const HASH: &str = "sha512";
/// Letters in a line of a signature, as ssh-keygen writes it.
const WIDTH: usize = 70;

/// A key that signs commits.
pub struct SigningKey {
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads a private key: that of `ssh-keygen -t ed25519`, or a PKCS#8 key of type Ed25519. Keys with a passphrase are refused.
    pub fn read(pem: &str) -> Result<Self> {
        let key = PrivateKey::read(pem).and_then(PrivateKey::into_ed25519);
        key.map(|pair| Self { pair }).map_err(|why| unusable(&why))
    }

    /// The public key, as it is written in a list of allowed signers.
    pub fn public_key(&self) -> String {
        format!("{ALGORITHM} {}", STANDARD.encode(ed25519_blob(&self.pair)))
    }

    /// Signs a text. The same text has always the same signature.
    pub fn sign(&self, text: &[u8]) -> String {
        let mut signed = MAGIC.to_vec();
        put_string(&mut signed, NAMESPACE.as_bytes());
        put_string(&mut signed, b"");
        put_string(&mut signed, HASH.as_bytes());
        put_string(&mut signed, &Sha512::digest(text));
        let mut signature = Vec::new();
        put_string(&mut signature, ALGORITHM.as_bytes());
        put_string(&mut signature, self.pair.sign(&signed).as_ref());

        let mut blob = MAGIC.to_vec();
        blob.extend_from_slice(&1_u32.to_be_bytes());
        put_string(&mut blob, &ed25519_blob(&self.pair));
        put_string(&mut blob, NAMESPACE.as_bytes());
        put_string(&mut blob, b"");
        put_string(&mut blob, HASH.as_bytes());
        put_string(&mut blob, &signature);
        let encoded = STANDARD.encode(blob);
        let mut armored = String::from("-----BEGIN SSH SIGNATURE-----\n");
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(WIDTH));
            armored.push_str(line);
            armored.push('\n');
            rest = after;
        }
        armored.push_str("-----END SSH SIGNATURE-----");
        armored
    }
}

fn unusable(why: &str) -> Error {
    Error::Key(format!(
        "the key of signatures cannot be used: {why}; use a key of type ed25519 without a passphrase"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An OpenSSH key made from a seed.
    fn openssh_key(seed: [u8; 32], cipher: &str, algorithm: &str) -> String {
        let mut inner = Vec::new();
        inner.extend_from_slice(&[0, 0, 0, 7, 0, 0, 0, 7]);
        put_string(&mut inner, algorithm.as_bytes());
        put_string(&mut inner, &[0; 32]);
        put_string(&mut inner, &[seed, [0; 32]].concat());
        put_string(&mut inner, b"comment");
        let mut outer = b"openssh-key-v1\0".to_vec();
        put_string(&mut outer, cipher.as_bytes());
        put_string(&mut outer, b"none");
        put_string(&mut outer, b"");
        outer.extend_from_slice(&1_u32.to_be_bytes());
        put_string(&mut outer, b"public");
        put_string(&mut outer, &inner);
        let body = STANDARD.encode(outer);
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
    }

    #[test]
    fn the_same_text_has_the_same_signature() {
        let key = SigningKey::read(&openssh_key([3; 32], "none", ALGORITHM)).unwrap();
        let first = key.sign(b"text");
        assert_eq!(first, key.sign(b"text"));
        assert_ne!(first, key.sign(b"another text"));
        assert!(first.lines().all(|line| line.len() <= WIDTH));
        assert!(
            key.public_key()
                .starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI")
        );
    }

    #[test]
    fn keys_that_cannot_be_used_are_refused_with_a_reason() {
        for (pem, why) in [
            (openssh_key([3; 32], "aes256-ctr", ALGORITHM), "passphrase"),
            (openssh_key([3; 32], "none", "ssh-rsa"), "ssh-rsa"),
            ("text".to_owned(), "neither"),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".to_owned(),
                "cannot",
            ),
        ] {
            let error = SigningKey::read(&pem).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
