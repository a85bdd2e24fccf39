//! Base64, for `base64.encode`, `base64.decode` and fields of format `byte`.

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::Value;

/// Go does not look at bits that are left over.
const PADDED: GeneralPurpose = engine(DecodePaddingMode::RequireCanonical);
const UNPADDED: GeneralPurpose = engine(DecodePaddingMode::RequireNone);

const fn engine(padding: DecodePaddingMode) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(padding);
    GeneralPurpose::new(&alphabet::STANDARD, config)
}

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
    PADDED.encode(bytes)
}

/// Standard base64 with padding; line ends are skipped.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    PADDED.decode(without_line_ends(text)).ok()
}

fn decode_unpadded(text: &str) -> Option<Vec<u8>> {
    UNPADDED.decode(without_line_ends(text)).ok()
}

fn without_line_ends(text: &str) -> Vec<u8> {
    let is_kept = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    text.bytes().filter(is_kept).collect()
}

/// The first byte that makes `text` unreadable.
fn error_position(text: &str) -> usize {
    text.bytes()
        .position(|byte| !(byte.is_ascii_alphanumeric() || b"+/\r\n".contains(&byte)))
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
