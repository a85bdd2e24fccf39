//! Package `encoding/toml`.

mod read;
mod render;

use super::argument::{Outcome, any, text, text_result};
use super::{ANY, BYTES, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "encoding/toml",
    functions: &[
        function("Marshal", &[ANY], Kind::STRING, marshal),
        function("Unmarshal", &[BYTES], Kind::TOP, unmarshal),
    ],
    source: "",
};

fn marshal(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(render::write(any(arguments, 0)?).map_err(Failure::Error)?)
}

fn unmarshal(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    read::parse(text(arguments, 0)?).map_err(Failure::Error)
}
