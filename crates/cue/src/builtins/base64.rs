//! Package `encoding/base64`: the standard alphabet with padding.

use bellwether_go::base64;

use super::argument::{
    Outcome, any, bytes, bytes_result, check_size, int, integer, string, text_result,
};
use super::{ANY, BYTES, INT, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "encoding/base64",
    functions: &[
        function("EncodedLen", &[ANY, INT], Kind::INT, encoded_length),
        function("DecodedLen", &[ANY, INT], Kind::INT, decoded_length),
        function("Encode", &[ANY, BYTES], Kind::STRING, encode),
        function("Decode", &[ANY, STRING], Kind::BYTES, decode),
    ],
    source: "",
};

/// The first argument names an encoding; only `null`, the standard one, exists.
fn check_encoding(arguments: &[Value]) -> Result<(), Failure> {
    match any(arguments, 0)? {
        Value::Null => Ok(()),
        other => Err(Failure::error(format!(
            "base64: unsupported encoding: cannot use value of type {} as null",
            other.kind()
        ))),
    }
}

/// Encodes bytes in the standard alphabet.
pub(crate) fn encode_standard(bytes: &[u8]) -> String {
    base64::encode(bytes)
}

fn encoded_length(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    check_encoding(arguments)?;
    integer(int(arguments, 1)?.saturating_add(2) / 3 * 4)
}

fn decoded_length(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    check_encoding(arguments)?;
    integer(int(arguments, 1)? / 4 * 3)
}

fn encode(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    check_encoding(arguments)?;
    let source = bytes(arguments, 1)?;
    check_size(host, source.len().checked_mul(2))?;
    text_result(encode_standard(source))
}

fn decode(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    check_encoding(arguments)?;
    match base64::decode(string(arguments, 1)?.as_bytes()) {
        Ok(decoded) => bytes_result(decoded),
        Err(error) => Err(Failure::error(error.to_string())),
    }
}
