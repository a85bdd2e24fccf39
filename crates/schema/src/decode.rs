//! Decoding a body into a built-in kind: what Go's typed JSON decoder accepts, drops and refuses.
//!
//! [`decode`] checks the JSON types of a body against a schema, drops unknown fields and the nulls
//! that a typed round trip loses, and names the unknown fields for `fieldValidation`. Messages are
//! those of Go's `encoding/json`, with the names of Go's types derived from [`Schema::type_name`].
//!
//! Empty values are left as they are: which of them a kind omits is the kind's own knowledge.

mod names;
mod scalar;

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::model::{Schema, Type};

/// A body that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A value has another JSON type than its field.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// Objects or schemas are nested too deeply to be handled.
    #[error("json: exceeded max depth")]
    TooDeep,
    /// A value does not have the form that its field asks for.
    #[error("{0}")]
    Other(String),
}

impl DecodeError {
    /// The same error of a part, seen from the whole: `fields` lead from the root to the part, and
    /// `structure` names the struct that holds it.
    #[must_use]
    pub fn within(self, structure: &str, fields: &str) -> Self {
        let Self::Mismatch(mut mismatch) = self else {
            return self;
        };
        mismatch.place = Some(match mismatch.place {
            Some((inner, rest)) => (inner, format!("{fields}.{rest}")),
            None => (structure.to_owned(), fields.to_owned()),
        });
        Self::Mismatch(mismatch)
    }
}

impl From<Mismatch> for DecodeError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

/// A JSON value that does not fit the type of a Go field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What there is: `string`, `number`, `number 1.5`, `bool`, `array`, `object`.
    value: String,
    /// The innermost struct and the names of the fields from the root, if the value is in a struct.
    place: Option<(String, String)>,
    /// The Go type that was expected.
    expected: String,
}

impl Mismatch {
    pub(crate) fn new(value: &Value, structure: &str, fields: &[&str], expected: &str) -> Self {
        let place = (!fields.is_empty()).then(|| (structure.to_owned(), fields.join(".")));
        Self {
            value: describe(value, expected),
            place,
            expected: expected.to_owned(),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            value, expected, ..
        } = self;
        match &self.place {
            Some((structure, field)) => write!(
                formatter,
                "json: cannot unmarshal {value} into Go struct field {structure}.{field} of type {expected}"
            ),
            None => write!(
                formatter,
                "json: cannot unmarshal {value} into Go value of type {expected}"
            ),
        }
    }
}

/// Go names the number itself where a number was expected, but not this one.
fn describe(value: &Value, expected: &str) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number)
            if ["int", "uint", "float"]
                .iter()
                .any(|prefix| expected.starts_with(prefix)) =>
        {
            format!("number {number}")
        }
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// Makes `value` what decoding it into the kind of `schema` and encoding it again would leave, and
/// returns the paths of the fields that are not known, in the order they were met.
///
/// `name` is the kind, the name of the outermost struct in messages.
pub fn decode(value: &mut Value, schema: &Schema, name: &str) -> Result<Vec<String>, DecodeError> {
    let mut decoder = Decoder {
        structure: name.to_owned(),
        fields: Vec::new(),
        path: String::new(),
        unknown: Vec::new(),
    };
    decoder.value(value, schema)?;
    Ok(decoder.unknown)
}

struct Decoder {
    structure: String,
    fields: Vec<String>,
    path: String,
    unknown: Vec<String>,
}

// Recursion follows the schema, whose depth is bounded.
impl Decoder {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        if value.is_null() || scalar::is_opaque(schema) {
            return Ok(());
        }
        match schema.kind {
            Some(Type::Object) => self.object(value, schema),
            Some(Type::Array) => self.array(value, schema),
            _ => scalar::check(value, schema, |value, expected| {
                self.mismatch(value, expected)
            }),
        }
    }

    fn object(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        let Value::Object(fields) = value else {
            return Err(self.mismatch(value, &go_type(schema)));
        };
        if let Some(additional) = &schema.additional_properties {
            return self.map(fields, additional);
        }
        let outer = schema
            .type_name
            .as_deref()
            .map(|name| std::mem::replace(&mut self.structure, last_segment(name).to_owned()));
        let mut dropped = Vec::new();
        for (key, field) in fields.iter_mut() {
            let length = self.enter_key(key);
            match schema.properties.get(key) {
                Some(_) if field.is_null() => dropped.push(key.clone()),
                Some(property) => {
                    let depth = self.fields.len();
                    let embedded = names::embedded(&self.structure, key);
                    self.fields.extend(embedded.map(str::to_owned));
                    self.fields.push(key.clone());
                    self.value(field, property)?;
                    self.fields.truncate(depth);
                }
                None if schema.preserve_unknown_fields => {}
                None => {
                    self.unknown.push(self.path.clone());
                    dropped.push(key.clone());
                }
            }
            self.path.truncate(length);
        }
        for key in dropped {
            fields.remove(&key);
        }
        if let Some(outer) = outer {
            self.structure = outer;
        }
        Ok(())
    }

    fn map(
        &mut self,
        entries: &mut serde_json::Map<String, Value>,
        schema: &Schema,
    ) -> Result<(), DecodeError> {
        for (key, entry) in entries.iter_mut() {
            let length = self.enter_key(key);
            self.element(entry, schema)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn array(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        let Value::Array(items) = value else {
            return Err(self.mismatch(value, &go_type(schema)));
        };
        let Some(item_schema) = &schema.items else {
            return Ok(());
        };
        for (index, item) in items.iter_mut().enumerate() {
            let length = self.path.len();
            // Writing to a String cannot fail.
            let _ = write!(self.path, "[{index}]");
            self.element(item, item_schema)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    /// An element of a list or map: Go has no absence there, so that null becomes the zero value.
    fn element(&mut self, element: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        if element.is_null() {
            *element = zero(schema);
            return Ok(());
        }
        self.value(element, schema)
    }

    /// Appends a key to the path and returns the length to truncate to afterwards.
    fn enter_key(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        length
    }

    fn mismatch(&self, value: &Value, expected: &str) -> DecodeError {
        let fields: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        let named = fields
            .last()
            .and_then(|field| names::text_type(&self.structure, field));
        let expected = named.filter(|_| expected == "string").unwrap_or(expected);
        Mismatch::new(value, &self.structure, &fields, expected).into()
    }
}

/// What Go's decoder leaves in a list or map for a null.
fn zero(schema: &Schema) -> Value {
    match schema.kind {
        Some(Type::Object) if schema.additional_properties.is_none() => {
            Value::Object(serde_json::Map::new())
        }
        Some(Type::String) if schema.format.is_none() => Value::String(String::new()),
        Some(Type::Integer | Type::Number) => 0.into(),
        Some(Type::Boolean) => false.into(),
        _ => Value::Null,
    }
}

/// The Go type of a field, as `reflect` prints it.
fn go_type(schema: &Schema) -> String {
    let element = |child: Option<&std::sync::Arc<Schema>>| {
        child.map_or_else(|| "interface {}".to_owned(), |child| go_type(child))
    };
    match schema.kind {
        Some(Type::Object) => match (&schema.type_name, &schema.additional_properties) {
            (_, Some(additional)) => format!("map[string]{}", element(Some(additional))),
            (Some(name), None) => qualified(name),
            (None, None) => "map[string]interface {}".to_owned(),
        },
        Some(Type::Array) => format!("[]{}", element(schema.items.as_ref())),
        _ => scalar::go_type(schema),
    }
}

/// `io.k8s.api.core.v1.PodSpec` as `v1.PodSpec`: Go names a type after the last part of its package.
fn qualified(type_name: &str) -> String {
    let mut segments = type_name.rsplit('.');
    match (segments.next(), segments.next()) {
        (Some(name), Some(package)) => format!("{package}.{name}"),
        _ => type_name.to_owned(),
    }
}

fn last_segment(type_name: &str) -> &str {
    type_name.rsplit('.').next().unwrap_or(type_name)
}

#[cfg(test)]
mod tests;
