//! The ConfigMap with the values that steps of a workflow hand on, for people and other tools.
//!
//! It is written from the log. If somebody deletes it, it is written again.

use std::collections::BTreeMap;

use bellwether_api::workflow::ContextBackend;
use bellwether_api::workflow::names::{annotation, context};
use bellwether_json::time::format_time;
use bellwether_runtime::{created_by, written_by};
use bellwether_workflow::{State, project};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch};
use kube::{Api, Client};
use serde_json::json;

use super::Owner;

/// Writes the context of a workflow, and says where it is.
pub async fn write(
    client: &Client,
    owner: &Owner,
    state: &State,
    known: Option<&ContextBackend>,
) -> Result<ContextBackend, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &owner.key.namespace);
    let mut data: BTreeMap<String, String> = state.context.clone();
    data.insert(context::VARS.to_owned(), project::vars(state));
    let name = known.map_or_else(
        || context::config_map(&owner.key.name),
        |known| known.name.clone(),
    );
    let live = api.get_opt(&name).await?;
    if let Some(live) = &live {
        let references = live
            .metadata
            .owner_references
            .as_deref()
            .unwrap_or_default();
        if references
            .iter()
            .any(|reference| reference.uid == owner.reference.uid)
        {
            if live.data.as_ref() != Some(&data) {
                let mut patch = json!({"data": data});
                for gone in live
                    .data
                    .iter()
                    .flatten()
                    .filter(|(key, _)| !data.contains_key(*key))
                {
                    patch["data"][gone.0] = serde_json::Value::Null;
                }
                api.patch(&name, &written_by(), &Patch::Merge(patch))
                    .await?;
            }
            return Ok(backend(live));
        }
    }
    let name = match live {
        // It belongs to somebody else.
        Some(_) => format!("{name}-{}", suffix(&owner.reference.uid)),
        None => name,
    };
    let started = state.started.map(format_time).unwrap_or_default();
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(owner.key.namespace.to_string()),
            annotations: Some([(annotation::START_TIME.to_owned(), started)].into()),
            owner_references: Some(vec![owner.reference.clone()]),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    };
    match api.create(&created_by(), &map).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(backend(&map)),
        other => other.map(|map| backend(&map)),
    }
}

/// Keeps the evaluated template of a step, for people who debug it.
pub async fn write_debug(
    client: &Client,
    owner: &Owner,
    id: &str,
    text: &str,
) -> Result<(), kube::Error> {
    let uid = &owner.reference.uid;
    let short = &uid[uid.len().saturating_sub(5)..];
    let name = format!("{}-{id}-debug-{short}", owner.key.name);
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &owner.key.namespace);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(owner.key.namespace.to_string()),
            owner_references: Some(vec![owner.reference.clone()]),
            ..ObjectMeta::default()
        },
        data: Some([("debug".to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    };
    match api.create(&created_by(), &map).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            api.replace(&name, &created_by(), &map).await.map(drop)
        }
        other => other.map(drop),
    }
}

/// Five letters that are the same for the same workflow.
fn suffix(uid: &str) -> String {
    let letters = uid.chars().filter(char::is_ascii_alphanumeric);
    letters.take(5).collect::<String>().to_ascii_lowercase()
}

fn backend(map: &ConfigMap) -> ContextBackend {
    ContextBackend {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: map.metadata.name.clone().unwrap_or_default(),
        namespace: map.metadata.namespace.clone().unwrap_or_default(),
        uid: map.metadata.uid.clone().unwrap_or_default(),
        ..ContextBackend::default()
    }
}
