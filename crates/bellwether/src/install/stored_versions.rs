//! Versions in which objects of a kind were stored: an API server refuses a definition without one of them, so objects
//! are written again in a version that stays before the definition is replaced.

use anyhow::Context as _;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::cli::say;

/// How many objects are read at once.
const PAGE: u32 = 500;

/// What has to happen before a definition is replaced by ours.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing: every version that objects may be stored in stays.
    Nothing,
    /// All objects are to be written again, so that they are stored in this version.
    Rewrite { version: String },
    /// Objects would be stored in this version again, which ours does not have.
    Refuse { version: String },
}

/// Decides by the definition that the cluster has, and by ours.
fn decide(live: &Value, ours: &Value) -> Step {
    let versions = |definition: &Value| -> Vec<Value> {
        let versions = definition["spec"]["versions"].as_array();
        versions.cloned().unwrap_or_default()
    };
    let ours = versions(ours);
    let is_kept = |version: &Value| ours.iter().any(|it| it["name"] == *version);
    let stored = live["status"]["storedVersions"].as_array();
    if stored.into_iter().flatten().all(is_kept) {
        return Step::Nothing;
    }
    let live = versions(live);
    let storage = live.iter().find(|it| it["storage"] == true);
    let name = storage.map_or(&Value::Null, |it| &it["name"]);
    let version = name.as_str().unwrap_or_default().to_owned();
    if is_kept(name) {
        Step::Rewrite { version }
    } else {
        Step::Refuse { version }
    }
}

/// Prepares a cluster for definitions of ours that leave out a version.
pub(super) async fn prepare(client: &Client, definitions: &[Value]) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    for ours in definitions {
        let name = ours["metadata"]["name"].as_str().unwrap_or_default();
        let Some(live) = api.get_opt(name).await? else {
            continue;
        };
        match decide(&live.data, ours) {
            Step::Nothing => {}
            Step::Rewrite { version } => {
                let count = rewrite(client, &live.data["spec"], &version)
                    .await
                    .with_context(|| format!("cannot store {name} in {version}"))?;
                let stored = json!({"status": {"storedVersions": [version]}});
                api.patch_status(name, &PatchParams::default(), &Patch::Merge(&stored))
                    .await?;
                say(&format!("{name}: {count} objects are stored in {version}"));
            }
            Step::Refuse { version } => anyhow::bail!(
                "{name} is stored in {version}, which this version of bellwether does not have: upgrade step by step, or make \
                 another version of it the stored one first"
            ),
        }
    }
    Ok(())
}

/// Writes all objects of a kind as they are: the server stores them in its present version. Returns how many there are.
async fn rewrite(client: &Client, definition: &Value, version: &str) -> anyhow::Result<usize> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = &definition["names"];
    let (group, kind) = (text(&definition["group"]), text(&names["kind"]));
    let kind = GroupVersionKind::gvk(&group, version, &kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &text(&names["plural"]));
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut page = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let list = all.list(&page).await?;
        for object in list.items {
            let api = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
                None => all.clone(),
            };
            let written = api
                .replace(&object.name_any(), &PostParams::default(), &object)
                .await;
            match written {
                Ok(_) => count += 1,
                // Somebody else has written or deleted it.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => count += 1,
                Err(error) => return Err(error.into()),
            }
        }
        page.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A definition with versions, of which the last one is stored now, and those that were.
    fn definition(versions: &[&str], stored: &[&str]) -> Value {
        let last = versions.last();
        let versions: Vec<Value> = versions
            .iter()
            .map(|name| json!({"name": name, "served": true, "storage": Some(name) == last}))
            .collect();
        json!({"spec": {"versions": versions}, "status": {"storedVersions": stored}})
    }

    #[track_caller]
    fn check(live: (&[&str], &[&str]), ours: &[&str], expected: &Step) {
        let decided = decide(&definition(live.0, live.1), &definition(ours, &[]));
        assert_eq!(decided, *expected);
    }

    #[test]
    fn objects_are_written_again_before_their_version_goes() {
        let version = |name: &str| name.to_owned();
        check((&["v1"], &["v1"]), &["v1"], &Step::Nothing);
        check((&["v1"], &["v1"]), &["v1", "v2"], &Step::Nothing);
        check(
            (&["v1", "v2"], &["v1", "v2"]),
            &["v2"],
            &Step::Rewrite {
                version: version("v2"),
            },
        );
        check((&["v1", "v2"], &["v2"]), &["v2"], &Step::Nothing);
        check(
            (&["v1"], &["v1"]),
            &["v2"],
            &Step::Refuse {
                version: version("v1"),
            },
        );
    }
}
