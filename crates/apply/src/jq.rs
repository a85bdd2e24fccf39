//! Path expressions of jq, as far as they name fields: `.spec.replicas`, `.a["b"]`, `.a[0]`, `.a[1:]`,
//! `.a[]`, `.a[]?`, `..`, `first(…)`, `getpath(…)`, `select(…)` with comparisons and questions, pipes,
//! commas and alternatives.
//!
//! Everything else of jq, such as arithmetic, variables and definitions, is refused with an error message.

mod ask;
mod parse;
mod run;

use regex::Regex;
use serde_json::Value;

use crate::fields::{FieldError, Location};
use run::{Meter, Stop, value_at};

/// Where the fields are that an expression names and the object has.
pub(crate) fn paths(expression: &str, object: &Value) -> Result<Vec<Location>, FieldError> {
    let wrong = |problem: String| FieldError::Jq {
        expression: expression.to_owned(),
        problem,
    };
    let parsed = parse::parse(expression)
        .map_err(|error| wrong(format!("failed to parse jq expression: {error}")))?;
    let mut meter = Meter::default();
    let found = run::run(&parsed, object, &mut meter).map_err(|stop| match stop {
        Stop::Wrong(error) => wrong(format!("jq expression returned error: {error}")),
        Stop::OverBudget => FieldError::Budget {
            expression: expression.to_owned(),
            budget: Meter::BUDGET,
        },
    })?;
    if found.iter().any(Vec::is_empty) {
        return Err(wrong("jq expression did not return any data".to_owned()));
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
    /// The items of a list from here to there.
    Slice(Option<i64>, Option<i64>),
    Try(Box<Filter>),
    First(Box<Filter>),
    Last(Box<Filter>),
    /// The first that gives anything but nulls and falsehoods, or else the last.
    Alternative(Vec<Filter>),
    Pipe(Vec<Filter>),
    Comma(Vec<Filter>),
    Select(Box<Test>),
}

#[derive(Debug)]
enum Test {
    Or(Vec<Test>),
    And(Vec<Test>),
    Not(Box<Test>),
    Compare(Operand, &'static str, Operand),
    Holds(Operand),
}

#[derive(Debug)]
enum Operand {
    Literal(Value),
    Path(Filter),
    /// A question about a value.
    Call(Box<Operand>, Question),
}

/// What is asked of a value in a test.
#[derive(Debug)]
enum Question {
    Has(Value),
    StartsWith(String),
    EndsWith(String),
    Contains(Value),
    /// Whether a text is like a regular expression.
    Matches(Regex),
    /// Whether it is one of these.
    Among(Vec<Value>),
    Length,
    Type,
    Lowercase,
    Uppercase,
    /// Whether a test holds for any, or for all, of what a filter gives.
    Quantified {
        any: bool,
        of: Filter,
        test: Box<Test>,
    },
}

#[cfg(test)]
mod tests;
