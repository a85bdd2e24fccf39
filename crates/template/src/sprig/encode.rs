//! Encodings, hashes and JSON.

use std::fmt::Write as _;

use bellwether_go::value::{Type, Value};
use bellwether_go::{base64, json};
use sha1::Digest as _;

use super::argument::{any, bytes};
use crate::call::{Call, Failure};
use crate::function::{Entry, function};

const ANY: Type = Type::Interface;
const STRING: Type = Type::String;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    function("b64enc", &[STRING], |call, a| {
        call.text(base64::encode(bytes(a, 0)))
    }),
    function("b64dec", &[STRING], |call, a| {
        match decode_base64(bytes(a, 0)) {
            Ok(decoded) => call.text(decoded),
            Err(message) => call.text(message),
        }
    }),
    function("b32enc", &[STRING], |call, a| {
        call.text(encode_base32(bytes(a, 0)))
    }),
    function("b32dec", &[STRING], |call, a| {
        match decode_base32(bytes(a, 0)) {
            Ok(decoded) => call.text(decoded),
            Err(message) => call.text(message),
        }
    }),
    function("sha1sum", &[STRING], |call, a| {
        hashed(call, &sha1::Sha1::digest(bytes(a, 0)), a)
    }),
    function("sha256sum", &[STRING], |call, a| {
        hashed(call, &sha2::Sha256::digest(bytes(a, 0)), a)
    }),
    function("sha512sum", &[STRING], |call, a| {
        hashed(call, &sha2::Sha512::digest(bytes(a, 0)), a)
    }),
    function("adler32sum", &[STRING], |call, a| {
        call.text(adler32(bytes(a, 0)).to_string())
    }),
    function("toJson", &[ANY], |call, a| {
        to_json(call, a, json::Style::COMPACT).or_else(nothing)
    }),
    function("mustToJson", &[ANY], |call, a| {
        to_json(call, a, json::Style::COMPACT)
    }),
    function("toPrettyJson", &[ANY], |call, a| {
        to_json(call, a, json::Style::PRETTY).or_else(nothing)
    }),
    function("mustToPrettyJson", &[ANY], |call, a| {
        to_json(call, a, json::Style::PRETTY)
    }),
    function("toRawJson", &[ANY], |call, a| {
        to_json(call, a, json::Style::RAW)
    }),
    function("mustToRawJson", &[ANY], |call, a| {
        to_json(call, a, json::Style::RAW)
    }),
    function("fromJson", &[STRING], |call, a| {
        from_json(call, a).or_else(|failure| match failure {
            Failure::Message(_) => Ok(Value::Nil),
            exhausted @ Failure::Exhausted(_) => Err(exhausted),
        })
    }),
    function("mustFromJson", &[STRING], from_json),
];

/// What is wrong is left out.
fn nothing(failure: Failure) -> Done {
    match failure {
        Failure::Message(_) => Ok(Value::from("")),
        exhausted @ Failure::Exhausted(_) => Err(exhausted),
    }
}

/// Decodes base64; the error is Go's message.
pub fn decode_base64(text: &[u8]) -> Result<Vec<u8>, String> {
    base64::decode(text).map_err(|error| error.to_string())
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn encode_base32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let bits = chunk
            .iter()
            .chain(std::iter::repeat(&0))
            .take(5)
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let digits = (chunk.len() * 8).div_ceil(5);
        for position in 0..8 {
            let index = usize::try_from(bits >> (35 - 5 * position) & 31).unwrap_or(0);
            out.push(if position < digits {
                char::from(BASE32[index])
            } else {
                '='
            });
        }
    }
    out
}

fn decode_base32(text: &[u8]) -> Result<Vec<u8>, String> {
    let plain: Vec<u8> = text
        .iter()
        .copied()
        .filter(|b| !matches!(b, b'\r' | b'\n'))
        .collect();
    let wrong = |at: usize| format!("illegal base32 data at input byte {at}");
    let mut out = Vec::with_capacity(plain.len() * 5 / 8);
    for (number, chunk) in plain.chunks(8).enumerate() {
        let start = number * 8;
        let digits = chunk
            .iter()
            .position(|byte| *byte == b'=')
            .unwrap_or(chunk.len());
        let mut bits = 0_u64;
        for (index, byte) in chunk[..digits].iter().enumerate() {
            let value = BASE32
                .iter()
                .position(|known| known == byte)
                .ok_or_else(|| wrong(start + index))?;
            bits = bits << 5 | u64::try_from(value).unwrap_or(0);
        }
        if chunk.len() < 8 || !matches!(digits, 2 | 4 | 5 | 7 | 8) {
            return Err(wrong(start + digits.min(chunk.len())));
        }
        bits <<= 5 * (8 - digits);
        let count = digits * 5 / 8;
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + count]);
    }
    Ok(out)
}

fn hashed(call: &mut Call<'_>, digest: &[u8], a: &[Value]) -> Done {
    call.bytes(bytes(a, 0).len())?;
    call.text(hex(digest))
}

/// Two digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}

fn to_json(call: &mut Call<'_>, a: &[Value], style: json::Style) -> Done {
    let mut out = Vec::new();
    match json::append(&mut out, any(a, 0), style, call) {
        Ok(()) => Ok(Value::string(out)),
        Err(json::WriteError::Exhausted(message)) => Err(Failure::Exhausted(message)),
        Err(error) => Err(Failure::Message(error.to_string())),
    }
}

fn from_json(call: &mut Call<'_>, a: &[Value]) -> Done {
    let text = bytes(a, 0);
    call.bytes(text.len().saturating_mul(8))?;
    json::parse(text).map_err(Failure::Message)
}
