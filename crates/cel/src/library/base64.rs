//! Base64, for `base64.encode`, `base64.decode` and fields of format `byte`.

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::Value;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "base64_decode_string",
        "base64.decode(string) -> bytes",
        |a| {
            let text = text(a, 0)?;
            // Text without padding is accepted as well.
            let decoded = decode(text).or_else(|| decode_unpadded(text));
            match decoded {
                Some(bytes) => Ok(Value::Bytes(bytes.into())),
                None => Err(EvalError::failed(format!(
                    "illegal base64 data at input byte {}",
                    error_position(text)
                ))),
            }
        },
    );
    functions.add(
        "base64_encode_bytes",
        "base64.encode(bytes) -> string",
        |a| match a {
            [Value::Bytes(bytes)] => Ok(Value::text(encode(bytes))),
            _ => Err(EvalError::no_such_overload()),
        },
    );
}

/// Standard base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = 0_u32;
        for index in 0..3 {
            group = group << 8 | u32::from(chunk.get(index).copied().unwrap_or(0));
        }
        for index in 0..4 {
            if index > chunk.len() {
                out.push('=');
            } else {
                let sextet = group >> (18 - 6 * index) & 0x3f;
                out.push(char::from(ALPHABET[sextet as usize]));
            }
        }
    }
    out
}

/// Standard base64 with padding; line ends are skipped.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    if !compact.len().is_multiple_of(4) {
        return None;
    }
    let body = compact.trim_end_matches('=');
    if compact.len() - body.len() > 2 {
        return None;
    }
    decode_unpadded(body)
}

fn decode_unpadded(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let mut group = 0_u32;
    let mut bits = 0_u32;
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')) {
        group = group << 6 | sextet(byte)?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(group >> bits & 0xff).ok()?);
        }
    }
    // A single character left over cannot be part of anything.
    (bits != 6).then_some(out)
}

fn sextet(byte: u8) -> Option<u32> {
    Some(match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// The first byte that makes `text` unreadable.
fn error_position(text: &str) -> usize {
    text.bytes()
        .position(|byte| sextet(byte).is_none() && !matches!(byte, b'\r' | b'\n'))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_texts() {
        assert_eq!(encode(b"hello"), "aGVsbG8=");
        assert_eq!(decode("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(decode("aGVs\nbG8=").unwrap(), b"hello");
        assert_eq!(decode_unpadded("aGVsbG8").unwrap(), b"hello");
        assert_eq!(decode("a"), None);
        assert_eq!(decode("a==="), None);
        assert_eq!(decode("@@@@"), None);
        assert_eq!(decode("").unwrap(), b"");
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
