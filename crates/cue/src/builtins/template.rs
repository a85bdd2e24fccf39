//! Package `text/template`: text with actions in double braces, as Go's package of that name reads
//! it, over plain data.
//!
//! Supported are fields, variables, pipelines, `if`, `range`, `with`, `define`, `template`,
//! `block`, `break`, `continue`, comments, trim marks and the predefined functions. What Go offers
//! for method calls has no meaning on plain data and is an error.

mod execute;
mod function;
mod parse;
mod print;
mod scan;

use super::argument::{Outcome, any, string, text_result};
use super::{ANY, STRING, function, html};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "text/template",
    functions: &[
        function("Execute", &[STRING, ANY], Kind::STRING, execute),
        function("HTMLEscape", &[STRING], Kind::STRING, |_, a| {
            text_result(html::escape_text(string(a, 0)?))
        }),
        function("JSEscape", &[STRING], Kind::STRING, |_, a| {
            text_result(function::escape_script(string(a, 0)?))
        }),
    ],
    source: "",
};

fn execute(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let template = parse::parse(string(arguments, 0)?).map_err(Failure::Error)?;
    let output = execute::execute(&template, any(arguments, 1)?, host.output_limit());
    text_result(output.map_err(Failure::Error)?)
}
