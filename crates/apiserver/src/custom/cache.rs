//! Compiled definitions, shared by all clusters that have the same ones.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::has_condition;
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
    let versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    versions
        .filter(|version| version["served"] == true)
        .filter_map(|version| {
            let resource = resource(definition, version, fingerprint);
            if let Err(error) = &resource {
                let name = definition["metadata"]["name"].as_str().unwrap_or_default();
                tracing::error!(
                    kind = "CustomResourceDefinition",
                    name,
                    error,
                    "cannot serve a version"
                );
            }
            resource.ok().map(Arc::new)
        })
        .collect()
}

fn resource(
    definition: &Value,
    version: &Value,
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
    let custom = CustomVersion::new(version, &api_version, &kind, fingerprint)?;
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
