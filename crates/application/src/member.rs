//! Objects of an application on a member: they go there in a work, and what is known of them comes back in its status.

mod apply_once;
mod asked;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use bellwether_api::meta;
use bellwether_api::oam::names::{annotation, label};
use bellwether_api::work::names::{annotation as work_annotation, condition};
use bellwether_api::work::{ManifestCondition, ManifestWork};
use bellwether_apply::ObjectId;
use bellwether_json::path::str_at;
use serde_json::{Value, json};

use crate::context::AppContext;
use crate::dispatch::{DispatchError, describe};
use crate::label::Manifest;
use crate::path;
use crate::resource_policy::{
    GarbageCollectStrategy, Propagation, ResourcePolicies, UpdateOperation,
};

pub use self::asked::AskedFields;

/// Values that come back of all objects, by the field that they are of.
const FEEDBACK: [&str; 14] = [
    "metadata.generation",
    "status.observedGeneration",
    "status.replicas",
    "status.readyReplicas",
    "status.updatedReplicas",
    "status.numberReady",
    "status.desiredNumberScheduled",
    "status.currentNumberScheduled",
    "status.updatedNumberScheduled",
    "status.active",
    "status.failed",
    "status.succeeded",
    "spec.replicas",
    "spec.clusterIP",
];

/// Name of the work of an application.
pub fn work_name(namespace: &str, name: &str) -> String {
    format!("app-{namespace}-{name}")
}

/// An object that goes to a member, with the fields that are asked of it.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    /// The object.
    pub object: &'a Value,
    /// Fields that snippets look at.
    pub fields: Vec<String>,
}

/// The work that brings objects to a member; the namespace of the work is named after it. An error names what a policy asks
/// for that works cannot do.
pub fn work(
    app: &AppContext,
    cluster: &str,
    sent: &[Sent<'_>],
    policies: &ResourcePolicies,
) -> Result<Value, String> {
    let mut configs = Vec::new();
    let mut left = Vec::new();
    for it in sent {
        configs.push(config(it, policies)?);
        if is_left(it.object, policies) {
            left.push(identifier(it.object));
        }
    }
    let objects: Vec<&Value> = sent.iter().map(|it| it.object).collect();
    let mut work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": work_name(&app.namespace, &app.name),
            "namespace": cluster,
            "labels": {
                label::APP_NAME: app.name,
                label::APP_NAMESPACE: app.namespace,
                label::APP_REVISION: app.revision,
            },
        },
        "spec": {"workload": {"manifests": objects}, "manifestConfigs": configs},
    });
    if !left.is_empty() {
        work["spec"]["deleteOption"] = json!({
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": {"orphaningRules": left},
        });
    }
    let annotations = apply_once::annotations(&objects, policies);
    if !annotations.is_empty() {
        work["metadata"]["annotations"] = annotations.into();
    }
    if let Some(account) = app.annotations.get(annotation::SERVICE_ACCOUNT) {
        work["spec"]["executor"] = json!({"subject": {
            "type": "ServiceAccount",
            "serviceAccount": {"namespace": app.namespace, "name": account},
        }});
    }
    Ok(work)
}

/// Has annotations of a work removed that it no longer should have, when it is merged.
pub fn drop_annotations(known: &ManifestWork, work: &mut Value) {
    let annotations = known.metadata.annotations.as_ref();
    for key in [work_annotation::KEEP_DELETED, work_annotation::KEPT_FIELDS] {
        let is_known = annotations.is_some_and(|all| all.contains_key(key));
        if is_known && work["metadata"]["annotations"][key].is_null() {
            work["metadata"]["annotations"][key] = Value::Null;
        }
    }
}

/// A work with these objects only, treated as they were.
pub fn with_manifests(work: &ManifestWork, manifests: &[&Manifest]) -> Value {
    let objects: Vec<&Value> = manifests.iter().map(|manifest| &manifest.object).collect();
    let identifiers: Vec<Value> = objects.iter().map(|object| identifier(object)).collect();
    let configs = serde_json::to_value(&work.spec.manifest_configs).unwrap_or_default();
    let is_kept = |config: &&Value| {
        let known = &config["resourceIdentifier"];
        let text =
            |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        identifiers.iter().any(|identifier| {
            ["group", "resource", "namespace", "name"]
                .iter()
                .all(|field| text(known, field) == text(identifier, field))
        })
    };
    let configs = configs.as_array().into_iter().flatten();
    let configs: Vec<&Value> = configs.filter(is_kept).collect();
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": work.metadata.name, "namespace": work.metadata.namespace},
        "spec": {"workload": {"manifests": objects}, "manifestConfigs": configs},
    })
}

/// Whether an object stays on the member when the application no longer has it.
fn is_left(object: &Value, policies: &ResourcePolicies) -> bool {
    let collect = &policies.garbage_collect;
    collect.strategy(object) == GarbageCollectStrategy::Never
        || collect.propagation(object) == Some(Propagation::Orphan)
}

/// True if others deleted an object on the member, and policies leave it so.
pub fn is_left_deleted(work: &ManifestWork, object: &Value, policies: &ResourcePolicies) -> bool {
    let is = |entry: &ManifestCondition, kind: &str, status: &str| {
        let found = meta::condition(&entry.conditions, kind);
        found.is_some_and(|found| found.status == status)
    };
    let id = object_id(object);
    let manifests = work.status.iter().flat_map(|it| &it.resource_status);
    let mut entries = manifests.flat_map(|it| &it.manifests);
    apply_once::keeps_deleted(object, policies)
        && entries.any(|entry| {
            let meta = &entry.resource_meta;
            object["kind"] == meta.kind
                && (&meta.group, &meta.namespace, &meta.name)
                    == (&id.group, &id.namespace, &id.name)
                && is(entry, condition::APPLIED, meta::TRUE)
                && is(entry, condition::AVAILABLE, meta::FALSE)
        })
}

fn object_id(object: &Value) -> ObjectId {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let resource = match bellwether_kinds::find_kind(group, version, kind) {
        Some(resource) => resource.plural.to_owned(),
        None => format!("{}s", kind.to_lowercase()),
    };
    let text = |field: &str| str_at(object, &["metadata", field]).unwrap_or_default();
    ObjectId {
        group: group.to_owned(),
        resource,
        namespace: text("namespace").to_owned(),
        name: text("name").to_owned(),
    }
}

fn identifier(object: &Value) -> Value {
    let id = object_id(object);
    json!({
        "group": id.group,
        "resource": id.resource,
        "name": id.name,
        "namespace": id.namespace,
    })
}

/// What comes back of an object: the fields that health needs, and further ones.
pub(crate) fn feedback<'f>(object: &Value, further: impl Iterator<Item = &'f str>) -> Value {
    let mut fields: Vec<&str> = FEEDBACK.iter().copied().chain(further).collect();
    fields.sort_unstable();
    fields.dedup();
    let paths: Vec<Value> = fields
        .iter()
        .map(|field| json!({"name": field, "path": format!(".{field}")}))
        .collect();
    json!({
        "resourceIdentifier": identifier(object),
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}],
        "feedbackScrapeType": "Watch",
    })
}

fn config(sent: &Sent<'_>, policies: &ResourcePolicies) -> Result<Value, String> {
    let mut config = feedback(sent.object, sent.fields.iter().map(String::as_str));
    if let Some(strategy) = update_strategy(sent.object, policies)? {
        config["updateStrategy"] = strategy;
    }
    Ok(config)
}

/// How policies have an object written on a member.
fn update_strategy(object: &Value, policies: &ResourcePolicies) -> Result<Option<Value>, String> {
    if policies.read_only.selects(object) {
        return Ok(Some(json!({"type": "ReadOnly"})));
    }
    let rules = &policies.update.rules;
    let rule = rules.iter().find(|rule| rule.selector.matches(object));
    if rule.is_some_and(|rule| !rule.strategy.recreate_fields.is_empty()) {
        return Err(format!(
            "{}: recreateFields of a resource-update policy works on the hub only, not on members; leave the object out of the rule",
            describe(object)
        ));
    }
    let Some((paths, condition)) = apply_once::ignored_fields(object, policies) else {
        let replaces = rule.is_some_and(|rule| rule.strategy.op == UpdateOperation::Replace);
        return Ok(replaces.then(|| json!({"type": "Update"})));
    };
    Ok(Some(json!({
        "type": "ServerSideApply",
        "serverSideApply": {
            "force": true,
            "ignoreFields": [{"condition": condition, "jsonPaths": paths}],
        },
    })))
}

/// What finds an object of a member: equal objects have equal keys, and few others do.
pub fn object_key(cluster: &str, object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity(cluster, object).hash(&mut hasher);
    hasher.finish()
}

fn identity<'a>(cluster: &'a str, object: &'a Value) -> [&'a str; 5] {
    let text = |path: &[&str]| str_at(object, path).unwrap_or_default();
    let api_version = text(&["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let (namespace, name) = (
        text(&["metadata", "namespace"]),
        text(&["metadata", "name"]),
    );
    [cluster, group, text(&["kind"]), namespace, name]
}

/// The work of another application that has an object: the oldest of all works that bring it to the member has it, and of two that
/// are as old the one that comes first by name. None if it is `own`, or no other work has it.
pub fn holder<'w>(
    object: &Value,
    own: Option<&ManifestWork>,
    works: &'w [Arc<ManifestWork>],
) -> Option<&'w ManifestWork> {
    let has = |work: &ManifestWork| {
        let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
        let workload = work.spec.workload.as_ref();
        let mut objects = workload.into_iter().flat_map(|it| &it.manifests);
        objects.any(|known| identity(cluster, known) == identity(cluster, object))
    };
    let age = |work: &ManifestWork| {
        let created = work.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), work.metadata.name.clone())
    };
    let own_name = own.and_then(|own| own.metadata.name.as_ref());
    let others = works.iter().map(|work| &**work).filter(|work| {
        let is_other = own.is_none() || work.metadata.name.as_ref() != own_name;
        is_other && work.metadata.deletion_timestamp.is_none() && has(work)
    });
    let oldest = others.min_by_key(|work| age(work))?;
    let is_own = own.is_some_and(|own| has(own) && age(own) < age(oldest));
    (!is_own).then_some(oldest)
}

/// Why an object is not brought to a member: another application has it there.
pub fn other_owner(object: &Value, cluster: &str, owner: &str) -> DispatchError {
    DispatchError::OtherOwner {
        object: format!("{} on cluster {cluster}", describe(object)),
        owner: owner.to_owned(),
    }
}

/// What is known of an object on a member; `None` until the member has applied this version of it.
pub fn live(work: &ManifestWork, manifest: &Value) -> Option<Value> {
    let work = serde_json::to_value(work).ok()?;
    let entries = work
        .pointer("/status/resourceStatus/manifests")?
        .as_array()?;
    let entry = entries.iter().find(|entry| {
        let meta = &entry["resourceMeta"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        text("kind") == manifest["kind"].as_str().unwrap_or_default()
            && text("name") == str_at(manifest, &["metadata", "name"]).unwrap_or_default()
            && text("namespace") == str_at(manifest, &["metadata", "namespace"]).unwrap_or_default()
    })?;
    let is_applied = entry["conditions"]
        .as_array()?
        .iter()
        .any(|condition| condition["type"] == "Applied" && condition["status"] == "True");
    if !is_applied {
        return None;
    }
    let mut live = manifest.clone();
    let values = entry
        .pointer("/statusFeedback/values")
        .and_then(Value::as_array);
    for value in values.into_iter().flatten() {
        let field = &value["fieldValue"];
        let found = [&field["integer"], &field["string"], &field["boolean"]]
            .into_iter()
            .find(|found| !found.is_null());
        if let (Some(name), Some(found)) = (value["name"].as_str(), found)
            && let Ok(steps) = path::parse(name)
        {
            path::set(&mut live, &steps, found.clone());
        }
    }
    Some(live)
}

/// Why objects on a member cannot be applied.
pub fn problem(work: &ManifestWork) -> Option<String> {
    let conditions = &work.status.as_ref()?.conditions;
    let applied = conditions
        .iter()
        .find(|condition| condition.type_ == "Applied")?;
    if applied.status != "False" {
        return None;
    }
    let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
    let causes = causes(work);
    if causes.is_empty() {
        return Some(format!("cluster {cluster}: {}", applied.message));
    }
    Some(format!("cluster {cluster}: {}", causes.join("; ")))
}

/// What the member says of each object that cannot be applied.
fn causes(work: &ManifestWork) -> Vec<String> {
    let status = work.status.as_ref();
    let status = status.and_then(|status| status.resource_status.as_ref());
    let reported = status.map_or(&[][..], |status| &status.manifests);
    let workload = work.spec.workload.as_ref();
    let sent = workload.map_or(&[][..], |workload| &workload.manifests);
    let mut causes = Vec::new();
    for report in reported {
        let mut conditions = report.conditions.iter();
        let applied = conditions.find(|condition| condition.type_ == "Applied");
        let place = usize::try_from(report.resource_meta.ordinal).unwrap_or_default();
        let (Some(applied), Some(object)) = (applied, sent.get(place)) else {
            continue;
        };
        if applied.status == "False" {
            let component = str_at(object, &["metadata", "labels", label::COMPONENT]);
            let component = component.unwrap_or_default();
            let object = describe(object);
            causes.push(format!(
                "component {component}: {object}: {}",
                applied.message
            ));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use bellwether_api::oam::Application;

    use super::*;

    fn strategy_of(policies: impl Into<Value>) -> Result<Option<Value>, String> {
        let policies = policies.into();
        let application: Application =
            serde_json::from_value(json!({"spec": {"components": [], "policies": policies}}))
                .unwrap();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "data": {"a": "1"}});
        update_strategy(&object, &ResourcePolicies::of(&application).unwrap())
    }

    fn policy(kind: &str, rule: Value) -> Value {
        let mut rule = rule;
        rule["selector"] = json!({"resourceTypes": ["ConfigMap"]});
        json!([{"name": "p", "type": kind, "properties": {"enable": true, "rules": [rule]}}])
    }

    #[test]
    fn policies_become_strategies_of_works() {
        assert_eq!(strategy_of(json!([])), Ok(None));
        let read_only = strategy_of(policy("read-only", json!({})));
        assert_eq!(read_only, Ok(Some(json!({"type": "ReadOnly"}))));
        let ignored = |condition: &str, path: &str| {
            Ok(Some(json!({"type": "ServerSideApply", "serverSideApply": {
                "force": true, "ignoreFields": [{"condition": condition, "jsonPaths": [path]}]}})))
        };
        let once = |strategy: Value| policy("apply-once", json!({"strategy": strategy}));
        assert_eq!(
            strategy_of(once(json!({"path": ["data.a"]}))),
            ignored("OnSpokePresent", ".data.a")
        );
        assert_eq!(
            strategy_of(once(json!({"path": ["*"], "affect": "onStateKeep"}))),
            ignored("OnSpokeChange", ".data")
        );
        let whole = json!([{"name": "p", "type": "apply-once", "properties": {"enable": true}}]);
        assert_eq!(strategy_of(whole), ignored("OnSpokeChange", ".data"));
        let on_update = strategy_of(once(json!({"path": ["data.a"], "affect": "onUpdate"})));
        assert_eq!(on_update, Ok(None));
        let recreate = json!({"strategy": {"recreateFields": ["data.a"]}});
        let refused = strategy_of(policy("resource-update", recreate));
        assert!(refused.unwrap_err().contains("recreateFields"));
    }

    #[test]
    fn what_a_member_reports_becomes_a_live_object() {
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"}, "spec": {}});
        let status = |applied: &str| {
            json!({"metadata": {"name": "w", "namespace": "east"}, "spec": {}, "status": {"resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web", "namespace": "n"},
                "conditions": [{"type": "Applied", "status": applied, "reason": "X", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "statusFeedback": {"values": [
                    {"name": "status.readyReplicas", "fieldValue": {"type": "Integer", "integer": 2}},
                    {"name": "metadata.generation", "fieldValue": {"type": "Integer", "integer": 3}},
                ]},
            }]}}})
        };
        let read = |applied: &str| serde_json::from_value::<ManifestWork>(status(applied)).unwrap();
        let found = live(&read("True"), &manifest).unwrap();
        assert_eq!(found["status"]["readyReplicas"], 2);
        assert_eq!(found["metadata"]["generation"], 3);
        assert_eq!(live(&read("False"), &manifest), None);
    }

    #[test]
    fn a_problem_on_a_member_names_component_object_and_cause() {
        let condition = |message: &str| json!([{"type": "Applied", "status": "False", "reason": "X", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "prod", "labels": {"app.oam.dev/component": "web"}}});
        let meta = json!({"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "name": "m", "namespace": "prod"});
        let work = json!({"metadata": {"name": "w", "namespace": "east"}, "spec": {"workload": {"manifests": [object]}},
            "status": {"conditions": condition("Failed to apply manifest work"),
                "resourceStatus": {"manifests": [{"resourceMeta": meta, "conditions": condition("namespaces \"prod\" not found")}]}}});
        let work: ManifestWork = serde_json::from_value(work).unwrap();
        assert_eq!(
            problem(&work).unwrap(),
            "cluster east: component web: ConfigMap prod/m: namespaces \"prod\" not found"
        );
    }

    #[test]
    fn the_oldest_work_has_an_object() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}});
        let work = |name: &str, second: u8| -> ManifestWork {
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "east", "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")},
                "spec": {"workload": {"manifests": [object]}}}))
            .unwrap()
        };
        let (first, second) = (work("b", 1), work("a", 2));
        let all = [Arc::new(first.clone()), Arc::new(second.clone())];
        let holder_of = |own: Option<&ManifestWork>| {
            let found = holder(&object, own, &all);
            found.and_then(|work| work.metadata.name.clone())
        };
        assert_eq!(holder_of(None).as_deref(), Some("b"));
        assert_eq!(holder_of(Some(&second)).as_deref(), Some("b"));
        assert_eq!(holder_of(Some(&first)), None);
        let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "m", "namespace": "n"}});
        assert_eq!(holder(&other, None, &all), None);
        let same = work("c", 1);
        assert_eq!(holder_of(Some(&same)).as_deref(), Some("b"));
    }
}
