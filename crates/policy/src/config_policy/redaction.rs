//! Objects without the values that nobody may read: what Secrets hold, and what templates made of them.
//!
//! A value that a template made cannot be told from others by itself: it may have been decoded, cut or changed to
//! upper case. So of an object that is made of secrets only those values stay that its policy spells out.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::template::Side;

/// What stands for a value.
pub(super) const REDACTED: &str = "(redacted)";
/// What stands for a value that is not what it was.
const CHANGED: &str = "(redacted, changed)";

/// Fields that say which object it is.
const IDENTITY: [&[&str]; 4] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
];

/// Where kubectl keeps what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What stands for any index of a list: merging moves items.
const ANY_INDEX: &str = "*";

/// Which values of an object are hidden.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    /// True if the object is a Secret.
    is_secret: bool,
    /// The values that may be shown of an object that is made of secrets; nothing if it is not.
    spelled_out: Option<BTreeSet<Vec<String>>>,
}

impl Redaction {
    /// Hides what a Secret holds.
    pub(super) fn of_kind(api_version: &str, kind: &str) -> Self {
        Self {
            is_secret: api_version == "v1" && kind == "Secret",
            spelled_out: None,
        }
    }

    /// Hides as well everything that the definition does not spell out; all of it without a definition.
    #[must_use]
    pub(super) fn with_templates(mut self, definition: Option<&Value>) -> Self {
        let mut values = Values::default();
        if let Some(definition) = definition {
            values.add(definition, &mut Vec::new());
        }
        let made = &values.made;
        values.spelled_out.retain(|path| !made.contains(path));
        self.spelled_out = Some(values.spelled_out);
        self
    }

    /// Returns true if some value is hidden.
    pub(super) fn is_needed(&self) -> bool {
        self.is_secret || self.spelled_out.is_some()
    }

    /// Hides the values of an object.
    pub(super) fn hide(&self, object: &mut Value) {
        self.hide_below(object, &mut Vec::new());
    }

    /// Hides the values of two states of an object, so that it can be seen which of them differ.
    pub(super) fn hide_both(&self, before: &mut Value, after: &mut Value) {
        self.hide_both_below(before, after, &mut Vec::new());
    }

    fn hides(&self, path: &[String]) -> bool {
        let is = |fields: &[&str]| path.iter().map(String::as_str).eq(fields.iter().copied());
        let holds = |field: &str| path.first().is_some_and(|first| first == field);
        if self.is_secret
            && (holds("data")
                || holds("stringData")
                || is(&["metadata", "annotations", LAST_APPLIED]))
        {
            return true;
        }
        match &self.spelled_out {
            Some(shown) => !shown.contains(path) && !IDENTITY.iter().any(|it| is(it)),
            None => false,
        }
    }

    fn hide_below(&self, value: &mut Value, path: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut() {
                    path.push(key.clone());
                    self.hide_below(value, path);
                    path.pop();
                }
            }
            Value::Array(items) => {
                path.push(ANY_INDEX.to_owned());
                for item in items {
                    self.hide_below(item, path);
                }
                path.pop();
            }
            value if self.hides(path) => *value = Value::from(REDACTED),
            _ => {}
        }
    }

    fn hide_both_below(&self, before: &mut Value, after: &mut Value, path: &mut Vec<String>) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                for (key, value) in before.iter_mut() {
                    path.push(key.clone());
                    match after.get_mut(key) {
                        Some(other) => self.hide_both_below(value, other, path),
                        None => self.hide_below(value, path),
                    }
                    path.pop();
                }
                for (key, value) in after.iter_mut().filter(|it| !before.contains_key(it.0)) {
                    path.push(key.clone());
                    self.hide_below(value, path);
                    path.pop();
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                path.push(ANY_INDEX.to_owned());
                let common = before.len().min(after.len());
                for (value, other) in before.iter_mut().zip(after.iter_mut()) {
                    self.hide_both_below(value, other, path);
                }
                for value in before[common..].iter_mut().chain(&mut after[common..]) {
                    self.hide_below(value, path);
                }
                path.pop();
            }
            (before, after) => {
                let is_changed = *before != *after;
                let is_leaf = |value: &Value| !value.is_object() && !value.is_array();
                let is_hidden = is_changed && is_leaf(after) && self.hides(path);
                self.hide_below(before, path);
                self.hide_below(after, path);
                if is_hidden {
                    *after = Value::from(CHANGED);
                }
            }
        }
    }
}

/// The values of a definition by their paths.
#[derive(Default)]
struct Values {
    /// Those that it spells out.
    spelled_out: BTreeSet<Vec<String>>,
    /// Those that templates make.
    made: BTreeSet<Vec<String>>,
}

impl Values {
    fn add(&mut self, value: &Value, path: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields.iter().filter(|it| !is_made(it.0)) {
                    path.push(key.clone());
                    self.add(value, path);
                    path.pop();
                }
            }
            Value::Array(items) => {
                path.push(ANY_INDEX.to_owned());
                for item in items {
                    self.add(item, path);
                }
                path.pop();
            }
            Value::String(text) if is_made(text) => drop(self.made.insert(path.clone())),
            _ => drop(self.spelled_out.insert(path.clone())),
        }
    }
}

/// True if a template makes something else of the text.
fn is_made(text: &str) -> bool {
    Side::Managed.has_template(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_keeps_everything_but_its_values() {
        let redaction = Redaction::of_kind("v1", "Secret");
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "labels": {"a": "b"},
                "annotations": {(LAST_APPLIED): "{\"data\": \"aHVzaA==\"}", "c": "d"}},
            "data": {"p": "aHVzaA=="}, "stringData": {"q": "hush"},
        });
        redaction.hide(&mut secret);
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "labels": {"a": "b"},
                "annotations": {(LAST_APPLIED): REDACTED, "c": "d"}},
            "data": {"p": REDACTED}, "stringData": {"q": REDACTED},
        });
        assert_eq!(secret, expected);
        assert!(!Redaction::of_kind("v1", "ConfigMap").is_needed());
        assert!(!Redaction::of_kind("example.com/v1", "Secret").is_needed());
    }

    #[test]
    fn of_what_is_made_of_secrets_only_values_stay_that_the_policy_spells_out() {
        let definition = json!({
            "kind": "Deployment", "metadata": {"name": "{{ `d` }}"},
            "spec": {"replicas": 3, "password": "{{ fromSecret \"n\" \"s\" \"p\" | upper }}",
                "sealed": "$ocm_encrypted:QUJD", "{{ .key }}": 1,
                "env": [{"name": "a", "value": "plain"}, {"name": "b", "value": "{{ `x` }}"}]},
        });
        let redaction =
            Redaction::of_kind("apps/v1", "Deployment").with_templates(Some(&definition));
        let mut before = json!({
            "kind": "Deployment", "metadata": {"name": "d", "uid": "1"},
            "spec": {"replicas": 1, "password": "OLD", "gone": true, "env": [{"name": "a", "value": "x"}]},
        });
        let mut after = json!({
            "kind": "Deployment", "metadata": {"name": "d", "uid": "1"},
            "spec": {"replicas": 3, "password": "NEW", "sealed": "open", "key": 1,
                "env": [{"name": "a", "value": "x"}, {"name": "b", "value": "hush"}]},
        });
        redaction.hide_both(&mut before, &mut after);
        let env = |name: &str| json!({"name": name, "value": REDACTED});
        assert_eq!(
            before,
            json!({
                "kind": "Deployment", "metadata": {"name": "d", "uid": REDACTED},
                "spec": {"replicas": 1, "password": REDACTED, "gone": REDACTED, "env": [env("a")]},
            })
        );
        assert_eq!(
            after,
            json!({
                "kind": "Deployment", "metadata": {"name": "d", "uid": REDACTED},
                "spec": {"replicas": 3, "password": CHANGED, "sealed": REDACTED, "key": REDACTED,
                    "env": [env("a"), env("b")]},
            })
        );
        // The text of a raw list is resolved as a whole: nothing is known to be spelled out.
        let mut raw = json!({"kind": "ConfigMap", "data": {"a": "b"}});
        let redaction = Redaction::default().with_templates(None);
        redaction.hide(&mut raw);
        assert_eq!(raw, json!({"kind": "ConfigMap", "data": {"a": REDACTED}}));
    }
}
