//! The search for the next action of a template: inner ones first, in the order of the source or as `@step(n)` says.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bellwether_cue::host::{Evaluation, FieldOptions, Handle, SyntaxOptions};
use bellwether_cue::value::Kind;
use serde_json::{Map, Value};

use super::{Call, Found};
use crate::action::full_name;
use crate::path::Segment;

/// Values are not searched for actions deeper than this.
const DEEPEST: usize = 64;
/// How the message begins of a reference to a field that is not there.
const UNDEFINED: &str = "undefined field";
/// Fields of the root that hold data only.
const DATA: &[&str] = &["context", "parameter", "parameters"];

/// The search for the next action.
pub(super) struct Search<'a> {
    pub(super) executed: &'a BTreeSet<String>,
    /// What is wrong with the first action whose parameters are not known.
    pub(super) incomplete: Option<String>,
}

impl Search<'_> {
    /// Finds the first action in a value that can be carried out, or fails.
    pub(super) fn visit(
        &mut self,
        evaluation: &mut Evaluation,
        value: Handle,
        path: &mut Vec<Segment>,
    ) -> Option<Found> {
        if path.len() > DEEPEST {
            return None;
        }
        let kind = evaluation.kind(value);
        if kind == Kind::LIST {
            let elements = evaluation.elements(value);
            for (index, element) in elements.into_iter().enumerate() {
                path.push(Segment::Index(index));
                let found = self.visit(evaluation, element, path);
                path.pop();
                if found.is_some() {
                    return found;
                }
            }
            return None;
        }
        let children = children(evaluation, value, path.is_empty());
        // A struct with a condition that cannot be judged yet is no struct so far, but has fields.
        if !kind.intersects(Kind::STRUCT) && children.is_empty() {
            return None;
        }
        for (name, child) in children {
            path.push(Segment::Field(name));
            let found = self.visit(evaluation, child, path);
            path.pop();
            if found.is_some() {
                return found;
            }
        }
        self.action(evaluation, value, path)
    }

    /// The action that a struct is, if it is one and was not carried out.
    fn action(
        &mut self,
        evaluation: &mut Evaluation,
        value: Handle,
        segments: &[Segment],
    ) -> Option<Found> {
        let action = text(evaluation, value, "#do")?;
        let path = path_text(segments);
        if self.executed.contains(&path) {
            return None;
        }
        let provider = text(evaluation, value, "#provider").unwrap_or_default();
        let name = match full_name(&provider, &action) {
            Ok(name) => name,
            Err(problem) => return Some(Found::Failed(problem)),
        };
        let params_of_new = evaluation.lookup(value, "$params");
        let is_op = params_of_new.is_none() && (provider == "op" || provider.is_empty());
        let params = match (is_op, params_of_new) {
            (true, _) => evaluation.export_json(value),
            (false, Some(params)) => evaluation.export_json(params),
            (false, None) => Ok(Value::Object(Map::new())),
        };
        match params {
            Ok(params) => {
                let holder = params_of_new.unwrap_or(value);
                let change = evaluation.lookup(holder, "patch");
                let change = change.and_then(|change| {
                    let options = SyntaxOptions {
                        docs: true,
                        ..SyntaxOptions::default()
                    };
                    evaluation.source(change, options).ok()
                });
                Some(Found::Call(Box::new(Call {
                    path,
                    name,
                    params,
                    patch: change,
                    segments: segments.to_vec(),
                    is_op,
                })))
            }
            Err(problem) => {
                let holder = params_of_new.unwrap_or(value);
                // A field that is not there yet may come with the next look.
                let problems = evaluation.validate(holder);
                let is_wrong = problems.iter().any(|it| !it.message.starts_with(UNDEFINED));
                if name == "builtin.wait" && !is_wrong {
                    let message = text(evaluation, holder, "message").unwrap_or_default();
                    return Some(Found::Wait { message });
                }
                let problem =
                    format!("function call error for {path}: cue: marshal error: {problem}");
                if is_wrong {
                    return Some(Found::Failed(problem));
                }
                self.incomplete.get_or_insert(problem);
                None
            }
        }
    }
}

/// A field that is a string.
fn text(evaluation: &mut Evaluation, value: Handle, name: &str) -> Option<String> {
    let field = evaluation.lookup(value, name)?;
    match evaluation.export_json(field) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// The fields that may hold actions, those with `@step(n)` first.
fn children(evaluation: &mut Evaluation, value: Handle, is_root: bool) -> Vec<(String, Handle)> {
    let options = FieldOptions {
        hidden: true,
        ..FieldOptions::default()
    };
    let mut fields: Vec<(i64, String, Handle)> = Vec::new();
    for field in evaluation.fields(value, options) {
        let name = field.name.to_string();
        if name == "$returns" || (is_root && DATA.contains(&name.as_str())) {
            continue;
        }
        let position = step_attribute(evaluation, field.value).unwrap_or(i64::MAX);
        fields.push((position, name, field.value));
    }
    fields.sort_by_key(|(position, ..)| *position);
    fields
        .into_iter()
        .map(|(_, name, value)| (name, value))
        .collect()
}

/// The number in `@step(n)`.
fn step_attribute(evaluation: &mut Evaluation, value: Handle) -> Option<i64> {
    evaluation.metas(value).iter().find_map(|meta| {
        meta.attributes.iter().find_map(|attribute| {
            let text = attribute.text.strip_prefix("@step(")?;
            text.strip_suffix(')')?.trim().parse().ok()
        })
    })
}

/// The path of an action as messages have it.
fn path_text(segments: &[Segment]) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            Segment::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Index(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}
