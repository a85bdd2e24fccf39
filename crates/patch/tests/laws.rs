//! What holds for all documents, patches and owners.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail")]

use std::sync::Arc;

use bellwether_patch::managed::{self, ApplyError, Write};
use bellwether_patch::{FieldSet, json_patch, merge, strategic, three_way};
use bellwether_schema::{ListType, PatchStrategy, Schema, Type};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NOW: &str = "2026-11-15T20:12:00Z";
const LATER: &str = "2026-11-15T20:13:00Z";

/// Any JSON, with few names so that values meet.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-d]",
        Just("name".to_owned()),
        Just("spec".to_owned()),
        Just("items".to_owned()),
        Just("metadata".to_owned()),
        Just("managedFields".to_owned()),
        Just("$patch".to_owned()),
        Just("$retainKeys".to_owned()),
        Just("$setElementOrder/items".to_owned()),
        Just("$deleteFromPrimitiveList/marks".to_owned()),
        Just("f:spec".to_owned()),
        Just("a/b~c".to_owned()),
    ]
}

/// Documents without null, which a merge patch cannot write.
fn document() -> impl Strategy<Value = Value> {
    any_value().prop_map(|value| match without_null(value) {
        object @ Value::Object(_) => object,
        Value::Null => json!({}),
        other => json!({"a": other}),
    })
}

fn without_null(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name, without_null(member)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items
            .into_iter()
            .filter(|item| !item.is_null())
            .map(without_null)
            .collect(),
        other => other,
    }
}

fn without_empty_lists(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, member)| !member.as_array().is_some_and(Vec::is_empty))
            .map(|(name, member)| (name, without_empty_lists(member)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(without_empty_lists).collect(),
        other => other,
    }
}

fn node(kind: Type) -> Schema {
    Schema {
        kind: Some(kind),
        ..Schema::default()
    }
}

fn object(properties: Vec<(&str, Schema)>) -> Schema {
    Schema {
        properties: properties
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), Arc::new(schema)))
            .collect(),
        ..node(Type::Object)
    }
}

fn list(items: Schema, list_type: ListType, merge_key: Option<&str>) -> Schema {
    Schema {
        items: Some(Arc::new(items)),
        patch: (list_type != ListType::Atomic).then(|| PatchStrategy {
            merge: true,
            retain_keys: false,
            merge_key: merge_key.map(str::to_owned),
        }),
        list_type,
        ..node(Type::Array)
    }
}

fn map(values: Schema) -> Schema {
    Schema {
        additional_properties: Some(Arc::new(values)),
        ..node(Type::Object)
    }
}

fn schema() -> Schema {
    let text = || node(Type::String);
    let item = object(vec![
        ("name", text()),
        ("a", text()),
        ("marks", list(text(), ListType::Set, None)),
    ]);
    let spec = object(vec![
        ("title", text()),
        ("map", map(text())),
        (
            "items",
            list(item, ListType::Map(vec!["name".to_owned()]), Some("name")),
        ),
        ("marks", list(text(), ListType::Set, None)),
        ("steps", list(text(), ListType::Atomic, None)),
        ("frame", object(vec![("x", text()), ("y", text())])),
    ]);
    object(vec![("spec", spec)])
}

fn optional<T: std::fmt::Debug + Clone>(
    strategy: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.6, strategy)
}

fn subset(names: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(names, 0..=names.len())
        .prop_shuffle()
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

/// Specs that fit [`schema`].
fn spec() -> impl Strategy<Value = Value> {
    let text = || "[xy]";
    let texts = prop::collection::btree_map("[k-m]", text(), 0..3);
    let item = move || (optional(text()), optional(subset(&["p", "q"])));
    let items = subset(&["n1", "n2", "n3"]).prop_flat_map(move |names| {
        prop::collection::vec(item(), names.len()).prop_map(move |items| {
            let items = names.iter().zip(items).map(|(name, (a, marks))| {
                let mut item = json!({"name": name});
                if let Some(a) = a {
                    item["a"] = a.into();
                }
                if let Some(marks) = marks {
                    item["marks"] = marks.into();
                }
                item
            });
            Value::Array(items.collect())
        })
    });
    let frame = (optional(text()), optional(text()));
    (
        optional(text()),
        optional(texts),
        optional(items),
        optional(subset(&["a", "b", "c"])),
        optional(prop::collection::vec(text(), 0..3)),
        optional(frame),
    )
        .prop_map(|(title, texts, items, marks, steps, frame)| {
            let mut spec = Map::new();
            let mut put = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    spec.insert(name.to_owned(), value);
                }
            };
            put("title", title.map(Value::from));
            put("map", texts.map(|texts| json!(texts)));
            put("items", items);
            put("marks", marks.map(Value::from));
            put("steps", steps.map(Value::from));
            put(
                "frame",
                frame.map(|(x, y)| without_null(json!({"x": x, "y": y}))),
            );
            Value::Object(spec)
        })
}

fn configuration(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "it"}, "spec": spec})
}

fn write<'a>(schema: &'a Schema, manager: &'a str, now: &'a str) -> Write<'a> {
    Write {
        schema,
        api_version: "v1",
        kind: "Thing",
        subresource: "",
        manager,
        reset_fields: None,
        now,
        versions: None,
    }
}

/// A write by one of a few managers.
#[derive(Debug, Clone)]
enum Step {
    Apply(&'static str, Value),
    Replace(&'static str, Value),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let manager = || prop::sample::select(vec!["m1", "m2", "m3"]);
    let step = prop_oneof![
        (manager(), spec()).prop_map(|(manager, spec)| Step::Apply(manager, spec)),
        (manager(), spec()).prop_map(|(manager, spec)| Step::Replace(manager, spec)),
    ];
    prop::collection::vec(step, 0..5)
}

/// The object after some writes; applies are forced.
fn after(steps: &[Step], schema: &Schema) -> Value {
    let mut live = json!({});
    for step in steps {
        live = match step {
            Step::Apply(manager, spec) => {
                let write = write(schema, manager, NOW);
                managed::apply(&live, &configuration(spec), &write, true)
                    .unwrap()
                    .object
            }
            Step::Replace(manager, spec) => {
                let mut new = configuration(spec);
                new["metadata"]["uid"] = live["metadata"]["uid"].clone();
                managed::update(&live, new, &write(schema, manager, NOW))
            }
        };
        live["metadata"]["uid"] = "1".into();
    }
    live
}

/// Whether every leaf and every item of `part` is in `whole`, where lists of the schema with an
/// identity may have more items.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (_, part) if part_is_nothing(part) => true,
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(name, part)| {
            part_is_nothing(part) || whole.get(name).is_some_and(|whole| contains(whole, part))
        }),
        (Value::Array(whole), Value::Array(part)) => part.iter().all(|part| {
            whole.iter().any(|whole| match part.get("name") {
                Some(name) => whole.get("name") == Some(name) && contains(whole, part),
                None => whole == part,
            })
        }),
        (whole, part) => whole == part,
    }
}

/// Empty containers, and those that hold nothing else, may be dropped where nobody owns them.
fn part_is_nothing(part: &Value) -> bool {
    match part {
        Value::Object(members) => members.values().all(part_is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn field_set() -> impl Strategy<Value = FieldSet> {
    let element = prop_oneof![
        "f:[a-c]",
        "v:\"[a-c]\"",
        "v:[1-3]",
        "k:\\{\"name\":\"[ab]\"\\}",
        "i:[0-2]",
        Just(".".to_owned()),
    ];
    let leaf = Just(json!({}));
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop::collection::btree_map(element.clone(), inner, 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    })
    .prop_map(|fields| FieldSet::from_json(&fields).unwrap())
}

proptest! {
    #[test]
    fn merging_twice_is_merging_once(document in document(), patch in any_value()) {
        let mut once = document;
        merge::apply(&mut once, patch.clone()).unwrap();
        let mut twice = once.clone();
        merge::apply(&mut twice, patch).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_merge_difference_leads_to_the_other_document(original in document(), modified in document()) {
        let patch = merge::diff(&original, &modified).unwrap();
        let mut result = original;
        merge::apply(&mut result, patch).unwrap();
        prop_assert_eq!(result, modified);
    }

    #[test]
    fn a_json_difference_leads_to_the_other_document(original in document(), modified in document()) {
        let patch = json_patch::diff(&original, &modified);
        let patch = json_patch::JsonPatch::parse(&patch).unwrap();
        prop_assert_eq!(patch.apply(original), Ok(modified));
    }

    #[test]
    fn a_strategic_difference_leads_to_the_other_document(original in spec(), modified in spec()) {
        let (original, modified) = (json!({"spec": original}), json!({"spec": modified}));
        let patch = strategic::diff(&original, &modified, &schema()).unwrap();
        prop_assert_eq!(strategic::apply(original, patch, &schema()).unwrap(), modified);
    }

    #[test]
    fn a_strategic_patch_applied_twice_is_applied_once(document in spec(), patch in spec()) {
        let (document, patch) = (json!({"spec": document}), json!({"spec": patch}));
        let once = strategic::apply(document, patch.clone(), &schema()).unwrap();
        let twice = strategic::apply(once.clone(), patch, &schema()).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn three_way_merge_has_what_is_applied_and_keeps_what_is_foreign(
        original in spec(), modified in spec(), current in spec(),
    ) {
        let wrap = |spec: &Value| json!({"spec": spec});
        let (original, modified, mut current) = (wrap(&original), wrap(&modified), wrap(&current));
        current["foreign"] = json!({"kept": true});
        let patch = three_way::strategic_patch(&original, &modified, &current, &schema()).unwrap();
        let result = strategic::apply(current.clone(), patch, &schema()).unwrap();
        prop_assert!(contains(&result, &modified), "{result} lacks some of {modified}");
        prop_assert_eq!(&result["foreign"], &current["foreign"]);

        let patch = three_way::merge_patch(&original, &modified, &current).unwrap();
        let mut result = current.clone();
        merge::apply(&mut result, patch).unwrap();
        prop_assert!(contains(&result, &modified), "{result} lacks some of {modified}");
        prop_assert_eq!(&result["foreign"], &current["foreign"]);
        let again = three_way::merge_patch(&modified, &modified, &result).unwrap();
        prop_assert_eq!(again, json!({}));
    }

    #[test]
    fn applying_again_is_without_effect(steps in steps(), spec in spec()) {
        // Nobody owns an empty list whose items have owners: it goes with its last item and comes
        // back with the next apply, in Kubernetes too.
        let spec = without_empty_lists(spec);
        let steps: Vec<Step> = steps
            .into_iter()
            .map(|step| match step {
                Step::Apply(manager, spec) => Step::Apply(manager, without_empty_lists(spec)),
                Step::Replace(manager, spec) => Step::Replace(manager, without_empty_lists(spec)),
            })
            .collect();
        let schema = schema();
        let live = after(&steps, &schema);
        let configuration = configuration(&spec);
        let first = managed::apply(&live, &configuration, &write(&schema, "m1", NOW), true).unwrap();
        let second =
            managed::apply(&first.object, &configuration, &write(&schema, "m1", LATER), false).unwrap();
        prop_assert!(!second.changed);
        prop_assert_eq!(second.object, first.object);
    }

    #[test]
    fn forcing_sets_the_values_and_makes_an_owner(steps in steps(), spec in spec()) {
        let schema = schema();
        let live = after(&steps, &schema);
        let configuration = configuration(&spec);
        let applied = managed::apply(&live, &configuration, &write(&schema, "m1", NOW), true).unwrap().object;
        prop_assert!(contains(&applied["spec"], &spec), "{} lacks some of {spec}", applied["spec"]);
        // Anyone who wants another value of something that was set now has to force.
        let Some(Value::String(title)) = spec.get("title") else { return Ok(()) };
        let other = json!({"title": format!("{title}!")});
        let refused = managed::apply(&applied, &self::configuration(&other), &write(&schema, "m9", NOW), false);
        prop_assert!(matches!(refused, Err(ApplyError::Conflict(_))));
    }

    #[test]
    fn leaving_everything_out_removes_what_only_this_manager_owned(spec in spec(), foreign in spec()) {
        let schema = schema();
        let foreign = after(&[Step::Replace("other", foreign)], &schema);
        let write = write(&schema, "m1", NOW);
        let live = managed::apply(&foreign, &configuration(&spec), &write, true).unwrap().object;
        let mut nothing = configuration(&Value::Null);
        nothing.as_object_mut().unwrap().remove("spec");
        let left = managed::apply(&live, &nothing, &write, false).unwrap().object;
        let entries = left["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        prop_assert!(entries.iter().all(|entry| entry["manager"] == "other"));
        let title = &left["spec"]["title"];
        let owned = entries.iter().any(|entry| !entry["fieldsV1"]["f:spec"]["f:title"].is_null());
        prop_assert_eq!(!title.is_null(), owned);
    }

    #[test]
    fn writing_back_what_is_stored_is_without_effect(steps in steps()) {
        let schema = schema();
        let live = after(&steps, &schema);
        prop_assert_eq!(managed::update(&live, live.clone(), &write(&schema, "m1", LATER)), live);
    }

    #[test]
    fn every_field_has_at_most_the_owners_that_agree_on_it(steps in steps()) {
        // An updater never shares a field that it changed: after each write the sets of the writer
        // and of updaters before it that lost the field are disjoint on what was modified.
        let schema = schema();
        let live = after(&steps, &schema);
        let Some(Step::Replace(manager, _)) = steps.last() else { return Ok(()) };
        let entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let sets = |own: bool| {
            entries
                .iter()
                .filter(|entry| entry["operation"] == "Update" && (entry["manager"] == *manager) == own)
                .map(|entry| FieldSet::from_json(&entry["fieldsV1"]).unwrap())
                .collect::<Vec<_>>()
        };
        for own in sets(true) {
            for other in sets(false) {
                prop_assert!(own.intersection(&other).is_empty());
            }
        }
    }

    #[test]
    fn field_sets_survive_their_wire_form(set in field_set()) {
        prop_assert_eq!(&FieldSet::from_json(&set.to_json()).unwrap(), &set);
        let text: Value = serde_json::from_str(&set.to_json_text()).unwrap();
        prop_assert_eq!(text, set.to_json());
    }

    #[test]
    fn field_sets_obey_the_laws_of_sets(a in field_set(), b in field_set(), c in field_set()) {
        let union = |a: &FieldSet, b: &FieldSet| a.clone().union(b.clone());
        prop_assert_eq!(union(&a, &b), union(&b, &a));
        prop_assert_eq!(union(&union(&a, &b), &c), union(&a, &union(&b, &c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(union(&a.difference(&b), &a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.difference(&a).len(), 0);
        prop_assert_eq!(a.is_subset(&b), a.difference(&b).is_empty());
        prop_assert!(a.is_subset(&union(&a, &b)));
        prop_assert!(a.recursive_difference(&b).is_subset(&a.difference(&b)));
        prop_assert!(a.leaves().is_subset(&a));
        prop_assert_eq!(a.leaves().leaves(), a.leaves());
        prop_assert_eq!(a.paths().len(), a.len());
        prop_assert!(a.paths().iter().all(|path| a.contains(&path.0)));
    }

    #[test]
    fn nothing_panics_on_any_document(live in any_value(), new in any_value(), third in any_value()) {
        let typed = schema();
        let unknown = Schema::default();
        for schema in [&typed, &unknown] {
            let write = write(schema, "m", NOW);
            let mut updated = managed::update(&live, new.clone(), &write);
            let _ = managed::apply(&live, &new, &write, true);
            let mut applied = new.clone();
            if let Value::Object(members) = &mut applied {
                members.insert("apiVersion".to_owned(), "v1".into());
                members.insert("kind".to_owned(), "Thing".into());
            }
            let _ = managed::apply(&updated, &applied, &write, false);
            let _ = managed::extract(&updated, &write);
            let _ = managed::keep_timestamps_of_unchanged(&live, &mut updated);
            let _ = managed::validate_entries(&new);
            let _ = strategic::apply(live.clone(), new.clone(), schema);
            let _ = strategic::diff(&live, &new, schema);
            let _ = three_way::strategic_patch(&live, &new, &third, schema);
        }
        let _ = three_way::merge_patch(&live, &new, &third);
        let _ = json_patch::JsonPatch::parse(&new).map(|patch| patch.apply(live.clone()));
        let _ = FieldSet::from_json(&new);
        let mut merged = live;
        let _ = merge::apply(&mut merged, new);
    }

    #[test]
    fn no_operation_of_a_json_patch_panics(
        document in document(),
        operations in prop::collection::vec(
            (
                prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]),
                "(/([a-d]|items|-|0|1|-1|9|~0|~1)){0,3}",
                "(/([a-d]|items|-|0|1|-1|9|~0|~1)){0,3}",
                any_value(),
            ),
            0..5,
        ),
    ) {
        let patch: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        let _ = json_patch::JsonPatch::parse(&Value::Array(patch)).unwrap().apply(document);
    }
}
