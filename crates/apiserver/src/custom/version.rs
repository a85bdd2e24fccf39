//! One served version of a definition, ready for use.

use std::sync::Arc;

use bellwether_jsonpath::JsonPath;
use bellwether_kinds::NameRule;
use bellwether_kinds::meta::{self, MetaRules};
use bellwether_schema::meta::Malformed;
use bellwether_schema::{CompiledSchema, FieldError, FieldErrors, FieldPath};
use serde_json::{Map, Value};

use super::lazy_schema::LazySchema;
use crate::object::StoredObject;

/// What a version of a CustomResourceDefinition says, parsed once and shared by all clusters.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    /// The schema of its objects.
    pub schema: LazySchema,
    /// The schema of the version in which objects are stored, if it is another one.
    pub at_rest: Option<Arc<LazySchema>>,
    /// Whether `status` is a subresource.
    pub has_status: bool,
    /// Where the scale subresource finds its numbers.
    pub scale: Option<ScalePaths>,
    /// Columns of `kubectl get` after the name.
    pub columns: Vec<PrinterColumn>,
    /// Fields that selectors may name, without the leading dot.
    pub selectable: Vec<(String, JsonPath)>,
    /// Shown as a warning to everybody who uses the version.
    pub deprecation: Option<String>,
    /// Changes with the definition.
    pub fingerprint: [u8; 32],
}

/// Paths of the scale subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// `specReplicasPath` as field names.
    pub spec_replicas: Vec<String>,
    /// `statusReplicasPath` as field names.
    pub status_replicas: Vec<String>,
    /// `labelSelectorPath` as field names.
    pub label_selector: Option<Vec<String>>,
}

/// One of `additionalPrinterColumns`.
#[derive(Debug)]
pub(crate) struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// OpenAPI format.
    pub format: String,
    /// What it shows.
    pub description: String,
    /// 0 is always shown, others with `-o wide`.
    pub priority: i32,
    /// Where the cell is found.
    pub path: JsonPath,
    /// True if the path may lead to what a summary of an object leaves out.
    pub needs_all: bool,
}

impl CustomVersion {
    /// Reads an entry of `spec.versions` of a definition; `kind` completes the deprecation warning.
    pub(crate) fn new(
        definition: &Arc<StoredObject>,
        version: &Value,
        api_version: &str,
        kind: &str,
        fingerprint: [u8; 32],
    ) -> Result<Self, String> {
        let columns = version["additionalPrinterColumns"].as_array();
        Ok(Self {
            has_status: version["subresources"].get("status").is_some(),
            scale: ScalePaths::new(&version["subresources"]["scale"]),
            columns: match columns {
                Some(columns) => columns.iter().filter_map(PrinterColumn::new).collect(),
                None => PrinterColumn::new(&age()).into_iter().collect(),
            },
            selectable: version["selectableFields"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|field| {
                    let path = field["jsonPath"].as_str()?;
                    let parsed = JsonPath::parse(&format!("{{{path}}}")).ok()?;
                    Some((path.trim_start_matches('.').to_owned(), parsed))
                })
                .collect(),
            deprecation: (version["deprecated"] == true).then(|| {
                version["deprecationWarning"].as_str().map_or_else(
                    || format!("{api_version} {kind} is deprecated"),
                    str::to_owned,
                )
            }),
            schema: LazySchema::new(definition, version)?,
            at_rest: None,
            fingerprint,
        })
    }

    /// Completes an object as it was stored by the defaults of that version, and leaves out what this
    /// version does not know.
    pub(crate) fn convert_from_storage(&self, object: &mut Value) {
        if let Some(at_rest) = &self.at_rest {
            // What has too many defaults goes without some, and is refused where it is stored.
            let _ = at_rest.get().default(object);
            drop_unknown(self.schema.get(), object);
        }
    }

    /// Leaves out what the version in which the object is going to be stored does not know, and
    /// completes it by the defaults of that version, with which it will be read.
    pub(crate) fn convert_to_storage(&self, object: &mut Value) {
        if let Some(at_rest) = &self.at_rest {
            let at_rest = at_rest.get();
            drop_unknown(at_rest, object);
            // What has too many defaults goes without some, and is refused where it is stored.
            let _ = at_rest.default(object);
        }
    }
}

fn drop_unknown(schema: &CompiledSchema, object: &mut Value) {
    // What was accepted once is never refused here: malformed metadata is left out as well.
    if let Err(error) = schema.coerce(object, Malformed::Drop) {
        tracing::warn!(%error, "cannot convert a custom resource");
    }
}

/// How metadata of embedded resources is checked: as that of any object.
pub(super) fn check_metadata(
    metadata: &Map<String, Value>,
    path: &FieldPath<'_>,
) -> Vec<FieldError> {
    let mut errors = FieldErrors::new();
    let mut metadata = metadata.clone();
    // What is embedded may be a template, which has no name and namespace yet.
    metadata.entry("name").or_insert_with(|| "template".into());
    let rules = MetaRules {
        namespaced: metadata.contains_key("namespace"),
        names: NameRule::PathSegment,
        known_finalizers: false,
    };
    meta::validate(&Value::Object(metadata), rules, path, &mut errors);
    errors.into_vec()
}

/// The column that a version has if it does not say.
fn age() -> Value {
    serde_json::json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "Time since the object was created.",
    })
}

impl ScalePaths {
    fn new(scale: &Value) -> Option<Self> {
        let path = |field: &str| -> Option<Vec<String>> {
            let path = scale[field].as_str()?;
            Some(
                path.trim_start_matches('.')
                    .split('.')
                    .map(str::to_owned)
                    .collect(),
            )
        };
        Some(Self {
            spec_replicas: path("specReplicasPath")?,
            status_replicas: path("statusReplicasPath")?,
            label_selector: path("labelSelectorPath"),
        })
    }
}

impl ScalePaths {
    /// Checks the numbers that a scale shows: they are counts.
    pub(crate) fn validate(&self, object: &Value, errors: &mut Vec<FieldError>) {
        const MOST: i64 = i32::MAX as i64;
        for path in [&self.spec_replicas, &self.status_replicas] {
            let value = path
                .iter()
                .fold(object, |value, name| &value[name.as_str()]);
            let Some(count) = value.as_i64() else {
                continue;
            };
            let name = format!(".{}", path.join("."));
            let name = FieldPath::new(&name);
            if count < 0 {
                let detail = "should be a non-negative integer";
                errors.push(FieldError::invalid(&name, count, detail));
            } else if count > MOST {
                let detail = format!("should be less than or equal to {MOST}");
                errors.push(FieldError::invalid(&name, count, detail));
            }
        }
    }
}

impl PrinterColumn {
    fn new(column: &Value) -> Option<Self> {
        let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let path = column["jsonPath"].as_str()?;
        let machines = ["managedFields", "annotations", "..", "*"];
        Some(Self {
            needs_all: machines.iter().any(|step| path.contains(step)),
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: i32::try_from(column["priority"].as_i64().unwrap_or(0)).unwrap_or(0),
            path: JsonPath::parse(&format!("{{{path}}}")).ok()?,
        })
    }
}
