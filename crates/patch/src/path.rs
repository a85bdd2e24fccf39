//! Steps from an object to one of its fields or list items.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::value;

/// One step of a path, as `managedFields` names them.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A member of an object: `f:name`.
    Field(Box<str>),
    /// The item of a list whose key members have these values, sorted by name: `k:{"name":"x"}`.
    Key(Vec<(Box<str>, Value)>),
    /// The item of a set that has this value: `v:"x"`.
    Value(Value),
    /// The item at a position: `i:0`. Read, but never written: such lists are owned as a whole.
    Index(i64),
}

/// Why a name in a field set is not a path element.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathElementError {
    /// A newer server may know this type; it is skipped, not refused.
    #[error("unknown path element type")]
    UnknownType,
    /// The text cannot be read.
    #[error("{0}")]
    Malformed(String),
}

impl PathElement {
    /// A step to an object's member.
    pub fn field(name: impl Into<Box<str>>) -> Self {
        Self::Field(name.into())
    }

    /// A step to the list item with these key members, given in any order.
    pub fn key(members: impl IntoIterator<Item = (Box<str>, Value)>) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by(|left, right| left.0.cmp(&right.0));
        Self::Key(members)
    }

    /// Reads the serialised form (`f:…`, `k:…`, `v:…`, `i:…`).
    pub fn parse(text: &str) -> Result<Self, PathElementError> {
        let malformed = |text: String| PathElementError::Malformed(text);
        let Some((kind, content)) = text.split_at_checked(2) else {
            return Err(malformed("key must be 2 characters long:".to_owned()));
        };
        let json = |content: &str| {
            serde_json::from_str::<Value>(content).map_err(|error| malformed(error.to_string()))
        };
        match kind {
            "f:" => Ok(Self::field(content)),
            "v:" => json(content).map(Self::Value),
            "k:" => match json(content)? {
                Value::Object(members) => Ok(Self::key(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.into_boxed_str(), value)),
                )),
                _ => Err(malformed(format!("key is not an object: {content}"))),
            },
            "i:" => content.parse().map(Self::Index).map_err(|_| {
                malformed(format!("strconv.Atoi: parsing {content:?}: invalid syntax"))
            }),
            other if other.ends_with(':') => Err(PathElementError::UnknownType),
            _ => Err(malformed(format!("missing colon: {text}"))),
        }
    }

    /// Appends the serialised form to `out`.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(members) => {
                out.push_str("k:{");
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_json_text(name, out);
                    out.push(':');
                    write_json(value, out);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                write_json(value, out);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
    }
}

/// Appends a JSON value with the escapes of Go's default encoder, which stored field sets have.
fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_json_text(text, out),
        other => out.push_str(&other.to_string()),
    }
}

/// Appends a JSON string; `<`, `>` and `&` are escaped as Go does.
pub(crate) fn write_json_text(text: &str, out: &mut String) {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && !b"\"\\<>&".contains(&byte);
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    let quoted = Value::String(text.to_owned()).to_string();
    for character in quoted.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                for ((left_name, l), (right_name, r)) in left.iter().zip(right) {
                    let order = left_name.cmp(right_name).then_with(|| value::compare(l, r));
                    if order.is_ne() {
                        return order;
                    }
                }
                left.len().cmp(&right.len())
            }
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            (left, right) => left.rank().cmp(&right.rank()),
        }
    }
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Readable form as in conflict messages: `.spec`, `[name="x"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(members) => {
                let mut text = String::from("[");
                for (index, (name, member)) in members.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(name);
                    text.push('=');
                    value::write_readable(member, &mut text);
                }
                text.push(']');
                formatter.write_str(&text)
            }
            Self::Value(item) => {
                let mut text = String::from("[=");
                value::write_readable(item, &mut text);
                text.push(']');
                formatter.write_str(&text)
            }
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// A path from the root of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of object members only, such as `["metadata", "labels"]`.
    pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|element| write!(formatter, "{element}"))
    }
}
