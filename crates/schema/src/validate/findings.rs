//! What a validation has found, and where.

use std::fmt;

use serde_json::Value;

use crate::field::{FieldError, FieldErrorKind, FieldPath};
use crate::field_errors::MAX_FIELD_ERRORS;
use crate::text;

/// Where a value is, as validation messages name it: entries of maps look like fields.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Entry(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl<'a> Place<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Place<'a> {
        Place::Field(self, name)
    }

    pub(super) fn entry(&'a self, name: &'a str) -> Place<'a> {
        Place::Entry(self, name)
    }

    pub(super) fn index(&'a self, index: usize) -> Place<'a> {
        Place::Index(self, index)
    }

    pub(super) fn is_top_level(&self) -> bool {
        matches!(
            self,
            Place::Field(Place::Root, _) | Place::Entry(Place::Root, _)
        )
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => formatter.write_str(name),
            // Entries have a dot in front even at the root.
            Place::Field(parent, name) | Place::Entry(parent, name) => {
                write!(formatter, "{parent}.{name}")
            }
            Place::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

/// Errors, and how many checks applied.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The first errors.
    found: Vec<Finding>,
    /// How many errors there are besides.
    left_out: usize,
    matches: usize,
}

#[derive(Debug)]
struct Finding {
    /// Tells findings apart: each message is kept once.
    message: String,
    subject: Subject,
}

#[derive(Debug)]
enum Subject {
    /// The value at a place is wrong.
    Value {
        place: String,
        kind: FieldErrorKind,
        value: Option<Value>,
        detail: Detail,
    },
    /// A combination of schemas is not met; reported without a path.
    Combination,
}

/// What stands behind the value in the reported error.
#[derive(Debug)]
pub(super) enum Detail {
    /// The message.
    Message,
    /// Something else.
    Text(String),
}

impl Findings {
    pub(super) fn is_valid(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn matches(&self) -> usize {
        self.matches
    }

    pub(super) fn matched(&mut self) {
        self.matches += 1;
    }

    /// Drops the errors of something that was wrong already.
    pub(super) fn forgive(&mut self) {
        self.found.clear();
        self.left_out = 0;
    }

    pub(super) fn merge(&mut self, other: Findings) {
        self.matches += other.matches;
        self.left_out += other.left_out;
        for finding in other.found {
            self.push(finding);
        }
    }

    /// Merges the result of a check that applied.
    pub(super) fn merge_counted(&mut self, other: Findings) {
        self.merge(other);
        self.matched();
    }

    fn push(&mut self, finding: Finding) {
        if self.found.len() == MAX_FIELD_ERRORS {
            self.left_out += 1;
        } else if !self
            .found
            .iter()
            .any(|known| known.message == finding.message)
        {
            self.found.push(finding);
        }
    }

    /// The value at `place` is wrong: `fault` completes the sentence that begins with the place.
    pub(super) fn fault(
        &mut self,
        place: &Place<'_>,
        fault: &str,
        kind: FieldErrorKind,
        value: Option<Value>,
    ) {
        self.fault_with(place, fault, kind, value, Detail::Message);
    }

    /// As [`Self::fault`], with another text in the reported error.
    pub(super) fn fault_with(
        &mut self,
        place: &Place<'_>,
        fault: &str,
        kind: FieldErrorKind,
        value: Option<Value>,
        detail: Detail,
    ) {
        let place = place.to_string();
        let message = format!("{place} in body {fault}");
        self.push(Finding {
            message,
            subject: Subject::Value {
                place,
                kind,
                value,
                detail,
            },
        });
    }

    /// The text of the factor of `multipleOf` has its own form.
    pub(super) fn bad_factor(&mut self, place: &Place<'_>, factor: Value, printed: &str) {
        let place = place.to_string();
        let message = format!("factor MultipleOf declared for {place} must be positive: {printed}");
        let (kind, value) = (FieldErrorKind::Invalid, Some(factor));
        let subject = Subject::Value {
            place,
            kind,
            value,
            detail: Detail::Message,
        };
        self.push(Finding { message, subject });
    }

    pub(super) fn missing_field(&mut self, place: &Place<'_>, name: &str) {
        let place = format!("{place}.{name}");
        let message = format!("{place} in body is required");
        let (kind, detail) = (FieldErrorKind::Required, Detail::Text(String::new()));
        self.push(Finding {
            message,
            subject: Subject::Value {
                place,
                kind,
                value: None,
                detail,
            },
        });
    }

    pub(super) fn forbidden_field(&mut self, place: &Place<'_>, name: &str) {
        let place = place.to_string();
        let message = format!("{place}.{name} in body is a forbidden property");
        let (kind, value) = (FieldErrorKind::Invalid, Some(name.into()));
        let subject = Subject::Value {
            place,
            kind,
            value,
            detail: Detail::Message,
        };
        self.push(Finding { message, subject });
    }

    pub(super) fn composite(&mut self, place: &Place<'_>, fault: &str) {
        let message = format!("{} {fault}", text::quote(&place.to_string()));
        self.push(Finding {
            message,
            subject: Subject::Combination,
        });
    }

    /// The errors, with `path` in front of their places.
    pub(super) fn into_errors(self, path: &FieldPath<'_>) -> Vec<FieldError> {
        let error = |Finding { message, subject }: Finding| match subject {
            Subject::Combination => FieldError::invalid(path, "", message),
            Subject::Value {
                place,
                kind,
                value,
                detail,
            } => {
                let name = place.strip_prefix('.').unwrap_or(&place);
                let child = path.child(name);
                let detail = match detail {
                    Detail::Message => message,
                    Detail::Text(text) => text,
                };
                FieldError::new(
                    kind,
                    if name.is_empty() { path } else { &child },
                    value,
                    detail,
                )
            }
        };
        let mut errors: Vec<FieldError> = self.found.into_iter().map(error).collect();
        if self.left_out > 0 {
            errors.push(FieldError::left_out(self.left_out));
        }
        errors
    }
}
