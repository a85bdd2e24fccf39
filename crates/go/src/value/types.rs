//! Types and kinds, and how Go writes them.

use std::fmt;

use super::object::{Named, duration, month, weekday};

/// The kinds of reflection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No value.
    Invalid,
    /// `bool`.
    Bool,
    /// `int` and its sizes.
    Int(IntKind),
    /// `uint` and its sizes.
    Uint(UintKind),
    /// `float64`.
    Float64,
    /// `complex128`.
    Complex128,
    /// `interface`.
    Interface,
    /// `map`.
    Map,
    /// `ptr`.
    Pointer,
    /// `slice`.
    Slice,
    /// `string`.
    String,
    /// `struct`.
    Struct,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int(kind) => kind.kind_name(),
            Self::Uint(kind) => kind.name(),
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::Interface => "interface",
            Self::Map => "map",
            Self::Pointer => "ptr",
            Self::Slice => "slice",
            Self::String => "string",
            Self::Struct => "struct",
        })
    }
}

/// The signed integer types, with those of package `time` that have an integer below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntKind {
    /// `int`, of 64 bits.
    Int,
    /// `int8`.
    Int8,
    /// `int16`.
    Int16,
    /// `int32`, also a rune.
    Int32,
    /// `int64`.
    Int64,
    /// `time.Duration`.
    Duration,
    /// `time.Month`.
    Month,
    /// `time.Weekday`.
    Weekday,
}

impl IntKind {
    fn name(self) -> &'static str {
        match self {
            Self::Duration => "time.Duration",
            Self::Month => "time.Month",
            Self::Weekday => "time.Weekday",
            _ => self.kind_name(),
        }
    }

    fn kind_name(self) -> &'static str {
        match self {
            Self::Int | Self::Month | Self::Weekday => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 | Self::Duration => "int64",
        }
    }

    /// The named type, for those that have methods.
    pub(super) fn named(self) -> Option<&'static Named> {
        match self {
            Self::Duration => Some(&duration::TYPE),
            Self::Month => Some(&month::TYPE),
            Self::Weekday => Some(&weekday::TYPE),
            _ => None,
        }
    }
}

/// The unsigned integer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UintKind {
    /// `uint`, of 64 bits.
    Uint,
    /// `uint8`, also a byte.
    Uint8,
    /// `uint16`.
    Uint16,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
}

impl UintKind {
    fn name(self) -> &'static str {
        match self {
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }
}

/// A type, as far as values and parameters of functions need it.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// `interface {}`.
    Interface,
    /// `bool`.
    Bool,
    /// A signed integer.
    Int(IntKind),
    /// An unsigned integer.
    Uint(UintKind),
    /// `float64`.
    Float64,
    /// `complex128`.
    Complex128,
    /// `string`.
    String,
    /// A slice of a type.
    List(&'static Type),
    /// A map from strings to a type.
    Map(&'static Type),
    /// A type with a name, and what it is below.
    Named(&'static Named, Kind),
    /// `reflect.Value`: for parameters of functions that look at the value itself.
    Reflect,
}

impl Type {
    /// `int`.
    pub const INT: Self = Self::Int(IntKind::Int);
    /// `[]interface {}`.
    pub const LIST: Self = Self::List(&Self::Interface);
    /// `map[string]interface {}`.
    pub const MAP: Self = Self::Map(&Self::Interface);

    /// The kind below the type.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Interface => Kind::Interface,
            Self::Bool => Kind::Bool,
            Self::Int(kind) => Kind::Int(kind),
            Self::Uint(kind) => Kind::Uint(kind),
            Self::Float64 => Kind::Float64,
            Self::Complex128 => Kind::Complex128,
            Self::String => Kind::String,
            Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Named(_, kind) => kind,
            Self::Reflect => Kind::Struct,
        }
    }

    /// Whether nil is a value of the type.
    pub const fn can_be_nil(self) -> bool {
        matches!(
            self.kind(),
            Kind::Interface | Kind::Map | Kind::Pointer | Kind::Slice
        ) || matches!(self, Self::Reflect)
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Interface, Self::Interface)
            | (Self::Bool, Self::Bool)
            | (Self::Float64, Self::Float64)
            | (Self::Complex128, Self::Complex128)
            | (Self::String, Self::String)
            | (Self::Reflect, Self::Reflect) => true,
            (Self::Int(left), Self::Int(right)) => left == right,
            (Self::Uint(left), Self::Uint(right)) => left == right,
            (Self::List(left), Self::List(right)) | (Self::Map(left), Self::Map(right)) => {
                left == right
            }
            (Self::Named(left, _), Self::Named(right, _)) => left.name == right.name,
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface => formatter.write_str("interface {}"),
            Self::Bool => formatter.write_str("bool"),
            Self::Int(kind) => formatter.write_str(kind.name()),
            Self::Uint(kind) => formatter.write_str(kind.name()),
            Self::Float64 => formatter.write_str("float64"),
            Self::Complex128 => formatter.write_str("complex128"),
            Self::String => formatter.write_str("string"),
            Self::List(element) => write!(formatter, "[]{element}"),
            Self::Map(element) => write!(formatter, "map[string]{element}"),
            Self::Named(named, Kind::Pointer) => write!(formatter, "*{}", named.name),
            Self::Named(named, _) => formatter.write_str(named.name),
            Self::Reflect => formatter.write_str("reflect.Value"),
        }
    }
}
