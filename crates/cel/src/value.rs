//! Values at run time. JSON is looked at where it lies: a value may borrow from the bindings.

mod compare;
mod convert;
mod equal;
mod format;
mod instance;
mod list;
mod map;
mod view;
mod weight;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bellwether_go::url::Url;

pub use list::List;
pub use map::{Key, Map};

use bellwether_json::quantity::Quantity;

use crate::library::{
    authorization::Authorization, cidr::Cidr, format::NamedFormat, semver::Semver,
};
use crate::time::{Duration, Timestamp};
use crate::types::{AbstractType, Type};

pub(crate) use compare::compare;
pub(crate) use convert::{to_bool, to_double, to_int, to_string, to_uint};
pub(crate) use equal::{MAX_STEPS, equal, equal_within};
pub(crate) use format::{display, quote as quoted};
pub(crate) use instance::is_instance;
pub(crate) use view::view;
pub(crate) use weight::fits;

/// A CEL value, possibly borrowing from JSON or from a compiled program.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; JSON never yields one.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Octets.
    Bytes(Arc<[u8]>),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time.
    Duration(Duration),
    /// A type, such as the value of `int` or `type(1)`.
    Type(Arc<Type>),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'a>>>),
    /// A resource quantity.
    Quantity(Arc<Quantity>),
    /// A URL.
    Url(Arc<Url>),
    /// An IP address.
    Ip(std::net::IpAddr),
    /// A network.
    Cidr(Cidr),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A named string format.
    Format(&'static NamedFormat),
    /// The authorizer of a cluster, a check in the making, or a decision.
    Authorization(Arc<Authorization<'a>>),
    /// JSON under a schema that says nothing about it: it can be compared and nothing else.
    Preserved(&'a serde_json::Value),
}

/// Text that is borrowed where possible.
#[derive(Clone)]
pub enum Text<'a> {
    /// Part of the bindings or of the program.
    Borrowed(&'a str),
    /// Made during evaluation.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'a> Value<'a> {
    /// The value of a JSON document, without copying it. Integers become `int`, other numbers
    /// `double`.
    pub fn from_json(json: &'a serde_json::Value) -> Value<'a> {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => number_value(number),
            serde_json::Value::String(text) => Value::String(Text::Borrowed(text)),
            serde_json::Value::Array(items) => Value::List(List::json(items)),
            serde_json::Value::Object(entries) => Value::Map(Map::Json(entries)),
        }
    }

    /// Text made by a function.
    pub fn text(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    /// A list of these values.
    pub fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::values(items))
    }

    /// An optional that holds `value`.
    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The optional that holds nothing.
    pub fn none() -> Value<'a> {
        Value::Optional(None)
    }

    /// The boolean this is, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text this is, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The type the value has at run time; element types are not looked at.
    pub fn runtime_type(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Timestamp(_) => Type::Timestamp,
            Value::Duration(_) => Type::Duration,
            Value::Type(_) => Type::Type(None),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Quantity(_) => Type::Abstract(AbstractType::Quantity),
            Value::Url(_) => Type::Abstract(AbstractType::Url),
            Value::Ip(_) => Type::Abstract(AbstractType::Ip),
            Value::Cidr(_) => Type::Abstract(AbstractType::Cidr),
            Value::Semver(_) => Type::Abstract(AbstractType::Semver),
            Value::Format(_) => Type::Abstract(AbstractType::Format),
            Value::Authorization(value) => Type::Abstract(value.abstract_type()),
            Value::Preserved(_) => Type::Dyn,
        }
    }

    /// The name of [`Value::runtime_type`], without making the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Quantity(_) => AbstractType::Quantity.name(),
            Value::Url(_) => AbstractType::Url.name(),
            Value::Ip(_) => AbstractType::Ip.name(),
            Value::Cidr(_) => AbstractType::Cidr.name(),
            Value::Semver(_) => AbstractType::Semver.name(),
            Value::Format(_) => AbstractType::Format.name(),
            Value::Authorization(value) => value.abstract_type().name(),
            Value::Preserved(_) => "unknown",
        }
    }

    /// How many characters, octets, elements or entries the value has, for those that have any.
    pub(crate) fn size(&self) -> Option<usize> {
        match self {
            Value::String(text) => Some(character_count(text)),
            Value::Bytes(bytes) => Some(bytes.len()),
            Value::List(list) => Some(list.len()),
            Value::Map(map) => Some(map.len()),
            _ => None,
        }
    }
}

/// Code points in `text`; almost all text is ASCII, where counting is not needed.
pub(crate) fn character_count(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// A JSON number: `int` where it is one, else `double`. Integers beyond 64 bits are doubles, as
/// Kubernetes decodes them.
fn number_value<'a>(number: &serde_json::Number) -> Value<'a> {
    match number.as_i64() {
        Some(value) => Value::Int(value),
        None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(Text::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::text(text)
    }
}

impl<'a> From<&'a serde_json::Value> for Value<'a> {
    fn from(json: &'a serde_json::Value) -> Self {
        Value::from_json(json)
    }
}

impl PartialEq for Value<'_> {
    /// CEL's `==`: numbers of different types are equal if their values are.
    fn eq(&self, other: &Self) -> bool {
        equal(self, other).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
