//! Package `text/tabwriter`: aligns columns separated by tabs.

use bellwether_go::tabwriter::align;

use super::argument::{Outcome, any, text_result};
use super::{ANY, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "text/tabwriter",
    functions: &[function("Write", &[ANY], Kind::STRING, write)],
    source: "",
};

/// Blanks between a column and the next.
const PADDING: usize = 1;

fn write(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut text = String::new();
    match any(arguments, 0)? {
        Value::List(items) => {
            for item in items.iter() {
                text.push_str(&as_text(item)?);
                text.push('\n');
            }
        }
        other => text = as_text(other)?,
    }
    text_result(align(&text, PADDING))
}

fn as_text(value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text.to_string()),
        Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        other => Err(Failure::error(format!(
            "tabwriter.Write: unsupported type {}",
            other.kind()
        ))),
    }
}
