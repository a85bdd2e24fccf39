//! Label selectors: how they print, what they match, and whether they are valid.

use bellwether_schema::{FieldError, FieldErrors, FieldPath};
use serde_json::Value;

use crate::names;
use crate::value::{entries, list, text, texts};

/// A `LabelSelector` in the notation of `kubectl get -l`.
///
/// Requirements are ordered by key, as Kubernetes prints them; an operator that does not exist makes
/// the whole `<error>`.
pub(crate) fn format(selector: &Value) -> String {
    let mut requirements: Vec<(String, String)> = entries(selector, &["matchLabels"])
        .map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            (key.clone(), format!("{key}={value}"))
        })
        .collect();
    for requirement in list(selector, &["matchExpressions"]) {
        let key = text(requirement, &["key"]);
        let mut values: Vec<_> = texts(requirement, &["values"]).collect();
        values.sort_unstable();
        let values = values.join(",");
        let printed = match text(requirement, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        requirements.push((key.to_owned(), printed));
    }
    requirements.sort_by(|left, right| left.0.cmp(&right.0));
    let all: Vec<_> = requirements
        .into_iter()
        .map(|(_, printed)| printed)
        .collect();
    all.join(",")
}

/// Whether a `LabelSelector` selects objects with these labels; one with unknown operators selects
/// nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let exact = entries(selector, &["matchLabels"])
        .all(|(key, value)| label(key) == Some(value.as_str().unwrap_or_default()));
    exact
        && list(selector, &["matchExpressions"])
            .iter()
            .all(|requirement| {
                let found = label(text(requirement, &["key"]));
                let listed = |found| texts(requirement, &["values"]).any(|value| value == found);
                match text(requirement, &["operator"]) {
                    "In" => found.is_some_and(listed),
                    "NotIn" => !found.is_some_and(listed),
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    _ => false,
                }
            })
}

/// Whether a `LabelSelector` can be used; one that is not there selects nothing.
pub(crate) fn is_valid(selector: &Value) -> bool {
    let mut errors = FieldErrors::new();
    validate(selector, &FieldPath::NIL, &mut errors);
    errors.is_empty()
}

/// Whether a `LabelSelector` selects everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    entries(selector, &["matchLabels"]).next().is_none()
        && list(selector, &["matchExpressions"]).is_empty()
}

/// Checks a `LabelSelector`.
pub(crate) fn validate(selector: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_labels(&selector["matchLabels"], &path.child("matchLabels"), errors);
    let expressions = path.child("matchExpressions");
    for (index, requirement) in list(selector, &["matchExpressions"]).iter().enumerate() {
        validate_requirement(requirement, &expressions.index(index), errors);
    }
}

fn validate_requirement(requirement: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let values = list(requirement, &["values"]);
    let operator = text(requirement, &["operator"]);
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &path.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &path.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.push(FieldError::invalid(
            &path.child("operator"),
            operator,
            "not a valid selector operator",
        )),
    }
    let key = text(requirement, &["key"]);
    for message in names::qualified_name(key) {
        errors.push(FieldError::invalid(&path.child("key"), key, message));
    }
    let values_path = path.child("values");
    for (index, value) in texts(requirement, &["values"]).enumerate() {
        for message in names::label_value(value) {
            errors.push(FieldError::invalid(
                &values_path.index(index),
                value,
                message,
            ));
        }
    }
}

/// Checks a map of labels.
pub(crate) fn validate_labels(labels: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (key, value) in entries(labels, &[]) {
        for message in names::qualified_name(key) {
            errors.push(FieldError::invalid(path, key.as_str(), message));
        }
        let value = value.as_str().unwrap_or_default();
        for message in names::label_value(value) {
            errors.push(FieldError::invalid(path, value, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_print_ordered_by_key() {
        let selector = json!({
            "matchLabels": {"tier": "web", "app": "shop"},
            "matchExpressions": [
                {"key": "zone", "operator": "NotIn", "values": ["b", "a"]},
                {"key": "beta", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(
            format(&selector),
            "app=shop,!beta,tier=web,zone notin (a,b)"
        );
    }

    #[test]
    fn operators_match_as_they_say() {
        let check = |operator: &str, values: Value, labels: Value, expected: bool| {
            let selector = json!({"matchExpressions": [
                {"key": "a", "operator": operator, "values": values}]});
            assert_eq!(matches(&selector, &labels), expected, "{operator} {labels}");
        };
        check("In", json!(["x"]), json!({"a": "x"}), true);
        check("In", json!(["x"]), json!({}), false);
        check("NotIn", json!(["x"]), json!({}), true);
        check("NotIn", json!(["x"]), json!({"a": "x"}), false);
        check("Exists", json!([]), json!({"a": ""}), true);
        check("DoesNotExist", json!([]), json!({"a": ""}), false);
        check("Near", json!([]), json!({"a": ""}), false);
    }
}
