//! Package `encoding/hex`.

use std::fmt::Write as _;

use super::argument::{
    Outcome, bytes, bytes_result, check_size, int, integer, string, text_result,
};
use super::{BYTES, INT, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "encoding/hex",
    functions: &[
        function("EncodedLen", &[INT], Kind::INT, encoded_length),
        function("DecodedLen", &[INT], Kind::INT, decoded_length),
        function("Decode", &[STRING], Kind::BYTES, decode),
        function("Dump", &[BYTES], Kind::STRING, dump),
        function("Encode", &[BYTES], Kind::STRING, encode),
    ],
    source: "",
};

/// Lower-case hexadecimal digits.
pub(super) fn encode_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn encoded_length(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(int(arguments, 0)?.saturating_mul(2))
}

fn decoded_length(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(int(arguments, 0)? / 2)
}

fn encode(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let source = bytes(arguments, 0)?;
    check_size(host, source.len().checked_mul(2))?;
    text_result(encode_bytes(source))
}

fn decode(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let source = string(arguments, 0)?;
    let mut digits = Vec::with_capacity(source.len());
    for character in source.chars() {
        let Some(digit) = character.to_digit(16) else {
            let code = u32::from(character);
            return Err(Failure::error(format!(
                "encoding/hex: invalid byte: U+{code:04X} {character:?}"
            )));
        };
        digits.push(u8::try_from(digit).unwrap_or(0));
    }
    if digits.len() % 2 == 1 {
        return Err(Failure::error("encoding/hex: odd length hex string"));
    }
    bytes_result(
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect::<Vec<u8>>(),
    )
}

/// The layout of `hexdump -C`.
fn dump(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let source = bytes(arguments, 0)?;
    check_size(host, source.len().checked_mul(6))?;
    let mut text = String::new();
    for (row, chunk) in source.chunks(16).enumerate() {
        let _ = write!(text, "{:08x} ", row * 16);
        for column in 0..16 {
            if column == 8 {
                text.push(' ');
            }
            match chunk.get(column) {
                Some(byte) => {
                    let _ = write!(text, " {byte:02x}");
                }
                None => text.push_str("   "),
            }
        }
        text.push_str("  |");
        for byte in chunk {
            let printable = (32..=126).contains(byte);
            text.push(if printable { char::from(*byte) } else { '.' });
        }
        text.push_str("|\n");
    }
    text_result(text)
}
