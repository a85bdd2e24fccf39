//! Components that are configurations of Terraform: they become a Configuration for its controller.

use serde_json::{Map, Value, json};

use crate::context::AppContext;
use crate::error::{Class, RenderError, Stage};
use crate::render::Component;

/// Properties that are settings of the Configuration; all others are variables.
const SETTINGS: [&str; 6] = [
    "providerRef",
    "writeConnectionSecretToRef",
    "customRegion",
    "forceDelete",
    "deleteResource",
    "gitCredentialsSecretReference",
];

/// The Configuration of a component, or `None` if it is rendered by a template.
pub(crate) fn render(
    component: &Component,
    app: &AppContext,
) -> Option<Result<Value, RenderError>> {
    let schematic = component
        .definition
        .object
        .pointer("/spec/schematic/terraform")?;
    if component.definition.source().is_some() {
        return None;
    }
    Some(configuration(component, app, schematic))
}

fn configuration(
    component: &Component,
    app: &AppContext,
    schematic: &Value,
) -> Result<Value, RenderError> {
    let mut spec = Map::new();
    let source = &schematic["configuration"];
    match schematic["type"].as_str().unwrap_or_default() {
        "" => {}
        "hcl" => {
            spec.insert("hcl".to_owned(), source.clone());
        }
        "remote" => {
            spec.insert("remote".to_owned(), source.clone());
            for field in ["path", "gitRef"] {
                if !schematic[field].is_null() {
                    spec.insert(field.to_owned(), schematic[field].clone());
                }
            }
        }
        other => {
            let message = format!(
                "component {}: a configuration of type {other:?} is not supported, only hcl and remote",
                component.spec.name
            );
            return Err(RenderError::new(Stage::Render, Class::Template, message));
        }
    }
    for field in [
        "providerRef",
        "customRegion",
        "writeConnectionSecretToRef",
        "deleteResource",
    ] {
        if !schematic[field].is_null() {
            spec.insert(field.to_owned(), schematic[field].clone());
        }
    }
    let mut variables = Map::new();
    let properties = component
        .spec
        .properties
        .as_ref()
        .and_then(Value::as_object);
    for (name, value) in properties.into_iter().flatten() {
        if SETTINGS.contains(&name.as_str()) {
            spec.insert(name.clone(), value.clone());
        } else {
            variables.insert(name.clone(), value.clone());
        }
    }
    if let Some(secret) = spec.get_mut("writeConnectionSecretToRef")
        && secret["namespace"].is_null()
    {
        secret["namespace"] = app.namespace.as_str().into();
    }
    spec.entry("gitRef").or_insert_with(|| json!({}));
    spec.insert("variable".to_owned(), variables.into());
    let (api_version, kind) = component.definition.workload_kind();
    let or = |text: String, default: &str| {
        if text.is_empty() {
            default.to_owned()
        } else {
            text
        }
    };
    let annotations = component.definition.object["metadata"]["annotations"].clone();
    let mut metadata = json!({"name": component.spec.name});
    if annotations.is_object() {
        metadata["annotations"] = annotations;
    }
    Ok(json!({
        "apiVersion": or(api_version, "terraform.core.oam.dev/v1beta2"),
        "kind": or(kind, "Configuration"),
        "metadata": metadata,
        "spec": spec,
    }))
}
