#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a reference"
)]

use serde_json::{Value, json};

use super::*;
use crate::path::Path;
use crate::testing::{atomic, gadget, map_of, object, text};

mod entries;
mod history;
mod versions;

const EARLIER: &str = "2026-11-15T20:00:00Z";
const NOW: &str = "2026-11-15T20:12:00Z";

/// One object and all that is done to it.
struct Cluster {
    schema: Schema,
    object: Value,
    now: &'static str,
}

impl Cluster {
    fn new() -> Self {
        Self {
            schema: gadget(),
            object: json!({}),
            now: EARLIER,
        }
    }

    fn with(spec: &Value) -> Self {
        let mut cluster = Self::new();
        cluster.update("creator", spec);
        cluster.now = NOW;
        cluster
    }

    fn write<'a>(&'a self, manager: &'a str) -> Write<'a> {
        Write {
            schema: &self.schema,
            api_version: "toys/v1",
            kind: "Gadget",
            subresource: "",
            manager,
            reset_fields: None,
            now: self.now,
            versions: None,
        }
    }

    fn store(&mut self, mut object: Value) {
        object["metadata"]["uid"] = "1".into();
        self.object = object;
    }

    /// Replaces the spec.
    fn update(&mut self, manager: &str, spec: &Value) {
        let mut new = configuration(spec);
        if let Some(entries) = self.object.pointer("/metadata/managedFields") {
            new["metadata"]["managedFields"] = entries.clone();
        }
        if has_uid(&self.object) {
            new["metadata"]["uid"] = "1".into();
        }
        let updated = update(&self.object, new, &self.write(manager));
        self.store(updated);
    }

    fn try_apply(&mut self, manager: &str, spec: &Value, force: bool) -> Result<bool, ApplyError> {
        let applied = apply(
            &self.object,
            &configuration(spec),
            &self.write(manager),
            force,
        )?;
        self.store(applied.object);
        Ok(applied.changed)
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, spec: &Value) {
        self.try_apply(manager, spec, false).unwrap();
    }

    fn force(&mut self, manager: &str, spec: &Value) {
        self.try_apply(manager, spec, true).unwrap();
    }

    #[track_caller]
    fn refuse(&mut self, manager: &str, spec: &Value) -> Conflicts {
        match self.try_apply(manager, spec, false) {
            Err(ApplyError::Conflict(conflicts)) => conflicts,
            other => panic!("no conflict: {other:?}"),
        }
    }

    #[track_caller]
    fn expect(&self, spec: Value) {
        assert_eq!(self.object.get("spec").cloned().unwrap_or_default(), spec);
    }

    /// Checks who owns what below `spec`: manager, operation, fields.
    #[track_caller]
    fn expect_owners(&self, expected: Value) {
        let entries = self.object["metadata"]["managedFields"].as_array().cloned();
        let actual: Vec<Value> = entries
            .unwrap_or_default()
            .iter()
            .map(|entry| {
                json!([
                    entry["manager"],
                    entry["operation"],
                    entry["fieldsV1"]["f:spec"]
                ])
            })
            .collect();
        assert_eq!(Value::Array(actual), expected);
    }
}

fn configuration(spec: &Value) -> Value {
    json!({
        "apiVersion": "toys/v1", "kind": "Gadget",
        "metadata": {"name": "top", "namespace": "box"}, "spec": spec,
    })
}

#[test]
fn creating_owns_containers_and_applying_only_leaves() {
    let spec = json!({"frame": {"colour": "red"}, "labels": {"a": "1"}, "parts": [{"name": "p", "size": 1}]});
    let mut created = Cluster::new();
    created.update("c", &spec);
    created.expect_owners(json!([["c", "Update", {
        ".": {},
        "f:frame": {".": {}, "f:colour": {}},
        "f:labels": {".": {}, "f:a": {}},
        "f:parts": {".": {}, "k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:size": {}}},
    }]]));
    let mut applied = Cluster::new();
    applied.apply("a", &spec);
    applied.expect_owners(json!([["a", "Apply", {
        "f:frame": {"f:colour": {}},
        "f:labels": {"f:a": {}},
        "f:parts": {"k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:size": {}}},
    }]]));
}

#[test]
fn an_entry_has_the_members_of_kubernetes() {
    let mut cluster = Cluster::new();
    cluster.apply("a", &json!({"title": "x"}));
    assert_eq!(
        cluster.object["metadata"]["managedFields"],
        json!([{
            "manager": "a", "operation": "Apply", "apiVersion": "toys/v1", "time": EARLIER,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:title": {}}},
        }])
    );
}

#[test]
fn metadata_that_the_server_sets_is_nobodys() {
    let mut cluster = Cluster::new();
    let mut new = configuration(&json!({}));
    new["metadata"]["labels"] = json!({"a": "1"});
    new["metadata"]["generation"] = json!(1);
    new["metadata"]["creationTimestamp"] = json!(NOW);
    let created = update(&json!({}), new, &cluster.write("c"));
    cluster.store(created);
    assert_eq!(
        cluster.object["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {}})
    );
}

#[test]
fn changing_the_value_of_another_applier_is_a_conflict() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"title": "x", "count": 1}));
    let conflicts = cluster.refuse("m2", &json!({"title": "y"}));
    assert_eq!(
        conflicts.to_string(),
        "Apply failed with 1 conflict: conflict with \"m1\": .spec.title"
    );
    let cause = Cause {
        message: "conflict with \"m1\"".to_owned(),
        field: ".spec.title".to_owned(),
    };
    assert_eq!(conflicts.causes(), [cause]);
    let conflict = conflicts.iter().next().unwrap();
    assert_eq!(conflict.manager(), "m1");
    assert_eq!(conflict.api_version(), None);
    assert_eq!(conflict.subresource(), "");
    assert_eq!(conflict.path(), &Path::fields(["spec", "title"]));
}

#[test]
fn conflicts_with_several_managers_are_listed_by_manager() {
    let mut cluster = Cluster::with(&json!({"title": "x", "labels": {"a": "1"}}));
    cluster.apply("m1", &json!({"count": 1, "tags": ["t"]}));
    let conflicts = cluster.refuse(
        "m2",
        &json!({"title": "y", "count": 2, "labels": {"a": "2"}}),
    );
    assert_eq!(
        conflicts.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"creator\" using toys/v1:\n\
         - .spec.title\n- .spec.labels.a\nconflicts with \"m1\":\n- .spec.count"
    );
}

#[test]
fn force_takes_the_field_and_leaves_the_rest() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"title": "x", "count": 1}));
    cluster.force("m2", &json!({"title": "y"}));
    cluster.expect(json!({"title": "y", "count": 1}));
    cluster.expect_owners(json!([
        ["m1", "Apply", {"f:count": {}}],
        ["m2", "Apply", {"f:title": {}}],
    ]));
}

#[test]
fn equal_values_are_shared() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"title": "x"}));
    cluster.apply("m2", &json!({"title": "x"}));
    cluster.expect_owners(json!([
        ["m2", "Apply", {"f:title": {}}],
        ["m1", "Apply", {"f:title": {}}],
    ]));
    cluster.apply("m1", &json!({}));
    cluster.expect(json!({"title": "x"}));
    cluster.apply("m2", &json!({}));
    cluster.expect(json!({}));
}

#[test]
fn applying_again_changes_nothing() {
    let spec = json!({"title": "x", "labels": {"a": "1"}, "parts": [{"name": "p", "tags": ["t"]}]});
    let mut cluster = Cluster::new();
    cluster.apply("m1", &spec);
    let before = cluster.object.clone();
    cluster.now = NOW;
    assert_eq!(cluster.try_apply("m1", &spec, false), Ok(false));
    assert_eq!(cluster.object, before);
}

#[test]
fn what_is_left_out_is_removed_unless_someone_else_owns_it() {
    let mut cluster = Cluster::new();
    cluster.apply(
        "m1",
        &json!({"title": "x", "labels": {"mine": "1", "shared": "1"}, "tags": ["a", "b"]}),
    );
    cluster.apply("m2", &json!({"labels": {"shared": "1"}, "tags": ["b"]}));
    cluster.apply("m1", &json!({}));
    cluster.expect(json!({"labels": {"shared": "1"}, "tags": ["b"]}));
}

#[test]
fn list_items_merge_by_key_and_vanish_with_their_last_owner() {
    let mut cluster = Cluster::new();
    cluster.apply(
        "m1",
        &json!({"parts": [{"name": "p", "size": 1}, {"name": "q", "size": 2}]}),
    );
    cluster.apply("m2", &json!({"parts": [{"name": "q", "tags": ["t"]}]}));
    cluster.expect(
        json!({"parts": [{"name": "p", "size": 1}, {"name": "q", "size": 2, "tags": ["t"]}]}),
    );
    cluster.apply("m1", &json!({"parts": []}));
    cluster.expect(json!({"parts": [{"name": "q", "tags": ["t"]}]}));
    cluster.apply("m2", &json!({"parts": [{"name": "r"}]}));
    cluster.expect(json!({"parts": [{"name": "r"}]}));
}

#[test]
fn composite_keys_take_defaults_into_account() {
    let mut cluster = Cluster::new();
    cluster.apply(
        "m1",
        &json!({"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}),
    );
    cluster.apply(
        "m2",
        &json!({"ports": [{"port": 53, "protocol": "TCP", "note": "x"}]}),
    );
    cluster.expect(json!({"ports": [
        {"port": 53, "protocol": "TCP", "note": "x"}, {"port": 53, "protocol": "UDP"},
    ]}));
}

#[test]
fn a_key_that_a_built_in_kind_always_writes_is_zero_when_left_out() {
    let mut cluster = Cluster::new();
    let item = Schema {
        type_name: Some("example.Item".into()),
        required: vec!["name".to_owned()],
        ..object([("name", text()), ("size", crate::testing::number())])
    };
    cluster.schema = object([(
        "spec",
        object([("items", crate::testing::keyed(&["name"], item))]),
    )]);
    cluster.apply("m", &json!({"items": [{"size": 1}]}));
    cluster.expect_owners(json!([
        ["m", "Apply", {"f:items": {"k:{\"name\":\"\"}": {".": {}, "f:size": {}}}}],
    ]));
}

#[test]
fn shared_items_follow_the_order_of_the_applied_list() {
    let mut cluster = Cluster::with(&json!({"tags": ["a", "b", "c", "d"]}));
    cluster.apply("m", &json!({"tags": ["d", "b", "e"]}));
    cluster.expect(json!({"tags": ["a", "c", "d", "b", "e"]}));
}

#[test]
fn atomic_values_are_owned_as_a_whole() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"unit": {"x": "1"}, "steps": ["a"]}));
    let conflicts = cluster.refuse("m2", &json!({"unit": {"y": "1"}, "steps": ["a", "b"]}));
    let fields: Vec<_> = conflicts
        .causes()
        .into_iter()
        .map(|cause| cause.field)
        .collect();
    assert_eq!(fields, [".spec.steps", ".spec.unit"]);
    cluster.force("m2", &json!({"unit": {"y": "1"}, "steps": ["b"]}));
    cluster.expect(json!({"unit": {"y": "1"}, "steps": ["b"]}));
}

#[test]
fn unknown_fields_merge_as_deduced() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"extra": {"a": {"b": 1}, "l": [1]}}));
    cluster.apply("m2", &json!({"extra": {"a": {"c": 2}}}));
    cluster.expect(json!({"extra": {"a": {"b": 1, "c": 2}, "l": [1]}}));
    assert_eq!(
        cluster.refuse("m2", &json!({"extra": {"l": [2]}})).causes()[0].field,
        ".spec.extra.l"
    );
    cluster.apply("m1", &json!({}));
    cluster.expect(json!({"extra": {"a": {"c": 2}}}));
}

#[test]
fn without_a_schema_objects_are_granular_and_lists_are_not() {
    let mut cluster = Cluster::new();
    cluster.schema = Schema::default();
    cluster.apply("m1", &json!({"a": {"b": 1}, "l": [{"name": "x"}]}));
    cluster.apply("m2", &json!({"a": {"c": 1}}));
    cluster.expect(json!({"a": {"b": 1, "c": 1}, "l": [{"name": "x"}]}));
    assert_eq!(
        cluster.refuse("m2", &json!({"l": []})).causes()[0].field,
        ".spec.l"
    );
}

#[test]
fn an_update_takes_what_it_changes() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"title": "x", "count": 1}));
    cluster.update("editor", &json!({"title": "y", "count": 1}));
    cluster.expect_owners(json!([
        ["m1", "Apply", {"f:count": {}}],
        ["editor", "Update", {"f:title": {}}],
    ]));
    let conflicts = cluster.refuse("m1", &json!({"title": "x", "count": 1}));
    assert_eq!(
        conflicts.to_string(),
        "Apply failed with 1 conflict: conflict with \"editor\" using toys/v1: .spec.title"
    );
}

#[test]
fn an_update_that_removes_takes_from_everyone_and_gains_nothing() {
    let mut cluster = Cluster::with(&json!({"title": "x", "count": 1}));
    cluster.update("editor", &json!({"count": 1}));
    cluster.expect_owners(json!([["creator", "Update", {".": {}, "f:count": {}}]]));
    assert_eq!(
        cluster.object["metadata"]["managedFields"][0]["time"],
        EARLIER
    );
}

#[test]
fn an_applier_that_owns_nothing_any_more_loses_its_entry() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"title": "x"}));
    cluster.update("editor", &json!({"title": "y"}));
    cluster.expect_owners(json!([["editor", "Update", {"f:title": {}}]]));
}

#[test]
fn the_time_of_an_entry_changes_with_what_it_set() {
    let time = |cluster: &Cluster| cluster.object["metadata"]["managedFields"][0]["time"].clone();
    let mut cluster = Cluster::with(&json!({"title": "x"}));
    cluster.update("creator", &json!({"title": "x"}));
    assert_eq!(time(&cluster), EARLIER);
    cluster.update("creator", &json!({"title": "y"}));
    assert_eq!(time(&cluster), NOW);
}

#[test]
fn a_container_that_an_apply_empties_keeps_its_other_owner() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"labels": {}, "tags": []}));
    cluster.apply(
        "m2",
        &json!({"labels": {"a": "1"}, "tags": ["a"], "title": "x"}),
    );
    cluster.apply("m2", &json!({"title": "x", "labels": {}}));
    cluster.expect(json!({"labels": {}, "title": "x"}));
    cluster.expect_owners(json!([
        ["m1", "Apply", {"f:labels": {}}],
        ["m2", "Apply", {"f:labels": {}, "f:title": {}}],
    ]));
    let before = cluster.object.clone();
    cluster.apply("m2", &json!({"title": "x", "labels": {}}));
    assert_eq!(cluster.object, before);
}

#[test]
fn a_container_that_an_apply_empties_goes_when_nobody_owns_it() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"title": "x", "parts": [{"name": "p"}]}));
    // Owns a field of the item, but not the item.
    cluster.update(
        "editor",
        &json!({"title": "x", "parts": [{"name": "p", "size": 1}]}),
    );
    cluster.apply("m1", &json!({"title": "x"}));
    cluster.expect(json!({"title": "x"}));
}

#[test]
fn an_object_that_became_atomic_has_owners_of_the_whole() {
    let mut cluster = Cluster::new();
    cluster.apply("m1", &json!({"labels": {"a": "1"}}));
    cluster.schema = object([("spec", object([("labels", atomic(map_of(text())))]))]);
    let conflicts = cluster.refuse("m2", &json!({"labels": {"b": "1"}}));
    assert_eq!(conflicts.causes()[0].field, ".spec.labels");
}

#[test]
fn fields_that_an_endpoint_ignores_are_not_owned() {
    let cluster = Cluster::new();
    let status = FieldSet::of_fields(&[&["status"]]);
    let write = Write {
        reset_fields: Some(&status),
        ..cluster.write("c")
    };
    let mut new = configuration(&json!({"title": "x"}));
    new["status"] = json!({"phase": "Ready"});
    let created = update(&json!({}), new.clone(), &write);
    assert_eq!(
        created["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {".": {}, "f:title": {}}})
    );
    let applied = apply(&json!({}), &new, &write, false).unwrap().object;
    assert_eq!(
        applied["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:title": {}}})
    );
}

#[test]
fn subresources_have_their_own_entries() {
    let mut cluster = Cluster::with(&json!({"title": "x"}));
    let mut new = cluster.object.clone();
    new["status"] = json!({"phase": "Ready"});
    // A subresource cannot set entries.
    new["metadata"]["managedFields"] = json!([]);
    let write = Write {
        subresource: "status",
        ..cluster.write("creator")
    };
    let updated = update(&cluster.object, new, &write);
    cluster.store(updated);
    let entries = cluster.object["metadata"]["managedFields"]
        .as_array()
        .unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    let mut configuration = configuration(&json!({}));
    configuration["status"] = json!({"phase": "Lost"});
    let refused = apply(&cluster.object, &configuration, &cluster.write("m"), false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"creator\" with subresource \"status\" \
         using toys/v1: .status.phase"
    );
}

#[test]
fn a_configuration_has_to_fit() {
    let cluster = Cluster::new();
    let error = |configuration: Value| {
        apply(&json!({}), &configuration, &cluster.write("m"), false).unwrap_err()
    };
    let typed = |spec: Value| error(configuration(&spec)).to_string();
    let prefix = "failed to create typed patch object (box/top; toys/v1, Kind=Gadget): ";
    assert_eq!(
        typed(json!({"colour": 1})),
        format!("{prefix}.spec.colour: field not declared in schema")
    );
    assert_eq!(
        typed(json!({"count": "1"})),
        format!("{prefix}.spec.count: expected numeric (int or float), got string")
    );
    assert_eq!(
        typed(json!({"title": 1, "on": "yes"})),
        format!(
            "{prefix}errors:\n  .spec.on: expected boolean, got &{{yes}}\n  .spec.title: expected string, \
             got &value.valueUnstructured{{Value:1}}"
        )
    );
    assert_eq!(
        typed(json!({"parts": {}})),
        format!("{prefix}.spec.parts: expected list, got &{{map[]}}")
    );
    assert_eq!(
        typed(json!({"frame": ["a", 1]})),
        format!("{prefix}.spec.frame: expected map, got &{{[a 1]}}")
    );
    assert_eq!(
        typed(json!({"parts": [{"name": "a"}, {"name": "a"}]})),
        format!("{prefix}.spec.parts: duplicate entries for key [name=\"a\"]")
    );
    assert_eq!(
        typed(json!({"parts": [{"size": 1}]})),
        format!(
            "{prefix}.spec.parts: element 0: associative list with keys has an element that omits all key \
             fields [\"name\"] (and doesn't have default values for any key fields)"
        )
    );
    assert_eq!(
        typed(json!({"tags": [{}]})),
        format!(
            "{prefix}.spec.tags: element 0: associative list without keys has an element that's a map type"
        )
    );
    let mut other = configuration(&json!({}));
    other["kind"] = "Widget".into();
    assert_eq!(
        error(other),
        ApplyError::BadRequest("invalid object type: toys/v1, Kind=Widget".to_owned())
    );
    let mut forged = configuration(&json!({}));
    forged["metadata"]["managedFields"] = json!([]);
    assert_eq!(
        error(forged),
        ApplyError::BadRequest("metadata.managedFields must be nil".to_owned())
    );
}

#[test]
fn what_was_applied_can_be_read_back() {
    let spec = json!({"title": "x", "parts": [{"name": "p", "size": 1}], "tags": ["a"], "unit": {"x": "1"}});
    let mut cluster = Cluster::with(&json!({"count": 1, "tags": ["b"], "parts": [{"name": "q"}]}));
    cluster.apply("m", &spec);
    assert_eq!(
        extract(&cluster.object, &cluster.write("m")),
        Some(configuration(&spec))
    );
    assert_eq!(extract(&cluster.object, &cluster.write("nobody")), None);
}

#[test]
fn creation_of_a_built_in_kind_starts_from_its_structure() {
    let template = Schema {
        default: Some(json!({})),
        required: vec!["containers".to_owned()],
        ..object([
            ("containers", crate::testing::list(text())),
            ("note", text()),
        ])
    };
    let spec = Schema {
        default: Some(json!({})),
        required: vec!["selector".to_owned()],
        ..object([
            ("selector", map_of(text())),
            ("template", template),
            ("count", text()),
        ])
    };
    let blank = blank(&object([("spec", spec), ("data", map_of(text()))]));
    assert_eq!(
        blank,
        json!({"metadata": {}, "spec": {"selector": null, "template": {"containers": null}}})
    );
}

#[test]
fn deep_objects_cost_their_owners_not_the_server() {
    let nested = |depth: usize| {
        let mut value = json!("x");
        for _ in 0..depth {
            value = json!({"a": value});
        }
        json!({"extra": value})
    };
    let mut cluster = Cluster::new();
    cluster.apply("m", &nested(crate::MAX_DEPTH - 10));
    cluster.update("editor", &nested(crate::MAX_DEPTH - 11));
    let too_deep = nested(crate::MAX_DEPTH + 10);
    let refused = cluster.try_apply("m", &too_deep, true).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("nested deeper than 256 levels"),
        "{refused}"
    );
    cluster.update("editor", &too_deep);
    assert_eq!(cluster.object["metadata"].get("managedFields"), None);
}
