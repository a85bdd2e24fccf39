//! Keys of SSH: what they sign is what servers and clients verify.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_git::ssh::PrivateKey;
use bellwether_git::ssh::host_key::verify;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};

fn key(pkcs8: &[u8]) -> PrivateKey {
    let body = STANDARD.encode(pkcs8);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    PrivateKey::read(&pem).unwrap()
}

/// A key of each type.
fn keys() -> Vec<PrivateKey> {
    let random = SystemRandom::new();
    let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let p384 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
    let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    [ed25519, p256, p384]
        .iter()
        .map(|it| key(it.as_ref()))
        .collect()
}

#[test]
fn a_signature_is_of_one_key_one_text_and_one_algorithm() {
    let (keys, others) = (keys(), keys());
    for (mine, other) in keys.iter().zip(&others) {
        // Numbers of a signature have leading zeros now and then.
        for number in 0..50 {
            let text = format!("text {number}");
            let signature = mine.sign(text.as_bytes()).unwrap();
            let check = |algorithm: &str, key: &PrivateKey, text: &[u8], signature: &[u8]| {
                verify(algorithm, &key.public_blob(), text, signature)
            };
            let algorithm = mine.algorithm();
            assert!(check(algorithm, mine, text.as_bytes(), &signature));
            assert!(!check(algorithm, other, text.as_bytes(), &signature));
            assert!(!check(algorithm, mine, b"another text", &signature));
            assert!(!check("rsa-sha2-512", mine, text.as_bytes(), &signature));
            assert!(!check("none", mine, text.as_bytes(), &signature));
            let cut = &signature[..signature.len() - 1];
            assert!(!check(algorithm, mine, text.as_bytes(), cut));
        }
    }
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_a_reason() {
    for (pem, why) in [
        ("text", "neither"),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n",
            "passphrase",
        ),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n", "last line"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
            "not an OpenSSH key",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\n?\n-----END PRIVATE KEY-----\n",
            "not base64",
        ),
    ] {
        let error = PrivateKey::read(pem).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
