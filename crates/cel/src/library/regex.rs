//! Regular expressions in RE2's syntax, for `matches`, `find` and `findAll`.

mod translate;

use super::{int, text};
use crate::declaration::{Functions, Outcome};
use crate::error::EvalError;
use crate::value::Value;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(regex::Regex);

/// Compiles a pattern written for RE2.
pub(crate) fn compile(pattern: &str) -> Result<Pattern, EvalError> {
    let translated = translate::translate(pattern)
        .map_err(|reason| EvalError::failed(format!("error parsing regexp: {reason}")))?;
    regex::Regex::new(&translated)
        .map(Pattern)
        .map_err(|error| EvalError::failed(describe(pattern, &error.to_string())))
}

/// What is wrong with a pattern, in Go's words where there are such.
fn describe(pattern: &str, error: &str) -> String {
    // The last line says what is wrong; those before it repeat the pattern.
    let reason = error.lines().last().unwrap_or_default().trim();
    let reason = reason.trim_start_matches("error: ");
    let (reason, part) = match reason {
        "unclosed group" => ("missing closing )", pattern),
        "unclosed character class" => {
            let start = pattern.rfind('[').unwrap_or(0);
            ("missing closing ]", &pattern[start..])
        }
        "unopened group" => ("unexpected )", pattern),
        "incomplete escape sequence, reached end of pattern prematurely" => {
            ("trailing backslash at end of expression", "")
        }
        other => (other, pattern),
    };
    format!("error parsing regexp: {reason}: `{part}`")
}

impl Pattern {
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first match; empty if there is none.
    fn find<'a>(&self, text: &str) -> Value<'a> {
        Value::text(self.0.find(text).map_or("", |found| found.as_str()))
    }

    /// All matches, or the first `limit`; a negative limit means all.
    fn find_all<'a>(&self, text: &str, limit: i64) -> Value<'a> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found = self
            .0
            .find_iter(text)
            .take(limit)
            .map(|found| Value::text(found.as_str()))
            .collect();
        Value::list(found)
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
