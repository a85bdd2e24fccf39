//! Whether a definition is sound: its names, versions, columns, subresources and schemas.
//!
//! What a single object of the kind must look like is the business of the schema crate.

use bellwether_kinds::names;
use bellwether_schema::{Document, FieldError, FieldPath, definition};
use serde_json::Value;

use super::version::check_metadata;
use super::{approval, has_condition};
use crate::resource::key_prefix;

const IMMUTABLE: &str = "field is immutable";

/// Everything that is wrong with a definition, or with a change of one.
pub(crate) fn validate(definition: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &definition["spec"];
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    if name != format!("{plural}.{group}") {
        let path = FieldPath::new("metadata");
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(&path.child("name"), name, detail));
    }
    let path = FieldPath::new("spec");
    approval::validate(definition, live, &mut errors);
    validate_group(group, &path, &mut errors);
    validate_place(group, plural, &path, &mut errors);
    validate_scope(&spec["scope"], &path, &mut errors);
    validate_versions(spec, live, &path, &mut errors);
    validate_names(&spec["names"], &path, &mut errors);
    validate_conversion(&spec["conversion"], &path, &mut errors);
    if spec["preserveUnknownFields"] == true {
        errors.push(FieldError::invalid(
            &path.child("preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    validate_stored_versions(definition, &mut errors);
    if let Some(live) = live {
        validate_change(definition, live, &mut errors);
    }
    errors
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Objects are kept by group and plural: a definition must not share a place with a built-in kind,
/// or it would be a way past that kind's checks.
fn validate_place(group: &str, plural: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let place = key_prefix(group, plural);
    let mut built_in = bellwether_kinds::resources().iter();
    if built_in.any(|kind| key_prefix(kind.storage.group, kind.plural) == place) {
        let names = path.child("names");
        let detail = format!("is the name of a built-in resource of the group {group}");
        errors.push(FieldError::invalid(&names.child("plural"), plural, detail));
    }
}

fn validate_group(group: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("group");
    if group.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if let Some(problem) = names::subdomain(group).into_iter().next() {
        errors.push(FieldError::invalid(&path, group, problem));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(
            &path,
            group,
            "should be a domain with at least one dot",
        ));
    }
}

fn validate_scope(scope: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];
    if !SCOPES.contains(&text(scope)) {
        errors.push(FieldError::not_supported(
            &path.child("scope"),
            text(scope),
            &SCOPES,
        ));
    }
}

fn validate_versions(
    spec: &Value,
    live: Option<&Value>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let list = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let spec_path = path;
    let path = spec_path.child("versions");
    let mut seen = Vec::new();
    for (index, version) in list.iter().enumerate() {
        let path = path.index(index);
        let name = text(&version["name"]);
        for problem in names::label_1035(name) {
            errors.push(FieldError::invalid(&path.child("name"), name, problem));
        }
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        seen.push(name);
        if version["deprecationWarning"].is_string() && version["deprecated"] != true {
            let detail = "can only be set for deprecated versions";
            let warning = version["deprecationWarning"].clone();
            errors.push(FieldError::invalid(
                &path.child("deprecationWarning"),
                warning,
                detail,
            ));
        }
        let shared = Shared::of(list, live);
        if index == 0 || !shared.everything() {
            validate_version(version, &path, spec_path, &shared, errors);
        }
    }
    let storage = list
        .iter()
        .filter(|version| version["storage"] == true)
        .count();
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&path, spec["versions"].clone(), detail));
    }
}

/// What is the same in all versions: Kubernetes keeps it once, and reports it there.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts")]
struct Shared<'a> {
    /// Schemas that were accepted before; what they did wrong then is tolerated.
    accepted: Vec<&'a Value>,
    schema: bool,
    columns: bool,
    subresources: bool,
    selectable: bool,
}

impl<'a> Shared<'a> {
    fn of(versions: &[Value], live: Option<&'a Value>) -> Self {
        let same = |field: &str| {
            versions
                .windows(2)
                .all(|pair| pair[0][field] == pair[1][field])
        };
        let before = live.and_then(|live| live["spec"]["versions"].as_array());
        Self {
            accepted: before
                .into_iter()
                .flatten()
                .map(|version| &version["schema"])
                .collect(),
            schema: same("schema"),
            columns: same("additionalPrinterColumns"),
            subresources: same("subresources"),
            selectable: same("selectableFields"),
        }
    }

    fn everything(&self) -> bool {
        self.schema && self.columns && self.subresources && self.selectable
    }
}

fn validate_version(
    version: &Value,
    path: &FieldPath<'_>,
    spec: &FieldPath<'_>,
    shared: &Shared<'_>,
    errors: &mut Vec<FieldError>,
) {
    let has_status = version["subresources"].get("status").is_some();
    let schema_path = if shared.schema {
        spec.child("validation")
    } else {
        path.child("schema")
    };
    let own = |shared: bool| if shared { spec } else { path };
    match version["schema"].get("openAPIV3Schema") {
        None | Some(Value::Null) => {
            let path = path.child("schema");
            let path = path.child("openAPIV3Schema");
            errors.push(FieldError::required(&path, ""));
        }
        Some(_) if shared.accepted.contains(&&version["schema"]) => {}
        Some(schema) => match Document::parse(schema) {
            Ok((document, _)) => {
                errors.extend(definition::check(
                    &document,
                    has_status,
                    check_metadata,
                    &schema_path,
                ));
            }
            Err(problem) => errors.push(FieldError::invalid(
                &schema_path.child("openAPIV3Schema"),
                "",
                problem.to_string(),
            )),
        },
    }
    validate_columns(
        &version["additionalPrinterColumns"],
        own(shared.columns),
        errors,
    );
    validate_scale(&version["subresources"], own(shared.subresources), errors);
    validate_selectable(&version["selectableFields"], own(shared.selectable), errors);
}

fn validate_columns(columns: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    let path = path.child("additionalPrinterColumns");
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = path.index(index);
        if text(&column["name"]).is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        match text(&column["type"]) {
            "" => {
                let detail = format!("must be one of {}", TYPES.join(","));
                errors.push(FieldError::required(&path.child("type"), detail));
            }
            kind if !TYPES.contains(&kind) => {
                let detail = format!("must be one of {}", TYPES.join(","));
                errors.push(FieldError::invalid(&path.child("type"), kind, detail));
            }
            _ => {}
        }
        let format = text(&column["format"]);
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), format, detail));
        }
        validate_path(&column["jsonPath"], &path.child("JSONPath"), errors);
    }
}

fn validate_path(json_path: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let json_path = text(json_path);
    if json_path.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if let Err(problem) = bellwether_jsonpath::validate_simple_path(json_path) {
        errors.push(FieldError::invalid(path, json_path, problem.to_string()));
    }
}

fn validate_scale(subresources: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.get("scale").filter(|scale| scale.is_object()) else {
        return;
    };
    let path = path.child("subresources");
    let path = path.child("scale");
    for (field, root) in [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
        ("labelSelectorPath", ""),
    ] {
        let path = path.child(field);
        let value = text(&scale[field]);
        if field == "labelSelectorPath" {
            if !value.is_empty() && !value.starts_with(".spec.") && !value.starts_with(".status.") {
                let detail = "should be a json path under either .spec or .status";
                errors.push(FieldError::invalid(&path, value, detail));
            }
        } else if value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !value.starts_with(root) {
            let detail = format!("should be a json path under {}", root.trim_end_matches('.'));
            errors.push(FieldError::invalid(&path, value, detail));
        }
    }
}

fn validate_selectable(fields: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("selectableFields");
    let fields = fields.as_array().map_or(&[][..], Vec::as_slice);
    if fields.len() > 8 {
        errors.push(FieldError::too_many(&path, fields.len() as u64, 8));
    }
    for (index, field) in fields.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("jsonPath");
        let value = text(&field["jsonPath"]);
        if value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if let Err(problem) = bellwether_jsonpath::field_path(value, false) {
            let detail = format!("is an invalid path: {problem}");
            errors.push(FieldError::invalid(&path, value, detail));
        }
    }
}

fn validate_names(given: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("names");
    let mut check = |field: &str, name: &str| {
        // Kinds are written in capitals, and only their lower case has to be a name.
        let kind = matches!(field, "kind" | "listKind");
        let problems = if kind {
            names::label_1035(&name.to_lowercase())
        } else {
            names::label_1035(name)
        };
        for problem in problems {
            errors.push(FieldError::invalid(&path.child(field), name, problem));
        }
    };
    let plural = text(&given["plural"]);
    check("plural", plural);
    for field in ["singular", "kind", "listKind"] {
        let name = text(&given[field]);
        if !name.is_empty() {
            check(field, name);
        }
    }
    let short = given["shortNames"].as_array().into_iter().flatten();
    for name in short {
        check("shortNames", text(name));
    }
    for field in ["kind", "listKind"] {
        if text(&given[field]).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    if !text(&given["kind"]).is_empty() && given["kind"] == given["listKind"] {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            &path.child("listKind"),
            text(&given["listKind"]),
            detail,
        ));
    }
}

fn validate_conversion(conversion: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("conversion");
    let path = path.child("strategy");
    match conversion["strategy"].as_str() {
        Some("None") => {}
        Some("Webhook") => errors.push(FieldError::invalid(
            &path,
            "Webhook",
            "embedded clusters convert by the strategy None only",
        )),
        other => {
            let other = other.unwrap_or_default();
            errors.push(FieldError::not_supported(
                &path,
                other,
                &["None", "Webhook"],
            ));
        }
    }
}

/// A version in which objects are stored may not disappear.
fn validate_stored_versions(definition: &Value, errors: &mut Vec<FieldError>) {
    let versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    let known: Vec<&str> = versions.map(|version| text(&version["name"])).collect();
    let path = FieldPath::new("status");
    let path = path.child("storedVersions");
    if definition["status"]["storedVersions"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(&path, Value::Null, detail));
    }
    let stored = definition["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten();
    for (index, name) in stored.map(text).enumerate() {
        if !known.contains(&name) {
            let detail = "missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
                .replace("v1", name);
            errors.push(FieldError::invalid(&path.index(index), name, detail));
        }
    }
}

fn validate_change(definition: &Value, live: &Value, errors: &mut Vec<FieldError>) {
    if !has_condition(live, "Established") {
        return;
    }
    let path = FieldPath::new("spec");
    let names = path.child("names");
    let fixed = [
        (path.child("scope"), "/spec/scope"),
        (names.child("kind"), "/spec/names/kind"),
        (names.child("plural"), "/spec/names/plural"),
        (path.child("group"), "/spec/group"),
    ];
    for (path, pointer) in fixed {
        let (new, old) = (definition.pointer(pointer), live.pointer(pointer));
        if new != old {
            errors.push(FieldError::invalid(
                &path,
                new.cloned().unwrap_or_default(),
                IMMUTABLE,
            ));
        }
    }
}
