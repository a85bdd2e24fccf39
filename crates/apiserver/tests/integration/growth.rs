//! What a request costs grows with its size, not with the square of it: for every list of every
//! built-in kind, and for every way to patch one.
//!
//! Costs are compared as processor time of this thread, at two sizes. What grows with the square takes
//! 64 times as long for eight times as much, and what grows linearly eight times; the bound is far from
//! both. A busy machine makes single runs slower by any factor, but never faster: the two sizes take turns,
//! the fastest run of each counts, and a cost counts as too high only after many turns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "items are written in place")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bellwether_kinds::{Resource, default, resources, row, validate};
use bellwether_patch::json_patch::JsonPatch;
use bellwether_patch::managed::{self, Write};
use bellwether_patch::{merge, strategic};
use bellwether_schema::{ListType, Schema, Type};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

const FEW: usize = 1_200;
const MANY: usize = 8 * FEW;
/// How many times as long the larger size may take.
const FACTOR: u32 = 24;
/// How many turns are taken before a cost counts as too high.
const TURNS: usize = 24;
/// What is faster than this is not measured exactly.
const SHORTEST: Duration = Duration::from_millis(3);

/// The processor time that this thread has used.
fn used() -> Duration {
    // The kernel brings the figure up to date when a thread gives way.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = text.split(' ').next().unwrap().parse().unwrap();
    Duration::from_nanos(nanoseconds)
}

fn cost(work: impl FnOnce()) -> Duration {
    let before = used();
    work();
    used().saturating_sub(before)
}

/// Fails if the cost of `work`, given how much there is, grows faster than it should.
fn grows_linearly<T>(what: &str, make: impl Fn(usize) -> T, work: impl Fn(&T)) {
    let (few, many) = (make(FEW), make(MANY));
    let (mut of_few, mut of_many) = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS {
        // Twice, because the first run of all finds nothing in the caches of the processor.
        for _ in 0..2 {
            of_few = of_few.min(cost(|| work(&few)));
        }
        of_many = of_many.min(cost(|| work(&many)));
        if of_many < of_few.max(SHORTEST) * FACTOR {
            return;
        }
    }
    panic!(
        "{what}: {FEW} items take {of_few:?} at best, {MANY} take {of_many:?}, in {TURNS} turns"
    );
}

/// What is done, and the patch that does it to so many items.
type Case = (&'static str, fn(usize) -> Value);

/// A list of a kind: the names that lead to it, where `*` is an item of a list.
struct Place {
    path: Vec<String>,
    schema: Arc<Schema>,
}

/// Every list of a kind, each type of object once.
fn places(resource: &Resource, seen: &mut HashSet<(String, String)>) -> Vec<Place> {
    let mut found = Vec::new();
    let schema = resource.schema();
    collect(&schema, &mut Vec::new(), seen, &mut found, 0);
    found
}

fn collect(
    schema: &Schema,
    path: &mut Vec<String>,
    seen: &mut HashSet<(String, String)>,
    found: &mut Vec<Place>,
    depth: usize,
) {
    if depth > 12 {
        return;
    }
    for (name, property) in &schema.properties {
        let owner = schema.type_name.as_deref().unwrap_or_default();
        if !seen.insert((owner.to_owned(), name.clone())) {
            continue;
        }
        path.push(name.clone());
        if property.kind == Some(Type::Array) {
            found.push(Place {
                path: path.clone(),
                schema: Arc::clone(property),
            });
            if let Some(items) = &property.items {
                path.push("*".to_owned());
                collect(items, path, seen, found, depth + 1);
                path.pop();
            }
        } else {
            collect(property, path, seen, found, depth + 1);
        }
        path.pop();
    }
}

/// An item that differs from all others in what may tell items apart, and has what it must have.
fn item(schema: &Schema, number: usize) -> Value {
    let Some(items) = &schema.items else {
        return Value::Null;
    };
    let keys: &[String] = match &schema.list_type {
        ListType::Map(keys) => keys,
        _ => &[],
    };
    let merge_key = schema
        .patch
        .as_ref()
        .and_then(|patch| patch.merge_key.as_ref());
    scalar(items, number).unwrap_or_else(|| {
        let wanted = |name: &&String| {
            keys.contains(name)
                || merge_key == Some(*name)
                || items.required.contains(name)
                || matches!(
                    name.as_str(),
                    "name" | "type" | "ip" | "uid" | "key" | "path"
                )
        };
        let names = items.properties.keys().filter(wanted);
        let fields = names.filter_map(|name| {
            let value = scalar(&items.properties[name], number)?;
            Some((name.clone(), value))
        });
        fields.collect::<Map<_, _>>().into()
    })
}

fn scalar(schema: &Schema, number: usize) -> Option<Value> {
    match schema.kind {
        Some(Type::String) if schema.format.is_none() => Some(format!("n{number}").into()),
        Some(Type::Integer) => Some((number + 1).into()),
        _ => None,
    }
}

/// An object of the kind whose list at a place has so many items.
fn object(resource: &Resource, place: &Place, count: usize) -> Value {
    let list: Vec<Value> = (0..count)
        .map(|number| item(&place.schema, number))
        .collect();
    let steps = place.path.iter().rev();
    let mut value = steps.fold(Value::from(list), |inner, step| match step.as_str() {
        "*" => json!([inner]),
        name => json!({ name: inner }),
    });
    value["apiVersion"] = resource.api_version().into();
    value["kind"] = resource.kind.into();
    let metadata = &mut value["metadata"];
    metadata["name"] = "x".into();
    metadata["uid"] = "u".into();
    value
}

/// Sequences of steps are applied to a list at its own path.
fn checks(resource: &Resource, place: &Place) {
    let what = format!("{} {}", resource.kind, place.path.join("."));
    let now = Timestamp::UNIX_EPOCH;
    let make = |count| {
        let mut object = object(resource, place, count);
        default(resource, &mut object);
        object
    };
    grows_linearly(&format!("{what}: default"), make, |object| {
        default(resource, &mut object.clone());
    });
    grows_linearly(&format!("{what}: create"), make, |object| {
        let errors = validate(resource, object, None);
        assert!(errors.len() <= 101, "{what}: {} errors", errors.len());
    });
    grows_linearly(&format!("{what}: update"), make, |object| {
        validate(resource, object, Some(object));
    });
    grows_linearly(&format!("{what}: row"), make, |object| {
        row(resource, object, now);
    });
    let schema = resource.schema();
    grows_linearly(&format!("{what}: strategic merge"), make, |object| {
        let _ = strategic::apply(object.clone(), object.clone(), &schema);
    });
}

#[test]
fn every_list_of_every_kind_costs_what_it_holds() {
    let mut seen = HashSet::new();
    let mut count = 0;
    for resource in resources() {
        for place in places(resource, &mut seen) {
            count += 1;
            checks(resource, &place);
        }
    }
    assert!(count > 200, "only {count} lists were found");
}

fn pod() -> &'static Resource {
    bellwether_kinds::find("", "v1", "pods").unwrap()
}

fn named(count: usize, more: Value) -> Vec<Value> {
    let make = |number| {
        let mut item = more.clone();
        item["name"] = format!("n{number}").into();
        item
    };
    (0..count).map(make).collect()
}

#[test]
fn lists_that_refer_to_each_other_cost_what_they_hold() {
    let make = |count| {
        let mut container = json!({"name": "c", "image": "i"});
        container["volumeMounts"] = named(count, json!({"mountPath": "/m"})).into();
        container["volumeDevices"] = named(count, json!({"devicePath": "/d"})).into();
        container["resources"]["claims"] = named(count, json!({})).into();
        let spec = json!({
            "containers": [container],
            "volumes": named(count, json!({"emptyDir": {}})),
            "resourceClaims": named(count, json!({})),
            "ephemeralContainers": named(count, json!({"image": "i", "targetContainerName": "c"})),
            "initContainers": named(count, json!({"image": "i"})),
        });
        let mut pod = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": spec});
        default(self::pod(), &mut pod);
        pod
    };
    grows_linearly("a pod full of references", make, |object| {
        validate(pod(), object, None);
    });
}

/// A pod with so many containers, as it is stored.
fn stored(count: usize, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "x", "namespace": "n", "uid": "u"},
        "spec": {"containers": named(count, json!({"image": image}))},
    })
}

fn write(schema: &Schema) -> Write<'_> {
    Write {
        schema,
        api_version: "v1",
        kind: "Pod",
        subresource: "",
        manager: "m",
        reset_fields: None,
        now: "2026-01-01T00:00:00Z",
        versions: None,
    }
}

#[test]
fn strategic_merge_patches_cost_what_they_change() {
    let schema = pod().schema();
    let patches: [Case; 4] = [
        (
            "change",
            |count| json!({"spec": {"containers": named(count, json!({"image": "j"}))}}),
        ),
        (
            "delete",
            |count| json!({"spec": {"containers": named(count, json!({"$patch": "delete"}))}}),
        ),
        ("order", |count| {
            let order = named(count, json!({}));
            let order: Vec<Value> = order.into_iter().rev().collect();
            json!({"spec": {"$setElementOrder/containers": order}})
        }),
        ("delete primitives", |count| {
            let names: Vec<String> = (0..count).map(|number| format!("f{number}")).collect();
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": names}})
        }),
    ];
    for (what, patch) in patches {
        let make = |count| {
            let mut live = stored(count, "i");
            let names = (0..count).map(|number| Value::from(format!("f{number}")));
            live["metadata"]["finalizers"] = names.collect();
            (live, patch(count))
        };
        grows_linearly(what, make, |(live, patch)| {
            strategic::apply(live.clone(), patch.clone(), &schema).unwrap();
        });
    }
}

#[test]
fn merge_patches_and_json_patches_cost_what_they_change() {
    let make = |count| (stored(count, "i"), stored(count, "j"));
    grows_linearly("merge patch", make, |(live, patch)| {
        merge::apply(&mut live.clone(), patch.clone()).unwrap();
    });
    // As many operations as one patch may have, at the front of a list that grows.
    let edits: [Case; 4] = [
        (
            "insert",
            |_| json!({"op": "add", "path": "/spec/containers/0", "value": {}}),
        ),
        (
            "remove",
            |_| json!({"op": "remove", "path": "/spec/containers/0"}),
        ),
        (
            "move",
            |_| json!({"op": "move", "from": "/spec/containers/0", "path": "/spec/containers/-"}),
        ),
        (
            "copy",
            |number| json!({"op": "copy", "from": "/metadata/name", "path": format!("/metadata/labels/{number}")}),
        ),
    ];
    for (what, edit) in edits {
        let make = |count: usize| {
            // The list is long enough that moving all of it each time would show.
            let mut live = stored(20 * count, "i");
            live["metadata"]["labels"] = json!({});
            let operations: Value = (0..count.min(10_000)).map(edit).collect();
            (live, JsonPatch::parse(&operations).unwrap())
        };
        grows_linearly(what, make, |(live, patch)| {
            patch.apply(live.clone()).unwrap();
        });
    }
}

#[test]
fn applying_costs_what_is_applied() {
    let schema = pod().schema();
    let make = |count| {
        let nothing = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}});
        let mut before = stored(count, "i");
        before["metadata"]["finalizers"] = (0..count).map(|number| format!("f{number}")).collect();
        let first = managed::apply(&nothing, &before, &write(&schema), true).unwrap();
        // All containers change, and half of them go.
        let mut after = stored(count / 2, "j");
        after["metadata"]["finalizers"] = json!(["f0"]);
        (first.object, after)
    };
    grows_linearly("apply", make, |(live, configuration)| {
        managed::apply(live, configuration, &write(&schema), true).unwrap();
    });
    grows_linearly("apply with conflicts", make, |(live, configuration)| {
        let other = Write {
            manager: "other",
            ..write(&schema)
        };
        let error = managed::apply(live, configuration, &other, false).unwrap_err();
        assert!(error.to_string().len() < 100_000);
    });
    grows_linearly("update", make, |(live, new)| {
        managed::update(live, new.clone(), &write(&schema));
    });
    let operations = ["Update", "Apply"];
    let many_managers = |count: usize| {
        let entry = |number: usize| {
            json!({
                "manager": format!("m{number}"), "operation": operations[number % 2],
                "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {format!("f:l{number}"): {}}}},
            })
        };
        let mut live = stored(1, "i");
        live["metadata"]["labels"] = (0..count)
            .map(|number| (format!("l{number}"), Value::from("v")))
            .collect::<Map<_, _>>()
            .into();
        live["metadata"]["managedFields"] = (0..count).map(entry).collect();
        live
    };
    grows_linearly("many managers", many_managers, |live| {
        let mut new = live.clone();
        new["metadata"]["labels"]["l0"] = "w".into();
        managed::update(live, new.clone(), &write(&schema));
        let wanted = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"l1": "w"}},
        });
        managed::apply(live, &wanted, &write(&schema), true).unwrap();
    });
}
