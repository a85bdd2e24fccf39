//! What an apply-once policy means on members.
//!
//! Agents of Bellwether read annotations of the work, and treat an object as the hub treats its own. Other agents of Open Cluster
//! Management do not know them: for those, fields that are kept are left out of a server-side apply, which is the nearest that they
//! can do. They repair no other field of such an object either.

use std::collections::BTreeMap;

use bellwether_api::work::names::annotation;
use bellwether_api::work::{Affect, FieldRetention, KeptFields};
use serde_json::{Map, Value};

use super::object_id;
use crate::resource_policy::{Occasion, ResourcePolicies};

/// What names the whole object among fields.
const EVERYTHING: &str = "*";

/// Annotations of a work that say what is kept of its objects.
pub(super) fn annotations(objects: &[&Value], policies: &ResourcePolicies) -> Map<String, Value> {
    let written = || {
        let is_written = |object: &&Value| !policies.read_only.selects(object);
        objects.iter().copied().filter(is_written)
    };
    let deleted = written().filter(|object| keeps_deleted(object, policies));
    let deleted: Vec<String> = deleted.map(|it| object_id(it).to_string()).collect();
    let fields: BTreeMap<String, FieldRetention> = written()
        .filter_map(|object| {
            let strategy = policies.apply_once.strategy(object)?;
            let kept = FieldRetention {
                paths: strategy.path.clone(),
                affect: strategy.affect,
            };
            Some((object_id(object).to_string(), kept))
        })
        .collect();
    let mut annotations = Map::new();
    if !deleted.is_empty() {
        annotations.insert(
            annotation::KEEP_DELETED.to_owned(),
            deleted.join(",").into(),
        );
    }
    if let Some(text) = KeptFields(fields).text() {
        annotations.insert(annotation::KEPT_FIELDS.to_owned(), text.into());
    }
    annotations
}

/// Whether an object that others delete on the member stays deleted until the application changes.
pub(super) fn keeps_deleted(object: &Value, policies: &ResourcePolicies) -> bool {
    let apply_once = &policies.apply_once;
    let holds = apply_once.kept_fields(object, Occasion::StateKeep);
    apply_once.keeps_everything() || holds.is_some()
}

/// Fields that a server-side apply leaves to the member, and since when. It has nothing for fields that keep their values only when
/// a new version is applied.
pub(super) fn ignored_fields(
    object: &Value,
    policies: &ResourcePolicies,
) -> Option<(Vec<String>, &'static str)> {
    let apply_once = &policies.apply_once;
    if apply_once.keeps_everything() {
        return Some((all_fields(object), "OnSpokeChange"));
    }
    let strategy = apply_once.strategy(object)?;
    let condition = match strategy.affect {
        Affect::Always => "OnSpokePresent",
        Affect::OnStateKeep => "OnSpokeChange",
        Affect::OnUpdate => return None,
    };
    let paths = if strategy.path.iter().any(|path| path == EVERYTHING) {
        all_fields(object)
    } else {
        let dotted = |path: &String| format!(".{}", path.strip_prefix('.').unwrap_or(path));
        strategy.path.iter().map(dotted).collect()
    };
    Some((paths, condition))
}

/// Everything that an object says, by field.
fn all_fields(object: &Value) -> Vec<String> {
    let fields = object.as_object().into_iter().flatten();
    let own = fields.filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&&***name));
    own.map(|(name, _)| format!(".{name}")).collect()
}

#[cfg(test)]
mod tests {
    use bellwether_api::oam::Application;
    use serde_json::json;

    use super::*;

    fn annotations_of(policies: impl Into<Value>) -> Value {
        let policies = policies.into();
        let app: Application =
            serde_json::from_value(json!({"spec": {"components": [], "policies": policies}}))
                .unwrap();
        let policies = ResourcePolicies::of(&app).unwrap();
        let object = |name: &str| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": "n"}})
        };
        annotations(&[&object("web"), &object("other")], &policies).into()
    }

    fn rule(name: &str, affect: &str) -> Value {
        json!({"selector": {"resourceNames": [name]},
            "strategy": {"path": ["spec.replicas"], "affect": affect}})
    }

    fn once(rules: impl Into<Value>) -> Value {
        let rules = rules.into();
        json!([{"name": "once", "type": "apply-once", "properties": {"enable": true, "rules": rules}}])
    }

    #[test]
    fn works_name_objects_whose_deletion_is_kept() {
        let check = |policies: Value, expected: Value| {
            let found = annotations_of(policies.clone());
            assert_eq!(found[annotation::KEEP_DELETED], expected, "{policies}");
        };
        let web = "deployments.apps n/web";
        check(
            once(json!([])),
            format!("{web},deployments.apps n/other").into(),
        );
        check(once([rule("web", "onStateKeep")]), web.into());
        check(once([rule("web", "always")]), web.into());
        check(once([rule("web", "onUpdate")]), Value::Null);
        let nothing = json!([{"selector": {"resourceTypes": ["Service"]}}]);
        check(once(nothing), Value::Null);
        let off = json!([{"name": "once", "type": "apply-once", "properties": {"enable": false}}]);
        check(off, Value::Null);
    }

    #[test]
    fn works_name_fields_that_are_kept() {
        for affect in ["always", "onUpdate", "onStateKeep"] {
            let found = annotations_of(once([rule("web", affect)]));
            let text = found[annotation::KEPT_FIELDS].as_str().unwrap();
            let expected =
                json!({"deployments.apps n/web": {"paths": ["spec.replicas"], "affect": affect}});
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
        }
        assert_eq!(
            annotations_of(once(json!([])))[annotation::KEPT_FIELDS],
            Value::Null
        );
        let mut policies = once([rule("web", "always")]);
        let read_only = json!({"name": "read", "type": "read-only",
            "properties": {"rules": [{"selector": {"resourceNames": ["web"]}}]}});
        policies.as_array_mut().unwrap().push(read_only);
        assert_eq!(annotations_of(policies), json!({}));
    }
}
