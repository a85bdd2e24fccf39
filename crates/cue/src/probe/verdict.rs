//! Verdicts on single fields: a value, an error, or absent.

use super::{Fields, field};
use crate::host::{Evaluation, FieldOptions, Handle};
use crate::label::{is_identifier, quote};
use crate::value::{Kind, Value};

/// How deep verdicts go below the root.
const DEPTH_LIMIT: usize = 3;

/// Verdicts on the given paths.
pub(super) fn at_paths(evaluation: &mut Evaluation, paths: &[String]) -> Fields {
    let root = evaluation.root();
    let mut result = Vec::new();
    for path in paths {
        let names: Vec<&str> = path.split('.').collect();
        let verdict = match evaluation.lookup_path(root, &names) {
            Some(value) => judge(evaluation, value).0,
            None => Value::structure([field("absent", Value::Bool(true))]),
        };
        result.push(field(path, verdict));
    }
    result
}

/// Verdicts on all regular fields, going into structs that are merely incomplete.
pub(super) fn below_root(evaluation: &mut Evaluation) -> Fields {
    let root = evaluation.root();
    let mut result = Vec::new();
    descend(evaluation, root, "", 1, &mut result);
    result
}

fn descend(
    evaluation: &mut Evaluation,
    value: Handle,
    prefix: &str,
    depth: usize,
    result: &mut Fields,
) {
    for entry in evaluation.fields(value, FieldOptions::default()) {
        let name = if is_identifier(&entry.name) {
            entry.name.to_string()
        } else {
            quote(&entry.name)
        };
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        let (verdict, incomplete) = judge(evaluation, entry.value);
        result.push(field(&path, verdict));
        if incomplete
            && depth < DEPTH_LIMIT
            && evaluation.concrete_kind(entry.value) == Kind::STRUCT
        {
            descend(evaluation, entry.value, &path, depth + 1, result);
        }
    }
}

/// The verdict on a value, and whether it is merely incomplete.
fn judge(evaluation: &mut Evaluation, value: Handle) -> (Value, bool) {
    let problems = evaluation.validate(value);
    if let Some(problem) = problems.first() {
        let verdict = Value::structure([
            field("err", Value::string("error")),
            field("code", Value::string(problem.code.name())),
            field("msg", Value::string(problem.to_string())),
        ]);
        return (verdict, false);
    }
    match evaluation.export(value) {
        Ok(value) => (Value::structure([field("v", value)]), false),
        Err(problem) => {
            let verdict = Value::structure([
                field("err", Value::string("incomplete")),
                field("code", Value::string(problem.code.name())),
                field("msg", Value::string(problem.to_string())),
            ]);
            (verdict, true)
        }
    }
}
