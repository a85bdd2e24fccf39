//! Passwords, keys and certificates.

mod certificate;
mod key;

use bellwether_go::base64;
use bellwether_go::value::{IntKind, Kind, Named, Object, Type, UintKind, Value};
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use hmac::Mac as _;

use super::argument::{any, bytes, int, string};
use super::encode::decode_base64;
use crate::call::{Call, Failure};
use crate::function::{Entry, function};

const INT: Type = Type::Int(IntKind::Int);
const LIST: Type = Type::LIST;
const STRING: Type = Type::String;
const CERTIFICATE: Type = Type::Named(&TYPE, Kind::Struct);

type Done = Result<Value, Failure>;

/// Steps that a slow hash costs, which takes a tenth of a second by design.
const SLOW_HASH: usize = 1_000_000;

/// Steps that a new key of RSA costs.
const NEW_KEY: usize = 2_000_000;

pub(super) const TABLE: &[Entry] = &[
    function("bcrypt", &[STRING], |call, a| {
        let hash = bcrypt(call, bytes(a, 0))?;
        call.text(hash)
    }),
    function("htpasswd", &[STRING, STRING], |call, a| {
        let name = string(a, 0);
        if name.contains(':') {
            return call.text(format!("invalid username: {name}"));
        }
        let hash = bcrypt(call, bytes(a, 1))?;
        call.text(format!("{name}:{hash}"))
    }),
    function(
        "derivePassword",
        &[Type::Uint(UintKind::Uint32), STRING, STRING, STRING, STRING],
        derive_password,
    ),
    function("encryptAES", &[STRING, STRING], |call, a| {
        let plain = bytes(a, 1);
        if plain.is_empty() {
            return Ok(Value::from(""));
        }
        call.bytes(plain.len().saturating_mul(3))?;
        let mut start = [0; 16];
        (call.world().random)(&mut start);
        let key = aes_key(bytes(a, 0));
        let encryptor = cbc::Encryptor::<aes::Aes256>::new(&key.into(), &start.into());
        let mut out = start.to_vec();
        out.extend(encryptor.encrypt_padded_vec_mut::<Pkcs7>(plain));
        call.text(base64::encode(&out))
    }),
    function("decryptAES", &[STRING, STRING], decrypt),
    function("genPrivateKey", &[STRING], |call, a| {
        let kind = string(a, 0);
        if matches!(&*kind, "" | "rsa") {
            call.steps(NEW_KEY * 4)?;
        }
        let text = key::generate(call, &kind)?;
        call.text(text)
    }),
    function("buildCustomCert", &[STRING, STRING], |_, a| {
        let certificate = decode_base64(bytes(a, 0))
            .map_err(|_| "unable to decode base64 certificate".to_owned())?;
        let key = decode_base64(bytes(a, 1))
            .map_err(|_| "unable to decode base64 private key".to_owned())?;
        certificate::check(&certificate)?;
        key::parse(&String::from_utf8_lossy(&key))
            .map_err(|error| format!("error parsing private key: {error}"))?;
        Ok(Value::object(Certificate {
            certificate: String::from_utf8_lossy(&certificate).into_owned(),
            key: String::from_utf8_lossy(&key).into_owned(),
        }))
    }),
    function("genCA", &[STRING, INT], |call, a| {
        let key = new_key(call)?;
        certificate::authority(call, &string(a, 0), int(a, 1), &key)
    }),
    function("genCAWithKey", &[STRING, INT, STRING], |call, a| {
        let key = given_key(a, 2)?;
        certificate::authority(call, &string(a, 0), int(a, 1), &key)
    }),
    function(
        "genSelfSignedCert",
        &[STRING, LIST, LIST, INT],
        |call, a| {
            let key = new_key(call)?;
            certificate::self_signed(call, a, &key)
        },
    ),
    function(
        "genSelfSignedCertWithKey",
        &[STRING, LIST, LIST, INT, STRING],
        |call, a| {
            let key = given_key(a, 4)?;
            certificate::self_signed(call, a, &key)
        },
    ),
    function(
        "genSignedCert",
        &[STRING, LIST, LIST, INT, CERTIFICATE],
        |call, a| {
            let key = new_key(call)?;
            certificate::signed(call, a, &key)
        },
    ),
    function(
        "genSignedCertWithKey",
        &[STRING, LIST, LIST, INT, CERTIFICATE, STRING],
        |call, a| {
            let key = given_key(a, 5)?;
            certificate::signed(call, a, &key)
        },
    ),
];

fn new_key(call: &mut Call<'_>) -> Result<key::Key, Failure> {
    call.steps(NEW_KEY)?;
    key::new_rsa(call, 2048)
}

fn given_key(a: &[Value], index: usize) -> Result<key::Key, Failure> {
    key::parse(&string(a, index)).map_err(|error| format!("parsing private key: {error}").into())
}

/// A certificate and its key, both in PEM.
#[derive(Debug)]
struct Certificate {
    certificate: String,
    key: String,
}

static TYPE: Named = Named {
    name: "sprig.certificate",
    methods: &[],
};

impl Object for Certificate {
    fn named(&self) -> &'static Named {
        &TYPE
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Cert", Value::string(&self.certificate)),
            ("Key", Value::string(&self.key)),
        ]
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

const BCRYPT_COST: u32 = 10;

fn bcrypt(call: &mut Call<'_>, password: &[u8]) -> Result<String, Failure> {
    call.steps(SLOW_HASH)?;
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
                .to_owned(),
        );
    }
    let mut salt = [0; 16];
    (call.world().random)(&mut salt);
    let hash = bcrypt::hash_with_salt(password, BCRYPT_COST, salt);
    let hash = hash.map_err(|error| Failure::Message(error.to_string()))?;
    Ok(hash.format_for_version(bcrypt::Version::TwoA))
}

/// Zeros follow a password that is too short, and one that is too long is cut.
fn aes_key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    for (byte, from) in key.iter_mut().zip(password) {
        *byte = *from;
    }
    key
}

fn decrypt(call: &mut Call<'_>, a: &[Value]) -> Done {
    let text = bytes(a, 1);
    if text.is_empty() {
        return Ok(Value::from(""));
    }
    call.bytes(text.len().saturating_mul(2))?;
    let data = decode_base64(text)?;
    let Some((start, body)) = data.split_at_checked(16) else {
        return Err(format!(
            "runtime error: slice bounds out of range [:16] with capacity {}",
            data.len()
        )
        .into());
    };
    if body.len() % 16 != 0 {
        return Err("crypto/cipher: input not full blocks".into());
    }
    let key = aes_key(bytes(a, 0));
    let mut block = [0; 16];
    block.copy_from_slice(start);
    let decryptor = cbc::Decryptor::<aes::Aes256>::new(&key.into(), &block.into());
    let plain = decryptor
        .decrypt_padded_vec_mut::<NoPadding>(body)
        .map_err(|error| Failure::Message(error.to_string()))?;
    let padding = usize::from(plain.last().copied().unwrap_or(0));
    match plain.len().checked_sub(padding) {
        Some(end) if !plain.is_empty() => call.text(&plain[..end]),
        _ => Err("runtime error: index out of range [-1]".into()),
    }
}

/// Shapes of passwords by kind; each letter names a set of characters.
const SHAPES: &[(&str, &[&str])] = &[
    ("maximum", &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"]),
    (
        "long",
        &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
    ),
    ("medium", &["CvcnoCvc", "CvcCvcno"]),
    ("short", &["Cvcn"]),
    ("basic", &["aaanaaan", "aannaaan", "aaannaaa"]),
    ("pin", &["nnnn"]),
];

fn characters(of: char) -> &'static [u8] {
    match of {
        'V' => b"AEIOU",
        'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        'v' => b"aeiou",
        'c' => b"bcdfghjklmnpqrstvwxyz",
        'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        'n' => b"0123456789",
        'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

const SEED: &[u8] = b"com.lyndir.masterpassword";

fn derive_password(call: &mut Call<'_>, a: &[Value]) -> Done {
    let counter = match any(a, 0) {
        Value::Uint(_, counter) => u32::try_from(*counter).unwrap_or(u32::MAX),
        _ => 0,
    };
    let kind = string(a, 1);
    let Some((_, shapes)) = SHAPES.iter().find(|(name, _)| *name == kind) else {
        return call.text(format!("cannot find password template {kind}"));
    };
    call.steps(SLOW_HASH * 2)?;
    let (password, user, site) = (bytes(a, 2), bytes(a, 3), bytes(a, 4));
    let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    let salt = [SEED, &length(user), user].concat();
    let wrong = |message: String| Failure::Message(message);
    let parameters = scrypt::Params::new(15, 8, 2, 64).map_err(|e| wrong(e.to_string()))?;
    let mut key = [0; 64];
    scrypt::scrypt(password, &salt, &parameters, &mut key).map_err(|e| wrong(e.to_string()))?;
    let mut mac =
        hmac::Hmac::<sha2::Sha256>::new_from_slice(&key).map_err(|e| wrong(e.to_string()))?;
    mac.update(&[SEED, &length(site), site, &counter.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();
    let shape = shapes[usize::from(seed[0]) % shapes.len()];
    let chosen = shape.chars().zip(&seed[1..]).map(|(class, byte)| {
        let set = characters(class);
        char::from(set[usize::from(*byte) % set.len()])
    });
    call.text(chosen.collect::<String>())
}
