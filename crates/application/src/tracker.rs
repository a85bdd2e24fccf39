//! What an application applied: recorded before it is applied, so that nothing is forgotten.
//!
//! Each generation of an application has a tracker of its own. An object that only older trackers have is no longer part of
//! the application, and is deleted; a tracker whose objects are gone, or recorded by a newer one, is deleted too. Objects that
//! stay longer than a version are in the root tracker.

use std::collections::BTreeSet;

use bellwether_api::oam::names::{LOCAL_CLUSTER, finalizer, label};
use bellwether_api::oam::{
    Application, ManagedResource, ResourceTracker, ResourceTrackerSpec, ResourceTrackerType,
};
use bellwether_json::path::str_at;
use serde_json::Value;

use crate::context::namespace;
use crate::label::Manifest;
use crate::resource_policy::{GarbageCollectStrategy, ResourcePolicies};

/// What applied an object.
pub const CREATOR_WORKFLOW: &str = "workflow";
/// What applied an object of a custom policy.
pub const CREATOR_POLICY: &str = "policy";

/// What makes two entries the same object: the version of its group does not count.
pub type Identity = (String, String, String, String, String);

/// Which object an entry is about.
pub fn identity(resource: &ManagedResource) -> Identity {
    let group = resource
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    let cluster = if resource.cluster.is_empty() {
        LOCAL_CLUSTER
    } else {
        &resource.cluster
    };
    (
        group.to_owned(),
        resource.kind.clone(),
        cluster.to_owned(),
        resource.namespace.clone(),
        resource.name.clone(),
    )
}

/// The entry of an object. Without `raw` what others change stays.
pub fn managed(manifest: &Manifest, creator: &str, policies: &ResourcePolicies) -> ManagedResource {
    let text = |path: &[&str]| {
        str_at(&manifest.object, path)
            .unwrap_or_default()
            .to_owned()
    };
    let never =
        policies.garbage_collect.strategy(&manifest.object) == GarbageCollectStrategy::Never;
    ManagedResource {
        cluster: manifest.cluster.clone(),
        creator: creator.to_owned(),
        api_version: text(&["apiVersion"]),
        kind: text(&["kind"]),
        namespace: text(&["metadata", "namespace"]),
        name: text(&["metadata", "name"]),
        component: manifest.component.clone(),
        resource_trait: manifest.trait_type.clone(),
        raw: (!policies.apply_once.keeps_everything()).then(|| manifest.object.clone()),
        skip_gc: never,
        ..ManagedResource::default()
    }
}

/// The object of an entry, as far as it can be told.
pub fn object(resource: &ManagedResource) -> Value {
    let mut object = serde_json::json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": resource.name},
    });
    if !resource.namespace.is_empty() {
        object["metadata"]["namespace"] = resource.namespace.as_str().into();
    }
    object
}

/// The tracker of a generation with these entries, and the root tracker if something stays longer.
pub fn trackers(
    application: &Application,
    revision: &str,
    entries: Vec<(ManagedResource, GarbageCollectStrategy)>,
) -> Vec<ResourceTracker> {
    let (versioned, root): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|(_, strategy)| *strategy == GarbageCollectStrategy::OnAppUpdate);
    let name = application.metadata.name.as_deref().unwrap_or_default();
    let namespace = namespace(application);
    let generation = application.metadata.generation.unwrap_or_default();
    let only = |entries: Vec<(ManagedResource, _)>| {
        entries
            .into_iter()
            .map(|(entry, _)| entry)
            .collect::<Vec<_>>()
    };
    let mut trackers = vec![tracker(
        application,
        format!("{name}-v{generation}-{namespace}"),
        revision,
        ResourceTrackerType::Versioned,
        generation,
        only(versioned),
    )];
    if !root.is_empty() {
        trackers.push(tracker(
            application,
            format!("{name}-{namespace}"),
            revision,
            ResourceTrackerType::Root,
            0,
            only(root),
        ));
    }
    trackers
}

fn tracker(
    application: &Application,
    tracker_name: String,
    revision: &str,
    tracker_type: ResourceTrackerType,
    generation: i64,
    managed_resources: Vec<ManagedResource>,
) -> ResourceTracker {
    let spec = ResourceTrackerSpec {
        tracker_type,
        application_generation: generation,
        managed_resources,
        ..ResourceTrackerSpec::default()
    };
    let mut tracker = ResourceTracker::new(tracker_name, spec);
    let labels = [
        (
            label::APP_NAME,
            application.metadata.name.clone().unwrap_or_default(),
        ),
        (label::APP_NAMESPACE, namespace(application)),
        (
            label::APP_UID,
            application.metadata.uid.clone().unwrap_or_default(),
        ),
        (label::APP_REVISION, revision.to_owned()),
    ];
    tracker.metadata.labels = Some(
        labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    );
    tracker.metadata.finalizers = Some(vec![finalizer::TRACKER.to_owned()]);
    tracker
}

/// Entries of older trackers that the current ones do not have: what is to be deleted.
pub fn leftovers<'a>(
    older: &'a [ResourceTracker],
    current: &[ResourceTracker],
) -> Vec<&'a ManagedResource> {
    let kept: BTreeSet<Identity> = current
        .iter()
        .flat_map(|tracker| &tracker.spec.managed_resources)
        .map(identity)
        .collect();
    let mut seen = BTreeSet::new();
    older
        .iter()
        .flat_map(|tracker| &tracker.spec.managed_resources)
        .filter(|entry| {
            let identity = identity(entry);
            !entry.skip_gc && !kept.contains(&identity) && seen.insert(identity)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(generation: i64) -> Application {
        serde_json::from_value(json!({
            "metadata": {"name": "shop", "namespace": "n", "uid": "u", "generation": generation},
            "spec": {"components": []},
        }))
        .unwrap()
    }

    fn entry(name: &str, cluster: &str) -> ManagedResource {
        ManagedResource {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "n".to_owned(),
            name: name.to_owned(),
            cluster: cluster.to_owned(),
            ..ManagedResource::default()
        }
    }

    fn version(generation: i64, entries: &[(&str, &str)]) -> Vec<ResourceTracker> {
        let entries = entries
            .iter()
            .map(|(name, cluster)| (entry(name, cluster), GarbageCollectStrategy::OnAppUpdate));
        trackers(&application(generation), "shop-v1", entries.collect())
    }

    #[test]
    fn what_only_older_versions_have_is_left_over() {
        let older = version(1, &[("a", ""), ("b", ""), ("c", "east")]);
        let current = version(2, &[("a", "local"), ("c", "west")]);
        let names: Vec<_> = leftovers(&older, &current)
            .iter()
            .map(|entry| (entry.name.as_str(), entry.cluster.as_str()))
            .collect();
        assert_eq!(names, [("b", ""), ("c", "east")]);
    }

    #[test]
    fn objects_that_stay_longer_are_in_the_root_tracker() {
        let entries = vec![
            (entry("a", ""), GarbageCollectStrategy::OnAppUpdate),
            (entry("b", ""), GarbageCollectStrategy::OnAppDelete),
        ];
        let trackers = trackers(&application(3), "shop-v2", entries);
        let names: Vec<_> = trackers
            .iter()
            .map(|tracker| tracker.metadata.name.as_deref().unwrap())
            .collect();
        assert_eq!(names, ["shop-v3-n", "shop-n"]);
        assert_eq!(trackers[1].spec.application_generation, 0);
    }
}
