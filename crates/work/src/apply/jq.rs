//! Path expressions of jq, as far as they name fields: `.spec.replicas`, `.a["b"]`, `.a[0]`, `.a[]`,
//! `.a[]?`, `..`, `select(…)` with comparisons and `test`, pipes and commas.
//!
//! Everything else of jq, such as arithmetic, variables and definitions, is refused with a word.

mod parse;
mod run;

use regex::Regex;
use serde_json::Value;

use super::ignore::Location;
use run::value_at;

/// Where the fields are that an expression names and the object has.
pub(super) fn paths(expression: &str, object: &Value) -> Result<Vec<Location>, String> {
    let parsed = parse::parse(expression)
        .map_err(|error| format!("failed to parse jq expression: {error}"))?;
    let found = run::run(&parsed, object)
        .map_err(|error| format!("jq expression returned error: {error}"))?;
    if found.iter().any(Vec::is_empty) {
        return Err("jq expression did not return any data".to_owned());
    }
    let exists = |location: &Location| value_at(object, location).is_some();
    Ok(found.into_iter().filter(exists).collect())
}

/// A filter: gives places for each place.
#[derive(Debug)]
enum Filter {
    Identity,
    Recurse,
    Field(String),
    Index(i64),
    Iterate,
    Try(Box<Filter>),
    Pipe(Vec<Filter>),
    Comma(Vec<Filter>),
    Select(Box<Test>),
}

#[derive(Debug)]
enum Test {
    Or(Box<Test>, Box<Test>),
    And(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Compare(Operand, &'static str, Operand),
    Holds(Operand),
}

#[derive(Debug)]
enum Operand {
    Literal(Value),
    Path(Filter),
    /// A path, and a question about what is there.
    Call(Filter, &'static str, Value),
    /// Whether a text is like a regular expression.
    Matches(Filter, Regex),
}

#[cfg(test)]
mod tests;
