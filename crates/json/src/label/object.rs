//! The object notation of label selectors: `matchLabels` and `matchExpressions`.

use std::fmt;

use serde_json::Value;

use super::{LabelSelector, Operator, Requirement, SelectorError};
use crate::{name, path};

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

/// One thing that is wrong with a selector object. Its display form is that of an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorProblem {
    /// The field, e.g. `spec.selector.matchExpressions[0].values`.
    pub field: String,
    /// The machine-readable reason of Kubernetes: `FieldValueInvalid`, `FieldValueRequired` or
    /// `FieldValueForbidden`.
    pub reason: &'static str,
    /// What is wrong, without the field.
    pub message: String,
}

impl SelectorProblem {
    fn invalid(field: &str, value: &str, detail: &str) -> Self {
        let message = format!("Invalid value: {value:?}: {detail}");
        Self {
            field: field.to_owned(),
            reason: "FieldValueInvalid",
            message,
        }
    }
}

impl fmt::Display for SelectorProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

/// Everything that an API server would object to in a selector object at `field`.
pub fn validate_object(object: &Value, field: &str) -> Vec<SelectorProblem> {
    let mut problems = Vec::new();
    let labels_field = format!("{field}.matchLabels");
    for (key, value) in path::object_at(object, &["matchLabels"])
        .into_iter()
        .flatten()
    {
        for detail in name::label_key_problems(key) {
            problems.push(SelectorProblem::invalid(&labels_field, key, &detail));
        }
        let value = value.as_str().unwrap_or_default();
        for detail in name::label_value_problems(value) {
            problems.push(SelectorProblem::invalid(&labels_field, value, &detail));
        }
    }
    for (index, expression) in path::items_at(object, &["matchExpressions"])
        .iter()
        .enumerate()
    {
        validate_expression(
            expression,
            &format!("{field}.matchExpressions[{index}]"),
            &mut problems,
        );
    }
    problems
}

fn validate_expression(expression: &Value, field: &str, problems: &mut Vec<SelectorProblem>) {
    let name = path::str_at(expression, &["operator"]).unwrap_or_default();
    let values = path::items_at(expression, &["values"]);
    match operator(name) {
        Some(Operator::In | Operator::NotIn) if values.is_empty() => {
            problems.push(SelectorProblem {
                field: format!("{field}.values"),
                reason: "FieldValueRequired",
                message: "Required value: must be specified when `operator` is 'In' or 'NotIn'"
                    .to_owned(),
            });
        }
        Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
            problems.push(SelectorProblem {
                field: format!("{field}.values"),
                reason: "FieldValueForbidden",
                message:
                    "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                        .to_owned(),
            });
        }
        Some(_) => {}
        None => {
            let field = format!("{field}.operator");
            problems.push(SelectorProblem::invalid(
                &field,
                name,
                "not a valid selector operator",
            ));
        }
    }
    let key = path::str_at(expression, &["key"]).unwrap_or_default();
    for detail in name::label_key_problems(key) {
        problems.push(SelectorProblem::invalid(
            &format!("{field}.key"),
            key,
            &detail,
        ));
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        for detail in name::label_value_problems(value) {
            problems.push(SelectorProblem::invalid(
                &format!("{field}.values[{index}]"),
                value,
                &detail,
            ));
        }
    }
}
