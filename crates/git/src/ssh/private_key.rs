//! Private keys of clients: read from PEM, and used to sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA512, RsaKeyPair, RsaPublicKeyComponents,
};
use rsa::BigUint;
use rsa::pkcs1::EncodeRsaPrivateKey as _;

use super::encoding::{Reader, put_mpint, put_string};

const OPENSSH_MAGIC: &[u8] = b"openssh-key-v1\0";
/// The type of keys that sign with Ed25519.
pub const ED25519: &str = "ssh-ed25519";
const P256: &str = "ecdsa-sha2-nistp256";
const P384: &str = "ecdsa-sha2-nistp384";
const RSA: &str = "ssh-rsa";
/// The only algorithm that keys of type RSA sign with.
const RSA_SHA512: &str = "rsa-sha2-512";

/// A private key.
pub struct PrivateKey(Pair);

enum Pair {
    Ed25519(Ed25519KeyPair),
    /// The type of the key, and the pair.
    Ecdsa(&'static str, EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PrivateKey").finish_non_exhaustive()
    }
}

impl PrivateKey {
    /// Reads a key as `ssh-keygen` writes it, or in PKCS#8 or PKCS#1. The error is why it cannot be used.
    pub fn read(pem: &str) -> Result<Self, String> {
        if pem.contains("ENCRYPTED") {
            return Err("it has a passphrase".to_owned());
        }
        if let Some(blob) = body_of(pem, "OPENSSH PRIVATE KEY")? {
            return openssh(&blob);
        }
        if let Some(blob) = body_of(pem, "RSA PRIVATE KEY")? {
            return RsaKeyPair::from_der(&blob)
                .map(Pair::Rsa)
                .map(Self)
                .map_err(rejected);
        }
        if let Some(blob) = body_of(pem, "PRIVATE KEY")? {
            return pkcs8(&blob);
        }
        Err("it is neither an OpenSSH nor a PKCS#8 private key".to_owned())
    }

    /// The key, if it is of type Ed25519.
    pub fn into_ed25519(self) -> Result<Ed25519KeyPair, String> {
        match self.0 {
            Pair::Ed25519(pair) => Ok(pair),
            Pair::Ecdsa(kind, _) => Err(format!("it is of type {kind}")),
            Pair::Rsa(_) => Err(format!("it is of type {RSA}")),
        }
    }

    /// The algorithm that it signs with.
    pub fn algorithm(&self) -> &'static str {
        match &self.0 {
            Pair::Ed25519(_) => ED25519,
            Pair::Ecdsa(kind, _) => kind,
            Pair::Rsa(_) => RSA_SHA512,
        }
    }

    /// The public key, in the encoding of SSH.
    pub fn public_blob(&self) -> Vec<u8> {
        match &self.0 {
            Pair::Ed25519(pair) => ed25519_blob(pair),
            Pair::Ecdsa(kind, pair) => {
                let mut blob = Vec::new();
                put_string(&mut blob, kind.as_bytes());
                put_string(&mut blob, curve_of(kind).as_bytes());
                put_string(&mut blob, pair.public_key().as_ref());
                blob
            }
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let mut blob = Vec::new();
                put_string(&mut blob, RSA.as_bytes());
                put_mpint(&mut blob, &public.e);
                put_mpint(&mut blob, &public.n);
                blob
            }
        }
    }

    /// Signs a text, in the encoding of SSH.
    pub fn sign(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let failed = |_| "the key cannot sign".to_owned();
        let bytes = match &self.0 {
            Pair::Ed25519(pair) => pair.sign(text).as_ref().to_vec(),
            Pair::Ecdsa(_, pair) => {
                let fixed = pair.sign(&random, text).map_err(failed)?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                let mut numbers = Vec::new();
                put_mpint(&mut numbers, r);
                put_mpint(&mut numbers, s);
                numbers
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA512, &random, text, &mut signature);
                signed.map_err(failed)?;
                signature
            }
        };
        let mut signature = Vec::new();
        put_string(&mut signature, self.algorithm().as_bytes());
        put_string(&mut signature, &bytes);
        Ok(signature)
    }
}

/// A public key of type Ed25519, in the encoding of SSH.
pub fn ed25519_blob(pair: &Ed25519KeyPair) -> Vec<u8> {
    let mut blob = Vec::new();
    put_string(&mut blob, ED25519.as_bytes());
    put_string(&mut blob, pair.public_key().as_ref());
    blob
}

fn curve_of(kind: &str) -> &'static str {
    if kind == P256 { "nistp256" } else { "nistp384" }
}

fn rejected(error: ring::error::KeyRejected) -> String {
    error.to_string()
}

/// The bytes between the lines of a PEM text.
fn body_of(pem: &str, label: &str) -> Result<Option<Vec<u8>>, String> {
    let Some((_, rest)) = pem.split_once(&format!("-----BEGIN {label}-----")) else {
        return Ok(None);
    };
    let body = rest.split_once(&format!("-----END {label}-----"));
    let (body, _) = body.ok_or("its last line is missing")?;
    let body: String = body.split_whitespace().collect();
    let decoded = STANDARD.decode(body);
    decoded.map(Some).map_err(|_| "it is not base64".to_owned())
}

fn pkcs8(blob: &[u8]) -> Result<PrivateKey, String> {
    let random = SystemRandom::new();
    let ecdsa = |kind, algorithm| {
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, blob, &random);
        pair.map(|pair| Pair::Ecdsa(kind, pair))
    };
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(blob)
        .map(Pair::Ed25519)
        .or_else(|_| ecdsa(P256, &ECDSA_P256_SHA256_FIXED_SIGNING))
        .or_else(|_| ecdsa(P384, &ECDSA_P384_SHA384_FIXED_SIGNING))
        .or_else(|_| RsaKeyPair::from_pkcs8(blob).map(Pair::Rsa))
        .map(PrivateKey)
        .map_err(rejected)
}

/// The first key of a file in OpenSSH's own format.
fn openssh(blob: &[u8]) -> Result<PrivateKey, String> {
    let cut = || "it is cut short".to_owned();
    let body = blob.strip_prefix(OPENSSH_MAGIC);
    let mut outer = Reader::new(body.ok_or("it is not an OpenSSH key")?);
    let cipher = outer.string().ok_or_else(cut)?;
    outer
        .string()
        .and_then(|_| outer.string())
        .ok_or_else(cut)?;
    if cipher != b"none" {
        return Err("it has a passphrase".to_owned());
    }
    outer.u32().and_then(|_| outer.string()).ok_or_else(cut)?;
    let mut inner = Reader::new(outer.string().ok_or_else(cut)?);
    if inner.u32().ok_or_else(cut)? != inner.u32().ok_or_else(cut)? {
        return Err("it is damaged".to_owned());
    }
    match inner.text().ok_or_else(cut)? {
        ED25519 => {
            inner.string().ok_or_else(cut)?;
            let seed = inner.string().and_then(|private| private.get(..32));
            let pair = Ed25519KeyPair::from_seed_unchecked(seed.ok_or_else(cut)?);
            pair.map(Pair::Ed25519).map(PrivateKey).map_err(rejected)
        }
        P256 => openssh_ecdsa(inner, P256, 32),
        P384 => openssh_ecdsa(inner, P384, 48),
        RSA => openssh_rsa(inner)
            .ok_or_else(|| format!("it is of type {RSA}, and damaged or not of 2048 to 4096 bits")),
        other => Err(format!("it is of type {other}")),
    }
}

fn openssh_ecdsa(
    mut key: Reader<'_>,
    kind: &'static str,
    size: usize,
) -> Result<PrivateKey, String> {
    let cut = || "it is cut short".to_owned();
    key.string().ok_or_else(cut)?;
    let point = key.string().ok_or_else(cut)?;
    let number = key.padded(size).ok_or_else(cut)?;
    let algorithm = if kind == P256 {
        &ECDSA_P256_SHA256_FIXED_SIGNING
    } else {
        &ECDSA_P384_SHA384_FIXED_SIGNING
    };
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, &number, point, &random);
    pair.map(|pair| PrivateKey(Pair::Ecdsa(kind, pair)))
        .map_err(rejected)
}

/// OpenSSH leaves out two numbers that signing needs, which are computed here.
fn openssh_rsa(mut key: Reader<'_>) -> Option<PrivateKey> {
    let mut number = || key.mpint().map(BigUint::from_bytes_be);
    let (n, e, d) = (number()?, number()?, number()?);
    number()?;
    let primes = vec![number()?, number()?];
    let key = rsa::RsaPrivateKey::from_components(n, e, d, primes).ok()?;
    let der = key.to_pkcs1_der().ok()?;
    let pair = RsaKeyPair::from_der(der.as_bytes()).ok()?;
    Some(PrivateKey(Pair::Rsa(pair)))
}
