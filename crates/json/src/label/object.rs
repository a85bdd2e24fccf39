//! The object notation of label selectors: `matchLabels` and `matchExpressions`.

use serde_json::Value;

use super::{LabelSelector, Operator, Requirement, SelectorError};
use crate::path;

pub(super) fn selector(object: Option<&Value>) -> Result<LabelSelector, SelectorError> {
    let object = match object {
        None | Some(Value::Null) => return Ok(LabelSelector::nothing()),
        Some(object) => object,
    };
    let mut requirements = Vec::new();
    for (key, value) in path::object_at(object, &["matchLabels"])
        .into_iter()
        .flatten()
    {
        let value = text(value, "matchLabels")?;
        requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
    }
    for expression in path::items_at(object, &["matchExpressions"]) {
        let name = path::str_at(expression, &["operator"]).unwrap_or_default();
        let operator = operator(name).ok_or_else(|| {
            SelectorError(format!("{name:?} is not a valid label selector operator"))
        })?;
        let key = path::str_at(expression, &["key"]).unwrap_or_default();
        let values = path::items_at(expression, &["values"]);
        let values: Result<_, _> = values.iter().map(|value| text(value, "values")).collect();
        requirements.push(Requirement::new(key, operator, values?)?);
    }
    Ok(LabelSelector::from_requirements(requirements))
}

fn text(value: &Value, field: &str) -> Result<String, SelectorError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(SelectorError(format!(
            "{field}: expected a string, found {} {value}",
            path::type_name(value)
        ))),
    }
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    })
}
