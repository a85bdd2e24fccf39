//! Applications and what they are rendered to; live objects and how they fare.
//!
//! A case with `quirk` expects what is evidently a mistake; it counts as right, whatever the answer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::lines::Corpus;

pub(crate) const APPLICATIONS: Corpus = Corpus {
    package: "bellwether-application",
    probe: "app-probe",
    judge: judge_application,
    gates: &[(1, 100.0), (2, 98.0), (3, 95.0)],
};

pub(crate) const HEALTH: Corpus = Corpus {
    package: "bellwether-application",
    probe: "app-probe",
    judge: judge_health,
    gates: &[(1, 98.0), (2, 99.0), (3, 99.0)],
};

/// Kinds whose objects are in no namespace.
const CLUSTER_SCOPED: [&str; 4] = [
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "PersistentVolume",
];

/// Any component revision is right where this stands.
const ANY_REVISION: &str = "{{COMP_REV}}";

fn is_quirk(case: &Value) -> bool {
    !case["quirk"].is_null()
}

fn judge_application(case: &Value, answer: &Value) -> Result<(), String> {
    if is_quirk(case) {
        return Ok(());
    }
    let expected = &case["expect"];
    if expected["admission"]["allowed"] != answer["admission"]["allowed"] {
        return Err(format!(
            "admission: got {}, want {}",
            answer["admission"], expected["admission"]
        ));
    }
    match (expected["error"].as_str(), answer["error"].as_str()) {
        (Some(_), Some(_)) => return Ok(()),
        (Some(error), None) => return Err(format!("no error: {error}")),
        (None, Some(error)) => return Err(format!("unexpected error: {error}")),
        (None, None) => {}
    }
    let by_component = |objects: &Value| -> BTreeMap<String, Vec<Value>> {
        let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for object in objects.as_array().into_iter().flatten().map(normal) {
            let labels = &object["metadata"]["labels"];
            let component = labels["app.oam.dev/component"].as_str().unwrap_or_default();
            let cluster = labels["app.oam.dev/cluster"].as_str().unwrap_or_default();
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let key = format!("{component} {cluster} {namespace}");
            found.entry(key).or_default().push(object);
        }
        found
    };
    let (wanted, got) = (
        by_component(&expected["manifests"]),
        by_component(&answer["manifests"]),
    );
    for (component, wanted) in &wanted {
        let got = got.get(component).map_or(&[][..], Vec::as_slice);
        if wanted.len() != got.len() {
            return Err(format!(
                "{component}: {} objects, want {}",
                got.len(),
                wanted.len()
            ));
        }
        for (wanted, got) in wanted.iter().zip(got) {
            if !is_same(wanted, got) {
                return Err(format!("{component}\n got {got}\nwant {wanted}"));
            }
        }
    }
    match got
        .keys()
        .find(|component| !wanted.contains_key(*component))
    {
        Some(component) => Err(format!("{component}: not expected")),
        None => Ok(()),
    }
}

fn judge_health(case: &Value, answer: &Value) -> Result<(), String> {
    if is_quirk(case) {
        return Ok(());
    }
    let expected = &case["expect"];
    let is_right = if expected["error"].is_null() {
        let fields = ["healthy", "message", "details", "services"];
        fields.iter().all(|field| expected[field] == answer[field])
    } else {
        !answer["error"].is_null()
    };
    if is_right {
        return Ok(());
    }
    Err(format!("got {answer}\nwant {expected}"))
}

/// An object without what depends on the controller.
fn normal(object: &Value) -> Value {
    let mut object = object.clone();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if let Value::Object(fields) = &mut object {
        fields.remove("status");
    }
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return object;
    };
    metadata.remove("creationTimestamp");
    if CLUSTER_SCOPED.contains(&kind.as_str()) {
        metadata.remove("namespace");
    }
    if metadata.get("annotations").is_some_and(|annotations| {
        annotations
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
    }) {
        metadata.remove("annotations");
    }
    let labels = metadata.get("labels").cloned().unwrap_or_default();
    let text = |key: &str| labels[key].as_str().unwrap_or_default().to_owned();
    if let Some(hash) = metadata
        .get_mut("labels")
        .and_then(|labels| labels.get_mut("app.oam.dev/app-revision-hash"))
    {
        *hash = "".into();
    }
    let prefix = format!(
        "{}-{}-",
        text("app.oam.dev/component"),
        text("trait.oam.dev/type").to_lowercase()
    );
    let name = metadata
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_generated = name.strip_prefix(&prefix).is_some_and(|end| {
        end == "{{HASH}}" || (end.len() == 10 && end.chars().all(|c| c.is_ascii_hexdigit()))
    });
    if is_generated {
        metadata.insert("name".to_owned(), prefix.into());
    }
    object
}

fn is_same(wanted: &Value, got: &Value) -> bool {
    match (wanted, got) {
        (Value::String(text), Value::String(got)) if text == ANY_REVISION => !got.is_empty(),
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has = |(key, value): (&String, &Value)| {
                b.get(key).is_some_and(|other| is_same(value, other))
            };
            a.len() == b.len() && a.iter().all(has)
        }
        _ => wanted == got,
    }
}
