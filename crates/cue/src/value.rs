//! Plain values: what builtins receive and return, and what data looks like
//! before it meets a schema.
//!
//! A [`Value`] is a finished tree that clones in constant time. Arguments that
//! are not concrete reach a builtin as [`Value::Opaque`]; the builtin asks its
//! [`Host`] about them.

use std::fmt;
use std::sync::Arc;

use crate::number::Number;

/// A set of the basic types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kind(pub u16);

impl Kind {
    /// The empty set, the kind of an error.
    pub const BOTTOM: Self = Self(0);
    /// `null`
    pub const NULL: Self = Self(1);
    /// `bool`
    pub const BOOL: Self = Self(1 << 1);
    /// `int`
    pub const INT: Self = Self(1 << 2);
    /// `float`
    pub const FLOAT: Self = Self(1 << 3);
    /// `string`
    pub const STRING: Self = Self(1 << 4);
    /// `bytes`
    pub const BYTES: Self = Self(1 << 5);
    /// A function.
    pub const FUNC: Self = Self(1 << 6);
    /// `list`
    pub const LIST: Self = Self(1 << 7);
    /// `struct`
    pub const STRUCT: Self = Self(1 << 8);
    /// `int | float`
    pub const NUMBER: Self = Self(Self::INT.0 | Self::FLOAT.0);
    /// Every kind that is neither list nor struct.
    pub const SCALAR: Self = Self(0x3f);
    /// Every kind; `_`.
    pub const TOP: Self = Self(0x1ff & !Self::FUNC.0);

    /// Whether no kind is left.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets share a kind.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether every kind of `other` is in `self`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitAnd for Kind {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl std::ops::BitOr for Kind {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The names as they appear in messages: `int`, `number`, `(int|string)`, `_`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Kind, &str); 9] = [
            (Kind::NULL, "null"),
            (Kind::BOOL, "bool"),
            (Kind::INT, "int"),
            (Kind::FLOAT, "float"),
            (Kind::STRING, "string"),
            (Kind::BYTES, "bytes"),
            (Kind::FUNC, "func"),
            (Kind::LIST, "list"),
            (Kind::STRUCT, "struct"),
        ];
        if *self == Self::TOP {
            return f.write_str("_");
        }
        if self.is_empty() {
            return f.write_str("_|_");
        }
        let mut names = Vec::new();
        for (kind, name) in NAMES {
            if self.contains(kind) && !(self.contains(Self::NUMBER) && Self::NUMBER.contains(kind))
            {
                names.push(name);
            }
        }
        if self.contains(Self::NUMBER) {
            names.push("number");
        }
        match names.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "({})", many.join("|")),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A finished value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer or a decimal.
    Number(Number),
    /// Text.
    String(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list of finished values.
    List(Arc<[Value]>),
    /// Fields in order, labels unique.
    Struct(Arc<[(Arc<str>, Value)]>),
    /// An argument that is not concrete, held by the evaluator. Only for parameters declared with
    /// [`Param::schema`] or [`Param::shallow`]; a builtin may hand one back as its result or
    /// inside it, as `list.Concat` does with elements, but never makes one.
    Opaque(Opaque),
}

/// A handle to a value inside the running evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opaque(pub(crate) u32);

impl Value {
    /// A string value.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A list value.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Self::List(items.into_iter().collect())
    }

    /// A struct value; the caller keeps labels unique.
    pub fn structure(fields: impl IntoIterator<Item = (Arc<str>, Value)>) -> Self {
        Self::Struct(fields.into_iter().collect())
    }

    /// The same with fields in the order of their names, at every level: where constraints and data
    /// come in decides about the order that a value has of itself.
    #[must_use]
    pub fn sorted(&self) -> Self {
        match self {
            Self::Struct(fields) => {
                let fields = fields.iter();
                let mut fields: Vec<_> = fields
                    .map(|(label, field)| (label.clone(), field.sorted()))
                    .collect();
                fields.sort_by(|left, right| left.0.cmp(&right.0));
                Self::structure(fields)
            }
            Self::List(items) => Self::list(items.iter().map(Self::sorted)),
            other => other.clone(),
        }
    }

    /// The kind of the value; of an opaque one, [`Kind::TOP`].
    pub fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::NULL,
            Self::Bool(_) => Kind::BOOL,
            Self::Number(number) if number.is_int() => Kind::INT,
            Self::Number(_) => Kind::FLOAT,
            Self::String(_) => Kind::STRING,
            Self::Bytes(_) => Kind::BYTES,
            Self::List(_) => Kind::LIST,
            Self::Struct(_) => Kind::STRUCT,
            Self::Opaque(_) => Kind::TOP,
        }
    }

    /// Looks a field up in a struct value.
    pub fn field(&self, label: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => fields
                .iter()
                .find(|(name, _)| &**name == label)
                .map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Why a builtin gave no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A final error; the text follows `error in call to package.Name: `.
    Error(String),
    /// An argument is not concrete enough yet; tried again later.
    Incomplete(String),
    /// A validator found its value wanting. Used as a constraint this is a final error with the
    /// text; called as a function the result is `false`.
    Unsatisfied(String),
    /// As [`Failure::Unsatisfied`], but more elements or fields may still come; used as a
    /// constraint the error is incomplete.
    UnsatisfiedYet(String),
}

impl Failure {
    /// A final error.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }
}

/// What a builtin may ask the running evaluation.
pub trait Host {
    /// Whether `data` unified with `schema` is free of errors. `Err` holds the message.
    /// `data` and `schema` may be opaque or plain.
    fn matches(&mut self, data: &Value, schema: &Value) -> Result<(), String>;

    /// As [`Host::matches`], but what the schema requires and `data` lacks is no error.
    fn matches_partially(&mut self, data: &Value, schema: &Value) -> Result<(), String>;

    /// Fills `fields` into a copy of `template` and reads the field `result`, concrete.
    /// This is how comparators such as `list.Ascending` are called.
    fn apply(
        &mut self,
        template: &Value,
        fields: &[(&str, &Value)],
        result: &str,
    ) -> Result<Value, Failure>;

    /// The largest string, byte string or list a builtin may make; above it the builtin
    /// returns a [`Failure::Error`] that names the limit.
    fn output_limit(&self) -> usize;

    /// Counts work that grows faster than the arguments; an error once the evaluation has used up
    /// its budget.
    fn work(&mut self, steps: usize) -> Result<(), Failure>;

    /// The elements of an opaque list, each opaque or plain; `None` if it is not a list.
    fn elements(&mut self, list: &Value) -> Option<Vec<Value>>;

    /// The regular fields of an opaque struct, each opaque or plain; `None` if it is no struct.
    fn fields(&mut self, structure: &Value) -> Option<Vec<(Arc<str>, Value)>>;

    /// The concrete value of an opaque one.
    fn concrete(&mut self, value: &Value) -> Result<Value, Failure>;

    /// Whether elements or fields could still be added to an opaque value: an open list, an open
    /// struct, or a closed one with optional fields left.
    fn is_open(&mut self, value: &Value) -> bool;

    /// The value printed as CUE on one line, for messages.
    fn show(&mut self, value: &Value) -> String;
}

/// A parameter of a builtin.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The kinds accepted; an argument of another kind is an error before the call.
    pub kind: Kind,
    /// Whether the argument is handed over as it is, [`Value::Opaque`] when not concrete.
    pub schema: bool,
    /// The text an omitted trailing argument stands for; `None` when it cannot be omitted.
    pub default: Option<&'static str>,
}

impl Param {
    /// A parameter that takes concrete values of the given kinds.
    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            schema: false,
            default: None,
        }
    }

    /// A parameter that takes any value, concrete or not.
    pub const fn schema() -> Self {
        Self {
            kind: Kind::TOP,
            schema: true,
            default: None,
        }
    }

    /// A parameter that takes values of the given kinds whose elements or fields need not be
    /// concrete; what is not concrete stays opaque.
    pub const fn shallow(kind: Kind) -> Self {
        Self {
            kind,
            schema: true,
            default: None,
        }
    }

    /// A trailing string parameter that may be left out.
    pub const fn optional(default: &'static str) -> Self {
        Self {
            kind: Kind::STRING,
            schema: false,
            default: Some(default),
        }
    }
}

/// The body of a builtin. Arguments are as many as parameters and of the declared kinds.
pub type Function = fn(&mut dyn Host, &[Value]) -> Result<Value, Failure>;

/// A function of a builtin package.
///
/// A builtin whose `result` is `bool` and that has at least one parameter is also a
/// validator: called with its first argument missing it constrains a value, as in
/// `strings.MinRunes(3)` or, without arguments, `time.Time`.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// The name inside the package.
    pub name: &'static str,
    /// The parameters.
    pub params: &'static [Param],
    /// The kind of the result.
    pub result: Kind,
    /// The body.
    pub call: Function,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A builtin package: functions, and everything else as CUE source.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    /// The import path, such as `encoding/json`.
    pub path: &'static str,
    /// The functions.
    pub functions: &'static [Builtin],
    /// Constants and templates (`math.Pi`, `list.Ascending`) as the text of a CUE file
    /// without a package clause; empty when there are none.
    pub source: &'static str,
}
