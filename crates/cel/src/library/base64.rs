//! `base64.encode` and `base64.decode`.

use bellwether_go::base64::{decode, decode_unpadded, encode};

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::Value;

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "base64_decode_string",
        "base64.decode(string) -> bytes",
        |a| {
            let text = text(a, 0)?.as_bytes();
            // Text without padding is accepted as well.
            let decoded = decode(text).or_else(|_| decode_unpadded(text));
            let decoded = decoded.map_err(|error| EvalError::failed(error.to_string()))?;
            Ok(Value::Bytes(decoded.into()))
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
