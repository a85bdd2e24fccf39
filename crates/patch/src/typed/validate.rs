//! Whether a value fits its type well enough to be merged.

use std::collections::BTreeSet;
use std::fmt;

use bellwether_schema::Type as JsonType;
use serde_json::Value;

use super::{Items, Shape, Type, is_any_scalar};
use crate::path::PathElement;
use crate::{MAX_DEPTH, go_text};

/// The most errors that are reported about one value.
const MAX_ERRORS: usize = 100;

/// What is wrong with a value, place by place, and how much more is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeErrors(Vec<(String, String)>, usize);

impl TypeErrors {
    /// A complaint about the value as a whole.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(vec![(String::new(), message.into())], 0)
    }

    pub(crate) fn at(mut self, element: &PathElement) -> Self {
        for (path, _) in &mut self.0 {
            path.insert_str(0, &element.to_string());
        }
        self
    }
}

impl std::error::Error for TypeErrors {}

impl fmt::Display for TypeErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |formatter: &mut fmt::Formatter<'_>, path: &str, message: &str| {
            if path.is_empty() {
                formatter.write_str(message)
            } else {
                write!(formatter, "{path}: {message}")
            }
        };
        if let [(path, message)] = self.0.as_slice() {
            return line(formatter, path, message);
        }
        formatter.write_str("errors:")?;
        for (path, message) in &self.0 {
            formatter.write_str("\n  ")?;
            line(formatter, path, message)?;
        }
        match self.1 {
            0 => Ok(()),
            more => write!(formatter, "\n  and {more} more errors"),
        }
    }
}

/// Checks a value; `allow_duplicates` tolerates list items with equal keys, which stored objects may
/// have.
pub(crate) fn validate(
    kind: Type,
    value: &Value,
    allow_duplicates: bool,
) -> Result<(), TypeErrors> {
    let mut walker = Walker {
        errors: Vec::new(),
        left_out: 0,
        allow_duplicates,
    };
    walker.visit(kind, value, 0);
    if walker.errors.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(walker.errors, walker.left_out))
    }
}

/// Collects errors; their paths grow from the end while the walk returns, so that a valid value
/// costs no path at all.
struct Walker {
    errors: Vec<(String, String)>,
    /// How many errors there are besides.
    left_out: usize,
    allow_duplicates: bool,
}

impl Walker {
    fn report(&mut self, message: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push((String::new(), message));
        } else {
            self.left_out += 1;
        }
    }

    /// Puts a step in front of the paths of all errors since the first `earlier` ones.
    fn prefix(&mut self, earlier: usize, step: impl FnOnce() -> PathElement) {
        if self.errors.len() > earlier {
            let step = step().to_string();
            for (path, _) in &mut self.errors[earlier..] {
                path.insert_str(0, &step);
            }
        }
    }

    fn visit(&mut self, kind: Type, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return self.report(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        match kind.shape(Some(value)) {
            Shape::Scalar => {
                if let Some(complaint) = scalar_complaint(kind, value) {
                    self.report(complaint);
                }
            }
            Shape::List => match value {
                Value::Null => {}
                Value::Array(items) if matches!(kind.items(), Items::Atomic) => {
                    self.visit_positions(kind, items, depth);
                }
                Value::Array(items) => self.visit_items(kind, items, depth),
                other => self.report(format!("expected list, got {}", go_text::wrapped(other))),
            },
            Shape::Map => match value {
                Value::Null => {}
                Value::Object(members) => self.visit_members(kind, members, depth),
                other => self.report(format!("expected map, got {}", go_text::wrapped(other))),
            },
        }
    }

    fn visit_positions(&mut self, kind: Type, items: &[Value], depth: usize) {
        for (index, item) in items.iter().enumerate() {
            let earlier = self.errors.len();
            self.visit(kind.item(), item, depth + 1);
            self.prefix(earlier, || {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            });
        }
    }

    fn visit_items(&mut self, kind: Type, items: &[Value], depth: usize) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match kind.element(item) {
                Ok(element) => element,
                Err(message) => return self.report(format!("element {index}: {message}")),
            };
            if !self.allow_duplicates && !seen.insert(element.clone()) {
                self.report(format!("duplicate entries for key {element}"));
            }
            let earlier = self.errors.len();
            self.visit(kind.item(), item, depth + 1);
            self.prefix(earlier, || element);
        }
    }

    fn visit_members(
        &mut self,
        kind: Type,
        members: &serde_json::Map<String, Value>,
        depth: usize,
    ) {
        for (name, member) in members {
            let field = kind.field(name);
            let earlier = self.errors.len();
            if field.allowed {
                self.visit(field.kind, member, depth + 1);
            } else {
                self.report("field not declared in schema".to_owned());
            }
            self.prefix(earlier, || PathElement::field(name.as_str()));
            if !field.allowed {
                return;
            }
        }
    }
}

fn scalar_complaint(kind: Type, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let wanted = match kind {
        Type::Known { schema, .. } if schema.int_or_string || is_any_scalar(schema) => None,
        Type::Known { schema, .. } => match schema.kind {
            // A format may be written as a number too (int-or-string, quantities, dates).
            Some(JsonType::String) if !matches!(schema.format.as_deref(), None | Some("byte")) => {
                None
            }
            other => other,
        },
        _ => None,
    };
    match wanted {
        Some(JsonType::Integer | JsonType::Number) if !value.is_number() => Some(format!(
            "expected numeric (int or float), got {}",
            go_text::type_name(value)
        )),
        Some(JsonType::String) if !value.is_string() => Some(format!(
            "expected string, got {}",
            go_text::wrapped_syntax(value)
        )),
        Some(JsonType::Boolean) if !value.is_boolean() => {
            Some(format!("expected boolean, got {}", go_text::wrapped(value)))
        }
        None if value.is_array() || value.is_object() => Some(format!(
            "expected any scalar, got {}",
            go_text::wrapped(value)
        )),
        _ => None,
    }
}
