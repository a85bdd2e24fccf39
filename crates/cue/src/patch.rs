//! Trait patches: merging one evaluated value into another, steered by markers in comments.
//!
//! A patch unifies with its base, so defaults of the base can be overridden and conflicts are
//! errors. Comment markers on fields of the patch change that: `// +patchKey=name` aligns the
//! elements of a list by a field, `// +patchStrategy=retainKeys` and `replace` put the patch's
//! value in the place of the base's. A marker on the patch itself may ask for RFC 7396 or RFC 6902
//! instead. [`apply`] is the entry point.
//!
//! The rules, with their quirks, are those of kubevela/workflow: pkg/cue/model/sets.

mod json;
mod merge;

#[cfg(test)]
mod tests;

use crate::compile::{compile_pair, compile_tree};
use crate::diagnostic::Diagnostic;
use crate::host::{Budget, Evaluation, Handle, Template};
use crate::ir::Program;
use crate::tree::Tree;
use crate::value::Value;

/// How a patch as a whole is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Unification, with the markers of single fields.
    #[default]
    Unify,
    /// RFC 7396.
    JsonMergePatch,
    /// RFC 6902, with the operations in the field `operations`.
    JsonPatch,
}

/// Why a patch could not be applied.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PatchError {
    /// The merged value has problems that no further data can resolve.
    #[error("result check err: {}", first(.0))]
    Result(Vec<Diagnostic>),
    /// Base or patch cannot become JSON, which the JSON strategies need.
    #[error("failed to marshal {part} value: {problem}")]
    Marshal {
        /// `base` or `patch`.
        part: &'static str,
        /// What is wrong with it.
        problem: Box<Diagnostic>,
    },
    /// A JSON patch that does not apply.
    #[error("failed to apply json patch: {0}")]
    Json(String),
}

impl PatchError {
    /// The problems behind the error, where it has any.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Result(problems) => problems,
            Self::Marshal { problem, .. } => std::slice::from_ref(problem),
            Self::Json(_) => &[],
        }
    }
}

fn first(problems: &[Diagnostic]) -> String {
    match problems {
        [] => "unknown problem".to_owned(),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more errors)", rest.len()),
    }
}

/// The markers in comment lines: `// +name=value`, where the value is one word.
pub fn markers<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for line in lines {
        let text = line.strip_prefix("//").unwrap_or(line).trim();
        let Some((name, value)) = text.strip_prefix('+').and_then(|rest| rest.split_once('='))
        else {
            continue;
        };
        let value = value.trim();
        if value.split_whitespace().count() <= 1 {
            found.push((name.trim(), value));
        }
    }
    found
}

/// The value of a marker in comment lines; the last one counts.
pub fn marker<'a>(lines: impl IntoIterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    markers(lines)
        .into_iter()
        .rev()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// The strategy that the comments of a patch field ask for.
pub fn strategy(evaluation: &mut Evaluation, patch: Handle) -> Strategy {
    let metas = evaluation.metas(patch);
    let lines = metas
        .iter()
        .flat_map(|meta| meta.docs.iter())
        .map(|line| &**line);
    match marker(lines, "patchStrategy") {
        Some("jsonMergePatch") => Strategy::JsonMergePatch,
        Some("jsonPatch") => Strategy::JsonPatch,
        _ => Strategy::Unify,
    }
}

/// A value inside an evaluation, as base or patch.
#[derive(Debug)]
pub struct Operand<'a> {
    /// The evaluation that holds the value.
    pub evaluation: &'a mut Evaluation,
    /// The value.
    pub value: Handle,
}

/// Merges a patch into a base. The result is the root of a new evaluation; its defaults are still
/// open, so that further patches can override them.
pub fn apply(
    mut base: Operand<'_>,
    mut patch: Operand<'_>,
    strategy: Strategy,
    budget: Budget,
) -> Result<Evaluation, PatchError> {
    match strategy {
        Strategy::Unify => unify(base, patch, budget),
        Strategy::JsonMergePatch => {
            let base = exported(&mut base, "base")?;
            let merged = json::merge_patch(&base, &exported(&mut patch, "patch")?);
            evaluated_data(&json::rewritten(&merged), budget)
        }
        Strategy::JsonPatch => {
            let operations = patch.evaluation.lookup(patch.value, "operations");
            let Some(value) = operations else {
                return Err(PatchError::Json("field operations is missing".to_owned()));
            };
            let operations = exported(
                &mut Operand {
                    evaluation: patch.evaluation,
                    value,
                },
                "patch",
            )?;
            let base = exported(&mut base, "base")?;
            let patched = json::apply_operations(&base, &operations).map_err(PatchError::Json)?;
            evaluated_data(&json::rewritten(&patched), budget)
        }
    }
}

fn exported(operand: &mut Operand<'_>, part: &'static str) -> Result<Value, PatchError> {
    operand
        .evaluation
        .export(operand.value)
        .map_err(|problem| PatchError::Marshal {
            part,
            problem: Box::new(problem),
        })
}

fn unify(
    mut base: Operand<'_>,
    mut patch: Operand<'_>,
    budget: Budget,
) -> Result<Evaluation, PatchError> {
    let mut base = tree(&mut base)?;
    let mut patch = tree(&mut patch)?;
    base.open_lists();
    merge::align(&mut base, &mut patch);
    // Fields of the one come before those of the other in the order of these names.
    let program = compile_pair(("base", &base), ("patch", &patch));
    evaluated(program.map_err(without_places)?, budget)
}

/// An operand as a tree.
fn tree(operand: &mut Operand<'_>) -> Result<Tree, PatchError> {
    let problems = operand.evaluation.validate(operand.value);
    if !problems.is_empty() {
        return Err(PatchError::Result(problems));
    }
    let tree = operand.evaluation.tree(operand.value);
    tree.map_err(|problem| PatchError::Result(vec![problem]))
}

/// The evaluation of plain data.
fn evaluated_data(value: &Value, budget: Budget) -> Result<Evaluation, PatchError> {
    let program = compile_tree("base", &Tree::of(value));
    evaluated(program.map_err(without_places)?, budget)
}

/// Evaluates a merged value and checks it.
fn evaluated(program: Program, budget: Budget) -> Result<Evaluation, PatchError> {
    let mut evaluation = Template::new(program).evaluate(budget);
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    if problems.is_empty() {
        Ok(evaluation)
    } else {
        Err(without_places(problems))
    }
}

/// The places of what is written nowhere mean nothing.
fn without_places(mut problems: Vec<Diagnostic>) -> PatchError {
    for problem in &mut problems {
        problem.location = None;
        problem.related.clear();
    }
    PatchError::Result(problems)
}
