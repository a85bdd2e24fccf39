//! Conformance: one record in, one answer out.
//!
//! A record is a line of JSON that holds sources and what kind of run is wanted; the answer has the
//! record's `id` and the fields that a record's expectation would have: status, phase, the JSON
//! value, the errors, and verdicts on single fields. [`answer`] never fails: a line that cannot be
//! understood is answered with an error of its own.

mod pipeline;
mod verdict;

use std::sync::Arc;

use crate::builtins::{parse_json, write_json};
use crate::diagnostic::{Diagnostic, Phase};
use crate::host::{Budget, Evaluation, Template};
use crate::patch::{Operand, Strategy, apply};
use crate::value::Value;

/// Answers one record.
pub fn answer(line: &str, budget: Budget) -> String {
    let record = match parse_json(line) {
        Ok(record) => record,
        Err(message) => return write_json(&failure("", "read", message)),
    };
    let id = text(&record, "id").unwrap_or("");
    let fields = match text(&record, "kind").unwrap_or("cue") {
        "cue" | "render" | "probe" => evaluate(&record, budget),
        "pipeline" => pipeline::run(&record, budget),
        "patch" => patch(&record, budget),
        other => return write_json(&failure(id, "read", format!("unknown kind {other:?}"))),
    };
    let mut answer = vec![field("id", Value::string(id))];
    answer.extend(fields);
    write_json(&Value::structure(answer))
}

type Fields = Vec<(Arc<str>, Value)>;

fn field(label: &str, value: Value) -> (Arc<str>, Value) {
    (label.into(), value)
}

fn failure(id: &str, stage: &str, message: String) -> Value {
    Value::structure([
        field("id", Value::string(id)),
        field("status", Value::string("error")),
        field("stage", Value::string(stage)),
        field("msg", Value::string(message)),
    ])
}

/// A string field of a record.
fn text<'a>(record: &'a Value, label: &str) -> Option<&'a str> {
    match record.field(label) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// The files of a record, and the packages it may import.
fn compiled(record: &Value) -> Result<Template, Vec<Diagnostic>> {
    let mut files = Vec::new();
    if let Some(Value::List(entries)) = record.field("files") {
        for entry in entries.iter() {
            files.push((
                text(entry, "name").unwrap_or("-"),
                text(entry, "src").unwrap_or(""),
            ));
        }
    }
    let mut packages = Vec::new();
    if let Some(Value::Struct(entries)) = record.field("imports") {
        for (path, source) in entries.iter() {
            if let Value::String(source) = source {
                packages.push((&**path, &**source));
            }
        }
    }
    Template::compile_files(&files, &packages)
}

fn evaluate(record: &Value, budget: Budget) -> Fields {
    let template = match compiled(record) {
        Ok(template) => template,
        Err(problems) => return rejected(&problems),
    };
    let mut evaluation = template.evaluate(budget).strict();
    let root = evaluation.root();
    let mut answer = Vec::new();
    let wanted = wanted_paths(record);
    let final_problems = evaluation.validate(root);
    let (status, problems) = if final_problems.is_empty() {
        let problems = evaluation.validate_concrete(root);
        (
            if problems.is_empty() {
                "ok"
            } else {
                "incomplete"
            },
            problems,
        )
    } else {
        ("error", final_problems)
    };
    let exported = if status == "ok" {
        Some(evaluation.export(root))
    } else {
        None
    };
    match exported {
        Some(Ok(value)) => {
            answer.push(field("status", Value::string("ok")));
            answer.push(field("phase", Value::string("eval")));
            answer.push(field("json", value));
        }
        Some(Err(problem)) => answer.extend(failed("incomplete", &[problem])),
        None => answer.extend(failed(status, &problems)),
    }
    let fields = match wanted {
        Some(paths) => verdict::at_paths(&mut evaluation, &paths),
        None if status == "ok" => Vec::new(),
        None => verdict::below_root(&mut evaluation),
    };
    if !fields.is_empty() {
        answer.push(field("fields", Value::structure(fields)));
    }
    answer
}

fn wanted_paths(record: &Value) -> Option<Vec<String>> {
    let Some(Value::List(paths)) = record.field("probe") else {
        return None;
    };
    let text = |path: &Value| match path {
        Value::String(path) => Some(path.to_string()),
        _ => None,
    };
    Some(paths.iter().filter_map(text).collect())
}

fn rejected(problems: &[Diagnostic]) -> Fields {
    let parse = problems.iter().any(|problem| problem.phase == Phase::Parse);
    vec![
        field("status", Value::string("error")),
        field(
            "phase",
            Value::string(if parse { "parse" } else { "build" }),
        ),
        field("errs", errors(problems)),
    ]
}

fn failed(status: &str, problems: &[Diagnostic]) -> Fields {
    vec![
        field("status", Value::string(status)),
        field("phase", Value::string("eval")),
        field("errs", errors(problems)),
    ]
}

/// Answers list no more errors than this.
const ERROR_LIMIT: usize = 6;

fn errors(problems: &[Diagnostic]) -> Value {
    Value::list(problems.iter().take(ERROR_LIMIT).map(|problem| {
        let mut entry = Vec::new();
        if !problem.path.is_empty() {
            entry.push(field("path", Value::string(problem.path_text())));
        }
        entry.push(field("msg", Value::string(problem.message.as_str())));
        if let Some(location) = &problem.location {
            entry.push(field("pos", Value::string(location.to_string())));
        }
        Value::structure(entry)
    }))
}

fn patch(record: &Value, budget: Budget) -> Fields {
    let operand = |label: &str| -> Result<Evaluation, Vec<Diagnostic>> {
        Ok(Template::compile(text(record, label).unwrap_or(""))?.evaluate(budget))
    };
    let (mut base, mut patch) = match (operand("base"), operand("patch")) {
        (Ok(base), Ok(patch)) => (base, patch),
        (Err(problems), _) | (_, Err(problems)) => return rejected(&problems),
    };
    let (base_root, patch_root) = (base.root(), patch.root());
    let merged = apply(
        Operand {
            evaluation: &mut base,
            value: base_root,
        },
        Operand {
            evaluation: &mut patch,
            value: patch_root,
        },
        Strategy::Unify,
        budget,
    );
    let mut merged = match merged {
        Ok(merged) => merged,
        Err(error) => return message(error.to_string()),
    };
    let root = merged.root();
    match merged.export(root) {
        Ok(value) => vec![field("status", Value::string("ok")), field("json", value)],
        Err(problem) => message(format!("cue: marshal error: {problem}")),
    }
}

fn message(text: String) -> Fields {
    vec![
        field("status", Value::string("error")),
        field("msg", Value::string(text)),
    ]
}
