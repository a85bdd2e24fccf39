//! Maps and objects: borrowed JSON or values made during evaluation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Text, Value, equal_within, view};
use crate::error::EvalError;
use crate::escaping;
use crate::schema::DeclType;

/// A map; cheap to clone.
#[derive(Debug, Clone)]
pub enum Map<'a> {
    /// A JSON object nothing is declared about.
    Json(&'a serde_json::Map<String, serde_json::Value>),
    /// A JSON object with a declared type.
    Declared(&'a serde_json::Map<String, serde_json::Value>, &'a DeclType),
    /// A map made during evaluation.
    Shared(Arc<BTreeMap<Key<'a>, Value<'a>>>),
}

/// A map key. Keys of different number types are different keys, but are found by each other.
#[derive(Debug, Clone)]
pub enum Key<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// Text.
    String(Text<'a>),
}

impl<'a> Key<'a> {
    /// The key a value is, if it can be one.
    pub(crate) fn new(value: &Value<'a>) -> Option<Key<'a>> {
        Some(match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => Key::Uint(*value),
            Value::String(text) => Key::String(text.clone()),
            _ => return None,
        })
    }

    /// The key as a value.
    pub fn to_value(&self) -> Value<'a> {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(value) => Value::Int(*value),
            Key::Uint(value) => Value::Uint(*value),
            Key::String(text) => Value::String(text.clone()),
        }
    }

    fn rank(&self) -> (u8, i128, &str) {
        match self {
            Key::Bool(value) => (0, i128::from(*value), ""),
            Key::Int(value) => (1, i128::from(*value), ""),
            Key::Uint(value) => (2, i128::from(*value), ""),
            Key::String(text) => (3, 0, text),
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Bool(value) => write!(f, "{value}"),
            Key::Int(value) => write!(f, "{value}"),
            Key::Uint(value) => write!(f, "{value}"),
            Key::String(text) => f.write_str(text),
        }
    }
}

type Found<'a> = Option<Result<Value<'a>, EvalError>>;

impl<'a> Map<'a> {
    /// A map of these entries; the later of two entries with the same key wins.
    pub(crate) fn shared(entries: BTreeMap<Key<'a>, Value<'a>>) -> Map<'a> {
        Map::Shared(Arc::new(entries))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Map::Json(entries) | Map::Declared(entries, _) => entries.len(),
            Map::Shared(entries) => entries.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value under a text key, as a selection `map.key` finds it.
    pub fn get_str(&self, key: &str) -> Found<'a> {
        match self {
            Map::Json(entries) => entries.get(key).map(|json| Ok(Value::from_json(json))),
            Map::Declared(entries, decl) => declared_field(entries, decl, key),
            Map::Shared(entries) => {
                // Looking up needs an owned key type; short texts make this cheap.
                entries
                    .get(&Key::String(Text::Shared(key.into())))
                    .cloned()
                    .map(Ok)
            }
        }
    }

    /// The value under `key`; numbers are found whatever their type.
    pub(crate) fn find(&self, key: &Value<'a>) -> Result<Found<'a>, EvalError> {
        if let Value::String(text) = key {
            return Ok(match self {
                Map::Shared(entries) => entries.get(&Key::String(text.clone())).cloned().map(Ok),
                _ => self.get_str(text),
            });
        }
        let Map::Shared(entries) = self else {
            return match self {
                Map::Declared(..) => Err(EvalError::no_such_overload()),
                _ => match key {
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) => Ok(None),
                    other => Err(unsupported_key(other)),
                },
            };
        };
        let candidates = match key {
            Value::Double(value) => [
                exact_int(*value).map(Key::Int),
                exact_uint(*value).map(Key::Uint),
            ],
            Value::Int(value) => [
                Some(Key::Int(*value)),
                u64::try_from(*value).ok().map(Key::Uint),
            ],
            Value::Uint(value) => [
                Some(Key::Uint(*value)),
                i64::try_from(*value).ok().map(Key::Int),
            ],
            other => match Key::new(other) {
                Some(key) => [Some(key), None],
                None => return Err(unsupported_key(other)),
            },
        };
        Ok(candidates
            .into_iter()
            .flatten()
            .find_map(|key| entries.get(&key).cloned())
            .map(Ok))
    }

    /// The keys as expressions see them, in order.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Json(entries) => entries
                .keys()
                .map(|key| Value::String(Text::Borrowed(key)))
                .collect(),
            Map::Declared(entries, decl) => entries
                .keys()
                .filter_map(|key| declared_key(decl, key))
                .map(Value::String)
                .collect(),
            Map::Shared(entries) => entries.keys().map(Key::to_value).collect(),
        }
    }

    /// `self == other`.
    pub(crate) fn equal(&self, other: &Map<'_>, steps: &mut u32) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if let Map::Declared(entries, decl) = self {
            return declared_equal(entries, decl, (self, other), steps);
        }
        for key in self.keys() {
            let (Some(left), Some(right)) = (self.find(&key)?, other.find(&key)?) else {
                return Ok(false);
            };
            if !equal_within(&left?, &right?, steps)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A copy with one more entry; fails if the key is taken.
    pub(crate) fn insert(self, key: &Value<'a>, value: Value<'a>) -> Result<Map<'a>, EvalError> {
        if self.find(key)?.is_some() {
            return Err(EvalError::failed(format!(
                "insert failed: key {} already exists",
                super::format::display(key)
            )));
        }
        let Some(key) = Key::new(key) else {
            return Err(unsupported_key(key));
        };
        let mut entries = match self {
            Map::Shared(entries) => entries,
            other => {
                let mut copy = BTreeMap::new();
                for existing in other.keys() {
                    if let (Some(key), Some(value)) = (Key::new(&existing), other.find(&existing)?)
                    {
                        copy.insert(key, value?);
                    }
                }
                Arc::new(copy)
            }
        };
        Arc::make_mut(&mut entries).insert(key, value);
        Ok(Map::Shared(entries))
    }
}

fn unsupported_key(key: &Value<'_>) -> EvalError {
    EvalError::failed(format!("unsupported key type: {}", key.type_name()))
}

/// `value` as an integer, if nothing is lost.
fn exact_int(value: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    let (int, back) = (value as i64, (value as i64) as f64);
    #[expect(clippy::float_cmp, reason = "exactness is the question")]
    (back == value).then_some(int)
}

/// `value` as an unsigned integer, if nothing is lost.
fn exact_uint(value: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )]
    let (uint, back) = (value as u64, (value as u64) as f64);
    #[expect(clippy::float_cmp, reason = "exactness is the question")]
    (back == value).then_some(uint)
}

/// A field of an object or an entry of a map with a declared type. A field that is null counts
/// as absent in an object, as in Kubernetes.
fn declared_field<'a>(
    entries: &'a serde_json::Map<String, serde_json::Value>,
    decl: &'a DeclType,
    key: &str,
) -> Found<'a> {
    match decl {
        DeclType::Object(object) => {
            let name = escaping::unescape(key)?;
            let json = entries.get(&*name)?;
            if json.is_null() {
                return None;
            }
            let field = object.fields.get(&*name)?;
            Some(view(json, field))
        }
        DeclType::Map(map) => entries.get(key).map(|json| view(json, &map.values)),
        _ => None,
    }
}

/// The name under which expressions see a declared key.
fn declared_key<'a>(decl: &'a DeclType, key: &'a str) -> Option<Text<'a>> {
    match decl {
        DeclType::Object(object) => {
            object.fields.get(key)?;
            Some(match escaping::escape(key) {
                Some(std::borrow::Cow::Owned(escaped)) => Text::Shared(escaped.into()),
                _ => Text::Borrowed(key),
            })
        }
        DeclType::Map(_) => Some(Text::Borrowed(key)),
        _ => None,
    }
}

/// Declared fields are compared as values; undeclared ones as JSON.
fn declared_equal(
    entries: &serde_json::Map<String, serde_json::Value>,
    decl: &DeclType,
    (this, other): (&Map<'_>, &Map<'_>),
    steps: &mut u32,
) -> Result<bool, EvalError> {
    for (key, json) in entries {
        let declared = declared_key(decl, key);
        if let Some(name) = declared {
            match (this.get_str(&name), other.get_str(&name)) {
                (None, None) => {}
                (Some(left), Some(right)) => {
                    if !equal_within(&left?, &right?, steps)? {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        } else {
            let Map::Declared(others, _) = other else {
                return Err(EvalError::no_such_overload());
            };
            if others.get(key).is_some_and(|theirs| theirs != json) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
