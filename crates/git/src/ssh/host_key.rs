//! Signatures of servers: proof that a server has the key that it shows.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

use super::encoding::Reader;
use super::known_hosts::HostKeys;

/// Algorithms of signatures that are accepted, and the types of keys that make them; the best first.
pub const ALGORITHMS: [(&str, &str); 5] = [
    ("ssh-ed25519", "ssh-ed25519"),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"),
    ("ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"),
    ("rsa-sha2-512", "ssh-rsa"),
    ("rsa-sha2-256", "ssh-rsa"),
];

/// Algorithms for keys that the list has for a host: a server shall use one of these.
pub fn algorithms(hosts: &HostKeys) -> Vec<&'static str> {
    let is_known = |kind: &str| hosts.known.iter().any(|(known, _)| known == kind);
    let usable = ALGORITHMS.iter().filter(|(_, kind)| is_known(kind));
    usable.map(|(algorithm, _)| *algorithm).collect()
}

/// True if a key made the signature of a text, by the algorithm that was agreed on.
pub fn verify(algorithm: &str, key: &[u8], text: &[u8], signature: &[u8]) -> bool {
    check(algorithm, key, text, signature).unwrap_or(false)
}

fn check(algorithm: &str, key: &[u8], text: &[u8], signature: &[u8]) -> Option<bool> {
    let (_, kind) = ALGORITHMS.iter().find(|(known, _)| *known == algorithm)?;
    let (mut key, mut signature) = (Reader::new(key), Reader::new(signature));
    if key.text()? != *kind || signature.text()? != algorithm {
        return Some(false);
    }
    let signature = signature.string()?;
    let is_valid = match algorithm {
        "ssh-ed25519" => UnparsedPublicKey::new(&ED25519, key.string()?)
            .verify(text, signature)
            .is_ok(),
        "ecdsa-sha2-nistp256" => ecdsa(
            &ECDSA_P256_SHA256_FIXED,
            "nistp256",
            32,
            (key, text, signature),
        )?,
        "ecdsa-sha2-nistp384" => ecdsa(
            &ECDSA_P384_SHA384_FIXED,
            "nistp384",
            48,
            (key, text, signature),
        )?,
        _ => {
            let (e, n) = (key.mpint()?, key.mpint()?);
            let parameters = if algorithm == "rsa-sha2-512" {
                &RSA_PKCS1_2048_8192_SHA512
            } else {
                &RSA_PKCS1_2048_8192_SHA256
            };
            let components = RsaPublicKeyComponents { n, e };
            components.verify(parameters, text, signature).is_ok()
        }
    };
    Some(is_valid)
}

/// Checks a signature on a curve: the key, the text and the signature.
fn ecdsa(
    algorithm: &'static dyn VerificationAlgorithm,
    curve: &str,
    size: usize,
    (mut key, text, signature): (Reader<'_>, &[u8], &[u8]),
) -> Option<bool> {
    if key.text()? != curve {
        return Some(false);
    }
    let point = key.string()?;
    let mut numbers = Reader::new(signature);
    let mut fixed = numbers.padded(size)?;
    fixed.extend(numbers.padded(size)?);
    let verified = UnparsedPublicKey::new(algorithm, point).verify(text, &fixed);
    Some(verified.is_ok())
}
