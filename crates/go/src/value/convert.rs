//! From and to JSON.

use base64::Engine as _;
use serde_json::{Map as Fields, Number, Value as Json};

use super::{DEPTH_LIMIT, Limit, List, Map, Meter as _, Text, Type, Value};

/// How numbers of JSON become values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// All of them `float64`, as `encoding/json` does.
    Floats,
    /// Those without a fraction `int64`, as Kubernetes' unstructured objects have them.
    Integers,
}

/// Why a value is not JSON, in the words of `encoding/json`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Infinities and NaN.
    #[error("json: unsupported value: {0}")]
    Number(String),
    /// Complex numbers.
    #[error("json: unsupported type: {0}")]
    Type(String),
    /// A map that holds itself, or what is nested as deeply.
    #[error("json: unsupported value: encountered a cycle via map[string]interface {{}}")]
    Cycle,
    /// More values than any manifest has: the same map many times over.
    #[error("json: unsupported value: too large")]
    TooLarge,
}

/// Values with more parts than this are not converted.
const SIZE_LIMIT: usize = 2_000_000;

impl Value {
    /// The value of JSON, with all numbers as `float64`.
    pub fn from_json(json: &Json) -> Self {
        Self::from_json_with(json, Numbers::Floats)
    }

    /// The value of JSON.
    pub fn from_json_with(json: &Json, numbers: Numbers) -> Self {
        match json {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (numbers, number.as_i64()) {
                (Numbers::Integers, Some(value)) => Self::int64(value),
                _ => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::string(text),
            Json::Array(items) => {
                let items = items.iter();
                Self::list(
                    items
                        .map(|item| Self::from_json_with(item, numbers))
                        .collect(),
                )
            }
            Json::Object(fields) => Self::map(
                fields
                    .iter()
                    .map(|(key, field)| (key, Self::from_json_with(field, numbers))),
            ),
        }
    }

    /// The JSON of a value. Floats without a fraction below 2^53 become integers, which print the
    /// same as `encoding/json` prints such floats.
    pub fn to_json(&self) -> Result<Json, JsonError> {
        to_json(self, 0, &mut Limit(SIZE_LIMIT), float)
    }

    /// The same, with floats that are whole numbers as floats.
    pub fn to_json_with_floats(&self) -> Result<Json, JsonError> {
        to_json(self, 0, &mut Limit(SIZE_LIMIT), exact_float)
    }
}

type FloatToJson = fn(f64) -> Result<Json, JsonError>;

fn to_json(
    value: &Value,
    depth: usize,
    limit: &mut Limit,
    float: FloatToJson,
) -> Result<Json, JsonError> {
    if depth > DEPTH_LIMIT {
        return Err(JsonError::Cycle);
    }
    limit.charge(1).map_err(|_| JsonError::TooLarge)?;
    Ok(match value {
        Value::Invalid | Value::Nil => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(_, value) => Json::from(*value),
        Value::Uint(_, value) => Json::from(*value),
        Value::Float(value) => float(*value)?,
        Value::Complex(..) => return Err(JsonError::Type("complex128".to_owned())),
        Value::String(text) => Json::String(text.to_str().into_owned()),
        Value::List(list) if list.is_nil() => Json::Null,
        Value::List(list) if matches!(list.element(), Type::Uint(super::UintKind::Uint8)) => {
            Json::String(base64_of(list))
        }
        Value::List(list) => Json::Array(
            list.iter()
                .map(|item| to_json(item, depth + 1, limit, float))
                .collect::<Result<_, _>>()?,
        ),
        Value::Map(map) if map.is_nil() => Json::Null,
        Value::Map(map) => {
            let mut fields = Fields::new();
            for (key, value) in map.entries().iter() {
                fields.insert(
                    key.to_str().into_owned(),
                    to_json(value, depth + 1, limit, float)?,
                );
            }
            Json::Object(fields)
        }
        Value::Object(object) => to_json(&object.data(), depth + 1, limit, float)?,
    })
}

fn float(value: f64) -> Result<Json, JsonError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT && !(value == 0.0 && value.is_sign_negative()) {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
        return Ok(Json::from(value as i64));
    }
    exact_float(value)
}

fn exact_float(value: f64) -> Result<Json, JsonError> {
    match Number::from_f64(value) {
        Some(number) => Ok(Json::Number(number)),
        None => Err(JsonError::Number(crate::float::shortest(value))),
    }
}

/// Bytes are texts in JSON.
pub(crate) fn base64_of(list: &List) -> String {
    let bytes = list.as_bytes().unwrap_or_default();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

impl FromIterator<(Text, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(entries: I) -> Self {
        Self::new(&Type::Interface, entries.into_iter().collect())
    }
}
