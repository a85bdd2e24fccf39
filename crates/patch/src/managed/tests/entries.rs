//! Entries as clients send them, and keeping them few.

use serde_json::json;

use super::*;

fn entry(fields: &Value) -> Value {
    json!({
        "manager": "z", "operation": "Update", "apiVersion": "toys/v1", "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    })
}

#[test]
fn clients_may_write_entries_that_can_be_read() {
    let cluster = Cluster::with(&json!({"title": "x", "count": 1}));
    let sent = |entries: Value| {
        let mut new = cluster.object.clone();
        new["metadata"]["managedFields"] = entries;
        let updated = update(&cluster.object, new, &cluster.write("p"));
        updated["metadata"].get("managedFields").cloned()
    };
    let stored = Some(cluster.object["metadata"]["managedFields"].clone());
    let own = entry(&json!({"f:spec": {"f:title": {}}}));
    assert_eq!(sent(json!([own])), Some(json!([own])));
    // Readable or not at all: clients that garble entries do not lose them.
    assert_eq!(sent(json!(null)), stored);
    assert_eq!(sent(json!("nonsense")), stored);
    assert_eq!(
        sent(json!([{"manager": "z", "operation": "Delete"}])),
        stored
    );
    assert_eq!(sent(json!([entry(&json!({"bad": {}}))])), stored);
    // An empty list, or one empty entry, clears them.
    assert_eq!(sent(json!([])), None);
    assert_eq!(sent(json!([{}])), None);
}

#[test]
fn an_untracked_object_stays_so_until_it_is_applied_to() {
    let mut cluster = Cluster::with(&json!({"title": "x", "count": 1}));
    let metadata = cluster.object["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    cluster.update("editor", &json!({"title": "y", "count": 1}));
    assert_eq!(cluster.object["metadata"].get("managedFields"), None);
    cluster.force("m", &json!({"title": "z"}));
    cluster.expect_owners(json!([
        ["m", "Apply", {"f:title": {}}],
        ["before-first-apply", "Update", {".": {}, "f:count": {}}],
    ]));
}

#[test]
fn the_oldest_updates_are_merged_when_there_are_many() {
    let mut cluster = Cluster::new();
    let mut labels = json!({});
    for number in 0..12 {
        labels[format!("k{number}")] = "v".into();
        let manager = format!("manager{number:02}");
        cluster.now = if number < 6 { EARLIER } else { NOW };
        cluster.update(&manager, &json!({"labels": labels}));
    }
    let entries = cluster.object["metadata"]["managedFields"]
        .as_array()
        .unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], EARLIER);
    assert_eq!(
        entries[0]["fieldsV1"],
        json!({"f:spec": {".": {}, "f:labels": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}}})
    );
    assert_eq!(entries[1]["manager"], "manager03");
}

#[test]
fn entries_are_sorted_by_operation_and_time() {
    let mut cluster = Cluster::with(&json!({"title": "x"}));
    cluster.apply("z-applier", &json!({"count": 1}));
    cluster.apply("a-applier", &json!({"on": true}));
    cluster.update("a-editor", &json!({"title": "y", "count": 1, "on": true}));
    let entries = cluster.object["metadata"]["managedFields"]
        .as_array()
        .unwrap();
    let managers: Vec<_> = entries
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers, ["a-applier", "z-applier", "creator", "a-editor"]);
}

#[test]
fn unreadable_entries_say_why() {
    let error = |entries: Value| validate_entries(&entries).unwrap_err().to_string();
    let base = || entry(&json!({}));
    let mut operation = base();
    operation["operation"] = "Patch".into();
    assert_eq!(
        error(json!([operation])),
        "operation must be `Apply` or `Update`"
    );
    let mut version = base();
    version["apiVersion"] = "".into();
    assert_eq!(error(json!([version])), "apiVersion must not be empty");
    let mut kind = base();
    kind["fieldsType"] = "FieldsV9".into();
    assert_eq!(
        error(json!([base(), kind])),
        "invalid fieldsType \"FieldsV9\" in managed fields entry 1"
    );
    kind["fieldsType"] = Value::Null;
    assert_eq!(
        error(json!([kind])),
        "missing fieldsType in managed fields entry 0"
    );
    assert_eq!(validate_entries(&json!([base()])), Ok(()));
    let mut stored = Cluster::with(&json!({})).object;
    stored["metadata"]["managedFields"] = json!([{"operation": "x"}]);
    let applied = apply(
        &stored,
        &configuration(&json!({})),
        &Cluster::new().write("m"),
        false,
    );
    assert_eq!(
        applied.unwrap_err().to_string(),
        "failed to decode managed fields: operation must be `Apply` or `Update`"
    );
}

#[test]
fn times_alone_do_not_make_a_difference() {
    let mut cluster = Cluster::new();
    cluster.apply("m", &json!({"title": "x"}));
    let live = cluster.object.clone();
    let mut later = live.clone();
    later["metadata"]["managedFields"][0]["time"] = NOW.into();
    assert!(keep_timestamps_of_unchanged(&live, &mut later));
    assert_eq!(later, live);
    let mut changed = live.clone();
    changed["metadata"]["managedFields"][0]["time"] = NOW.into();
    changed["spec"]["title"] = "y".into();
    assert!(!keep_timestamps_of_unchanged(&live, &mut changed));
    assert_eq!(changed["metadata"]["managedFields"][0]["time"], NOW);
}

#[test]
fn a_scale_shows_and_changes_who_owns_the_replicas() {
    let replicas = Path::fields(["spec", "count"]).0;
    let mut cluster = Cluster::with(&json!({"title": "x"}));
    cluster.apply("m", &json!({"count": 1}));
    let entries = scale_entries(&cluster.object, &replicas).unwrap();
    assert_eq!(
        entries,
        json!([{
            "manager": "m", "operation": "Apply", "apiVersion": "autoscaling/v1", "time": NOW,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }])
    );
    let scaled = json!({"metadata": {"managedFields": [{
        "manager": "scaler", "operation": "Update", "apiVersion": "autoscaling/v1", "time": NOW,
        "subresource": "scale", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }]}});
    adopt_scale_entries(&mut cluster.object, &scaled, "toys/v1", &replicas).unwrap();
    cluster.expect_owners(json!([
        ["scaler", "Update", {"f:count": {}}],
        ["creator", "Update", {".": {}, "f:title": {}}],
    ]));
    let entry = &cluster.object["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["apiVersion"], &entry["subresource"]),
        (&json!("toys/v1"), &json!("scale"))
    );
}

#[test]
fn a_scale_that_changes_nothing_leaves_the_entries() {
    let replicas = Path::fields(["spec", "count"]).0;
    let mut cluster = Cluster::with(&json!({"title": "x", "count": 1}));
    let before = cluster.object.clone();
    let entries = scale_entries(&cluster.object, &replicas).unwrap();
    let scale = json!({"metadata": {"managedFields": entries}});
    adopt_scale_entries(&mut cluster.object, &scale, "toys/v1", &replicas).unwrap();
    assert_eq!(cluster.object, before);
}
