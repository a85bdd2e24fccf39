//! The execution of one step: its template, evaluated with the results of its actions so far.
//!
//! [`Session::run`] finds the next action whose parameters are known; [`Session::complete`] fills in what came
//! of it. Actions are found anywhere in the value, inner ones first, in the order of the source or as
//! `@step(n)` says.

mod output;
mod search;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use bellwether_cue::host::{ArcKind, Evaluation, FieldOptions, SyntaxOptions};
use bellwether_cue::value::Kind;
use serde_json::{Map, Value};

use crate::action::{OBJECT, result_of_op};
use crate::definition::{Definition, StepData, describe};
use crate::path::Segment;
use search::Search;

/// No step has more actions than this.
const MOST_ACTIONS: usize = 10_000;
/// The field with the object that a step without actions consists of.
const OUTPUT: &str = "output";

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

    /// Fills in data that belongs to the template from the beginning.
    pub(crate) fn fill(&mut self, path: &[&str], value: &Value) {
        self.evaluation.fill_json(path, value);
        let path = path.iter().map(|name| Segment::Field((*name).to_owned()));
        self.filled.push((path.collect(), value.clone()));
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
        let object = self.at(&[Segment::Field(OUTPUT.to_owned())]).ok()?;
        (object["apiVersion"].is_string() && object["kind"].is_string()).then_some(object)
    }
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
