//! Package `uuid`.

use num_bigint::{BigInt, Sign};

use super::argument::{Outcome, big, bytes, integer, string, text_result, valid};
use super::{BYTES, INT, STRING, crypto, function, hex};
use crate::number::Number;
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "uuid",
    functions: &[
        function("Valid", &[STRING], Kind::BOOL, is_valid),
        function("Parse", &[STRING], Kind::STRING, parse_text),
        function("URN", &[STRING], Kind::STRING, urn),
        function("FromInt", &[INT], Kind::STRING, from_int),
        function("ToInt", &[STRING], Kind::INT, to_int),
        function("Variant", &[STRING], Kind::INT, variant),
        function("Version", &[STRING], Kind::INT, version),
        function("SHA1", &[STRING, BYTES], Kind::STRING, |_, arguments| {
            from_name(arguments, 5)
        }),
        function("MD5", &[STRING, BYTES], Kind::STRING, |_, arguments| {
            from_name(arguments, 3)
        }),
    ],
    source: "
ns: {
	DNS:  \"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"
	URL:  \"6ba7b811-9dad-11d1-80b4-00c04fd430c8\"
	OID:  \"6ba7b812-9dad-11d1-80b4-00c04fd430c8\"
	X500: \"6ba7b814-9dad-11d1-80b4-00c04fd430c8\"
	Nil:  \"00000000-0000-0000-0000-000000000000\"
}
variants: {
	Invalid:   0
	RFC4122:   1
	Reserved:  2
	Microsoft: 3
	Future:    4
}
",
};

type Uuid = [u8; 16];

/// Reads the plain form, `urn:uuid:…`, `{…}` or bare digits.
fn parse(text: &str) -> Result<Uuid, String> {
    let body = match text.len() {
        36 | 32 => text,
        45 if text
            .get(..9)
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case("urn:uuid:")) =>
        {
            &text[9..]
        }
        45 => {
            return Err(format!(
                "invalid urn prefix: {:?}",
                text.get(..9).unwrap_or(text)
            ));
        }
        38 => text
            .strip_prefix('{')
            .and_then(|inner| inner.strip_suffix('}'))
            .ok_or("invalid UUID format")?,
        length => return Err(format!("invalid UUID length: {length}")),
    };
    let digits: String = if body.len() == 36 {
        let dashes = [8, 13, 18, 23];
        if dashes
            .iter()
            .any(|position| body.as_bytes()[*position] != b'-')
        {
            return Err("invalid UUID format".to_owned());
        }
        body.replace('-', "")
    } else {
        body.to_owned()
    };
    let number = u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| digits.len() == 32);
    number
        .map(u128::to_be_bytes)
        .ok_or_else(|| "invalid UUID format".to_owned())
}

fn argument(arguments: &[Value]) -> Result<Uuid, Failure> {
    parse(string(arguments, 0)?).map_err(Failure::Error)
}

fn show(uuid: Uuid) -> String {
    let digits = hex::encode_bytes(&uuid);
    let groups = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    groups.join("-")
}

fn is_valid(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    valid(parse(string(arguments, 0)?))
}

fn parse_text(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(show(argument(arguments)?))
}

fn urn(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(format!("urn:uuid:{}", show(argument(arguments)?)))
}

fn from_int(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let value = big(arguments, 0)?;
    let Ok(number) = u128::try_from(value.magnitude()) else {
        let length = value.magnitude().to_bytes_be().len();
        return Err(Failure::error(format!("invalid UUID (got {length} bytes)")));
    };
    text_result(show(number.to_be_bytes()))
}

/// The text itself read as a big-endian number, which is what the reference does.
fn to_int(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let value = BigInt::from_bytes_be(Sign::Plus, string(arguments, 0)?.as_bytes());
    Ok(Value::Number(Number::from_big(value)))
}

fn variant(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let byte = argument(arguments)?[8];
    integer(match byte {
        0x80..=0xbf => 1i64,
        0xc0..=0xdf => 3,
        0xe0..=0xff => 4,
        _ => 2,
    })
}

fn version(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(i64::from(argument(arguments)?[6] >> 4))
}

fn from_name(arguments: &[Value], version: u8) -> Outcome {
    let space = argument(arguments)?;
    let digest = crypto::name_digest(version, [&space, bytes(arguments, 1)?]);
    let mut uuid: Uuid = [0; 16];
    uuid.copy_from_slice(&digest[..16]);
    uuid[6] = (uuid[6] & 0x0f) | (version << 4);
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    text_result(show(uuid))
}
