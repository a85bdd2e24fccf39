//! Configurations: Secrets with values that others refer to by name.

use std::collections::BTreeMap;

use bellwether_api::workflow::names::{SYSTEM_NAMESPACE, annotation};
use bellwether_workflow::config::{Configuration, PROPERTIES, REFERENCES, Wanted};
use serde_json::{Value, json};

use super::super::Owner;
use super::kube::Objects;

/// What the names of ConfigMaps begin with that hold templates.
const TEMPLATE_PREFIX: &str = "config-template-";

fn namespace_of<'a>(owner: &'a Owner, params: &'a Value) -> &'a str {
    match params["namespace"].as_str() {
        None | Some("") => &owner.key.namespace,
        Some(namespace) => namespace,
    }
}

/// What the parameters of an action ask for; `namespace` is that of the workflow.
pub fn wanted<'a>(namespace: &'a str, params: &'a Value) -> Wanted<'a> {
    Wanted {
        name: params["name"].as_str().unwrap_or_default(),
        namespace: match params["namespace"].as_str() {
            None | Some("") => namespace,
            Some(namespace) => namespace,
        },
        template: params["template"].as_str().unwrap_or_default(),
        values: &params["config"],
    }
}

/// The text of the template that parameters name, if they do: `name` of the system, or `namespace/name`.
pub async fn source(objects: &Objects, params: &Value) -> Result<Option<String>, String> {
    let template = params["template"].as_str().unwrap_or_default();
    if template.is_empty() {
        return Ok(None);
    }
    let (namespace, name) = template
        .split_once('/')
        .unwrap_or((SYSTEM_NAMESPACE, template));
    let name = format!("{TEMPLATE_PREFIX}{name}");
    let reference = json!({"value": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
    }});
    let read = objects.read(&reference, &mut Vec::new()).await;
    let text = read["value"]["data"]["template"].as_str();
    text.map(|text| Some(text.to_owned())).ok_or_else(|| {
        format!("config template {template:?} not found: there is no ConfigMap {namespace}/{name} with a key \"template\"")
    })
}

/// Creates or changes a configuration.
pub async fn create(
    objects: &Objects,
    owner: &Owner,
    made: Configuration,
) -> Result<Value, String> {
    for object in made.further {
        objects.apply_object(owner, object, &Value::Null).await?;
    }
    objects.apply_config(made.secret).await?;
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
    let (_, data) = objects.config(namespace, name).await.map_err(missing)?;
    let further = data.get(REFERENCES);
    let further: Vec<Value> = further
        .and_then(|text| serde_json::from_slice(text).ok())
        .unwrap_or_default();
    for it in further {
        let object = json!({"value": {
            "apiVersion": it["apiVersion"], "kind": it["kind"],
            "metadata": {"name": it["name"], "namespace": it["namespace"]},
        }});
        // One that is gone already is no problem.
        objects.delete(&object).await;
    }
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
