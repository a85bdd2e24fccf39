//! How much comes back: of one value, and of a whole work.

use serde_json::{Number, Value};

use super::Scalar;

/// The longest JSON that a ManifestWork carries in one value, unless the agent is configured otherwise.
pub const MAX_JSON_RAW: usize = 1024;
/// The longest text that a ManifestWork carries in one value: enough for a chain of certificates.
pub const MAX_TEXT: usize = 32 * 1024;
/// The longest text, and the longest JSON, that a Work carries in one value.
pub const MAX_BYTE_ARRAY: usize = 4096;
/// What all values of a work may take together.
pub const MAX_OF_WORK: usize = 256 * 1024;

/// What is done with lists and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structures {
    /// They are refused.
    Refused,
    /// They come back as JSON of at most so many bytes.
    Json {
        /// So many bytes.
        limit: usize,
        /// Whether several results of a path are a list; otherwise the first counts.
        several: bool,
    },
}

/// How much one value may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest text, in bytes.
    pub text: usize,
    /// What is done with lists and maps.
    pub structures: Structures,
}

impl Limits {
    /// A JSON value as one that can come back; null is nothing.
    pub(super) fn scalar(self, name: &str, value: &Value) -> Result<Option<Scalar>, String> {
        Ok(match value {
            Value::Null => None,
            Value::Bool(value) => Some(Scalar::Boolean(*value)),
            Value::String(text) => {
                self.check_length(name, text.len())?;
                Some(Scalar::String(text.clone()))
            }
            Value::Number(number) => Some(match number.as_i64() {
                Some(integer) => Scalar::Integer(integer),
                None => Scalar::String(decimal(number)),
            }),
            structure @ (Value::Array(_) | Value::Object(_)) => {
                Some(self.structure(name, structure)?)
            }
        })
    }

    /// Bytes as a value that can come back.
    pub(super) fn bytes(self, name: &str, bytes: &[u8]) -> Result<Scalar, String> {
        self.check_length(name, bytes.len())?;
        Ok(Scalar::Bytes(bytes.to_vec()))
    }

    fn check_length(self, name: &str, length: usize) -> Result<(), String> {
        let limit = self.text;
        if length > limit {
            return Err(format!(
                "the value of {name} has {length} bytes, which is more than the maximum of {limit}"
            ));
        }
        Ok(())
    }

    fn structure(self, name: &str, structure: &Value) -> Result<Scalar, String> {
        match self.structures {
            Structures::Refused => {
                let kind = if structure.is_array() {
                    "[]interface {}"
                } else {
                    "map[string]interface {}"
                };
                Err(format!(
                    "the type {kind} of the value for {name} is not found"
                ))
            }
            Structures::Json { limit, .. } => {
                let json = structure.to_string();
                if json.len() > limit {
                    return Err(format!(
                        "the length of returned json raw string for name {name} is larger than the maximum length {limit}"
                    ));
                }
                Ok(Scalar::Json(json))
            }
        }
    }
}

/// What is left of what all values of a work may take together.
#[derive(Debug)]
pub struct Allowance(usize);

impl Default for Allowance {
    fn default() -> Self {
        Self(MAX_OF_WORK)
    }
}

impl Allowance {
    /// Takes what a value takes, or says that it is too much.
    pub(super) fn take(&mut self, name: &str, value: &Scalar) -> Result<(), String> {
        let size = match value {
            Scalar::Integer(_) | Scalar::Boolean(_) => size_of::<i64>(),
            Scalar::String(text) | Scalar::Json(text) => text.len(),
            Scalar::Bytes(bytes) => bytes.len(),
        };
        let size = size + name.len();
        self.0 = self.0.checked_sub(size).ok_or_else(|| {
            format!(
                "the value of {name} is left out: all values of a work take at most {MAX_OF_WORK} bytes together"
            )
        })?;
        Ok(())
    }
}

/// The shortest text of a number.
fn decimal(number: &Number) -> String {
    let text = number.to_string();
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
