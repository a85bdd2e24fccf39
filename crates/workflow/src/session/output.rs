//! Values that a step hands on: paths and expressions over its evaluated template.

use bellwether_api::workflow::StepResource;
use serde_json::{Map, Value};

use super::{OUTPUT, Session, as_source};
use crate::path::{self, Segment};

impl Session {
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
        // An expression that is embedded in a struct is its value, so this is right for fields and for expressions.
        let script = format!("{imports}_result: {{\n{script}\n}}\n");
        let mut evaluation = self
            .definition
            .evaluate(&self.data, &[results, ("output", &script)])?;
        let root = evaluation.root();
        let Some(value) = evaluation.lookup(root, "_result") else {
            return Err("value not found".to_owned());
        };
        evaluation
            .export_json(value)
            .map_err(|problem| problem.to_string())
    }

    pub(super) fn at(&mut self, segments: &[Segment]) -> Result<Value, String> {
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

    /// A field by the names on the way to it; none if it is not there.
    pub(crate) fn get(&mut self, path: &[&str]) -> Option<Result<Value, String>> {
        let mut value = self.evaluation.root();
        for name in path {
            value = self.evaluation.lookup(value, name)?;
        }
        let exported = self.evaluation.export_json(value);
        Some(exported.map_err(|problem| problem.to_string()))
    }

    /// What other steps may see as the output of this one.
    pub fn outputs(&mut self) -> Option<Value> {
        let mut outputs = Map::new();
        for name in [OUTPUT, "outputs"] {
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
