//! Texts that the hub encrypts and a managed cluster decrypts: AES in CBC mode.

use aes::{Aes128, Aes192, Aes256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_template::sprig::decode_base64;
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use cbc::{Decryptor, Encryptor};

use super::ResolveError;

/// What encrypted texts begin with.
pub const PREFIX: &str = "$ocm_encrypted:";

/// Bytes of a block, and of the initialization vector.
const BLOCK: usize = 16;

/// Why something cannot be encrypted or decrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncryptionError {
    /// There is no key.
    #[error("AESKey must be set to use this encryption mode")]
    NoKey,
    /// The key does not have 16, 24 or 32 bytes.
    #[error("the AES key is invalid: crypto/aes: invalid key size {0}")]
    KeySize(usize),
    /// There is no initialization vector.
    #[error("initialization vector must be set to use this encryption mode")]
    NoVector,
    /// The initialization vector does not have 16 bytes.
    #[error("initialization vector must be 128 bits")]
    VectorSize,
    /// The text is not base64.
    #[error("{0}: the encrypted string is invalid base64: {1}")]
    Base64(String, String),
    /// The text is not a number of whole blocks.
    #[error("crypto/cipher: input not full blocks")]
    Blocks,
    /// The last byte cannot be the length of the padding: probably another key was used.
    #[error("invalid PCKS7 padding: the padding length is invalid")]
    PaddingLength,
    /// The padding has other bytes than its length.
    #[error("invalid PCKS7 padding: not all the padding bytes match")]
    Padding,
}

/// The keys of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    key: Vec<u8>,
    previous: Option<Vec<u8>>,
    vector: [u8; BLOCK],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keys(redacted)")
    }
}

impl Keys {
    /// Checks a key, the one before it, and the initialization vector.
    pub fn new(
        key: Option<Vec<u8>>,
        previous: Option<Vec<u8>>,
        vector: Option<&[u8]>,
    ) -> Result<Self, EncryptionError> {
        let key = key.ok_or(EncryptionError::NoKey)?;
        for key in std::iter::once(&key).chain(&previous) {
            if !matches!(key.len(), 16 | 24 | 32) {
                return Err(EncryptionError::KeySize(key.len()));
            }
        }
        let vector = vector.ok_or(EncryptionError::NoVector)?;
        let vector = vector.try_into().map_err(|_| EncryptionError::VectorSize)?;
        Ok(Self {
            key,
            previous,
            vector,
        })
    }

    /// Encrypts a text; an empty one stays empty.
    pub fn encrypt(&self, plain: &[u8]) -> Result<String, EncryptionError> {
        if plain.is_empty() {
            return Ok(String::new());
        }
        let (key, vector) = (&self.key, &self.vector);
        let wrong = |_| EncryptionError::KeySize(key.len());
        let sealed = match key.len() {
            16 => Encryptor::<Aes128>::new_from_slices(key, vector)
                .map_err(wrong)?
                .encrypt_padded_vec_mut::<Pkcs7>(plain),
            24 => Encryptor::<Aes192>::new_from_slices(key, vector)
                .map_err(wrong)?
                .encrypt_padded_vec_mut::<Pkcs7>(plain),
            _ => Encryptor::<Aes256>::new_from_slices(key, vector)
                .map_err(wrong)?
                .encrypt_padded_vec_mut::<Pkcs7>(plain),
        };
        Ok(format!("{PREFIX}{}", STANDARD.encode(sealed)))
    }

    /// Decrypts base64, with the key or the one before it.
    pub fn decrypt(&self, text: &str) -> Result<String, EncryptionError> {
        let sealed = decode_base64(text.as_bytes())
            .map_err(|error| EncryptionError::Base64(text.to_owned(), error))?;
        let keys = std::iter::once(&self.key).chain(&self.previous);
        let mut result = Err(EncryptionError::PaddingLength);
        for key in keys {
            result = self.opened(key, &sealed);
            if result.is_ok() {
                break;
            }
        }
        result.map(|plain| String::from_utf8_lossy(&plain).into_owned())
    }

    fn opened(&self, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, EncryptionError> {
        let wrong = |_| EncryptionError::KeySize(key.len());
        let plain = match key.len() {
            16 => Decryptor::<Aes128>::new_from_slices(key, &self.vector)
                .map_err(wrong)?
                .decrypt_padded_vec_mut::<NoPadding>(sealed),
            24 => Decryptor::<Aes192>::new_from_slices(key, &self.vector)
                .map_err(wrong)?
                .decrypt_padded_vec_mut::<NoPadding>(sealed),
            _ => Decryptor::<Aes256>::new_from_slices(key, &self.vector)
                .map_err(wrong)?
                .decrypt_padded_vec_mut::<NoPadding>(sealed),
        };
        unpadded(plain.map_err(|_| EncryptionError::Blocks)?)
    }
}

/// Takes off the padding, whose bytes all say how long it is.
fn unpadded(mut plain: Vec<u8>) -> Result<Vec<u8>, EncryptionError> {
    let last = plain.last().copied().unwrap_or(0);
    let length = usize::from(last);
    let Some(end) = plain.len().checked_sub(length).filter(|_| length > 0) else {
        return Err(EncryptionError::PaddingLength);
    };
    if plain[end..].iter().any(|byte| *byte != last) {
        return Err(EncryptionError::Padding);
    }
    plain.truncate(end);
    Ok(plain)
}

/// Decrypts every encrypted text in a template, and says whether there was one. Line breaks are
/// written as `\n`, so that the text stays on its line.
pub(super) fn decrypt_all(text: &str, keys: &Keys) -> Result<(String, bool), ResolveError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_decrypted = false;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        let end = after.find(|c| !is_base64(c)).unwrap_or(after.len());
        let (sealed, after) = after.split_at(end);
        out.push_str(before);
        if sealed.is_empty() {
            out.push_str(PREFIX);
        } else {
            let plain = keys
                .decrypt(sealed)
                .map_err(|error| ResolveError::Decrypt(format!("{PREFIX}{sealed}"), error))?;
            out.push_str(&plain.replace('\n', "\\n"));
            is_decrypted = true;
        }
        rest = after;
    }
    out.push_str(rest);
    Ok((out, is_decrypted))
}
