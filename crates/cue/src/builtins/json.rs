//! Package `encoding/json`, and the reader and writer of JSON text it rests on.

mod read;
mod render;

use super::argument::{
    Outcome, any, bytes, check_size, list_elements, string, text, text_result, valid,
};
use super::{ANY, BYTES, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Param, Value};

pub use self::read::parse;
pub use self::render::{write, write_indented};
pub(crate) use self::render::{write_string, write_value};

pub(super) static PACKAGE: Package = Package {
    path: "encoding/json",
    functions: &[
        function("Valid", &[BYTES], Kind::BOOL, is_valid),
        function("Compact", &[BYTES], Kind::STRING, compact),
        function("Indent", &[BYTES, STRING, STRING], Kind::STRING, indent),
        function("HTMLEscape", &[BYTES], Kind::STRING, html_escape),
        function("Marshal", &[ANY], Kind::STRING, marshal),
        function("MarshalStream", &[ANY], Kind::STRING, marshal_stream),
        function("UnmarshalStream", &[BYTES], Kind::TOP, unmarshal_stream),
        function("Unmarshal", &[BYTES], Kind::TOP, unmarshal),
        function("Validate", &[BYTES, Param::schema()], Kind::BOOL, validate),
    ],
    source: "",
};

fn is_valid(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let source = std::str::from_utf8(bytes(arguments, 0)?);
    Ok(Value::Bool(
        source.is_ok_and(|source| read::parse(source).is_ok()),
    ))
}

fn compact(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let source = text(arguments, 0)?;
    read::check(source).map_err(Failure::Error)?;
    text_result(render::compact(source))
}

fn indent(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let source = text(arguments, 0)?;
    read::check(source).map_err(Failure::Error)?;
    let (prefix, indent) = (string(arguments, 1)?, string(arguments, 2)?);
    let result = render::indent(source, prefix, indent, host.output_limit());
    text_result(result.ok_or_else(|| too_large(host))?)
}

fn too_large(host: &dyn Host) -> Failure {
    match check_size(host, None) {
        Err(failure) => failure,
        Ok(()) => Failure::error("evaluation limit exceeded: builtin output"),
    }
}

fn html_escape(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut escaped = String::new();
    for character in text(arguments, 0)?.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            _ => escaped.push(character),
        }
    }
    text_result(escaped)
}

fn marshal(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(write(any(arguments, 0)?))
}

fn marshal_stream(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let argument = any(arguments, 0)?;
    let Some(items) = list_elements(host, argument) else {
        let kind = argument.kind();
        return Err(Failure::error(format!(
            "cannot use value of type {kind} as list"
        )));
    };
    let mut stream = String::new();
    for item in &items {
        stream.push_str(&write(item));
        stream.push('\n');
    }
    text_result(stream)
}

fn unmarshal(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    parse(text(arguments, 0)?).map_err(|_| Failure::error("json: invalid JSON"))
}

fn unmarshal_stream(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    read::parse_stream(text(arguments, 0)?)
        .map(Value::list)
        .map_err(Failure::Error)
}

fn validate(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let data = unmarshal(host, arguments)?;
    valid(host.matches(&data, any(arguments, 1)?))
}
