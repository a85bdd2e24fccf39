//! What was written last, in a form that later states of the object can be compared with.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// What was written last, and what became of it on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    manifest: u64,
    content: u64,
    /// The fields that the server knows to be ours, where it applied them.
    fields: u64,
}

impl Baseline {
    /// Remembers that a manifest, with these settings, became this object.
    pub fn new(manifest: &Value, settings: &str, result: &Value, manager: &str) -> Self {
        Self {
            manifest: hash_of(manifest, settings),
            content: content(manifest, result),
            fields: fields(result, manager),
        }
    }

    /// Whether nobody took any field of the object that the server applied for this manager: who
    /// changes a field takes it.
    pub fn owns_the_same(
        &self,
        manifest: &Value,
        settings: &str,
        live: &Value,
        manager: &str,
    ) -> bool {
        self.manifest == hash_of(manifest, settings) && self.fields == fields(live, manager)
    }

    /// Whether it is about this very manifest.
    pub fn is_of(&self, manifest: &Value, settings: &str) -> bool {
        self.manifest == hash_of(manifest, settings)
    }

    /// Whether the object is still what the manifest became: status and what others added to the
    /// metadata do not matter.
    pub fn holds(&self, manifest: &Value, settings: &str, live: &Value) -> bool {
        self.manifest == hash_of(manifest, settings) && self.content == content(manifest, live)
    }
}

fn hash_of(manifest: &Value, settings: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    manifest.hash(&mut hasher);
    settings.hash(&mut hasher);
    hasher.finish()
}

/// Whether a manifest leaves it to an autoscaler how many replicas a workload has.
pub(crate) fn leaves_scale(manifest: &Value) -> bool {
    let is_workload = manifest["apiVersion"] == "apps/v1"
        && ["Deployment", "StatefulSet", "ReplicaSet"]
            .iter()
            .any(|kind| manifest["kind"] == *kind);
    is_workload && manifest["spec"].get("replicas").is_none_or(Value::is_null)
}

/// A hash of the fields that a manager has applied, of this very object.
fn fields(object: &Value, manager: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    object["metadata"]["uid"].hash(&mut hasher);
    let entries = object["metadata"]["managedFields"].as_array();
    for entry in entries.into_iter().flatten() {
        if entry["manager"] == *manager && entry["operation"] == "Apply" {
            entry["fieldsV1"].hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// A hash of what an object is, apart from its status and from metadata that the manifest does not
/// speak of.
fn content(manifest: &Value, object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let leaves_scale = leaves_scale(manifest);
    for (key, value) in object.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("status" | "metadata", _) => {}
            ("spec", Value::Object(spec)) if leaves_scale => {
                let told = spec.iter().filter(|(field, _)| *field != "replicas");
                told.for_each(|member| member.hash(&mut hasher));
            }
            (key, value) => (key, value).hash(&mut hasher),
        }
    }
    let metadata = &object["metadata"];
    metadata["uid"].hash(&mut hasher);
    for field in ["labels", "annotations"] {
        let spoken_of = manifest["metadata"][field].as_object();
        for key in spoken_of.into_iter().flat_map(|map| map.keys()) {
            metadata[field].get(key).hash(&mut hasher);
        }
    }
    hasher.finish()
}
