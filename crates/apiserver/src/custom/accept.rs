//! Whether a definition's names are free, and what its status says about it.

use std::sync::Arc;

use bellwether_json::time;
use bellwether_store::Range;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{PREFIX, approval, has_condition};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::handler::update::{Proposal, change};
use crate::metadata;
use crate::ownership::Ownership;
use crate::params::WriteOptions;
use crate::resource::Part;
use crate::status::ApiError;

/// Keeps a deleted definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Who writes the status of definitions.
const CONTROLLER: &str = "kube-apiserver";

/// Sets the status of a definition that is about to be changed, as Kubernetes' controllers would a
/// moment later.
pub(crate) fn accept(cx: &RequestContext, definition: &mut Value) {
    let others = others(&cx.cluster, definition);
    decide(definition, &others, cx.now);
}

/// Sets the status of a definition that is stored: a new one, or one whose names may have become
/// free.
pub(crate) async fn establish(cluster: &Arc<Cluster>, key: &str) -> Result<(), ApiError> {
    let resources = cluster.resources();
    let found = resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let resource = found.ok_or_else(ApiError::no_such_resource)?;
    let cx = RequestContext::internal(cluster, resource, key, CONTROLLER);
    let mut was_established = false;
    change(&cx, Part::Status, &WriteOptions::default(), |live| {
        was_established = has_condition(live, "Established");
        let mut object = live.clone();
        if !live["metadata"]["deletionTimestamp"].is_string() {
            decide(&mut object, &others(cluster, live), cx.now);
        }
        Ok(Proposal {
            object,
            ownership: Ownership::Update(CONTROLLER.into()),
        })
    })
    .await?;
    // Housekeeping or the creation was first, and may not have refreshed the resources yet.
    if was_established {
        cluster.refresh_resources();
    }
    Ok(())
}

/// What is read of a definition to see which names it has been given: its schemas are long.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Names {
    status: NamesStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NamesStatus {
    accepted_names: Value,
}

/// The names that the other definitions of the group have been given.
fn others(cluster: &Cluster, definition: &Value) -> Vec<Value> {
    let own = metadata::text(definition, "name");
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    of_group(cluster, group)
        .iter()
        .filter(|key| key.strip_prefix(PREFIX) != Some(own))
        .filter_map(|key| cluster.keyspace().get(key))
        .filter_map(|entry| serde_json::from_slice(&entry.value.untyped_json()).ok())
        .map(|names: Names| names.status.accepted_names)
        .collect()
}

/// The keys of all definitions of a group.
pub(crate) fn of_group(cluster: &Cluster, group: &str) -> Vec<Arc<str>> {
    let suffix = format!(".{group}");
    let page = cluster.keyspace().range(Range::prefix(PREFIX));
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let keys = entries.into_iter().map(|entry| entry.key);
    keys.filter(|key| key.ends_with(&suffix)).collect()
}

/// Sets accepted names, conditions and stored versions.
fn decide(definition: &mut Value, others: &[Value], now: Timestamp) {
    let (names, conflict) = accepted_names(definition, others);
    definition["status"]["acceptedNames"] = names;
    let was_established = has_condition(definition, "Established");
    if let Some((reason, message)) = &conflict {
        set_condition(definition, "NamesAccepted", "False", reason, message, now);
        if !was_established {
            let why = "not all names are accepted";
            set_condition(definition, "Established", "False", "NotAccepted", why, now);
        }
    } else {
        let why = "no conflicts found";
        set_condition(definition, "NamesAccepted", "True", "NoConflicts", why, now);
        let (reason, why) = (
            "InitialNamesAccepted",
            "the initial names have been accepted",
        );
        set_condition(definition, "Established", "True", reason, why, now);
    }
    if let Some((status, reason, message)) = approval::condition(definition) {
        let kind = "KubernetesAPIApprovalPolicyConformant";
        set_condition(definition, kind, status, reason, &message, now);
    }
    record_stored_versions(definition);
}

/// Every version in which objects were ever stored has to stay convertible.
fn record_stored_versions(definition: &mut Value) {
    let mut stored: Vec<String> = definition["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let storage = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    let storage = storage.filter(|version| version["storage"] == true);
    for name in storage.filter_map(|version| version["name"].as_str()) {
        if !stored.iter().any(|known| known == name) {
            stored.push(name.to_owned());
        }
    }
    definition["status"]["storedVersions"] = json!(stored);
}

/// The names that a definition may have from now on, and the last one that another definition of the
/// group holds, as reason and message. A name that it has been given stays its own.
fn accepted_names(definition: &Value, others: &[Value]) -> (Value, Option<(String, String)>) {
    let wanted = &definition["spec"]["names"];
    let own = &definition["status"]["acceptedNames"];
    let mut accepted = match own {
        Value::Object(_) => own.clone(),
        _ => json!({"plural": "", "kind": ""}),
    };
    let mut conflict = None;
    let steps = [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ];
    for (field, reason) in steps {
        let known = words(&own[field]);
        let taken: Vec<String> = words(&wanted[field])
            .into_iter()
            .filter(|name| !known.contains(name) && is_taken(field, name, others))
            .map(|name| format!("\"{name}\" is already in use"))
            .collect();
        match taken.as_slice() {
            [] => copy(&mut accepted, wanted, field),
            [one] => conflict = Some((reason.to_owned(), one.clone())),
            many => conflict = Some((reason.to_owned(), format!("[{}]", many.join(", ")))),
        }
    }
    copy(&mut accepted, wanted, "categories");
    (accepted, conflict)
}

fn copy(names: &mut Value, wanted: &Value, field: &str) {
    match wanted.get(field) {
        Some(name) => names[field] = name.clone(),
        None => {
            if let Value::Object(names) = names {
                names.remove(field);
            }
        }
    }
}

/// One name or several, without empty ones.
fn words(names: &Value) -> Vec<&str> {
    let names = match names {
        Value::Array(names) => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    let names = names.iter().filter_map(Value::as_str);
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether another definition of the group has been given a name: kinds and resources have names
/// apart.
fn is_taken(field: &str, name: &str, others: &[Value]) -> bool {
    let fields: &[&str] = match field {
        "kind" | "listKind" => &["kind", "listKind"],
        _ => &["plural", "singular", "shortNames"],
    };
    others.iter().any(|accepted| {
        let mut fields = fields.iter();
        fields.any(|field| words(&accepted[*field]).contains(&name))
    })
}

/// Marks a definition that is deleted for the first time: it stays until its objects are gone.
pub(crate) fn mark_terminating(definition: &mut Value, now: Timestamp) {
    let mut finalizers: Vec<&str> = metadata::finalizers(definition);
    if !finalizers.contains(&CLEANUP) {
        finalizers.push(CLEANUP);
    }
    let finalizers = json!(finalizers);
    definition["metadata"]["finalizers"] = finalizers;
    let message =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_terminating(definition, "InstanceDeletionPending", message, now);
}

/// Says that the objects of a definition are being deleted.
pub(crate) fn mark_removing(definition: &mut Value, now: Timestamp) {
    let message = "CustomResource deletion is in progress";
    set_terminating(definition, "InstanceDeletionInProgress", message, now);
}

fn set_terminating(definition: &mut Value, reason: &str, message: &str, now: Timestamp) {
    set_condition(definition, "Terminating", "True", reason, message, now);
}

/// Sets a condition; its time changes only with its status.
fn set_condition(
    definition: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    if !definition["status"]["conditions"].is_array() {
        definition["status"]["conditions"] = json!([]);
    }
    let mut condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": time::format_time(now),
    });
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else {
        return;
    };
    match conditions.iter_mut().find(|found| found["type"] == *kind) {
        Some(found) => {
            if found["status"] == *status {
                condition["lastTransitionTime"] = found["lastTransitionTime"].clone();
            }
            *found = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str, short: &[&str]) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                    "listKind": format!("{kind}List"), "shortNames": short},
                "versions": [{"name": "v1", "storage": true}, {"name": "v2", "storage": false}],
            },
        })
    }

    #[test]
    fn free_names_are_accepted_at_once() {
        let mut widget = definition("widgets", "Widget", &[]);
        decide(&mut widget, &[], Timestamp::UNIX_EPOCH);
        assert!(has_condition(&widget, "Established") && has_condition(&widget, "NamesAccepted"));
        assert_eq!(widget["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(widget["status"]["acceptedNames"]["kind"], "Widget");
    }

    #[test]
    fn a_name_that_is_taken_keeps_a_definition_from_being_established() {
        let mut first = definition("widgets", "Widget", &["w"]);
        decide(&mut first, &[], Timestamp::UNIX_EPOCH);
        let mut second = definition("wheels", "Wheel", &["w"]);
        let taken = first["status"]["acceptedNames"].clone();
        decide(&mut second, &[taken], Timestamp::UNIX_EPOCH);
        assert!(!has_condition(&second, "Established"));
        let accepted = &second["status"]["conditions"][0];
        assert_eq!(accepted["reason"], "ShortNamesConflict");
        assert_eq!(accepted["message"], "\"w\" is already in use");
    }

    #[test]
    fn a_new_storage_version_is_added_to_the_old_one() {
        let mut widget = definition("widgets", "Widget", &[]);
        decide(&mut widget, &[], Timestamp::UNIX_EPOCH);
        widget["spec"]["versions"] =
            json!([{"name": "v1", "storage": false}, {"name": "v2", "storage": true}]);
        decide(&mut widget, &[], Timestamp::UNIX_EPOCH);
        assert_eq!(widget["status"]["storedVersions"], json!(["v1", "v2"]));
    }
}
