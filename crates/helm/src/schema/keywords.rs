//! The keywords of JSON Schema.

mod plain;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;

use bellwether_go::regexp::Regex;
use serde_json::{Map, Value};

use plain::{any_type, has_format, limits, missing, numbers, read_pattern, repetition};

/// References that may be followed without reaching another value.
const MAX_DEPTH: usize = 128;

/// Errors that are listed; more would only hide the first ones.
const MAX_ERRORS: usize = 50;

/// Bytes of one error with its causes; more is cut off.
const MAX_TEXT: usize = 64 * 1024;

/// Steps that one validation may take: schemas may multiply what they check. A step is a schema, a member, an
/// item or some bytes of a text.
const MAX_STEPS: usize = 1_000_000;

/// Steps that reading a pattern takes.
const PATTERN_STEPS: usize = 1_000;

/// Bytes of a text that are matched in one step.
const BYTES_PER_STEP: usize = 256;

/// Keywords that change the result and are not supported.
const UNSUPPORTED: [&str; 4] = [
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
];

/// Something that is wrong with a value, and what led to that.
struct Problem {
    path: String,
    text: String,
    causes: Vec<Problem>,
}

/// Checks values against one schema.
pub(super) struct Validator<'s> {
    root: &'s Value,
    /// True for drafts in which a reference stands alone and formats are checked.
    is_old: bool,
    steps: Cell<usize>,
    /// Why the validation was given up: nothing that was found until then counts.
    given_up: RefCell<Option<Problem>>,
    /// Patterns that have been read; none for those that cannot be.
    patterns: RefCell<HashMap<&'s str, Option<Regex>>>,
}

impl<'s> Validator<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        let draft = root
            .get("$schema")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Self {
            root,
            is_old: draft.contains("draft-0"),
            steps: Cell::new(0),
            given_up: RefCell::default(),
            patterns: RefCell::default(),
        }
    }

    /// What is wrong with a value, one text each.
    pub(super) fn validate(&self, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(self.root, value, "", 0, &mut problems);
        if let Some(problem) = self.given_up.take() {
            problems = vec![problem];
        }
        let mut lines = Vec::new();
        for problem in problems.iter().take(MAX_ERRORS) {
            let mut text = String::new();
            show(problem, 0, &mut text);
            lines.push(text);
        }
        lines
    }

    fn check(
        &self,
        schema: &'s Value,
        value: &Value,
        at: &str,
        depth: usize,
        out: &mut Vec<Problem>,
    ) {
        if depth > MAX_DEPTH {
            self.give_up(
                at,
                "the schema is too deep, or its parts refer to themselves",
            );
        }
        if !self.spend(1, at) || out.len() > MAX_ERRORS {
            return;
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return out.push(problem(at, "false schema")),
            _ => return,
        };
        if let Some(keyword) = UNSUPPORTED
            .iter()
            .find(|keyword| schema.contains_key(**keyword))
        {
            let text = format!("values.schema.json uses {keyword}, which is not supported");
            return out.push(problem(at, text));
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            if let Some(target) = self.resolve(reference) {
                self.check(target, value, at, depth + 1, out);
            } else {
                let text =
                    format!("the reference {reference:?} leads nowhere inside of the schema");
                out.push(problem(at, text));
            }
            if self.is_old {
                return;
            }
        }
        any_type(schema, value, at, out);
        match value {
            Value::Object(members) => self.object(schema, (value, members), at, depth, out),
            Value::Array(items) => self.array(schema, items, at, depth, out),
            Value::String(text) => self.string(schema, text, at, out),
            Value::Number(number) => {
                if let Some(float) = number.as_f64() {
                    numbers(schema, float, value, at, out);
                }
            }
            _ => {}
        }
        self.combinations(schema, value, at, depth, out);
    }

    /// Takes steps. Returns false if the validation is given up.
    fn spend(&self, steps: usize, at: &str) -> bool {
        self.steps.set(self.steps.get().saturating_add(steps));
        if self.steps.get() > MAX_STEPS {
            self.give_up(at, "the schema takes too many steps to check these values");
        }
        self.given_up.borrow().is_none()
    }

    fn give_up(&self, at: &str, text: &str) {
        let mut given_up = self.given_up.borrow_mut();
        given_up.get_or_insert_with(|| problem(at, text));
    }

    /// True if a text has a match of a pattern of the schema; none if the pattern cannot be read.
    fn matches(&self, pattern: &'s str, text: &str, at: &str) -> Option<bool> {
        let mut patterns = self.patterns.borrow_mut();
        let regex = patterns.entry(pattern).or_insert_with(|| {
            self.spend(PATTERN_STEPS, at);
            read_pattern(pattern)
        });
        let regex = regex.as_ref()?;
        Some(self.spend(text.len() / BYTES_PER_STEP, at) && regex.is_match(text))
    }

    /// Follows a JSON pointer, or the name of an anchor.
    fn resolve(&self, reference: &str) -> Option<&'s Value> {
        let fragment = match reference.split_once('#') {
            Some(("", fragment)) => fragment,
            Some((id, fragment)) if self.root.get("$id").and_then(Value::as_str) == Some(id) => {
                fragment
            }
            _ => return None,
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return self
                .root
                .pointer(&fragment.replace("%25", "%").replace("%22", "\""));
        }
        ["$defs", "definitions"].iter().find_map(|key| {
            let definitions = self.root.get(key)?.as_object()?.values();
            definitions.into_iter().find(|definition| {
                let is = |key: &str, name: &str| {
                    definition.get(key).and_then(Value::as_str) == Some(name)
                };
                is("$anchor", fragment) || is("$id", &format!("#{fragment}"))
            })
        })
    }

    fn object(
        &self,
        schema: &'s Map<String, Value>,
        (whole, members): (&Value, &Map<String, Value>),
        at: &str,
        depth: usize,
        out: &mut Vec<Problem>,
    ) {
        limits(
            schema,
            ["minProperties", "maxProperties"],
            members.len(),
            at,
            out,
        );
        if let Some(required) = schema.get("required").and_then(Value::as_array) {
            missing(required, members, at, out);
        }
        for (name, needed) in
            object_at(schema, "dependentRequired").chain(object_at(schema, "dependencies"))
        {
            if let (true, Some(needed)) = (members.contains_key(name), needed.as_array()) {
                missing(needed, members, at, out);
            }
        }
        for (name, needed) in
            object_at(schema, "dependentSchemas").chain(object_at(schema, "dependencies"))
        {
            if members.contains_key(name) && !needed.is_array() {
                self.check(needed, whole, at, depth + 1, out);
            }
        }
        let mut additional = Vec::new();
        for (name, value) in members {
            if !self.spend(1, at) {
                return;
            }
            let path = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            let mut known = false;
            if let Some(schema) = schema.get("properties").and_then(|known| known.get(name)) {
                known = true;
                self.check(schema, value, &path, 0, out);
            }
            for (pattern, schema) in object_at(schema, "patternProperties") {
                if self.matches(pattern, name, &path) == Some(true) {
                    known = true;
                    self.check(schema, value, &path, 0, out);
                }
            }
            if let Some(names) = schema.get("propertyNames") {
                self.check(names, &Value::from(name.as_str()), &path, 0, out);
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) if !known => additional.push(format!("'{name}'")),
                Some(schema) if !known => self.check(schema, value, &path, 0, out),
                _ => {}
            }
        }
        if !additional.is_empty() {
            let text = format!(
                "additional properties {} not allowed",
                additional.join(", ")
            );
            out.push(problem(at, text));
        }
    }

    fn array(
        &self,
        schema: &'s Map<String, Value>,
        items: &[Value],
        at: &str,
        depth: usize,
        out: &mut Vec<Problem>,
    ) {
        limits(schema, ["minItems", "maxItems"], items.len(), at, out);
        if schema.get("uniqueItems") == Some(&Value::Bool(true))
            && let Some((first, second)) = repetition(items)
        {
            out.push(problem(
                at,
                format!("items at {first} and {second} are equal"),
            ));
        }
        // Before 2020-12, a list under `items` was what is `prefixItems` now.
        let (prefix, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(prefix), rest) => (prefix.as_array(), rest),
            (None, Some(Value::Array(prefix))) => (Some(prefix), schema.get("additionalItems")),
            (None, rest) => (None, rest),
        };
        for (index, item) in items.iter().enumerate() {
            if !self.spend(1, at) {
                return;
            }
            let path = format!("{at}/{index}");
            match (prefix.and_then(|prefix| prefix.get(index)), rest) {
                (Some(schema), _) | (None, Some(schema)) => self.check(schema, item, &path, 0, out),
                (None, None) => {}
            }
        }
        if let Some(contained) = schema.get("contains") {
            let count = items
                .iter()
                .filter(|item| self.problems(contained, item, at, depth).is_empty())
                .count();
            let number = |key: &str| schema.get(key).and_then(Value::as_u64);
            let enough = number("minContains").unwrap_or(1);
            let most = number("maxContains").unwrap_or(u64::MAX);
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            if count < enough || count > most {
                out.push(problem(
                    at,
                    format!("{count} items match the contains schema"),
                ));
            }
        }
    }

    fn string(&self, schema: &'s Map<String, Value>, text: &str, at: &str, out: &mut Vec<Problem>) {
        limits(
            schema,
            ["minLength", "maxLength"],
            text.chars().count(),
            at,
            out,
        );
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            match self.matches(pattern, text, at) {
                Some(true) => {}
                Some(false) => {
                    out.push(problem(
                        at,
                        format!("'{text}' does not match pattern '{pattern}'"),
                    ));
                }
                None => out.push(problem(
                    at,
                    format!("the pattern '{pattern}' cannot be read"),
                )),
            }
        }
        let format = schema
            .get("format")
            .and_then(Value::as_str)
            .filter(|_| self.is_old);
        if let Some(format) = format
            && self.spend(PATTERN_STEPS / 10, at)
            && !has_format(text, format)
        {
            out.push(problem(at, format!("'{text}' is not valid {format}")));
        }
    }

    fn problems(&self, schema: &'s Value, value: &Value, at: &str, depth: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.check(schema, value, at, depth + 1, &mut problems);
        problems
    }

    fn combinations(
        &self,
        schema: &'s Map<String, Value>,
        value: &Value,
        at: &str,
        depth: usize,
        out: &mut Vec<Problem>,
    ) {
        let all = |key: &str| -> Vec<Vec<Problem>> {
            let schemas = schema
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            schemas
                .map(|schema| self.problems(schema, value, at, depth))
                .collect()
        };
        if let Some(excluded) = schema.get("not")
            && self.problems(excluded, value, at, depth).is_empty()
        {
            out.push(problem(at, "'not' failed"));
        }
        let failed = all("allOf").into_iter().flatten().collect::<Vec<_>>();
        if !failed.is_empty() {
            out.push(caused(at, "'allOf' failed", failed));
        }
        let any = all("anyOf");
        if !any.is_empty() && any.iter().all(|problems| !problems.is_empty()) {
            out.push(caused(
                at,
                "'anyOf' failed",
                any.into_iter().flatten().collect(),
            ));
        }
        let one = all("oneOf");
        let right: Vec<String> = one
            .iter()
            .enumerate()
            .filter(|(_, problems)| problems.is_empty())
            .map(|(index, _)| index.to_string())
            .collect();
        if !one.is_empty() && right.is_empty() {
            let causes = one.into_iter().flatten().collect();
            out.push(caused(at, "'oneOf' failed, none matched", causes));
        } else if right.len() > 1 {
            let text = format!("'oneOf' failed, subschemas {} matched", right.join(", "));
            out.push(problem(at, text));
        }
        if let Some(condition) = schema.get("if") {
            let holds = self.problems(condition, value, at, depth).is_empty();
            if let Some(branch) = schema.get(if holds { "then" } else { "else" }) {
                self.check(branch, value, at, depth + 1, out);
            }
        }
    }
}

fn problem(path: &str, text: impl Into<String>) -> Problem {
    caused(path, text, Vec::new())
}

fn caused(path: &str, text: impl Into<String>, causes: Vec<Problem>) -> Problem {
    Problem {
        path: path.to_owned(),
        text: text.into(),
        causes,
    }
}

fn show(problem: &Problem, level: usize, out: &mut String) {
    if out.len() > MAX_TEXT {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&"  ".repeat(level));
    // Writing to a string cannot fail.
    let _ = write!(out, "- at '{}': {}", problem.path, problem.text);
    for cause in &problem.causes {
        show(cause, level + 1, out);
    }
}

fn object_at<'s>(
    schema: &'s Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'s String, &'s Value)> {
    schema
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}
