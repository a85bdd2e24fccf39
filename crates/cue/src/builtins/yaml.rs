//! Package `encoding/yaml`, and the reader and writer of YAML text it rests on.

mod read;
mod render;
mod scalar;

use super::argument::{Outcome, any, list_elements, text, text_result, valid};
use super::{ANY, BYTES, function};
use crate::value::{Failure, Host, Kind, Package, Param, Value};

pub use self::read::{parse, parse_stream};
pub use self::render::write;

pub(super) static PACKAGE: Package = Package {
    path: "encoding/yaml",
    functions: &[
        function("Marshal", &[ANY], Kind::STRING, marshal),
        function("MarshalStream", &[ANY], Kind::STRING, marshal_stream),
        function("Unmarshal", &[BYTES], Kind::TOP, unmarshal),
        function("UnmarshalStream", &[BYTES], Kind::TOP, unmarshal_stream),
        function("Validate", &[BYTES, Param::schema()], Kind::BOOL, validate),
        function(
            "ValidatePartial",
            &[BYTES, Param::schema()],
            Kind::BOOL,
            validate_partial,
        ),
    ],
    source: "",
};

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
    let documents: Vec<String> = items.iter().map(write).collect();
    text_result(documents.join("---\n"))
}

fn unmarshal(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    parse(text(arguments, 0)?).map_err(Failure::Error)
}

fn unmarshal_stream(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    parse_stream(text(arguments, 0)?)
        .map(Value::list)
        .map_err(Failure::Error)
}

fn validate(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    for document in parse_stream(text(arguments, 0)?).map_err(Failure::Error)? {
        host.matches(&document, any(arguments, 1)?)
            .map_err(Failure::Error)?;
    }
    valid(Ok(()))
}

/// Like [`validate`], but what the schema asks for and the text lacks is no error.
fn validate_partial(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    for document in parse_stream(text(arguments, 0)?).map_err(Failure::Error)? {
        host.matches_partially(&document, any(arguments, 1)?)
            .map_err(Failure::Error)?;
    }
    valid(Ok(()))
}
