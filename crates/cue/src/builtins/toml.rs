//! Package `encoding/toml`.

mod render;

use std::sync::Arc;

use bellwether_go::toml::{self, Item};

use super::argument::{Outcome, any, text, text_result};
use super::{ANY, BYTES, function};
use crate::number::Number;
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
    let item = toml::parse(text(arguments, 0)?).map_err(Failure::Error)?;
    to_value(item)
}

/// Dates and times stay text.
fn to_value(item: Item) -> Outcome {
    Ok(match item {
        Item::Bool(value) => Value::Bool(value),
        Item::Number(text) => match Number::parse_literal(&text) {
            Ok(number) => Value::Number(number),
            Err(_) => return Err(Failure::error(format!("toml: invalid value {text:?}"))),
        },
        Item::Time(text) | Item::String(text) => Value::string(text),
        Item::Array(items) => {
            let items = items.into_iter().map(to_value);
            Value::list(items.collect::<Result<Vec<_>, _>>()?)
        }
        Item::Table(entries) => {
            let mut fields = Vec::new();
            for (label, item) in entries {
                fields.push((Arc::from(label), to_value(item)?));
            }
            Value::structure(fields)
        }
    })
}
