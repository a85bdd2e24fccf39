//! Whether a value fits its type well enough to be merged.

use std::collections::BTreeSet;
use std::fmt;

use bellwether_schema::Type as JsonType;
use serde_json::Value;

use super::{Items, Shape, Type};
use crate::path::PathElement;
use crate::{MAX_DEPTH, go_text};

/// What is wrong with a value, place by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeErrors(Vec<(String, String)>);

impl TypeErrors {
    /// A complaint about the value as a whole.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(vec![(String::new(), message.into())])
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
        Ok(())
    }
}

/// Checks a value; `allow_duplicates` tolerates list items with equal keys, which stored objects may
/// have.
pub(crate) fn validate(
    kind: Type,
    value: &Value,
    allow_duplicates: bool,
) -> Result<(), TypeErrors> {
    let mut errors = Vec::new();
    let mut walker = Walker {
        path: Vec::new(),
        errors: &mut errors,
        allow_duplicates,
    };
    walker.visit(kind, value);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(errors))
    }
}

struct Walker<'e> {
    path: Vec<PathElement>,
    errors: &'e mut Vec<(String, String)>,
    allow_duplicates: bool,
}

impl Walker<'_> {
    fn report(&mut self, message: String) {
        let path = self.path.iter().map(ToString::to_string).collect();
        self.errors.push((path, message));
    }

    fn visit(&mut self, kind: Type, value: &Value) {
        if self.path.len() > MAX_DEPTH {
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
                Value::Array(items) => self.visit_items(kind, items),
                other => self.report(format!("expected list, got {}", go_text::wrapped(other))),
            },
            Shape::Map => match value {
                Value::Null => {}
                Value::Object(members) => self.visit_members(kind, members),
                other => self.report(format!("expected map, got {}", go_text::wrapped(other))),
            },
        }
    }

    fn visit_items(&mut self, kind: Type, items: &[Value]) {
        let atomic = matches!(kind.items(), Items::Atomic);
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if atomic {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match kind.element(item) {
                    Ok(element) => element,
                    Err(message) => return self.report(format!("element {index}: {message}")),
                }
            };
            if !atomic && !self.allow_duplicates && !seen.insert(element.clone()) {
                self.report(format!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            self.visit(kind.item(), item);
            self.path.pop();
        }
    }

    fn visit_members(&mut self, kind: Type, members: &serde_json::Map<String, Value>) {
        for (name, member) in members {
            let field = kind.field(name);
            self.path.push(PathElement::field(name.as_str()));
            if field.allowed {
                self.visit(field.kind, member);
                self.path.pop();
            } else {
                self.report("field not declared in schema".to_owned());
                self.path.pop();
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
