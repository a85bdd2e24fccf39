//! Configurations: Secrets with values that others refer to by name.

use std::collections::BTreeMap;

use bellwether_api::workflow::names::{annotation, label};
use serde_json::{Value, json};

use super::super::{Owner, OwnerKind};
use super::kube::Objects;

/// The key of a configuration that holds its values.
const PROPERTIES: &str = "input-properties";

fn namespace_of<'a>(owner: &'a Owner, params: &'a Value) -> &'a str {
    match params["namespace"].as_str() {
        None | Some("") => &owner.key.namespace,
        Some(namespace) => namespace,
    }
}

/// Creates or changes a configuration.
pub async fn create(objects: &Objects, owner: &Owner, params: &Value) -> Result<Value, String> {
    let template = params["template"].as_str().unwrap_or_default();
    if !template.is_empty() {
        return Err(format!("config template {template:?} not found"));
    }
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": params["name"],
            "namespace": namespace_of(owner, params),
            "labels": {
                label::CONFIG_CATALOG: label::CONFIG_CATALOG_VALUE,
                label::CONFIG_TYPE: template,
            },
            "annotations": {annotation::CONFIG_ALIAS: "", annotation::CONFIG_DESCRIPTION: ""},
        },
        "stringData": {PROPERTIES: params["config"].to_string()},
    });
    if owner.kind == OwnerKind::Application {
        for (name, value) in &owner.labels {
            secret["metadata"]["labels"][name] = json!(value);
        }
    }
    objects.apply_config(secret).await?;
    Ok(json!({}))
}

/// Reads a configuration.
pub async fn read(objects: &Objects, owner: &Owner, params: &Value) -> Result<Value, String> {
    let name = params["name"].as_str().unwrap_or_default();
    let (secret, data) = objects.config(namespace_of(owner, params), name).await?;
    if secret["metadata"]["annotations"][annotation::CONFIG_SENSITIVE] == "true" {
        return Err("the config is sensitive".to_owned());
    }
    Ok(json!({"config": values(&data)}))
}

/// Lists the configurations of a template.
pub async fn list(objects: &Objects, owner: &Owner, params: &Value) -> Result<Value, String> {
    let template = params["template"].as_str().unwrap_or_default();
    let template = template.rsplit('/').next().unwrap_or_default();
    if template.is_empty() {
        return Err("the request is invalid".to_owned());
    }
    let found = objects
        .configs(namespace_of(owner, params), template)
        .await?;
    let configs: Vec<Value> = found
        .iter()
        .map(|(secret, data)| {
            let annotations = &secret["metadata"]["annotations"];
            json!({
                "name": secret["metadata"]["name"],
                "alias": annotations[annotation::CONFIG_ALIAS].as_str().unwrap_or_default(),
                "description": annotations[annotation::CONFIG_DESCRIPTION].as_str().unwrap_or_default(),
                "config": values(data),
            })
        })
        .collect();
    Ok(json!({"configs": configs}))
}

/// Deletes a configuration.
pub async fn delete(objects: &Objects, owner: &Owner, params: &Value) -> Result<Value, String> {
    let name = params["name"].as_str().unwrap_or_default();
    let namespace = namespace_of(owner, params);
    let missing = |_| format!("the config {name} not found");
    objects.config(namespace, name).await.map_err(missing)?;
    let reference = json!({"value": {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
    }});
    let deleted = objects.delete(&reference).await;
    match deleted["err"].as_str() {
        Some(problem) => Err(problem.to_owned()),
        None => Ok(json!({})),
    }
}

fn values(data: &BTreeMap<String, Vec<u8>>) -> Value {
    let properties = data.get(PROPERTIES);
    let values = properties.and_then(|text| serde_json::from_slice(text).ok());
    values.unwrap_or_else(|| json!({}))
}
