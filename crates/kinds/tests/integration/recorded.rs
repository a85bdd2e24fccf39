//! Our answers compared with recorded ones of kube-apiserver; see `testdata/README.md`.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

use bellwether_kinds::{
    Creation, Resource, default, find_kind, from_storage, prepare_for_create,
    prepare_for_part_update, prepare_for_update, row, set_priority, to_storage, validate,
    validate_part,
};
use bellwether_schema::{FieldError, decode};
use jiff::Timestamp;
use serde_json::{Value, json};

const CREATED: &str = include_str!("../../testdata/created.jsonl");
const REFUSED: &str = include_str!("../../testdata/refused.jsonl");
const ROWS: &str = include_str!("../../testdata/rows.jsonl");
const UPDATED: &str = include_str!("../../testdata/updated.jsonl");

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn resource_of(object: &Value) -> &'static Resource {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    find_kind(group, version, object["kind"].as_str().unwrap()).unwrap()
}

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

/// The object as the server would store it, and what is wrong with it.
fn create(resource: &Resource, given: &Value) -> (Value, Vec<FieldError>) {
    let mut object = given.clone();
    decode::decode(&mut object, &resource.schema(), resource.kind).unwrap();
    default(resource, &mut object);
    to_storage(resource, &mut object);
    let user = json!({"username": "admin"});
    let creation = Creation {
        uid: "UID",
        now: now(),
        user: &user,
    };
    prepare_for_create(resource, &mut object, &creation);
    let errors = validate(resource, &object, None);
    (object, errors)
}

fn causes(errors: &[FieldError]) -> Value {
    let causes = errors.iter().map(FieldError::cause);
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    causes
        .map(|cause| json!([cause.field, first_line(&cause.message)]))
        .collect()
}

fn without_volatile(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ] {
        metadata.remove(field);
    }
    object
}

#[test]
fn created_objects_are_stored_as_kubernetes_stores_them() {
    for case in lines(CREATED) {
        let resource = resource_of(&case["given"]);
        let (mut object, errors) = create(resource, &case["given"]);
        assert_eq!(errors, [], "{resource:?} {}", case["given"]);
        from_storage(resource, &mut object);
        if resource.kind == "Pod" {
            // What depends on other objects is the server's to ask for.
            set_priority(&mut object, None).unwrap();
        }
        assert_eq!(object, case["stored"], "{resource:?}");
    }
}

#[test]
fn defaults_are_filled_in_once() {
    for case in lines(CREATED) {
        let resource = resource_of(&case["given"]);
        let mut once = case["given"].clone();
        default(resource, &mut once);
        let mut twice = once.clone();
        default(resource, &mut twice);
        assert_eq!(once, twice, "{resource:?}");
    }
}

#[test]
fn conversion_to_storage_and_back_changes_nothing() {
    for case in lines(CREATED) {
        let resource = resource_of(&case["given"]);
        let mut object = case["stored"].clone();
        to_storage(resource, &mut object);
        from_storage(resource, &mut object);
        assert_eq!(object, case["stored"], "{resource:?}");
    }
}

#[test]
fn broken_objects_are_refused_in_the_same_words() {
    for case in lines(REFUSED) {
        let resource = resource_of(&case["given"]);
        let (_, errors) = create(resource, &case["given"]);
        assert_eq!(
            causes(&errors),
            case["causes"],
            "{resource:?} {}",
            case["given"]
        );
    }
}

#[test]
fn updates_are_stored_or_refused_as_kubernetes_does() {
    for case in lines(UPDATED) {
        let resource = resource_of(&case["old"]);
        let mut object = case["given"].clone();
        decode::decode(&mut object, &resource.schema(), resource.kind).unwrap();
        let mut old = case["old"].clone();
        default(resource, &mut object);
        to_storage(resource, &mut object);
        to_storage(resource, &mut old);
        let errors = if let Some(part) = case["part"].as_str() {
            prepare_for_part_update(resource, part, &mut object, &old, now());
            validate_part(resource, part, &object, &old)
        } else {
            prepare_for_update(resource, &mut object, &old);
            validate(resource, &object, Some(&old))
        };
        if case["causes"].is_array() {
            assert_eq!(
                causes(&errors),
                case["causes"],
                "{resource:?} {}",
                case["given"]
            );
            continue;
        }
        assert_eq!(errors, [], "{resource:?} {}", case["given"]);
        from_storage(resource, &mut object);
        assert_eq!(without_volatile(object), case["stored"], "{resource:?}");
    }
}

#[test]
fn tables_show_what_kubectl_users_know() {
    for case in lines(ROWS) {
        let resource = resource_of(&case["object"]);
        let mut object = case["object"].clone();
        to_storage(resource, &mut object);
        let now = case["now"].as_str().unwrap().parse().unwrap();
        let cells = Value::from(row(resource, &object, now));
        assert_eq!(cells, case["cells"], "{resource:?} {}", case["object"]);
    }
}
