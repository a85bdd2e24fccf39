//! Field paths and field errors in Kubernetes' words: what every validation in the system reports.
//!
//! [`FieldPath`] lives on the stack and costs nothing until an error is made of it; [`FieldError`]
//! prints as `path: body`, and [`FieldError::cause`] is its entry in `Status.details.causes`.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::text;

/// Where in an object something is: `spec.parts[0].name`, `metadata.labels[app]`.
///
/// A path borrows its parent, so that walking an object allocates nothing.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    element: Element<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Element<'a> {
    Nil,
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> FieldPath<'a> {
    /// The path of the whole object: its children print as bare names, and it prints as `<nil>`
    /// itself, as a nil path does in Kubernetes.
    pub const NIL: FieldPath<'static> = FieldPath {
        parent: None,
        element: Element::Nil,
    };

    /// A path of one name.
    pub const fn new(name: &'a str) -> Self {
        FieldPath {
            parent: None,
            element: Element::Name(name),
        }
    }

    /// The field `name` of the object at this path.
    pub const fn child(&'a self, name: &'a str) -> FieldPath<'a> {
        FieldPath {
            parent: Some(self),
            element: Element::Name(name),
        }
    }

    /// The item at `index` of the list at this path.
    pub const fn index(&'a self, index: usize) -> FieldPath<'a> {
        FieldPath {
            parent: Some(self),
            element: Element::Index(index),
        }
    }

    /// The entry `key` of the map at this path.
    pub const fn key(&'a self, key: &'a str) -> FieldPath<'a> {
        FieldPath {
            parent: Some(self),
            element: Element::Key(key),
        }
    }

    fn is_nil(&self) -> bool {
        matches!(self.element, Element::Nil)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nil() {
            return formatter.write_str("<nil>");
        }
        let mut elements = Vec::new();
        let mut next = Some(self);
        while let Some(path) = next {
            elements.push(path.element);
            next = path.parent;
        }
        let mut first = true;
        for element in elements.into_iter().rev() {
            match element {
                Element::Nil => continue,
                // Kubernetes takes an element without a name for a subscript.
                Element::Name("") => formatter.write_str("[]")?,
                Element::Name(name) if first => formatter.write_str(name)?,
                Element::Name(name) => write!(formatter, ".{name}")?,
                Element::Index(index) => write!(formatter, "[{index}]")?,
                Element::Key(key) => write!(formatter, "[{key}]")?,
            }
            first = false;
        }
        Ok(())
    }
}

/// What is wrong with a field, in general.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// A referenced value does not exist.
    NotFound,
    /// A value has to be given.
    Required,
    /// A value has to be unique and is not.
    Duplicate,
    /// A value is malformed or out of bounds.
    Invalid,
    /// A value is not among those of an enumeration.
    NotSupported,
    /// A value would be fine elsewhere, but not here and now.
    Forbidden,
    /// A text is too long; the value is not repeated.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
    /// Not the user's fault.
    Internal,
    /// A value has another JSON type than the schema says.
    TypeInvalid,
    /// Not an error, but so many that are not shown.
    LeftOut,
}

impl FieldErrorKind {
    /// The reason in `Status.details.causes`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany | Self::LeftOut => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
            Self::LeftOut => "",
        }
    }

    const fn shows_value(self) -> bool {
        !matches!(
            self,
            Self::Required | Self::Forbidden | Self::TooLong | Self::Internal | Self::LeftOut
        )
    }
}

/// One thing that is wrong with one field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What is wrong, in general.
    pub kind: FieldErrorKind,
    /// Where, as it is printed.
    pub path: String,
    /// The value that is wrong; `None` prints no value at all.
    pub value: Option<Value>,
    /// What is wrong, in particular; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An error of any kind.
    pub fn new(
        kind: FieldErrorKind,
        path: &FieldPath<'_>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            path: path.to_string(),
            value,
            detail: detail.into(),
        }
    }

    /// A value has to be given.
    pub fn required(path: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, None, detail)
    }

    /// A value is malformed or out of bounds.
    pub fn invalid(
        path: &FieldPath<'_>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// As [`Self::invalid`], for a value that is already printed, because it is no JSON value: Go
    /// prints the fields of its structs in their own order.
    pub fn invalid_printed(path: &FieldPath<'_>, printed: &str, detail: &str) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            path,
            None,
            format!("{printed}: {detail}"),
        )
    }

    /// A value has to be unique and is not.
    pub fn duplicate(path: &FieldPath<'_>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// A referenced value does not exist.
    pub fn not_found(path: &FieldPath<'_>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// A value is not among `supported`, which are listed in the given order.
    pub fn not_supported<S: AsRef<str>>(
        path: &FieldPath<'_>,
        value: impl Into<Value>,
        supported: &[S],
    ) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<_> = supported
                .iter()
                .map(|value| text::quote(value.as_ref()))
                .collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(
            FieldErrorKind::NotSupported,
            path,
            Some(value.into()),
            detail,
        )
    }

    /// A value would be fine elsewhere, but not here and now.
    pub fn forbidden(path: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, None, detail)
    }

    /// A text has more than `maximum` bytes.
    pub fn too_long(path: &FieldPath<'_>, maximum: u64) -> Self {
        let unit = if maximum == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {maximum} {unit}");
        Self::new(FieldErrorKind::TooLong, path, None, detail)
    }

    /// A list or map has more than `maximum` entries.
    pub fn too_many(path: &FieldPath<'_>, actual: u64, maximum: u64) -> Self {
        let unit = if maximum == 1 { "item" } else { "items" };
        let detail = format!("must have at most {maximum} {unit}");
        Self::new(FieldErrorKind::TooMany, path, Some(actual.into()), detail)
    }

    /// Something failed that is not the user's fault.
    pub fn internal(path: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, path, None, detail)
    }

    /// Stands for so many errors that are not shown.
    pub(crate) fn left_out(count: usize) -> Self {
        let unit = if count == 1 { "error is" } else { "errors are" };
        Self {
            kind: FieldErrorKind::LeftOut,
            path: String::new(),
            value: Some(count.into()),
            detail: format!("{count} more {unit} not shown"),
        }
    }

    /// True if this stands for errors that are not shown.
    pub fn is_left_out(&self) -> bool {
        self.kind == FieldErrorKind::LeftOut
    }

    /// How many errors this stands for.
    pub(crate) fn count(&self) -> usize {
        let left_out = self.value.as_ref().filter(|_| self.is_left_out());
        let count = left_out.and_then(Value::as_u64).unwrap_or(1);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// The message without the path.
    pub fn body(&self) -> String {
        if self.is_left_out() {
            return self.detail.clone();
        }
        let mut body = self.kind.title().to_owned();
        if let (true, Some(value)) = (self.kind.shows_value(), &self.value) {
            body.push_str(": ");
            match value {
                Value::String(value) => body.push_str(&text::quote(value)),
                Value::Number(value) => body.push_str(&text::number(value)),
                other => body.push_str(&text::json(other)),
            }
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    /// The entry in `Status.details.causes`.
    pub fn cause(&self) -> Cause {
        Cause {
            reason: self.kind.reason(),
            message: self.body(),
            field: self.path.clone(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_left_out() {
            return formatter.write_str(&self.detail);
        }
        write!(formatter, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for FieldError {}

/// An entry of `Status.details.causes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`...
    pub reason: &'static str,
    /// The message without the path.
    pub message: String,
    /// The path.
    pub field: String,
}

/// The text of several errors: one stands alone, more are in brackets; equal ones are named once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let mut seen = HashSet::with_capacity(messages.len());
    messages.retain(|message| seen.insert(message.clone()));
    match messages.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_print_as_kubernetes_does() {
        let spec = FieldPath::new("spec");
        assert_eq!(FieldPath::NIL.to_string(), "<nil>");
        assert_eq!(
            FieldPath::NIL.child("spec").child("size").to_string(),
            "spec.size"
        );
        assert_eq!(
            spec.child("parts").index(0).child("name").to_string(),
            "spec.parts[0].name"
        );
        assert_eq!(spec.child("map").key("a.b").to_string(), "spec.map[a.b]");
        assert_eq!(FieldPath::NIL.index(3).to_string(), "[3]");
        assert_eq!(FieldPath::new("").child("spec").to_string(), "[].spec");
    }

    #[test]
    fn errors_print_as_kubernetes_does() {
        let path = FieldPath::new("spec");
        let none: [&str; 0] = [];
        let cases = [
            (FieldError::required(&path, ""), "spec: Required value"),
            (
                FieldError::required(&path, "say it"),
                "spec: Required value: say it",
            ),
            (
                FieldError::invalid(&path, "x", "bad"),
                "spec: Invalid value: \"x\": bad",
            ),
            (
                FieldError::invalid(&path, 1.5e9, "bad"),
                "spec: Invalid value: 1.5e+09: bad",
            ),
            (
                FieldError::invalid(&path, true, "bad"),
                "spec: Invalid value: true: bad",
            ),
            (
                FieldError::invalid(&path, Value::Null, "bad"),
                "spec: Invalid value: null: bad",
            ),
            (
                FieldError::invalid(&path, json!({"a": "<"}), ""),
                r#"spec: Invalid value: {"a":"\u003c"}"#,
            ),
            (
                FieldError::duplicate(&path, "a"),
                "spec: Duplicate value: \"a\"",
            ),
            (FieldError::not_found(&path, 7), "spec: Not found: 7"),
            (
                FieldError::not_supported(&path, "x", &["a", "b"]),
                r#"spec: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (
                FieldError::not_supported(&path, "x", &none),
                r#"spec: Unsupported value: "x""#,
            ),
            (
                FieldError::forbidden(&path, "not now"),
                "spec: Forbidden: not now",
            ),
            (
                FieldError::too_long(&path, 1),
                "spec: Too long: may not be more than 1 byte",
            ),
            (
                FieldError::too_long(&path, 5),
                "spec: Too long: may not be more than 5 bytes",
            ),
            (
                FieldError::too_many(&path, 4, 3),
                "spec: Too many: 4: must have at most 3 items",
            ),
            (
                FieldError::internal(&path, "oops"),
                "spec: Internal error: oops",
            ),
            (
                FieldError::new(FieldErrorKind::Invalid, &path, None, "bad"),
                "spec: Invalid value: bad",
            ),
        ];
        for (error, expected) in cases {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_cause_has_reason_message_and_field() {
        let cause = FieldError::too_long(&FieldPath::new("spec").child("name"), 5).cause();
        let expected = json!({
            "reason": "FieldValueTooLong",
            "message": "Too long: may not be more than 5 bytes",
            "field": "spec.name",
        });
        assert_eq!(serde_json::to_value(cause).unwrap(), expected);
    }

    #[test]
    fn several_errors_are_listed_once_each() {
        let one = FieldError::required(&FieldPath::new("a"), "");
        let two = FieldError::required(&FieldPath::new("b"), "");
        assert_eq!(aggregate(std::slice::from_ref(&one)), "a: Required value");
        assert_eq!(aggregate(&[one.clone(), one.clone()]), "a: Required value");
        assert_eq!(
            aggregate(&[one.clone(), two, one]),
            "[a: Required value, b: Required value]"
        );
    }
}
