//! Compiled definitions, shared by all clusters that have the same ones.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bellwether_schema::CompiledSchema;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::has_condition;
use super::version::{CustomVersion, compile_schema};
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
    pub(crate) fn resources(&self, stored: &StoredObject) -> Vec<Arc<Resource>> {
        let definition = stored.to_untyped_value();
        if !has_condition(&definition, "Established") {
            return Vec::new();
        }
        let identity =
            serde_json::json!([definition["spec"], definition["status"]["acceptedNames"]]);
        let key: [u8; 32] = Sha256::digest(identity.to_string()).into();
        let mut cache = self.0.lock();
        let known = cache
            .get(&key)
            .and_then(|known| known.iter().map(Weak::upgrade).collect());
        if let Some(known) = known {
            return known;
        }
        let compiled = compile(&definition, key);
        cache.retain(|_, known| known.iter().any(|resource| resource.strong_count() > 0));
        cache.insert(key, compiled.iter().map(Arc::downgrade).collect());
        compiled
    }
}

fn compile(definition: &Value, fingerprint: [u8; 32]) -> Vec<Arc<Resource>> {
    let served: Vec<&Value> = versions(definition)
        .filter(|version| version["served"] == true)
        .collect();
    let stored = storage_version(definition);
    let converts = |version: &Value| stored.is_some_and(|it| it["schema"] != version["schema"]);
    // Most versions differ in nothing but their names.
    let at_rest = if served.iter().any(|version| converts(version)) {
        stored.and_then(|version| compile_schema(version).ok())
    } else {
        None
    };
    let at_rest = at_rest.map(Arc::new);
    served
        .into_iter()
        .filter_map(|version| {
            let at_rest = at_rest.clone().filter(|_| converts(version));
            try_resource(definition, version, at_rest, fingerprint)
        })
        .map(Arc::new)
        .collect()
}

/// The resource in the version in which objects are stored, whether that is served or not.
pub(crate) fn storage_resource(definition: &Value) -> Option<Arc<Resource>> {
    let version = storage_version(definition)?;
    try_resource(definition, version, None, [0; 32]).map(Arc::new)
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition["spec"]["versions"].as_array();
    versions.into_iter().flatten()
}

fn storage_version(definition: &Value) -> Option<&Value> {
    versions(definition).find(|version| version["storage"] == true)
}

fn try_resource(
    definition: &Value,
    version: &Value,
    at_rest: Option<Arc<CompiledSchema>>,
    fingerprint: [u8; 32],
) -> Option<Resource> {
    let resource = resource(definition, version, at_rest, fingerprint);
    if let Err(error) = &resource {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
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
    definition: &Value,
    version: &Value,
    at_rest: Option<Arc<CompiledSchema>>,
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
        ..CustomVersion::new(version, &api_version, &kind, fingerprint)?
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
