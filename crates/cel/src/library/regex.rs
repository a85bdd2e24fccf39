//! Regular expressions in RE2's syntax, for `matches`, `find` and `findAll`.

use bellwether_go::regexp::Regex;

use super::{int, text};
use crate::declaration::{Functions, Outcome};
use crate::error::EvalError;
use crate::value::Value;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

/// Compiles a pattern written for RE2.
pub(crate) fn compile(pattern: &str) -> Result<Pattern, EvalError> {
    Regex::new(pattern)
        .map(Pattern)
        .map_err(|reason| EvalError::failed(format!("error parsing regexp: {reason}")))
}

impl Pattern {
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first match; empty if there is none.
    fn find<'a>(&self, text: &str) -> Value<'a> {
        Value::text(self.0.find_all(text, 1).pop().unwrap_or_default())
    }

    /// All matches, or the first `limit`; a negative limit means all.
    fn find_all<'a>(&self, text: &str, limit: i64) -> Value<'a> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found = self.0.find_all(text, limit);
        Value::list(found.into_iter().map(Value::text).collect())
    }

    /// Calls the function that has this pattern as its second argument.
    pub(crate) fn call<'a>(&self, function: &str, arguments: &[Value<'a>]) -> Outcome<'a> {
        let Some(Value::String(text)) = arguments.first() else {
            return Err(match function {
                "matches" => EvalError::failed("no such overload: matches"),
                _ => EvalError::failed(format!(
                    "no such overload: {function}({})",
                    arguments
                        .iter()
                        .map(Value::type_name)
                        .collect::<Vec<_>>()
                        .join(", ")
                )),
            });
        };
        Ok(match function {
            "matches" => Value::Bool(self.is_match(text)),
            "find" => self.find(text),
            _ => match arguments.get(2) {
                None => self.find_all(text, -1),
                Some(_) => self.find_all(text, int(arguments, 2)?),
            },
        })
    }
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "string_find_string",
        "string::find(string) -> string",
        |a| compile(text(a, 1)?)?.call("find", a),
    );
    functions.add(
        "string_find_all_string",
        "string::findAll(string) -> list(string)",
        |a| compile(text(a, 1)?)?.call("findAll", a),
    );
    functions.add(
        "string_find_all_string_int",
        "string::findAll(string, int) -> list(string)",
        |a| compile(text(a, 1)?)?.call("findAll", a),
    );
}
