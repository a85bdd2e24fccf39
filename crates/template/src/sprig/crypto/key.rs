//! Private keys, in the forms that Go writes.

use bellwether_go::base64;
use p256::ecdsa::signature::Signer as _;
use p256::pkcs8::DecodePrivateKey as _;
use rsa::RsaPrivateKey;
use rsa::pkcs1::{DecodeRsaPrivateKey as _, EncodeRsaPrivateKey as _, EncodeRsaPublicKey as _};
use rsa::pkcs1v15::SigningKey;
use rsa::rand_core::{CryptoRng, RngCore};
use rsa::signature::SignatureEncoding as _;
use yasna::Tag;
use yasna::models::ObjectIdentifier;

use crate::call::{Call, Failure};

/// A private key.
pub(super) enum Key {
    Rsa(Box<RsaPrivateKey>),
    Ecdsa(Box<p256::SecretKey>),
    Ed25519([u8; 32]),
}

/// Randomness for the generators of keys.
struct Random<'r>(&'r (dyn Fn(&mut [u8]) + Sync));

impl RngCore for Random<'_> {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        (self.0)(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        (self.0)(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        (self.0)(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
        (self.0)(bytes);
        Ok(())
    }
}

// The caller promises randomness that nobody can guess.
impl CryptoRng for Random<'_> {}

/// Primes are searched for until two are found: randomness that repeats itself never finds them.
fn is_random(call: &Call<'_>) -> bool {
    let (mut first, mut second) = ([0; 32], [0; 32]);
    (call.world().random)(&mut first);
    (call.world().random)(&mut second);
    first != second
}

/// A new key of RSA.
pub(super) fn new_rsa(call: &mut Call<'_>, bits: usize) -> Result<Key, Failure> {
    if !is_random(call) {
        return Err("error generating rsa key: no randomness".into());
    }
    let mut random = Random(call.world().random);
    let key = RsaPrivateKey::new(&mut random, bits);
    let key = key.map_err(|error| format!("error generating rsa key: {error}"))?;
    Ok(Key::Rsa(Box::new(key)))
}

/// A new key in PEM; the text of an error is the result, as in sprig.
pub(super) fn generate(call: &mut Call<'_>, kind: &str) -> Result<String, Failure> {
    let key = match kind {
        "" | "rsa" => new_rsa(call, 4096)?,
        "ecdsa" => {
            if !is_random(call) {
                return Err("failed to generate private key: no randomness".into());
            }
            Key::Ecdsa(Box::new(p256::SecretKey::random(&mut Random(
                call.world().random,
            ))))
        }
        "ed25519" => {
            let mut seed = [0; 32];
            (call.world().random)(&mut seed);
            Key::Ed25519(seed)
        }
        "dsa" => return Err("keys of type dsa are not supported: use ecdsa or ed25519".into()),
        _ => return Ok(format!("Unknown type {kind}")),
    };
    key.to_pem().map_err(Failure::Message)
}

/// The curve P-256.
pub(super) const P256: [u64; 7] = [1, 2, 840, 10_045, 3, 1, 7];

/// What stands before the seed in PKCS #8.
const ED25519_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

impl Key {
    /// The key in PEM.
    pub(super) fn to_pem(&self) -> Result<String, String> {
        match self {
            Self::Rsa(key) => {
                let der = key.to_pkcs1_der().map_err(|error| error.to_string())?;
                Ok(pem("RSA PRIVATE KEY", der.as_bytes()))
            }
            Self::Ecdsa(key) => {
                let (secret, public) = (key.to_bytes(), key.public_key().to_sec1_bytes());
                let der = yasna::construct_der(|writer| {
                    writer.write_sequence(|writer| {
                        writer.next().write_u8(1);
                        writer.next().write_bytes(&secret);
                        writer.next().write_tagged(Tag::context(0), |writer| {
                            writer.write_oid(&ObjectIdentifier::from_slice(&P256));
                        });
                        writer.next().write_tagged(Tag::context(1), |writer| {
                            writer.write_bitvec_bytes(&public, public.len() * 8);
                        });
                    });
                });
                Ok(pem("EC PRIVATE KEY", &der))
            }
            Self::Ed25519(seed) => Ok(pem("PRIVATE KEY", &[&ED25519_PREFIX[..], seed].concat())),
        }
    }

    /// The public key in DER, as certificates have it: the algorithm, and the bits.
    pub(super) fn public(&self) -> Result<(Algorithm, Vec<u8>), String> {
        Ok(match self {
            Self::Rsa(key) => {
                let der = key
                    .to_public_key()
                    .to_pkcs1_der()
                    .map_err(|error| error.to_string())?;
                (Algorithm::Rsa, der.as_bytes().to_vec())
            }
            Self::Ecdsa(key) => {
                let point = key.public_key().to_sec1_bytes();
                (Algorithm::Ecdsa, point.to_vec())
            }
            Self::Ed25519(seed) => {
                use ring::signature::KeyPair as _;
                let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(seed)
                    .map_err(|error| error.to_string())?;
                (Algorithm::Ed25519, pair.public_key().as_ref().to_vec())
            }
        })
    }

    /// Signs a text.
    pub(super) fn sign(&self, text: &[u8]) -> Result<(Algorithm, Vec<u8>), String> {
        Ok(match self {
            Self::Rsa(key) => {
                let signer = SigningKey::<sha2::Sha256>::new((**key).clone());
                let signature = signer.try_sign(text).map_err(|error| error.to_string())?;
                (Algorithm::Rsa, signature.to_vec())
            }
            Self::Ecdsa(key) => {
                let signer = p256::ecdsa::SigningKey::from(&**key);
                let signature: p256::ecdsa::DerSignature = signer.sign(text);
                (Algorithm::Ecdsa, signature.as_bytes().to_vec())
            }
            Self::Ed25519(seed) => {
                let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(seed)
                    .map_err(|error| error.to_string())?;
                (Algorithm::Ed25519, pair.sign(text).as_ref().to_vec())
            }
        })
    }
}

/// How a key signs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rsa,
    Ecdsa,
    Ed25519,
}

/// Bytes between the lines of PEM.
pub(super) fn pem(kind: &str, der: &[u8]) -> String {
    let body = base64::encode(der);
    let mut out = format!("-----BEGIN {kind}-----\n");
    for line in body.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + "-----END " + kind + "-----\n"
}

/// The first block of PEM in a text: its kind and bytes.
pub(super) fn unpem(text: &str) -> Option<(&str, Vec<u8>)> {
    let start = text.find("-----BEGIN ")? + "-----BEGIN ".len();
    let (kind, rest) = text[start..].split_once("-----")?;
    let end = rest.find(&format!("-----END {kind}-----"))?;
    let body: String = rest[..end].chars().filter(|c| !c.is_whitespace()).collect();
    Some((kind, base64::decode(body.as_bytes()).ok()?))
}

/// Reads a key in PEM.
pub(super) fn parse(text: &str) -> Result<Key, String> {
    let Some((kind, der)) = unpem(text) else {
        return Err("no PEM data in input".to_owned());
    };
    if kind == "PRIVATE KEY" {
        return pkcs8(&der);
    }
    match kind.strip_suffix(" PRIVATE KEY") {
        None => Err(format!("no private key data in PEM block of type {kind}")),
        Some("RSA") => RsaPrivateKey::from_pkcs1_der(&der)
            .map(|key| Key::Rsa(Box::new(key)))
            .map_err(|error| format!("parsing RSA private key from PEM: {error}")),
        Some("EC") => p256::SecretKey::from_sec1_der(&der)
            .map(|key| Key::Ecdsa(Box::new(key)))
            .map_err(|error| format!("parsing EC private key from PEM: {error}")),
        Some("DSA") => Err("keys of type dsa are not supported: use ecdsa or ed25519".to_owned()),
        Some(_) => Err(format!("invalid private key type {kind}")),
    }
}

fn pkcs8(der: &[u8]) -> Result<Key, String> {
    if let Some(seed) = der.strip_prefix(&ED25519_PREFIX)
        && let Ok(seed) = seed.try_into()
    {
        return Ok(Key::Ed25519(seed));
    }
    if let Ok(key) = RsaPrivateKey::from_pkcs8_der(der) {
        return Ok(Key::Rsa(Box::new(key)));
    }
    p256::SecretKey::from_pkcs8_der(der)
        .map(|key| Key::Ecdsa(Box::new(key)))
        .map_err(|error| format!("decoding PEM as PKCS#8: {error}"))
}
