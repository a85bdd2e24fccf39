//! Base64 in the standard alphabet, as `encoding/base64` reads and writes it.
//!
//! Go skips line ends, ignores bits that are left over, and names the byte at which a text stops being base64.

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};

const PADDED: GeneralPurpose = engine(DecodePaddingMode::RequireCanonical);
const UNPADDED: GeneralPurpose = engine(DecodePaddingMode::RequireNone);

const fn engine(padding: DecodePaddingMode) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(padding);
    GeneralPurpose::new(&alphabet::STANDARD, config)
}

/// A text is not base64; the offset is that of Go's `CorruptInputError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub struct CorruptInput(pub usize);

/// Encodes with padding: `base64.StdEncoding.EncodeToString`.
pub fn encode(bytes: &[u8]) -> String {
    PADDED.encode(bytes)
}

/// Decodes a text with padding: `base64.StdEncoding.DecodeString`.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    match PADDED.decode(text) {
        Ok(bytes) => Ok(bytes),
        Err(_) => decode_slowly(text, true),
    }
}

/// Decodes a text without padding: `base64.RawStdEncoding.DecodeString`.
pub fn decode_unpadded(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    match UNPADDED.decode(text) {
        Ok(bytes) => Ok(bytes),
        Err(_) => decode_slowly(text, false),
    }
}

/// Returns true for a text that is not empty, is padded and has no line ends: `govalidator.IsBase64`, which is what the
/// format `byte` of schemas means.
pub fn is_encoded(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    !data.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data.bytes().all(|byte| value(byte).is_some())
}

/// Decodes four characters at a time, as Go does, with its way to find out what is wrong.
fn decode_slowly(text: &[u8], is_padded: bool) -> Result<Vec<u8>, CorruptInput> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    loop {
        let (bits, length) = quantum(text, &mut at, is_padded)?;
        out.extend_from_slice(&bits.to_be_bytes()[1..length.max(1)]);
        if length < 4 {
            return Ok(out);
        }
    }
}

/// The bits of the next four characters, and how many there were.
fn quantum(text: &[u8], at: &mut usize, is_padded: bool) -> Result<(u32, usize), CorruptInput> {
    let (mut bits, mut length) = (0, 0);
    while length < 4 {
        let Some(byte) = text.get(*at) else {
            if length == 1 || (length > 0 && is_padded) {
                return Err(CorruptInput(*at - length));
            }
            break;
        };
        *at += 1;
        if let Some(value) = value(*byte) {
            bits |= value << (18 - 6 * length);
            length += 1;
        } else if !is_line_end(*byte) {
            if *byte != b'=' || !is_padded || length < 2 {
                return Err(CorruptInput(*at - 1));
            }
            end_padding(text, at, length)?;
            break;
        }
    }
    Ok((bits, length))
}

/// Checks what follows the first padding character.
fn end_padding(text: &[u8], at: &mut usize, length: usize) -> Result<(), CorruptInput> {
    let skip_line_ends = |at: &mut usize| {
        while text.get(*at).is_some_and(|byte| is_line_end(*byte)) {
            *at += 1;
        }
    };
    if length == 2 {
        skip_line_ends(at);
        match text.get(*at) {
            None => return Err(CorruptInput(text.len())),
            Some(b'=') => *at += 1,
            Some(_) => return Err(CorruptInput(*at - 1)),
        }
    }
    skip_line_ends(at);
    if *at < text.len() {
        return Err(CorruptInput(*at));
    }
    Ok(())
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn value(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// What Go 1.26 makes of texts with and without padding.
    const CASES: &str = include_str!("../tests/data/base64.jsonl");

    fn shown(decoded: Result<Vec<u8>, CorruptInput>) -> Value {
        match decoded {
            Ok(bytes) => {
                let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                digits.collect::<String>().into()
            }
            Err(error) => json!({ "error": error.to_string() }),
        }
    }

    #[test]
    fn texts_are_decoded_as_go_does() {
        for line in CASES.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let text = case["in"].as_str().unwrap().as_bytes();
            assert_eq!(shown(decode(text)), case["std"], "{line}");
            assert_eq!(shown(decode_unpadded(text)), case["raw"], "{line}");
            // The fast way is only a shortcut.
            assert_eq!(shown(decode_slowly(text, true)), case["std"], "{line}");
            assert_eq!(shown(decode_slowly(text, false)), case["raw"], "{line}");
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let text = encode(&bytes);
            prop_assert_eq!(decode(text.as_bytes()), Ok(bytes.clone()));
            prop_assert_eq!(decode_unpadded(text.trim_end_matches('=').as_bytes()), Ok(bytes));
        }
    }
}
