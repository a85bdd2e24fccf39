//! Packages `crypto/ed25519`, `crypto/hmac`, `crypto/md5`, `crypto/sha1`, `crypto/sha256` and
//! `crypto/sha512`.

mod ed25519;

use hmac::{Mac, SimpleHmac};
use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::digest::core_api::BlockSizeUser;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

use super::argument::{Outcome, bytes, bytes_result, string};
use super::{BYTES, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static MD5: Package = Package {
    path: "crypto/md5",
    functions: &[function("Sum", &[BYTES], Kind::BYTES, sum::<Md5>)],
    source: "Size: 16\nBlockSize: 64\n",
};

pub(super) static SHA1: Package = Package {
    path: "crypto/sha1",
    functions: &[function("Sum", &[BYTES], Kind::BYTES, sum::<Sha1>)],
    source: "Size: 20\nBlockSize: 64\n",
};

pub(super) static SHA256: Package = Package {
    path: "crypto/sha256",
    functions: &[
        function("Sum256", &[BYTES], Kind::BYTES, sum::<Sha256>),
        function("Sum224", &[BYTES], Kind::BYTES, sum::<Sha224>),
    ],
    source: "Size: 32\nSize224: 28\nBlockSize: 64\n",
};

pub(super) static SHA512: Package = Package {
    path: "crypto/sha512",
    functions: &[
        function("Sum512", &[BYTES], Kind::BYTES, sum::<Sha512>),
        function("Sum384", &[BYTES], Kind::BYTES, sum::<Sha384>),
        function("Sum512_224", &[BYTES], Kind::BYTES, sum::<Sha512_224>),
        function("Sum512_256", &[BYTES], Kind::BYTES, sum::<Sha512_256>),
    ],
    source: "Size: 64\nSize224: 28\nSize256: 32\nSize384: 48\nBlockSize: 128\n",
};

pub(super) static ED25519: Package = Package {
    path: "crypto/ed25519",
    functions: &[function(
        "Valid",
        &[BYTES, BYTES, BYTES],
        Kind::BOOL,
        verified,
    )],
    source: "PublicKeySize: 32\n",
};

pub(super) static HMAC: Package = Package {
    path: "crypto/hmac",
    functions: &[function("Sign", &[STRING, BYTES, BYTES], Kind::BYTES, sign)],
    source: "
MD5:        \"MD5\"
SHA1:       \"SHA1\"
SHA224:     \"SHA224\"
SHA256:     \"SHA256\"
SHA384:     \"SHA384\"
SHA512:     \"SHA512\"
SHA512_224: \"SHA512_224\"
SHA512_256: \"SHA512_256\"
",
};

/// The MD5 and SHA-1 digests, for UUIDs made from names.
pub(super) fn name_digest(version: u8, parts: [&[u8]; 2]) -> Vec<u8> {
    if version == 3 {
        Md5::new()
            .chain_update(parts[0])
            .chain_update(parts[1])
            .finalize()
            .to_vec()
    } else {
        Sha1::new()
            .chain_update(parts[0])
            .chain_update(parts[1])
            .finalize()
            .to_vec()
    }
}

fn sum<D: Digest>(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    bytes_result(D::digest(bytes(arguments, 0)?).to_vec())
}

fn verified(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (key, message) = (bytes(arguments, 0)?, bytes(arguments, 1)?);
    let Ok(key) = <&[u8; 32]>::try_from(key) else {
        return Err(Failure::error("ed25519: publicKey must be 32 bytes"));
    };
    host.work(SIGNATURE_COST)?;
    // A signature of another length is one that does not match.
    let signature = <&[u8; 64]>::try_from(bytes(arguments, 2)?);
    Ok(Value::Bool(signature.is_ok_and(|signature| {
        ed25519::verify(key, message, signature)
    })))
}

/// Steps that checking a signature takes: some fifty microseconds.
const SIGNATURE_COST: usize = 500;

fn sign(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (key, data) = (bytes(arguments, 1)?, bytes(arguments, 2)?);
    let signature = match string(arguments, 0)? {
        "MD5" => mac::<Md5>(key, data),
        "SHA1" => mac::<Sha1>(key, data),
        "SHA224" => mac::<Sha224>(key, data),
        "SHA256" => mac::<Sha256>(key, data),
        "SHA384" => mac::<Sha384>(key, data),
        "SHA512" => mac::<Sha512>(key, data),
        "SHA512_224" => mac::<Sha512_224>(key, data),
        "SHA512_256" => mac::<Sha512_256>(key, data),
        _ => return Err(Failure::error("unsupported hash function")),
    };
    bytes_result(signature?)
}

fn mac<D: Digest + BlockSizeUser>(key: &[u8], data: &[u8]) -> Result<Vec<u8>, Failure> {
    let mac = <SimpleHmac<D> as Mac>::new_from_slice(key)
        .map_err(|_| Failure::error("invalid key length"))?;
    Ok(mac.chain_update(data).finalize().into_bytes().to_vec())
}
