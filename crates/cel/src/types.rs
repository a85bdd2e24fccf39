//! Static types: what the checker reasons with and what variables are declared as.

pub(crate) mod unify;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression or variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Anything; checked when it is used.
    Dyn,
    /// The type of `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// 64-bit signed integers.
    Int,
    /// 64-bit unsigned integers.
    Uint,
    /// 64-bit floating point numbers.
    Double,
    /// Unicode text.
    String,
    /// Octets.
    Bytes,
    /// Points in time, `google.protobuf.Timestamp`.
    Timestamp,
    /// Spans of time, `google.protobuf.Duration`.
    Duration,
    /// Lists of one element type.
    List(Arc<Type>),
    /// Maps from a key type to a value type.
    Map(Arc<(Type, Type)>),
    /// Objects with known fields.
    Object(Arc<ObjectType>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// The type of a type, such as that of `int`; with what it is the type of, where known.
    Type(Option<Arc<Type>>),
    /// A type defined by a Kubernetes library, which only its functions look into.
    Abstract(AbstractType),
    /// A type variable of a declaration or an inference in progress.
    #[doc(hidden)]
    Parameter(u32),
    /// The type of an expression that has already been reported as wrong.
    #[doc(hidden)]
    Error,
}

/// An object type: named, with fields under the names expressions use (escaped as Kubernetes
/// escapes them, see [`crate::escape`]).
#[derive(Debug, PartialEq)]
pub struct ObjectType {
    /// The name shown in messages; two object types are the same if their names are.
    pub name: String,
    /// The fields and their types.
    pub fields: BTreeMap<String, Type>,
}

/// Types defined by the Kubernetes libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbstractType {
    /// `kubernetes.Quantity`, made by `quantity()`.
    Quantity,
    /// `kubernetes.URL`, made by `url()`.
    Url,
    /// `net.IP`, made by `ip()`.
    Ip,
    /// `net.CIDR`, made by `cidr()`.
    Cidr,
    /// `kubernetes.Semver`, made by `semver()`.
    Semver,
    /// `kubernetes.NamedFormat`, made by `format.named()` and its shorthands.
    Format,
    /// `kubernetes.authorization.Authorizer`, the variable `authorizer`.
    Authorizer,
    /// `kubernetes.authorization.PathCheck`, made by `authorizer.path()`.
    PathCheck,
    /// `kubernetes.authorization.GroupCheck`, made by `authorizer.group()`.
    GroupCheck,
    /// `kubernetes.authorization.ResourceCheck`, made by `resource()`.
    ResourceCheck,
    /// `kubernetes.authorization.Decision`, made by `check()`.
    Decision,
}

impl AbstractType {
    const ALL: [AbstractType; 11] = [
        AbstractType::Quantity,
        AbstractType::Url,
        AbstractType::Ip,
        AbstractType::Cidr,
        AbstractType::Semver,
        AbstractType::Format,
        AbstractType::Authorizer,
        AbstractType::PathCheck,
        AbstractType::GroupCheck,
        AbstractType::ResourceCheck,
        AbstractType::Decision,
    ];

    /// The name expressions and messages use.
    pub fn name(self) -> &'static str {
        match self {
            AbstractType::Quantity => "kubernetes.Quantity",
            AbstractType::Url => "kubernetes.URL",
            AbstractType::Ip => "net.IP",
            AbstractType::Cidr => "net.CIDR",
            AbstractType::Semver => "kubernetes.Semver",
            AbstractType::Format => "kubernetes.NamedFormat",
            AbstractType::Authorizer => "kubernetes.authorization.Authorizer",
            AbstractType::PathCheck => "kubernetes.authorization.PathCheck",
            AbstractType::GroupCheck => "kubernetes.authorization.GroupCheck",
            AbstractType::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            AbstractType::Decision => "kubernetes.authorization.Decision",
        }
    }

    /// Whether the peer models it as a message, which changes the text of selection errors.
    pub(crate) fn is_message(self) -> bool {
        !matches!(self, AbstractType::Ip | AbstractType::Cidr)
    }
}

impl Type {
    /// `list(element)`.
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `map(key, value)`.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `optional_type(value)`.
    pub fn optional(value: Type) -> Type {
        Type::Optional(Arc::new(value))
    }

    /// An object type with these fields, named as expressions name them.
    pub fn object(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = (String, Type)>,
    ) -> Type {
        Type::Object(Arc::new(ObjectType {
            name: name.into(),
            fields: fields.into_iter().collect(),
        }))
    }

    pub(crate) fn type_of(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Whether values of the type have a size known without looking at them.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Type::Bool
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::Timestamp
            | Type::Uint => true,
            Type::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Whether the two are the same type, comparing objects by name.
    pub(crate) fn is_exactly(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Object(left), Type::Object(right)) => left.name == right.name,
            (Type::List(left), Type::List(right))
            | (Type::Optional(left), Type::Optional(right))
            | (Type::Type(Some(left)), Type::Type(Some(right))) => left.is_exactly(right),
            (Type::Map(left), Type::Map(right)) => {
                left.0.is_exactly(&right.0) && left.1.is_exactly(&right.1)
            }
            _ => self == other,
        }
    }

    /// The name of the type at run time, for `type(x)` and error texts.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Duration => "google.protobuf.Duration",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Object(object) => &object.name,
            Type::Optional(_) => "optional_type",
            Type::Type(_) => "type",
            Type::Abstract(kind) => kind.name(),
            Type::Parameter(_) | Type::Error => "error",
        }
    }
}

impl fmt::Display for Type {
    /// As in the checker's messages: `list(int)`, `map(string, dyn)`, `timestamp`, `null`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Null => f.write_str("null"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::Parameter(index) => write!(f, "_var{index}"),
            Type::Error => f.write_str("!error!"),
            other => f.write_str(other.runtime_name()),
        }
    }
}

/// Reads a type as declarations in this crate write it: `list(A)`, `map(K, V)`, `optional(V)`,
/// `type(A)`, `net.IP`. Single capitals are type variables.
pub(crate) fn parse(text: &str) -> Option<Type> {
    let text = text.trim();
    if let Some((head, body)) = text.split_once('(') {
        let body = body.strip_suffix(')')?;
        return match head {
            "list" => Some(Type::list(parse(body)?)),
            "optional" => Some(Type::optional(parse(body)?)),
            "type" => Some(Type::type_of(parse(body)?)),
            "map" => {
                let (key, value) = split_arguments(body)?;
                Some(Type::map(parse(key)?, parse(value)?))
            }
            _ => None,
        };
    }
    if let [letter @ b'A'..=b'Z'] = text.as_bytes() {
        return Some(Type::Parameter(u32::from(letter - b'A')));
    }
    Some(match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "type" => Type::Type(None),
        _ => Type::Abstract(
            AbstractType::ALL
                .into_iter()
                .find(|kind| kind.name() == text)?,
        ),
    })
}

/// `of` with its variables numbered in the order in which `seen` collects them.
pub(crate) fn renumber(of: &Type, seen: &mut Vec<u32>) -> Type {
    match of {
        Type::Parameter(old) => {
            let index = seen.iter().position(|known| known == old);
            let index = index.unwrap_or_else(|| {
                seen.push(*old);
                seen.len() - 1
            });
            Type::Parameter(u32::try_from(index).unwrap_or(u32::MAX))
        }
        Type::List(element) => Type::list(renumber(element, seen)),
        Type::Map(entry) => Type::map(renumber(&entry.0, seen), renumber(&entry.1, seen)),
        Type::Optional(inner) => Type::optional(renumber(inner, seen)),
        Type::Type(Some(of)) => Type::type_of(renumber(of, seen)),
        other => other.clone(),
    }
}

/// Splits `a, b(c, d)` at the first comma that is not inside parentheses.
fn split_arguments(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => return Some((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    None
}

/// Splits the arguments of a signature.
pub(crate) fn parse_list(mut text: &str) -> Option<Vec<Type>> {
    let mut types = Vec::new();
    text = text.trim();
    while !text.is_empty() {
        let (first, rest) = split_arguments(text).unwrap_or((text, ""));
        types.push(parse(first)?);
        text = rest.trim();
    }
    Some(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_read_back_as_messages_write_them() {
        for (text, shown) in [
            (
                "list(map(string, list(int)))",
                "list(map(string, list(int)))",
            ),
            ("optional(net.IP)", "optional_type(net.IP)"),
            ("type(A)", "type(_var0)"),
            ("timestamp", "timestamp"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), shown);
        }
        assert_eq!(parse("nonsense"), None);
        assert_eq!(parse_list("int, map(A, B), dyn").unwrap().len(), 3);
    }

    #[test]
    fn objects_are_compared_by_name() {
        let plain = Type::object("T", []);
        let full = Type::object("T", [("a".to_owned(), Type::Int)]);
        assert!(Type::list(plain).is_exactly(&Type::list(full)));
    }
}
