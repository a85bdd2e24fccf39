//! Whether a definition's names are free, and what its status says about it.

use bellwether_json::time;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{definitions, has_condition};
use crate::context::RequestContext;
use crate::metadata;

/// Keeps a deleted definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Completes a definition that is about to be written: its finalizer, and the status that
/// Kubernetes' controllers would fill in a moment later.
pub(crate) fn accept(cx: &RequestContext, definition: &mut Value) {
    let own = metadata::text(definition, "name").to_owned();
    let others: Vec<Value> = definitions(cx.cluster.keyspace())
        .iter()
        .map(|stored| stored.to_untyped_value())
        .filter(|other| metadata::text(other, "name") != own)
        .collect();
    let deleting = definition["metadata"]["deletionTimestamp"].is_string();
    if !deleting && !metadata::finalizers(definition).contains(&CLEANUP) {
        let mut finalizers: Vec<&str> = metadata::finalizers(definition);
        finalizers.push(CLEANUP);
        let finalizers = json!(finalizers);
        definition["metadata"]["finalizers"] = finalizers;
    }
    decide(definition, &others, cx.now);
}

/// Sets accepted names, conditions and stored versions.
fn decide(definition: &mut Value, others: &[Value], now: Timestamp) {
    let conflict = find_conflict(definition, others);
    let was_established = has_condition(definition, "Established");
    let names = match (&conflict, &definition["status"]["acceptedNames"]) {
        (Some(_), accepted)
            if accepted["kind"]
                .as_str()
                .is_some_and(|kind| !kind.is_empty()) =>
        {
            accepted.clone()
        }
        (Some(_), _) => json!({"plural": "", "kind": ""}),
        (None, _) => definition["spec"]["names"].clone(),
    };
    definition["status"]["acceptedNames"] = names;
    if let Some((reason, message)) = &conflict {
        set_condition(definition, "NamesAccepted", "False", reason, message, now);
        if !was_established {
            let why = "not all names are accepted";
            set_condition(definition, "Established", "False", "NotAccepted", why, now);
        }
    } else {
        let why = "no conflicts found";
        set_condition(definition, "NamesAccepted", "True", "NoConflicts", why, now);
        let why = "the initial names have been accepted";
        set_condition(
            definition,
            "Established",
            "True",
            "InitialNamesAccepted",
            why,
            now,
        );
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

/// The first name that another definition of the group holds, as reason and message.
fn find_conflict(definition: &Value, others: &[Value]) -> Option<(String, String)> {
    let names = &definition["spec"]["names"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let accepted: Vec<&Value> = others
        .iter()
        .filter(|other| other["spec"]["group"] == definition["spec"]["group"])
        .map(|other| &other["status"]["acceptedNames"])
        .collect();
    let is_resource = |name: &str| {
        accepted.iter().any(|other| {
            other["plural"] == *name
                || other["singular"] == *name
                || texts(&other["shortNames"])
                    .iter()
                    .any(|short| short == name)
        })
    };
    let is_kind = |name: &str| {
        accepted
            .iter()
            .any(|other| other["kind"] == *name || other["listKind"] == *name)
    };
    let wanted = [
        ("PluralConflict", text(&names["plural"]), true),
        ("SingularConflict", text(&names["singular"]), true),
        ("KindConflict", text(&names["kind"]), false),
        ("ListKindConflict", text(&names["listKind"]), false),
    ];
    let short = texts(&names["shortNames"])
        .into_iter()
        .map(|name| ("ShortNamesConflict", name, true));
    wanted
        .into_iter()
        .chain(short)
        .filter(|(_, name, _)| !name.is_empty())
        .find(|(_, name, resource)| {
            if *resource {
                is_resource(name)
            } else {
                is_kind(name)
            }
        })
        .map(|(reason, name, _)| (reason.to_owned(), format!("\"{name}\" is already in use")))
}

/// Says that a definition and its objects are being deleted.
pub(crate) fn mark_terminating(definition: &mut Value, now: Timestamp) {
    set_condition(
        definition,
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    );
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
        decide(&mut second, &[first], Timestamp::UNIX_EPOCH);
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
