//! Whether a value is what a signature asks for.

use super::Value;
use crate::types::{AbstractType, Type};

/// Whether `value` can be passed where `of` is declared. Like cel-go, the elements of containers
/// are judged by the first one.
pub(crate) fn is_instance(value: &Value<'_>, of: &Type) -> bool {
    match (of, value) {
        (Type::Dyn | Type::Parameter(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Type(_), Value::Type(_))
        | (Type::Object(_), Value::Map(_))
        | (Type::Abstract(AbstractType::Quantity), Value::Quantity(_))
        | (Type::Abstract(AbstractType::Url), Value::Url(_))
        | (Type::Abstract(AbstractType::Ip), Value::Ip(_))
        | (Type::Abstract(AbstractType::Cidr), Value::Cidr(_))
        | (Type::Abstract(AbstractType::Semver), Value::Semver(_))
        | (Type::Abstract(AbstractType::Format), Value::Format(_)) => true,
        (Type::Abstract(kind), Value::Authorization(value)) => *kind == value.abstract_type(),
        (Type::List(element), Value::List(list)) => match list.get(0) {
            None => true,
            Some(first) => first.is_ok_and(|first| is_instance(&first, element)),
        },
        (Type::Map(entry), Value::Map(map)) => match map.keys().first() {
            None => true,
            Some(key) => {
                let Ok(Some(Ok(value))) = map.find(key) else {
                    return false;
                };
                is_instance(key, &entry.0) && is_instance(&value, &entry.1)
            }
        },
        (Type::Optional(inner), Value::Optional(value)) => match value {
            None => true,
            Some(value) => is_instance(value, inner),
        },
        _ => false,
    }
}
