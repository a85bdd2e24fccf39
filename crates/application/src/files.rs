//! What an application is rendered to, as files: one for each object, in folders of clusters.

use std::collections::BTreeMap;

use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation, label, policy as policy_type};
use serde_json::Value;

use crate::appfile::Appfile;
use crate::deliver::{Delivered, deliver, place, render_placed};
use crate::error::RenderError;
use crate::label::Manifest;

/// Everything that an application is rendered to: what its steps deliver, or if none of them delivers anything, what its policies
/// place.
pub fn rendered(appfile: &Appfile<'_>) -> Result<Vec<Delivered>, RenderError> {
    let by_steps = deliver(appfile)?.components;
    if !by_steps.is_empty() {
        return Ok(by_steps);
    }
    let named = |wanted: &str| -> Vec<String> {
        let policies = appfile.policies.iter();
        policies
            .filter(|(_, policy)| policy.policy_type == wanted)
            .map(|(name, _)| name.clone())
            .collect()
    };
    let (topologies, overrides) = (named(policy_type::TOPOLOGY), named(policy_type::OVERRIDE));
    let with = |topology: &String| overrides.iter().chain([topology]).cloned().collect();
    let lists: Vec<Vec<String>> = if topologies.is_empty() {
        vec![overrides.clone()]
    } else {
        topologies.iter().map(with).collect()
    };
    let mut delivered = Vec::new();
    for policies in lists {
        for placed in place(appfile, &policies)? {
            delivered.push(render_placed(appfile, &placed)?);
        }
    }
    Ok(delivered)
}

/// Objects by the path of their file. `namespace` is that of the application: objects of others are in folders of their own.
pub fn files(delivered: &[Delivered], namespace: &str) -> BTreeMap<String, Value> {
    let mut files = BTreeMap::new();
    for component in delivered {
        let replica = &component.placed.target.replica_key;
        for manifest in &component.manifests {
            let path = path(manifest, namespace, replica);
            files.insert(path, without_revision(&manifest.object));
        }
    }
    files
}

/// An object without what names the revision and the program that rendered it: a file changes only if its object does.
fn without_revision(object: &Value) -> Value {
    let mut object = object.clone();
    let keys = [
        ("/metadata/labels", label::APP_REVISION),
        ("/metadata/labels", label::APP_REVISION_HASH),
        ("/metadata/annotations", annotation::VELA_VERSION),
    ];
    for (place, key) in keys {
        if let Some(Value::Object(map)) = object.pointer_mut(place) {
            map.remove(key);
        }
    }
    if let Some(Value::Object(metadata)) = object.pointer_mut("/metadata") {
        metadata.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
    }
    object
}

fn path(manifest: &Manifest, namespace: &str, replica: &str) -> String {
    let is_local = manifest.cluster.is_empty() || manifest.cluster == LOCAL_CLUSTER;
    let mut folders: Vec<&str> = Vec::new();
    if !is_local {
        folders.push(&manifest.cluster);
    }
    let own = manifest.object["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    if !own.is_empty() && own != namespace {
        folders.push(own);
    }
    let parts = [
        manifest.component.as_str(),
        manifest.resource.as_str(),
        replica,
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let name = parts.collect::<Vec<_>>().join("-").replace('/', "-");
    folders.push(&name);
    format!("{}.yaml", folders.join("/"))
}

#[cfg(test)]
mod tests {
    use bellwether_api::oam::TraitStage;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(cluster: &str, namespace: &str, resource: &str, replica: &str, expected: &str) {
        let manifest = Manifest {
            object: json!({"metadata": {"namespace": namespace}}),
            component: "web".to_owned(),
            trait_type: String::new(),
            resource: resource.to_owned(),
            stage: TraitStage::DefaultDispatch,
            cluster: cluster.to_owned(),
        };
        assert_eq!(path(&manifest, "default", replica), expected);
    }

    #[test]
    fn each_object_has_a_file_of_its_own() {
        check("", "default", "", "", "web.yaml");
        check("local", "", "service", "", "web-service.yaml");
        check("cluster1", "default", "", "", "cluster1/web.yaml");
        check(
            "cluster1",
            "other",
            "a/b",
            "",
            "cluster1/other/web-a-b.yaml",
        );
        check("", "default", "", "blue", "web-blue.yaml");
    }

    #[test]
    fn files_do_not_change_with_the_revision() {
        let object = |revision: &str| {
            json!({"kind": "ConfigMap", "metadata": {
                "name": "web",
                "labels": {label::APP_REVISION: revision, label::APP_REVISION_HASH: revision, "own": "label"},
                "annotations": {annotation::VELA_VERSION: revision},
            }})
        };
        let left = without_revision(&object("v1"));
        assert_eq!(left, without_revision(&object("v2")));
        assert_eq!(
            left["metadata"],
            json!({"name": "web", "labels": {"own": "label"}})
        );
    }
}
