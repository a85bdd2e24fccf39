//! Default roles that are there already get what has become part of them since, as Kubernetes does
//! at each start. Anyone who does not want that sets their annotation `autoupdate` to `false`.

use serde_json::{Value, json};

use super::bootstrap::AUTOUPDATE;
use super::escalation::is_covered;
use super::rule::PolicyRule;

/// Adds to a default role or binding what it lacks. Returns whether it lacked something; nothing is
/// ever taken away.
pub(crate) fn complete(live: &mut Value, wanted: &Value) -> bool {
    if live["metadata"]["annotations"][AUTOUPDATE] != "true" {
        return false;
    }
    let mut changed = add_labels(live, wanted);
    if wanted["aggregationRule"].is_object() {
        // Its rules are put together by the controller.
        if !live["aggregationRule"].is_object() {
            live["aggregationRule"] = wanted["aggregationRule"].clone();
            changed = true;
        }
    } else {
        changed |= add_rules(live, wanted);
    }
    changed | add_subjects(live, wanted)
}

fn add_labels(live: &mut Value, wanted: &Value) -> bool {
    let mut changed = false;
    let labels = wanted["metadata"]["labels"].as_object();
    for (key, value) in labels.into_iter().flatten() {
        if live["metadata"]["labels"][key].is_null() {
            live["metadata"]["labels"][key] = value.clone();
            changed = true;
        }
    }
    changed
}

fn add_rules(live: &mut Value, wanted: &Value) -> bool {
    let own = PolicyRule::list(&live["rules"]);
    let rules = wanted["rules"].as_array().into_iter().flatten();
    let missing: Vec<Value> = rules
        .filter(|rule| !is_covered(&own, &PolicyRule::list(&json!([rule]))))
        .cloned()
        .collect();
    append(live, "rules", missing)
}

fn add_subjects(live: &mut Value, wanted: &Value) -> bool {
    let subjects = wanted["subjects"].as_array().into_iter().flatten();
    let own = live["subjects"].as_array().cloned().unwrap_or_default();
    let missing: Vec<Value> = subjects
        .filter(|subject| !own.contains(subject))
        .cloned()
        .collect();
    append(live, "subjects", missing)
}

fn append(live: &mut Value, list: &str, missing: Vec<Value>) -> bool {
    if missing.is_empty() {
        return false;
    }
    let mut all = live[list].as_array().cloned().unwrap_or_default();
    all.extend(missing);
    live[list] = all.into();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::bootstrap_objects;

    fn find(kind: &str, name: &str) -> Value {
        let objects = bootstrap_objects();
        let mut objects = objects.into_iter();
        objects
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
            .unwrap()
    }

    #[test]
    fn what_is_complete_stays_as_it_is() {
        for wanted in bootstrap_objects() {
            let mut live = wanted.clone();
            assert!(!complete(&mut live, &wanted), "{wanted}");
            assert_eq!(live, wanted);
        }
    }

    #[test]
    fn what_is_missing_comes_back_and_what_was_added_stays() {
        let wanted = find("ClusterRole", "system:auth-delegator");
        let mut live = wanted.clone();
        let own = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        live["rules"] = json!([own]);
        assert!(complete(&mut live, &wanted));
        assert_eq!(live["rules"].as_array().unwrap().len(), 3);
        assert_eq!(live["rules"][0], own);
        assert!(!complete(&mut live, &wanted));

        let wanted = find("ClusterRoleBinding", "system:discovery");
        let mut live = wanted.clone();
        live["subjects"] = Value::Null;
        assert!(complete(&mut live, &wanted));
        assert_eq!(live, wanted);

        // A role of the time before aggregation.
        let wanted = find("ClusterRole", "edit");
        let mut live = wanted.clone();
        live.as_object_mut().unwrap().remove("aggregationRule");
        live["metadata"]["labels"] = json!({});
        assert!(complete(&mut live, &wanted));
        assert_eq!(live, wanted);
    }

    #[test]
    fn an_object_that_opted_out_is_left_alone() {
        let wanted = find("ClusterRole", "system:auth-delegator");
        let mut live = wanted.clone();
        live["rules"] = json!([]);
        live["metadata"]["annotations"][AUTOUPDATE] = "false".into();
        assert!(!complete(&mut live, &wanted));
    }
}
