//! Signatures of commits in the format of OpenSSH, with keys of type Ed25519.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha512};

use crate::{Error, Result};

const ALGORITHM: &str = "ssh-ed25519";
const MAGIC: &[u8] = b"SSHSIG";
/// What the signature is for: git refuses signatures that were made for something else.
const NAMESPACE: &str = "git";
const HASH: &str = "sha512";
/// Letters in a line of a signature, as ssh-keygen writes it.
const WIDTH: usize = 70;
const OPENSSH_MAGIC: &[u8] = b"openssh-key-v1\0";

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
        if let Some(body) = body_of(pem, "OPENSSH PRIVATE KEY") {
            let seed = openssh_seed(&decode(&body)?)?;
            let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
            return pair
                .map(|pair| Self { pair })
                .map_err(|error| unusable(&error.to_string()));
        }
        if let Some(body) = body_of(pem, "PRIVATE KEY") {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&decode(&body)?);
            return pair
                .map(|pair| Self { pair })
                .map_err(|error| unusable(&error.to_string()));
        }
        Err(unusable(
            "it is neither an OpenSSH nor a PKCS#8 private key",
        ))
    }

    /// The public key, as it is written in a list of allowed signers.
    pub fn public_key(&self) -> String {
        format!("{ALGORITHM} {}", STANDARD.encode(self.public_blob()))
    }

    fn public_blob(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        string(&mut blob, ALGORITHM.as_bytes());
        string(&mut blob, self.pair.public_key().as_ref());
        blob
    }

    /// Signs a text. The same text has always the same signature.
    pub fn sign(&self, text: &[u8]) -> String {
        let mut signed = MAGIC.to_vec();
        string(&mut signed, NAMESPACE.as_bytes());
        string(&mut signed, b"");
        string(&mut signed, HASH.as_bytes());
        string(&mut signed, &Sha512::digest(text));
        let mut signature = Vec::new();
        string(&mut signature, ALGORITHM.as_bytes());
        string(&mut signature, self.pair.sign(&signed).as_ref());

        let mut blob = MAGIC.to_vec();
        blob.extend_from_slice(&1_u32.to_be_bytes());
        string(&mut blob, &self.public_blob());
        string(&mut blob, NAMESPACE.as_bytes());
        string(&mut blob, b"");
        string(&mut blob, HASH.as_bytes());
        string(&mut blob, &signature);
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

/// What is between the lines of a PEM text.
fn body_of(pem: &str, label: &str) -> Option<String> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    Some(body.split_whitespace().collect())
}

fn decode(body: &str) -> Result<Vec<u8>> {
    STANDARD
        .decode(body)
        .map_err(|_| unusable("it is not base64"))
}

/// Appends a string in the encoding of SSH.
fn string(blob: &mut Vec<u8>, content: &[u8]) {
    // Everything that is written here is short.
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    blob.extend_from_slice(&length.to_be_bytes());
    blob.extend_from_slice(content);
}

/// Reads the encoding of SSH.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let split = self.0.split_at_checked(length);
        let (content, rest) = split.ok_or_else(|| unusable("it is cut short"))?;
        self.0 = rest;
        Ok(content)
    }

    fn number(&mut self) -> Result<u32> {
        let bytes = self.take(4)?.try_into().unwrap_or_default();
        Ok(u32::from_be_bytes(bytes))
    }

    fn string(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        self.take(length as usize)
    }
}

/// The seed of the first key of an OpenSSH private key.
fn openssh_seed(blob: &[u8]) -> Result<[u8; 32]> {
    let body = blob.strip_prefix(OPENSSH_MAGIC);
    let mut outer = Reader(body.ok_or_else(|| unusable("it is not an OpenSSH key"))?);
    let cipher = outer.string()?;
    outer.string()?;
    outer.string()?;
    if cipher != b"none" {
        return Err(unusable("it has a passphrase"));
    }
    outer.number()?;
    outer.string()?;
    let mut inner = Reader(outer.string()?);
    if inner.number()? != inner.number()? {
        return Err(unusable("it is damaged"));
    }
    let algorithm = inner.string()?;
    if algorithm != ALGORITHM.as_bytes() {
        let algorithm = String::from_utf8_lossy(algorithm).into_owned();
        return Err(unusable(&format!("it is of type {algorithm}")));
    }
    inner.string()?;
    let private = inner.string()?;
    let seed = private.get(..32).and_then(|seed| seed.try_into().ok());
    seed.ok_or_else(|| unusable("it is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An OpenSSH key made from a seed.
    fn openssh_key(seed: [u8; 32], cipher: &str, algorithm: &str) -> String {
        let mut inner = Vec::new();
        inner.extend_from_slice(&[0, 0, 0, 7, 0, 0, 0, 7]);
        string(&mut inner, algorithm.as_bytes());
        string(&mut inner, &[0; 32]);
        string(&mut inner, &[seed, [0; 32]].concat());
        string(&mut inner, b"comment");
        let mut outer = OPENSSH_MAGIC.to_vec();
        string(&mut outer, cipher.as_bytes());
        string(&mut outer, b"none");
        string(&mut outer, b"");
        outer.extend_from_slice(&1_u32.to_be_bytes());
        string(&mut outer, b"public");
        string(&mut outer, &inner);
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
