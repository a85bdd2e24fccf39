//! Names of fields in any case: Go's reader of JSON takes `matchlabels` for `matchLabels`.
//!
//! API servers do not. This is for texts that are read without one: policies of dry runs, and the lists that
//! `object-templates-raw` writes.

use serde_json::{Map, Value};

/// The fields of an object of the API, and what those hold that are objects or lists of objects.
pub(crate) struct Fields(&'static [(&'static str, &'static Fields)]);

/// What is not looked into.
const ANY: Fields = Fields(&[]);

const SELECTOR: Fields = Fields(&[("matchLabels", &ANY), ("matchExpressions", &REQUIREMENT)]);

const REQUIREMENT: Fields = Fields(&[("key", &ANY), ("operator", &ANY), ("values", &ANY)]);

const BY_STATE: Fields = Fields(&[("compliant", &ANY), ("noncompliant", &ANY)]);

const NAMESPACE_SELECTOR: Fields = Fields(&[
    ("matchLabels", &ANY),
    ("matchExpressions", &REQUIREMENT),
    ("include", &ANY),
    ("exclude", &ANY),
    ("terminatingInclusion", &ANY),
]);

/// An item of `object-templates`.
pub(crate) const OBJECT_TEMPLATE: Fields = Fields(&[
    (COMPLIANCE_TYPE, &ANY),
    ("metadataComplianceType", &ANY),
    ("recreateOption", &ANY),
    (OBJECT_DEFINITION, &ANY),
    ("objectSelector", &SELECTOR),
    ("recordDiff", &ANY),
]);

/// A ConfigurationPolicy.
pub(crate) const CONFIGURATION_POLICY: Fields = Fields(&[
    ("apiVersion", &ANY),
    ("kind", &ANY),
    ("metadata", &ANY),
    ("spec", &SPEC),
    ("status", &ANY),
]);

const SPEC: Fields = Fields(&[
    ("customMessage", &BY_STATE),
    ("severity", &ANY),
    ("remediationAction", &ANY),
    ("namespaceSelector", &NAMESPACE_SELECTOR),
    (OBJECT_TEMPLATES, &OBJECT_TEMPLATE),
    ("object-templates-raw", &ANY),
    ("evaluationInterval", &BY_STATE),
    ("pruneObjectBehavior", &ANY),
]);

const OBJECT_TEMPLATES: &str = "object-templates";
const COMPLIANCE_TYPE: &str = "complianceType";
const OBJECT_DEFINITION: &str = "objectDefinition";

/// Gives fields the names that they have in the API. A field that has its name already stays.
pub(crate) fn rename(value: &mut Value, fields: &Fields) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, fields)),
        Value::Object(map) => {
            for (name, inner) in fields.0 {
                rename_one(map, name);
                if let Some(value) = map.get_mut(*name) {
                    rename(value, inner);
                }
            }
        }
        _ => {}
    }
}

fn rename_one(map: &mut Map<String, Value>, name: &str) {
    let is_other = |key: &&String| key.as_str() != name && key.eq_ignore_ascii_case(name);
    let others: Vec<String> = map.keys().filter(is_other).cloned().collect();
    for other in others {
        let value = map.remove(&other).unwrap_or_default();
        map.entry(name).or_insert(value);
    }
}

/// Adds what Go takes for granted in an object template: no compliance type means musthave, and no definition
/// is null.
pub(crate) fn complete(template: &mut Value) {
    let Value::Object(fields) = template else {
        return;
    };
    let compliance = fields.entry(COMPLIANCE_TYPE).or_insert(Value::Null);
    if compliance.is_null() {
        *compliance = Value::String(String::new());
    }
    fields.entry(OBJECT_DEFINITION).or_insert(Value::Null);
}

/// [`complete`] for all object templates of a ConfigurationPolicy.
pub(crate) fn complete_all(policy: &mut Value) {
    let templates = policy
        .get_mut("spec")
        .and_then(|spec| spec.get_mut(OBJECT_TEMPLATES));
    let templates = templates.and_then(Value::as_array_mut);
    templates.into_iter().flatten().for_each(complete);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_fields_are_taken_in_any_case() {
        let mut policy = json!({
            "Kind": "ConfigurationPolicy",
            "spec": {
                "RemediationAction": "inform",
                "namespaceselector": {"Include": ["a"], "matchlabels": {"Zone": "x"}},
                "object-templates": [{"ComplianceType": "musthave", "objectdefinition": {"Data": 1}}],
            },
        });
        rename(&mut policy, &CONFIGURATION_POLICY);
        let expected = json!({
            "kind": "ConfigurationPolicy",
            "spec": {
                "remediationAction": "inform",
                "namespaceSelector": {"include": ["a"], "matchLabels": {"Zone": "x"}},
                "object-templates": [{"complianceType": "musthave", "objectDefinition": {"Data": 1}}],
            },
        });
        assert_eq!(policy, expected);
    }

    #[test]
    fn an_exact_name_wins() {
        for (mut template, expected) in [
            (
                json!({"recordDiff": "Log", "recorddiff": "None"}),
                json!({"recordDiff": "Log"}),
            ),
            (json!({"other": 1}), json!({"other": 1})),
            (json!("text"), json!("text")),
        ] {
            rename(&mut template, &OBJECT_TEMPLATE);
            assert_eq!(template, expected);
        }
    }

    #[test]
    fn object_templates_are_completed() {
        let mut policy = json!({"spec": {"object-templates": [{}, {"complianceType": null}, 5]}});
        complete_all(&mut policy);
        let complete = json!({"complianceType": "", "objectDefinition": null});
        let expected = json!({"spec": {"object-templates": [complete, complete, 5]}});
        assert_eq!(policy, expected);
    }
}
