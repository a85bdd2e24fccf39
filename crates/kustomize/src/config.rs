//! Which fields the transformers change: kustomize's table, and what users add to it.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::config_defaults;
use crate::error::{Problem, Result};
use crate::id::Gvk;
use crate::kustomization::{decode, strip_nulls};
use crate::path;

/// A field of the objects of some kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "FieldSpecForm")]
pub(crate) struct FieldSpec {
    pub(crate) gvk: Gvk,
    /// Names of fields; a list on the way stands for all its items.
    pub(crate) path: Vec<String>,
    /// True if the field is added where it is missing.
    pub(crate) create: bool,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct FieldSpecForm {
    group: String,
    version: String,
    kind: String,
    path: String,
    create: bool,
}

impl From<FieldSpecForm> for FieldSpec {
    fn from(form: FieldSpecForm) -> Self {
        Self {
            gvk: Gvk {
                group: form.group,
                version: form.version,
                kind: form.kind,
            },
            path: path::split(&form.path, '/'),
            create: form.create,
        }
    }
}

impl FieldSpec {
    pub(crate) fn new(gvk: Gvk, path: &str, create: bool) -> Self {
        Self {
            gvk,
            path: path::split(path, '/'),
            create,
        }
    }

    pub(crate) fn is_path(&self, path: &[&str]) -> bool {
        self.path
            .iter()
            .map(String::as_str)
            .eq(path.iter().copied())
    }
}

/// The fields in which objects of some kinds name objects of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BackReferenceForm")]
pub(crate) struct BackReference {
    /// What is named.
    pub(crate) target: Gvk,
    /// Where it is named.
    pub(crate) referrers: Vec<FieldSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct BackReferenceForm {
    group: String,
    version: String,
    kind: String,
    field_specs: Vec<FieldSpec>,
}

impl From<BackReferenceForm> for BackReference {
    fn from(form: BackReferenceForm) -> Self {
        Self {
            target: Gvk {
                group: form.group,
                version: form.version,
                kind: form.kind,
            },
            referrers: form.field_specs,
        }
    }
}

/// The fields of each transformer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Config {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) volume_claim_template_labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<BackReference>,
    pub(crate) var_reference: Vec<FieldSpec>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
}

static DEFAULTS: LazyLock<Config> = LazyLock::new(config_defaults::config);

impl Config {
    /// The table that applies everywhere.
    pub(crate) fn defaults() -> &'static Self {
        &DEFAULTS
    }

    /// Reads a file of `configurations`.
    pub(crate) fn read(mut value: Value) -> Result<Self> {
        strip_nulls(&mut value);
        if value.is_null() {
            return Ok(Self::default());
        }
        decode("configurations", value)
    }

    /// Adds the fields of another configuration.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        merge_all(&mut self.name_prefix, &other.name_prefix)?;
        merge_all(&mut self.name_suffix, &other.name_suffix)?;
        merge_all(&mut self.namespace, &other.namespace)?;
        merge_all(&mut self.common_labels, &other.common_labels)?;
        merge_all(&mut self.labels, &other.labels)?;
        merge_all(&mut self.template_labels, &other.template_labels)?;
        merge_all(
            &mut self.volume_claim_template_labels,
            &other.volume_claim_template_labels,
        )?;
        merge_all(&mut self.common_annotations, &other.common_annotations)?;
        for reference in &other.name_reference {
            self.add_reference(reference)?;
        }
        merge_all(&mut self.var_reference, &other.var_reference)?;
        merge_all(&mut self.images, &other.images)?;
        merge_all(&mut self.replicas, &other.replicas)
    }

    pub(crate) fn add_reference(&mut self, reference: &BackReference) -> Result<()> {
        let known = self
            .name_reference
            .iter_mut()
            .find(|known| known.target == reference.target);
        if let Some(known) = known {
            return merge_all(&mut known.referrers, &reference.referrers);
        }
        self.name_reference.push(reference.clone());
        Ok(())
    }
}

/// Adds fields that are not there yet.
pub(crate) fn merge_all(fields: &mut Vec<FieldSpec>, others: &[FieldSpec]) -> Result<()> {
    others.iter().try_for_each(|other| merge_one(fields, other))
}

/// Adds a field that is not there yet. A field that is there for more kinds is left as it is.
pub(crate) fn merge_one(fields: &mut Vec<FieldSpec>, other: &FieldSpec) -> Result<()> {
    let known = fields
        .iter()
        .find(|known| known.gvk.is_selected_by(&other.gvk) && known.path == other.path);
    match known {
        None => fields.push(other.clone()),
        Some(known) if known.create != other.create => {
            let message = format!(
                "conflicting field specs: `create` of {} differs; make them equal",
                other.path.join("/")
            );
            return Err(Problem::new(message));
        }
        Some(_) => {}
    }
    Ok(())
}

/// Reads what an OpenAPI document under `crds` says about references and labels.
pub(crate) fn from_definitions(definitions: &Value) -> Result<Config> {
    let mut config = Config::default();
    let Some(definitions) = definitions.as_object() else {
        return Err(Problem::new(
            "expected a mapping of type names to OpenAPI definitions",
        ));
    };
    for (name, definition) in definitions {
        let properties = definition.pointer("/Schema/properties");
        let has = |key: &str| properties.is_some_and(|properties| properties.get(key).is_some());
        if has("kind") && has("apiVersion") && has("metadata") {
            let kind = name.rsplit('.').next().unwrap_or(name);
            let gvk = Gvk {
                kind: kind.to_owned(),
                ..Gvk::default()
            };
            add_definition(&mut config, &gvk, definitions, name, &mut Vec::new())?;
        }
    }
    Ok(config)
}

/// How deep definitions may refer to one another: a type may contain itself.
const MAX_REFERENCES: usize = 16;

fn add_definition(
    config: &mut Config,
    gvk: &Gvk,
    definitions: &serde_json::Map<String, Value>,
    name: &str,
    path: &mut Vec<String>,
) -> Result<()> {
    let properties = definitions
        .get(name)
        .and_then(|definition| definition.pointer("/Schema/properties"))
        .and_then(Value::as_object);
    if path.len() > MAX_REFERENCES {
        let message = format!("definitions refer to themselves at {}", path.join("/"));
        return Err(Problem::new(message));
    }
    for (property, schema) in properties.into_iter().flatten() {
        path.push(property.clone());
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let spec = |names: &[String]| FieldSpec {
            gvk: gvk.clone(),
            path: names.to_vec(),
            create: false,
        };
        if text("x-kubernetes-annotation").is_some() {
            merge_one(&mut config.common_annotations, &spec(path))?;
        }
        if text("x-kubernetes-label-selector").is_some() {
            merge_one(&mut config.common_labels, &spec(path))?;
        }
        if text("x-kubernetes-identity").is_some() {
            merge_one(&mut config.name_prefix, &spec(path))?;
        }
        if let (Some(version), Some(kind)) = (
            text("x-kubernetes-object-ref-api-version"),
            text("x-kubernetes-object-ref-kind"),
        ) {
            let key = text("x-kubernetes-object-ref-name-key").unwrap_or("name");
            let mut names = path.clone();
            names.push(key.to_owned());
            config.add_reference(&BackReference {
                target: Gvk {
                    version: version.to_owned(),
                    kind: kind.to_owned(),
                    ..Gvk::default()
                },
                referrers: vec![spec(&names)],
            })?;
        }
        if let Some(reference) = text("$ref") {
            add_definition(config, gvk, definitions, reference, path)?;
        }
        path.pop();
    }
    Ok(())
}
