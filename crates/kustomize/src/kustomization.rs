//! The kustomization file: read strictly, one field at a time, so that errors name field and line.

use std::collections::BTreeMap;

use bellwether_json::yaml::value_from_yaml;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::FieldSpec;
use crate::error::{Problem, Result, line_of_key};
use crate::order::SortOptions;
use crate::replacement::Replacement;
use crate::selector::Selector;

/// Names under which the file is looked for.
pub(crate) const FILE_NAMES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

const KUSTOMIZATION_VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// What a directory asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kustomization {
    pub(crate) is_component: bool,
    pub(crate) openapi: BTreeMap<String, String>,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) labels: Vec<LabelSet>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) patches_strategic_merge: Vec<String>,
    pub(crate) patches_json6902: Vec<PatchEntry>,
    pub(crate) patches: Vec<PatchEntry>,
    pub(crate) images: Vec<ImageEntry>,
    pub(crate) replacements: Vec<ReplacementEntry>,
    pub(crate) replicas: Vec<ReplicaEntry>,
    pub(crate) vars: Vec<Variable>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) resources: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) crds: Vec<String>,
    pub(crate) config_map_generator: Vec<GeneratorEntry>,
    pub(crate) secret_generator: Vec<GeneratorEntry>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) configurations: Vec<String>,
    pub(crate) generators: Vec<String>,
    pub(crate) transformers: Vec<String>,
    pub(crate) validators: Vec<String>,
    pub(crate) build_metadata: Vec<String>,
    /// What the user is told about fields that are deprecated.
    pub(crate) warnings: Vec<String>,
}

/// An entry of `labels`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LabelSet {
    pub(crate) pairs: BTreeMap<String, String>,
    pub(crate) include_selectors: bool,
    pub(crate) include_templates: bool,
    pub(crate) include_volume_claim_templates: bool,
    pub(crate) fields: Vec<FieldSpec>,
}

/// An entry of `patches` or `patchesJson6902`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchEntry {
    pub(crate) path: String,
    pub(crate) patch: String,
    pub(crate) target: Option<Selector>,
    pub(crate) options: PatchOptions,
}

/// What a strategic merge patch may change beyond content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PatchOptions {
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

/// An entry of `images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ImageEntry {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) tag_suffix: String,
    pub(crate) new_tag: String,
    pub(crate) digest: String,
}

/// An entry of `replicas`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReplicaEntry {
    pub(crate) name: String,
    pub(crate) count: i64,
}

/// An entry of `replacements`: a file, or the replacement itself.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ReplacementEntry {
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) replacement: Replacement,
}

/// An entry of `vars`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) objref: ObjectReference,
    pub(crate) fieldref: FieldReference,
}

/// The object that a variable takes its value from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ObjectReference {
    pub(crate) api_version: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// The field that a variable takes its value from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FieldReference {
    /// Go reads keys in any case, and documentation writes this one in lower case.
    #[serde(alias = "fieldpath")]
    pub(crate) field_path: String,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GeneratorEntry {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) behavior: String,
    pub(crate) literals: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) envs: Vec<String>,
    pub(crate) env: String,
    pub(crate) options: Option<GeneratorOptions>,
    /// The type of a secret.
    #[serde(rename = "type")]
    pub(crate) secret_type: String,
}

/// `generatorOptions`, or `options` of one generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct GeneratorOptions {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) disable_name_suffix_hash: bool,
    pub(crate) immutable: bool,
}

impl GeneratorOptions {
    /// Options of one generator, completed by those for all.
    pub(crate) fn or(own: Option<&Self>, general: Option<&Self>) -> Self {
        let mut options = own.cloned().unwrap_or_default();
        let Some(general) = general else {
            return options;
        };
        let fill = |own: &mut BTreeMap<String, String>, general: &BTreeMap<String, String>| {
            for (key, value) in general {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        };
        fill(&mut options.labels, &general.labels);
        fill(&mut options.annotations, &general.annotations);
        options.disable_name_suffix_hash |= general.disable_name_suffix_hash;
        options.immutable |= general.immutable;
        options
    }
}

impl Kustomization {
    /// Reads the text of a kustomization file.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let fields = match value_from_yaml(text)? {
            Value::Object(fields) => fields,
            Value::Null => serde_json::Map::new(),
            other => {
                let found = bellwether_json::path::type_name(&other);
                let message = format!("a kustomization has to be a mapping, this is a {found}");
                return Err(Problem::new(message));
            }
        };
        let mut kustomization = Self::default();
        let (mut kind, mut api_version) = (String::new(), String::new());
        let mut is_empty = true;
        for (key, mut value) in fields {
            strip_nulls(&mut value);
            if value.is_null() {
                continue;
            }
            let line = line_of_key(text, &key);
            let at_line = |problem: Problem| problem.at_line(line);
            match key.as_str() {
                "kind" => kind = decode(&key, value).map_err(at_line)?,
                "apiVersion" => api_version = decode(&key, value).map_err(at_line)?,
                _ => {
                    is_empty = false;
                    kustomization.field(&key, value).map_err(at_line)?;
                }
            }
        }
        if is_empty {
            let message = "kustomization.yaml is empty: list `resources`, `generators` or others";
            return Err(Problem::new(message));
        }
        kustomization.is_component = kind == "Component";
        if !matches!(kind.as_str(), "" | "Kustomization" | "Component") {
            let message = format!("`kind` is {kind:?}; it has to be Kustomization or Component");
            return Err(Problem::new(message).at_line(line_of_key(text, "kind")));
        }
        let expected = if kustomization.is_component {
            COMPONENT_VERSION
        } else {
            KUSTOMIZATION_VERSION
        };
        if !api_version.is_empty() && api_version != expected {
            let message = format!("`apiVersion` is {api_version:?}; it has to be {expected}");
            return Err(Problem::new(message).at_line(line_of_key(text, "apiVersion")));
        }
        Ok(kustomization)
    }

    fn field(&mut self, key: &str, value: Value) -> Result<()> {
        match key {
            // Metadata means nothing, but its form is checked.
            "metadata" => {
                decode::<BTreeMap<String, Value>>(key, value)?;
            }
            "openapi" => self.openapi = decode(key, value)?,
            "namePrefix" => self.name_prefix = decode(key, value)?,
            "nameSuffix" => self.name_suffix = decode(key, value)?,
            "namespace" => self.namespace = decode(key, value)?,
            "commonLabels" => {
                self.deprecated(key, "labels");
                self.common_labels = decode(key, value)?;
            }
            "labels" => self.labels = decode(key, value)?,
            "commonAnnotations" => self.common_annotations = decode(key, value)?,
            "patchesStrategicMerge" => {
                self.deprecated(key, "patches");
                self.patches_strategic_merge = decode(key, value)?;
            }
            "patchesJson6902" => {
                self.deprecated(key, "patches");
                self.patches_json6902 = decode(key, value)?;
            }
            "patches" => self.patches = decode(key, value)?,
            "images" => {
                let images: Vec<ImageEntry> = decode(key, value)?;
                self.images.splice(0..0, images);
            }
            "imageTags" => {
                self.deprecated(key, "images");
                let images: Vec<ImageEntry> = decode(key, value)?;
                self.images.extend(images);
            }
            "replacements" => self.replacements = decode(key, value)?,
            "replicas" => self.replicas = decode(key, value)?,
            "vars" => {
                self.deprecated(key, "replacements");
                self.vars = decode(key, value)?;
            }
            "sortOptions" => self.sort_options = Some(decode(key, value)?),
            "resources" => {
                let resources: Vec<String> = decode(key, value)?;
                self.resources.splice(0..0, resources);
            }
            "bases" => {
                self.deprecated(key, "resources");
                let bases: Vec<String> = decode(key, value)?;
                self.resources.extend(bases);
            }
            "components" => self.components = decode(key, value)?,
            "crds" => self.crds = decode(key, value)?,
            "configMapGenerator" => self.config_map_generator = decode(key, value)?,
            "secretGenerator" => self.secret_generator = decode(key, value)?,
            "generatorOptions" => self.generator_options = Some(decode(key, value)?),
            "configurations" => self.configurations = decode(key, value)?,
            "generators" => self.generators = decode(key, value)?,
            "transformers" => self.transformers = decode(key, value)?,
            "validators" => self.validators = decode(key, value)?,
            "buildMetadata" => self.build_metadata = decode(key, value)?,
            "helmCharts" | "helmGlobals" | "helmChartInflationGenerator" => {
                let message = format!(
                    "`{key}` is not supported: render the chart with `bellwether helm template` \
                     and list the result under `resources`"
                );
                return Err(Problem::new(message));
            }
            _ => {
                return Err(Problem::new(format!(
                    "unknown field {key:?}: remove it, or correct its name"
                )));
            }
        }
        Ok(())
    }

    fn deprecated(&mut self, field: &str, instead: &str) {
        let experimental = if field == "vars" {
            "[EXPERIMENTAL] "
        } else {
            ""
        };
        self.warnings.push(format!(
            "# Warning: '{field}' is deprecated. Please use '{instead}' instead. {experimental}Run \
             'kustomize edit fix' to update your Kustomization automatically."
        ));
    }
}

/// Reads a value of one type; the error names the field.
pub(crate) fn decode<T: DeserializeOwned>(field: &str, value: Value) -> Result<T> {
    serde_json::from_value(value)
        .map_err(|error| Problem::new(format!("the field `{field}` cannot be read: {error}")))
}

/// Go leaves a field alone that is null, as if it were not written.
pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}
