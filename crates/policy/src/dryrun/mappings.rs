//! How kinds are served in a dry run.

use bellwether_api::Kind as _;
use bellwether_api::policy::{ConfigurationPolicy, Policy};
use bellwether_json::yaml::value_from_yaml;
use serde::Deserialize;

use crate::template::Resource;

/// Kinds from a file; without one, those of Kubernetes.
pub(super) struct Mappings {
    listed: Option<Vec<Mapping>>,
}

/// One kind, as upstream's files list it.
#[derive(Debug, Deserialize)]
struct Mapping {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    plural: String,
    #[serde(default)]
    scope: String,
}

/// Reads a file with kinds.
pub(super) fn read(text: Option<&str>) -> Result<Mappings, String> {
    let Some(text) = text else {
        return Ok(Mappings { listed: None });
    };
    let value = value_from_yaml(text).map_err(|error| {
        format!(
            "error converting YAML to JSON: yaml: line {}: {}",
            error.line, error.message
        )
    })?;
    let listed = match value {
        serde_json::Value::Null => Vec::new(),
        value => serde_json::from_value(value).map_err(|error| {
            format!("error unmarshaling JSON: while decoding JSON: json: {error}")
        })?,
    };
    Ok(Mappings {
        listed: Some(listed),
    })
}

impl Mappings {
    /// How a kind is served.
    pub(super) fn find(&self, api_version: &str, kind: &str) -> Option<Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let named = |plural: &str, is_namespaced| Resource {
            name: if group.is_empty() {
                plural.to_owned()
            } else {
                format!("{plural}.{group}")
            },
            is_namespaced,
        };
        for own in [Policy::NAMES, ConfigurationPolicy::NAMES] {
            if own.group == group && own.version == version && own.kind == kind {
                return Some(named(own.plural, true));
            }
        }
        match &self.listed {
            None => {
                let known = bellwether_kinds::find_kind(group, version, kind)?;
                Some(named(known.plural, known.namespaced))
            }
            Some(listed) => {
                let is_it = |mapping: &&Mapping| {
                    mapping.group == group && mapping.version == version && mapping.kind == kind
                };
                let found = listed.iter().find(is_it)?;
                Some(named(&found.plural, found.scope == "namespace"))
            }
        }
    }
}
