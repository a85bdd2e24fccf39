//! Values with Go's kinds and types, as templates see them.
//!
//! A [`Value`] is what an `interface {}` holds in Go. Lists are immutable, maps are shared and
//! change in place, structs are [`Object`]s. Strings are bytes, as in Go. Values can be sent
//! between threads.

mod container;
mod convert;
mod object;
mod text;
mod types;

use std::sync::Arc;

pub use container::{Elements, Entries, List, Map};
pub(crate) use convert::base64_of;
pub use convert::{JsonError, Numbers};
pub use object::{Limit, Meter, Method, MethodBody, Named, Object, Unmetered};
pub use text::Text;
pub use types::{IntKind, Kind, Type, UintKind};

/// A value of any of Go's types.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// No value at all: reflection's zero value, which templates print as `<no value>`.
    Invalid,
    /// A nil interface.
    #[default]
    Nil,
    /// `bool`.
    Bool(bool),
    /// A signed integer.
    Int(IntKind, i64),
    /// An unsigned integer.
    Uint(UintKind, u64),
    /// `float64`.
    Float(f64),
    /// `complex128`.
    Complex(f64, f64),
    /// `string`.
    String(Text),
    /// A slice.
    List(List),
    /// A map with keys that are strings.
    Map(Map),
    /// A struct, or a pointer to one.
    Object(Arc<dyn Object>),
}

impl Value {
    /// An `int`.
    pub const fn int(value: i64) -> Self {
        Self::Int(IntKind::Int, value)
    }

    /// An `int64`.
    pub const fn int64(value: i64) -> Self {
        Self::Int(IntKind::Int64, value)
    }

    /// A string.
    pub fn string(text: impl Into<Text>) -> Self {
        Self::String(text.into())
    }

    /// A slice of strings.
    pub fn strings<T: Into<Text>>(texts: impl IntoIterator<Item = T>) -> Self {
        let items = texts.into_iter().map(Self::string).collect();
        Self::List(List::new(&Type::String, items))
    }

    /// A slice of `interface {}`.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List::new(&Type::Interface, items))
    }

    /// A `map[string]interface {}`.
    pub fn map<K: Into<Text>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
        Self::Map(Map::new(&Type::Interface, entries.collect()))
    }

    /// A struct.
    pub fn object(object: impl Object + 'static) -> Self {
        Self::Object(Arc::new(object))
    }

    /// The type of the value; that of no value and of a nil interface is `interface {}`.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Invalid | Self::Nil => Type::Interface,
            Self::Bool(_) => Type::Bool,
            Self::Int(kind, _) => Type::Int(*kind),
            Self::Uint(kind, _) => Type::Uint(*kind),
            Self::Float(_) => Type::Float64,
            Self::Complex(..) => Type::Complex128,
            Self::String(_) => Type::String,
            Self::List(list) => list.type_of(),
            Self::Map(map) => map.type_of(),
            Self::Object(object) => Type::Named(object.named(), object.kind()),
        }
    }

    /// The kind of the value; [`Kind::Invalid`] for no value and for a nil interface.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Invalid | Self::Nil => Kind::Invalid,
            _ => self.type_of().kind(),
        }
    }

    /// Whether it is no value or a nil interface.
    pub const fn is_nil(&self) -> bool {
        matches!(self, Self::Invalid | Self::Nil)
    }

    /// Whether it is nil of any type: also a slice or map that was never made.
    pub fn is_nil_of_any_type(&self) -> bool {
        match self {
            Self::Invalid | Self::Nil => true,
            Self::List(list) => list.is_nil(),
            Self::Map(map) => map.is_nil(),
            _ => false,
        }
    }

    /// Truth as templates see it: neither empty, nor zero, nor missing. Structs are true.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Invalid | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(_) => true,
        }
    }

    /// The method of that name, if the type has it.
    pub fn method(&self, name: &[u8]) -> Option<&'static Method> {
        let named = match self {
            Self::List(list) => list.named()?,
            Self::Map(map) => map.named()?,
            Self::Object(object) => object.named(),
            Self::Int(kind, _) => kind.named()?,
            _ => return None,
        };
        named.method(name)
    }

    /// The text of a string.
    pub const fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The map, if it is one.
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub const fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Whether two values are deeply equal, types included: `reflect.DeepEqual`. What is nested
    /// deeper than a thousand levels is taken for different. Fails only when the meter does.
    pub fn deep_equal(&self, other: &Self, meter: &mut dyn Meter) -> Result<bool, String> {
        deep_equal(self, other, 0, meter)
    }
}

/// Values nested deeper than this are not followed.
pub(crate) const DEPTH_LIMIT: usize = 1000;

fn deep_equal(
    left: &Value,
    right: &Value,
    depth: usize,
    meter: &mut dyn Meter,
) -> Result<bool, String> {
    meter.charge(1)?;
    if depth > DEPTH_LIMIT || left.type_of() != right.type_of() {
        return Ok(false);
    }
    Ok(match (left, right) {
        (Value::Invalid | Value::Nil, Value::Invalid | Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(_, left), Value::Int(_, right)) => left == right,
        (Value::Uint(_, left), Value::Uint(_, right)) => left == right,
        #[expect(clippy::float_cmp, reason = "as in Go")]
        (Value::Float(left), Value::Float(right)) => left == right,
        #[expect(clippy::float_cmp, reason = "as in Go")]
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            if left.is_nil() != right.is_nil() || left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in std::iter::zip(left, right) {
                if !deep_equal(left, right, depth + 1, meter)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) => {
            let (left_entries, right_entries) = (left.entries(), right.entries());
            if left.is_same(right) {
                return Ok(true);
            }
            if left.is_nil() != right.is_nil() || !left_entries.keys().eq(right_entries.keys()) {
                return Ok(false);
            }
            for (left, right) in std::iter::zip(left_entries.values(), right_entries.values()) {
                if !deep_equal(left, right, depth + 1, meter)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(left), Value::Object(right)) => {
            if Arc::ptr_eq(left, right) {
                return Ok(true);
            }
            // Those without fields are compared by what they say.
            let (left_fields, right_fields) = (left.fields(), right.fields());
            if left_fields.is_empty() && right_fields.is_empty() {
                return Ok(left.string().is_some() && left.string() == right.string());
            }
            for ((_, left), (_, right)) in std::iter::zip(left_fields, right_fields) {
                if !deep_equal(&left, &right, depth + 1, meter)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::string(value)
    }
}

impl From<Text> for Value {
    fn from(value: Text) -> Self {
        Self::String(value)
    }
}
