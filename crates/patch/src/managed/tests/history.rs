//! Objects that client-side apply wrote before.

use serde_json::json;

use super::*;

fn client_side(spec: &Value) -> Cluster {
    let mut cluster = Cluster::new();
    let mut new = configuration(spec);
    let last = configuration(spec).to_string();
    new["metadata"]["annotations"] = json!({LAST_APPLIED_ANNOTATION: last});
    let created = update(&json!({}), new, &cluster.write("kubectl-client-side-apply"));
    cluster.store(created);
    cluster
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    let mut cluster = client_side(&json!({"title": "x", "count": 1}));
    cluster.apply("kubectl", &json!({"title": "y", "count": 1}));
    cluster.expect(json!({"title": "y", "count": 1}));
    let annotation = &cluster.object["metadata"]["annotations"][LAST_APPLIED_ANNOTATION];
    assert_eq!(
        annotation.as_str().unwrap(),
        "{\"apiVersion\":\"toys/v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":\"top\",\"namespace\":\"box\"},\
         \"spec\":{\"count\":1,\"title\":\"y\"}}\n"
    );
}

#[test]
fn others_conflict_with_client_side_apply() {
    let mut cluster = client_side(&json!({"title": "x"}));
    let conflicts = cluster.refuse("flux", &json!({"title": "y"}));
    assert_eq!(
        conflicts.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using toys/v1: .spec.title"
    );
}

#[test]
fn what_others_changed_since_still_conflicts() {
    let mut cluster = client_side(&json!({"title": "x", "count": 1}));
    let mut new = cluster.object.clone();
    new["spec"]["count"] = json!(2);
    let updated = update(&cluster.object, new, &cluster.write("scaler"));
    cluster.store(updated);
    let conflicts = cluster.refuse("kubectl", &json!({"title": "y", "count": 3}));
    assert_eq!(
        conflicts.to_string(),
        "Apply failed with 1 conflict: conflict with \"scaler\" using toys/v1: .spec.count"
    );
}

#[test]
fn the_annotation_is_dropped_when_it_gets_too_large() {
    let mut cluster = client_side(&json!({"title": "x"}));
    cluster.apply("kubectl", &json!({"title": "y".repeat(300_000)}));
    let annotations = &cluster.object["metadata"]["annotations"];
    assert_eq!(annotations.get(LAST_APPLIED_ANNOTATION), None);
}
