//! Whom a selector selects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels as objects have them.
pub(crate) type Labels = BTreeMap<String, String>;

/// Whether a selector matches. One that requires nothing matches everything.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let wanted = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    wanted
        .into_iter()
        .all(|(key, wanted)| value(key) == Some(wanted))
        && expressions.into_iter().all(|expression| {
            let found = value(&expression.key);
            let listed = |found: &String| expression.values.iter().flatten().any(|v| v == found);
            match expression.operator.as_str() {
                "In" => found.is_some_and(listed),
                "NotIn" => !found.is_some_and(listed),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                // The server knows no other.
                _ => false,
            }
        })
}

/// Whether a selector requires nothing at all.
pub(crate) fn is_empty(selector: &LabelSelector) -> bool {
    selector
        .match_labels
        .as_ref()
        .is_none_or(BTreeMap::is_empty)
        && selector
            .match_expressions
            .as_ref()
            .is_none_or(Vec::is_empty)
}

/// A selector as Go prints it, which some messages of Kubernetes show to people.
pub(crate) fn go_form(selector: &LabelSelector) -> String {
    use std::fmt::Write as _;

    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in selector.match_labels.iter().flatten() {
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for found in selector.match_expressions.iter().flatten() {
        let values = found.values.as_deref().unwrap_or_default().join(" ");
        let (key, operator) = (&found.key, &found.operator);
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
        );
    }
    text.push_str("},}");
    text
}

/// Whether a service's plain selector matches; an empty one matches nothing.
pub(crate) fn selects(selector: Option<&Labels>, labels: Option<&Labels>) -> bool {
    selector.is_some_and(|selector| {
        !selector.is_empty()
            && selector
                .iter()
                .all(|(key, wanted)| labels.and_then(|labels| labels.get(key)) == Some(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(selector: serde_json::Value, expected: bool) {
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        assert_eq!(matches(&selector, Some(&labels)), expected, "{selector:?}");
    }

    #[test]
    fn selectors_match_as_kubernetes_does() {
        let expression = |key: &str, operator: &str, values: serde_json::Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        check(json!({}), true);
        check(json!({"matchLabels": {"app": "web"}}), true);
        check(json!({"matchLabels": {"app": "db"}}), false);
        check(expression("app", "In", json!(["db", "web"])), true);
        check(expression("app", "NotIn", json!(["db"])), true);
        check(expression("tier", "NotIn", json!(["db"])), true);
        check(expression("app", "NotIn", json!(["web"])), false);
        check(expression("app", "Exists", json!([])), true);
        check(expression("app", "DoesNotExist", json!([])), false);
        assert!(!selects(Some(&Labels::new()), None));
    }
}
