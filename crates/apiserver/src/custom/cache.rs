//! Compiled definitions, shared by all clusters that have the same ones.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::has_condition;
use super::lazy_schema::LazySchema;
use super::version::CustomVersion;
use crate::object::StoredObject;
use crate::request::Verb;
use crate::resource::{Resource, Source, key_prefix};

/// The order in which custom resources announce their verbs, as in Kubernetes.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// Remembers what definitions compile to for as long as a cluster uses them.
#[derive(Debug, Default)]
pub(crate) struct DefinitionCache(Mutex<HashMap<[u8; 32], Vec<Weak<Resource>>>>);

impl DefinitionCache {
    /// The resources of a definition in all served versions; none before it is established.
    pub(crate) fn resources(&self, stored: &Arc<StoredObject>) -> Vec<Arc<Resource>> {
        let definition = stored.to_untyped_value();
        if !has_condition(&definition, "Established") {
            return Vec::new();
        }
        let key = identity(&definition);
        let mut cache = self.0.lock();
        let known = cache
            .get(&key)
            .and_then(|known| known.iter().map(Weak::upgrade).collect());
        if let Some(known) = known {
            return known;
        }
        let compiled = compile(stored, &definition, key);
        cache.retain(|_, known| known.iter().any(|resource| resource.strong_count() > 0));
        cache.insert(key, compiled.iter().map(Arc::downgrade).collect());
        compiled
    }
}

/// What tells definitions apart that compile to different resources.
fn identity(definition: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [&definition["spec"], &definition["status"]["acceptedNames"]] {
        // Neither JSON values nor hashes can fail to be written.
        let _ = serde_json::to_writer(&mut hash, part);
        hash.update([0]);
    }
    hash.finalize().into()
}

fn compile(
    stored: &Arc<StoredObject>,
    definition: &Value,
    fingerprint: [u8; 32],
) -> Vec<Arc<Resource>> {
    let served: Vec<&Value> = versions(definition)
        .filter(|version| version["served"] == true)
        .collect();
    let storage = storage_version(definition);
    let converts = |version: &Value| storage.is_some_and(|it| it["schema"] != version["schema"]);
    // Most versions differ in nothing but their names.
    let at_rest = if served.iter().any(|version| converts(version)) {
        storage.and_then(|version| LazySchema::new(stored, version).ok())
    } else {
        None
    };
    let at_rest = at_rest.map(Arc::new);
    served
        .into_iter()
        .filter_map(|version| {
            let at_rest = at_rest.clone().filter(|_| converts(version));
            let source = (stored, definition);
            try_resource(source, version, at_rest, fingerprint)
        })
        .map(Arc::new)
        .collect()
}

/// The resource in the version in which objects are stored, whether that is served or not.
pub(crate) fn storage_resource(stored: &Arc<StoredObject>) -> Option<Arc<Resource>> {
    let definition = stored.to_untyped_value();
    let version = storage_version(&definition)?;
    try_resource((stored, &definition), version, None, [0; 32]).map(Arc::new)
}

pub(super) fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition["spec"]["versions"].as_array();
    versions.into_iter().flatten()
}

fn storage_version(definition: &Value) -> Option<&Value> {
    versions(definition).find(|version| version["storage"] == true)
}

/// A definition as it is stored, and what was read of it.
type Definition<'a> = (&'a Arc<StoredObject>, &'a Value);

fn try_resource(
    definition: Definition<'_>,
    version: &Value,
    at_rest: Option<Arc<LazySchema>>,
    fingerprint: [u8; 32],
) -> Option<Resource> {
    let resource = resource(definition, version, at_rest, fingerprint);
    if let Err(error) = &resource {
        let name = definition.1["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        tracing::error!(
            kind = "CustomResourceDefinition",
            name,
            error,
            "cannot serve a version"
        );
    }
    resource.ok()
}

fn resource(
    (stored, definition): Definition<'_>,
    version: &Value,
    at_rest: Option<Arc<LazySchema>>,
    fingerprint: [u8; 32],
) -> Result<Resource, String> {
    let names = &definition["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    let group = text(&definition["spec"]["group"]);
    let plural = text(&names["plural"]);
    let kind = text(&names["kind"]);
    let name = text(&version["name"]);
    let api_version = format!("{group}/{name}");
    let custom = CustomVersion {
        at_rest,
        ..CustomVersion::new(stored, version, &api_version, &kind, fingerprint)?
    };
    Ok(Resource {
        prefix: key_prefix(&group, &plural),
        group: group.into(),
        version: name.into(),
        api_version: api_version.into(),
        kind: kind.into(),
        list_kind: text(&names["listKind"]).into(),
        plural: plural.into(),
        singular: text(&names["singular"]).into(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: definition["spec"]["scope"] == "Namespaced",
        verbs: VERBS.to_vec(),
        source: Source::Custom(Arc::new(custom)),
        blank: Arc::default(),
    })
}
