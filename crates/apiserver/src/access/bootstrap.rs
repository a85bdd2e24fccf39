//! The roles and bindings that every cluster begins with.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Says whether a default role gets what becomes part of it later.
pub(super) const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The roles as a table; the file says how it is read.
const ROLES: &str = include_str!("roles.txt");

/// Roles that are put together from others, with the role that they are part of themselves. Each
/// comes after those that it is made of.
const AGGREGATED: [(&str, Option<&str>); 3] = [
    ("view", Some("edit")),
    ("edit", Some("admin")),
    ("admin", None),
];

/// Who has which role from the beginning.
const BINDINGS: [(&str, &[&str]); 6] = [
    ("cluster-admin", &["system:masters"]),
    ("system:basic-user", &["system:authenticated"]),
    ("system:discovery", &["system:authenticated"]),
    ("system:monitoring", &["system:monitoring"]),
    (
        "system:public-info-viewer",
        &["system:authenticated", "system:unauthenticated"],
    ),
    (
        "system:service-account-issuer-discovery",
        &["system:serviceaccounts"],
    ),
];

static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(build);

/// The objects; they are written where they are missing.
pub(crate) fn bootstrap_objects() -> Vec<Value> {
    OBJECTS.clone()
}

fn build() -> Vec<Value> {
    let mut objects = roles();
    for (name, part_of) in AGGREGATED {
        let label = aggregation_label(name);
        // In the order in which the controller puts them together: by name.
        let mut parts: Vec<&Value> = objects
            .iter()
            .filter(|role| role["metadata"]["labels"][&label] == "true")
            .collect();
        parts.sort_by_key(|role| role["metadata"]["name"].to_string());
        let rules: Vec<Value> = parts
            .iter()
            .filter_map(|role| role["rules"].as_array())
            .flatten()
            .cloned()
            .collect();
        let mut role = role(name, part_of, rules);
        role["aggregationRule"] =
            json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        objects.push(role);
    }
    let bindings = BINDINGS.iter().map(|(role, groups)| binding(role, groups));
    objects.extend(bindings);
    objects
}

fn aggregation_label(role: &str) -> String {
    format!("{GROUP}/aggregate-to-{role}")
}

/// The roles of the table.
fn roles() -> Vec<Value> {
    let mut found: Vec<(&str, Option<&str>, Vec<Value>)> = Vec::new();
    let lines = ROLES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            found.push((words.next().unwrap_or_default(), words.next(), Vec::new()));
        } else if let Some((_, _, rules)) = found.last_mut() {
            rules.push(rule(&words.collect::<Vec<_>>()));
        }
    }
    found
        .into_iter()
        .map(|(name, part_of, rules)| role(name, part_of, rules))
        .collect()
}

fn rule(words: &[&str]) -> Value {
    let list = |index: usize| -> Vec<&str> {
        let word = words.get(index).copied().unwrap_or_default();
        let parts = word.split(',');
        parts
            .map(|part| if part == "core" { "" } else { part })
            .collect()
    };
    if words.first() == Some(&"path") {
        return json!({"nonResourceURLs": list(1), "verbs": verbs(&list(2))});
    }
    let mut rule = json!({
        "apiGroups": list(0), "resources": list(1), "verbs": verbs(&list(2)),
    });
    if words.len() > 3 {
        rule["resourceNames"] = json!(list(3));
    }
    rule
}

fn verbs<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut verbs: Vec<&str> = words
        .iter()
        .flat_map(|word| match *word {
            "read" => vec!["get", "list", "watch"],
            "write" => vec!["create", "delete", "deletecollection", "patch", "update"],
            verb => vec![verb],
        })
        .collect();
    verbs.sort_unstable();
    verbs
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    })
}

fn role(name: &str, part_of: Option<&str>, rules: Vec<Value>) -> Value {
    let mut metadata = metadata(name);
    if let Some(whole) = part_of {
        metadata["labels"][aggregation_label(whole)] = "true".into();
    }
    let mut role = Map::new();
    role.insert("apiVersion".into(), format!("{GROUP}/v1").into());
    role.insert("kind".into(), "ClusterRole".into());
    role.insert("metadata".into(), metadata);
    role.insert("rules".into(), rules.into());
    Value::Object(role)
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> = groups
        .iter()
        .map(|group| json!({"apiGroup": GROUP, "kind": "Group", "name": group}))
        .collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
        "metadata": metadata(role),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::rule::PolicyRule;

    fn rules(name: &str) -> Vec<PolicyRule> {
        let objects = bootstrap_objects();
        let found = objects
            .iter()
            .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == name);
        PolicyRule::list(&found.unwrap()["rules"])
    }

    #[test]
    fn each_everyday_role_holds_the_lesser_one() {
        let (view, edit, admin) = (rules("view"), rules("edit"), rules("admin"));
        assert!(view.len() > 8);
        assert!(view.iter().all(|rule| edit.contains(rule)));
        assert!(edit.iter().all(|rule| admin.contains(rule)));
        assert!(admin.len() > edit.len() && edit.len() > view.len());
    }

    #[test]
    fn who_views_sees_no_secrets_and_nobody_but_the_administrator_escalates() {
        let mentions = |name: &str, resource: &str| {
            let rules = rules(name);
            rules
                .iter()
                .any(|rule| rule.resources.iter().any(|found| found == resource))
        };
        assert!(!mentions("view", "secrets") && mentions("edit", "secrets"));
        assert!(!mentions("edit", "roles") && mentions("admin", "roles"));
        for name in ["view", "edit", "admin"] {
            for rule in rules(name) {
                for verb in ["*", "escalate", "bind"] {
                    assert!(!rule.verbs.iter().any(|found| found == verb), "{name}");
                }
                assert!(!rule.resources.iter().any(|found| found == "*"), "{name}");
            }
        }
    }

    #[test]
    fn every_role_has_rules_and_every_binding_its_role() {
        let objects = bootstrap_objects();
        for object in &objects {
            if object["kind"] == "ClusterRole" {
                let rules = object["rules"].as_array().unwrap();
                assert!(!rules.is_empty(), "{object}");
                for rule in rules {
                    assert!(rule["verbs"][0].is_string(), "{rule}");
                }
            } else {
                let role = object["roleRef"]["name"].as_str().unwrap();
                assert!(!rules(role).is_empty());
            }
        }
    }
}
