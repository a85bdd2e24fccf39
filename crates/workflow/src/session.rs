//! The execution of one step: its template, evaluated with the results of its actions so far.
//!
//! [`Session::run`] finds the next action whose parameters are known; [`Session::complete`] fills in what came
//! of it. Actions are found anywhere in the value, inner ones first, in the order of the source or as
//! `@step(n)` says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use bellwether_api::workflow::StepResource;
use bellwether_cue::host::{ArcKind, Evaluation, FieldOptions, Handle, SyntaxOptions};
use bellwether_cue::value::Kind;
use serde_json::{Map, Value};

use crate::action::{OBJECT, full_name, result_of_op};
use crate::definition::{Definition, StepData, describe};
use crate::path::{self, Segment};

/// Values are not searched for actions deeper than this.
const DEEPEST: usize = 64;
/// No step has more actions than this.
const MOST_ACTIONS: usize = 10_000;
/// The field with the object that a step without actions consists of.
const OUTPUT: &str = "output";
/// How the message begins of a reference to a field that is not there.
const UNDEFINED: &str = "undefined field";
/// Fields of the root that hold data only.
const DATA: &[&str] = &["context", "parameter", "parameters"];

/// An action of a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Where in the template it is.
    pub path: String,
    /// Its full name, such as `kube.apply`.
    pub name: String,
    /// Its parameters.
    pub params: Value,
    /// The `patch` among its parameters as CUE, with the comments that steer it.
    pub patch: Option<String>,
    segments: Vec<Segment>,
    is_op: bool,
}

impl Call {
    /// The action that applies the object of which a step consists.
    pub(crate) fn object(object: &Value) -> Self {
        Self {
            path: OUTPUT.to_owned(),
            name: OBJECT.to_owned(),
            params: serde_json::json!({"value": object}),
            patch: None,
            segments: vec![Segment::Field(OUTPUT.to_owned())],
            is_op: false,
        }
    }
}

/// What a template wants next.
#[derive(Debug)]
pub enum Found {
    /// An action.
    Call(Box<Call>),
    /// A wait whose condition has no value yet.
    Wait {
        /// What is waited for.
        message: String,
    },
    /// Something is wrong.
    Failed(String),
    /// Nothing: all actions were carried out.
    Done,
}

/// The execution of one step.
#[derive(Debug)]
pub struct Session {
    definition: Arc<Definition>,
    data: StepData,
    evaluation: Evaluation,
    executed: BTreeSet<String>,
    /// Results so far, for evaluations that begin again.
    filled: Vec<(Vec<Segment>, Value)>,
    is_checked: bool,
    /// The message of the step.
    pub message: String,
    /// Why the step waits although its later actions are carried out.
    pub soft_wait: Option<String>,
}

impl Session {
    /// Begins with a template and its data.
    pub fn new(definition: Arc<Definition>, data: StepData) -> Result<Self, String> {
        let evaluation = definition.evaluate(&data, &[])?;
        Ok(Self {
            definition,
            data,
            evaluation,
            executed: BTreeSet::new(),
            filled: Vec::new(),
            is_checked: false,
            message: String::new(),
            soft_wait: None,
        })
    }

    /// Finds the next action.
    pub fn run(&mut self) -> Found {
        if !self.is_checked {
            self.is_checked = true;
            if let Some(problem) = self.first_problem() {
                return Found::Failed(problem);
            }
        }
        if self.executed.len() > MOST_ACTIONS {
            return Found::Failed(format!("more than {MOST_ACTIONS} actions"));
        }
        let root = self.evaluation.root();
        let mut search = Search {
            executed: &self.executed,
            incomplete: None,
        };
        let found = search.visit(&mut self.evaluation, root, &mut Vec::new());
        match (found, search.incomplete) {
            (Some(found), _) => found,
            (None, Some(problem)) => Found::Failed(problem),
            (None, None) => match self.problem() {
                Some(problem) => Found::Failed(problem),
                None => Found::Done,
            },
        }
    }

    /// What is wrong before anything was carried out: errors, and parameters that are missing.
    fn first_problem(&mut self) -> Option<String> {
        if let Some(problem) = self.problem() {
            return Some(problem);
        }
        let root = self.evaluation.root();
        for name in ["parameter", "parameters"] {
            let Some(parameter) = self.evaluation.lookup(root, name) else {
                continue;
            };
            for field in self.evaluation.fields(parameter, FieldOptions::default()) {
                let kind = self.evaluation.kind(field.value);
                let is_given = self.data.parameter.get(&*field.name).is_some();
                let is_missing = kind.intersects(Kind::SCALAR)
                    && kind != Kind::TOP
                    && self.evaluation.concrete_kind(field.value).is_empty();
                if !is_given && (is_missing || field.kind == ArcKind::Required) {
                    return Some(format!(
                        "{name}.{}: required parameter is missing",
                        field.name
                    ));
                }
            }
        }
        None
    }

    /// What is wrong and stays wrong.
    fn problem(&mut self) -> Option<String> {
        let root = self.evaluation.root();
        let problems = self.evaluation.validate(root);
        (!problems.is_empty()).then(|| describe(&problems))
    }

    /// Fills in what came of an action.
    pub fn complete(&mut self, call: &Call, result: &Value) -> Result<(), String> {
        self.executed.insert(call.path.clone());
        let mut segments = call.segments.clone();
        let value = if call.is_op {
            result_of_op(&call.name, &call.params, result)
        } else {
            segments.push(Segment::Field("$returns".to_owned()));
            result.clone()
        };
        if value.as_object().is_some_and(Map::is_empty) {
            return Ok(());
        }
        self.filled.push((segments.clone(), value.clone()));
        match names_of(&segments) {
            Some(names) => {
                self.evaluation.fill_json(&names, &value);
                Ok(())
            }
            None => self.begin_again(),
        }
    }

    /// Evaluates again with all results as source: lists cannot be filled.
    fn begin_again(&mut self) -> Result<(), String> {
        let mut source = String::new();
        for (segments, value) in &self.filled {
            source.push_str(&as_source(segments, value));
        }
        let more = [("results", source.as_str())];
        self.evaluation = self.definition.evaluate(&self.data, &more)?;
        Ok(())
    }

    /// The value of an output: a path, or an expression over the evaluated template.
    pub fn output(&mut self, value_from: &str) -> Result<Value, String> {
        let text = value_from.trim();
        if text.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let first = self.evaluate_output(text);
        if first.is_ok() || text.contains("$returns") {
            return first;
        }
        if text.contains("output.") {
            let other = text.replacen("output.", "output.$returns.", 1);
            if let Ok(value) = self.evaluate_output(&other) {
                return Ok(value);
            }
        }
        match self.evaluate_output(&format!("{text}.$returns")) {
            Ok(value) => Ok(value),
            Err(_) => first,
        }
    }

    fn evaluate_output(&mut self, text: &str) -> Result<Value, String> {
        if let Ok(segments) = path::parse(text) {
            return self.at(&segments);
        }
        let mut source = String::new();
        for (segments, value) in &self.filled {
            source.push_str(&as_source(segments, value));
        }
        let (imports, script) = split_imports(text);
        let results = ("results", source.as_str());
        let as_expression = format!("{imports}_result: {script}\n");
        let as_struct = format!("{imports}_result: {{\n{script}\n}}\n");
        let mut evaluated = Err(String::new());
        for text in [as_expression, as_struct] {
            evaluated = self
                .definition
                .evaluate(&self.data, &[results, ("output", &text)]);
            if evaluated.is_ok() {
                break;
            }
        }
        let mut evaluation = evaluated?;
        let root = evaluation.root();
        let Some(value) = evaluation.lookup(root, "_result") else {
            return Err("value not found".to_owned());
        };
        evaluation
            .export_json(value)
            .map_err(|problem| problem.to_string())
    }

    fn at(&mut self, segments: &[Segment]) -> Result<Value, String> {
        let mut value = self.evaluation.root();
        for segment in segments {
            let next = match segment {
                Segment::Field(name) => self.evaluation.lookup(value, name),
                Segment::Index(index) => self.evaluation.elements(value).get(*index).copied(),
            };
            let Some(next) = next else {
                return Err("failed to lookup value: not found".to_owned());
            };
            value = next;
        }
        self.evaluation
            .export_json(value)
            .map_err(|problem| problem.to_string())
    }

    /// What other steps may see as the output of this one.
    pub fn outputs(&mut self) -> Option<Value> {
        let mut outputs = Map::new();
        for name in ["output", "outputs"] {
            if let Ok(value) = self.at(&[Segment::Field(name.to_owned())]) {
                outputs.insert(name.to_owned(), value);
            }
        }
        (!outputs.is_empty()).then_some(Value::Object(outputs))
    }

    /// The object that does the work of the step, as its template names it in `resourceRef`.
    pub fn resource_ref(&mut self) -> Option<StepResource> {
        let named = self.at(&[Segment::Field("resourceRef".to_owned())]).ok()?;
        serde_json::from_value(named).ok()
    }

    /// The whole value as CUE, for people who debug a step.
    pub fn source(&mut self) -> String {
        let root = self.evaluation.root();
        let source = self.evaluation.source(root, SyntaxOptions::default());
        source.unwrap_or_else(|problem| format!("// {problem}\n"))
    }

    /// Takes in the object of the step as it is now, for outputs.
    pub(crate) fn fill_object(&mut self, live: &Value) {
        let path = vec![Segment::Field(OUTPUT.to_owned())];
        self.executed.insert(OUTPUT.to_owned());
        self.evaluation.fill_json(&[OUTPUT], live);
        self.filled.push((path, live.clone()));
    }

    /// A concrete field of the root: the object that a step without actions consists of.
    pub fn object(&mut self) -> Option<Value> {
        if !self.executed.is_empty() {
            return None;
        }
        let object = self.at(&[Segment::Field("output".to_owned())]).ok()?;
        (object["apiVersion"].is_string() && object["kind"].is_string()).then_some(object)
    }
}

/// Import declarations at the beginning of a script, and the rest.
fn split_imports(text: &str) -> (String, &str) {
    let mut imports = String::new();
    let mut rest = text;
    while rest.trim_start().starts_with("import") {
        let trimmed = rest.trim_start();
        let is_block = trimmed["import".len()..].trim_start().starts_with('(');
        let end = if is_block {
            trimmed.find(')').map(|end| end + 1)
        } else {
            trimmed.find('\n')
        };
        let end = end.unwrap_or(trimmed.len());
        imports.push_str(&trimmed[..end]);
        imports.push('\n');
        rest = &trimmed[end..];
    }
    (imports, rest.trim())
}

/// The names of a path without elements of lists.
fn names_of(segments: &[Segment]) -> Option<Vec<&str>> {
    let names = segments.iter().map(|segment| match segment {
        Segment::Field(name) => Some(name.as_str()),
        Segment::Index(_) => None,
    });
    names.collect()
}

/// Data at a path as CUE.
fn as_source(segments: &[Segment], value: &Value) -> String {
    let mut text = String::new();
    let mut ends = Vec::new();
    for (depth, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Field(name) if name.starts_with('_') || name.starts_with('#') => {
                let _ = write!(text, "{}{name}: ", if depth > 0 { "{" } else { "" });
                ends.push(if depth > 0 { "}" } else { "" });
            }
            Segment::Field(name) => {
                let name = Value::String(name.clone());
                let _ = write!(text, "{}{name}: ", if depth > 0 { "{" } else { "" });
                ends.push(if depth > 0 { "}" } else { "" });
            }
            Segment::Index(index) => {
                text.push('[');
                for _ in 0..*index {
                    text.push_str("_, ");
                }
                ends.push(", ...]");
            }
        }
    }
    text.push_str(&value.to_string());
    for end in ends.iter().rev() {
        text.push_str(end);
    }
    text.push('\n');
    text
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

/// The search for the next action.
struct Search<'a> {
    executed: &'a BTreeSet<String>,
    /// What is wrong with the first action whose parameters are not known.
    incomplete: Option<String>,
}

impl Search<'_> {
    fn visit(
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_found_beside_a_condition_that_waits_for_them() {
        let template = r#"
import (
	"vela/builtin"
	"vela/kube"
)
read: kube.#Read & {$params: value: {apiVersion: "v1", kind: "Namespace", metadata: name: "default"}}
if read.$returns.value.ready {
	message: builtin.#Message & {$params: message: "ready"}
}
parameter: {}
"#;
        let data = StepData {
            context: json!({"name": "r"}),
            parameter: json!({}),
        };
        let mut session = Session::new(Arc::new(Definition::new(template)), data).unwrap();
        let found = session.run();
        assert!(
            matches!(&found, Found::Call(call) if call.name == "kube.read"),
            "{found:?}"
        );
    }

    #[test]
    fn actions_are_found_beside_conditions_that_depend_on_them() {
        let source = r#"
import (
	"vela/builtin"
	"vela/http"
)
parameter: url: string
call: http.#HTTPDo & {$params: {method: "GET", url: parameter.url}}
if call.$returns.statusCode != 200 {
	stop: builtin.#Fail & {$params: message: "got \(call.$returns.statusCode)"}
}
"#;
        for (code, next) in [(200, "Done"), (503, "builtin.fail")] {
            let definition = Arc::new(Definition::new(source));
            let data = StepData {
                context: json!({}),
                parameter: json!({"url": "http://x"}),
            };
            let mut session = Session::new(definition, data).unwrap();
            let Found::Call(call) = session.run() else {
                panic!("the request is to be sent first");
            };
            assert_eq!(call.name, "http.do");
            session
                .complete(&call, &json!({"statusCode": code}))
                .unwrap();
            let found = match session.run() {
                Found::Call(call) => call.name.clone(),
                other => format!("{other:?}"),
            };
            assert_eq!(found, next);
        }
    }
}
