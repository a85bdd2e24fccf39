//! What an application applied: recorded before it is applied, so that nothing is forgotten.
//!
//! Each generation of an application has a tracker of its own. An object that only older trackers have is no longer part of
//! the application, and is deleted; a tracker whose objects are gone, or recorded by a newer one, is deleted too. Objects that
//! stay longer than a version are in the root tracker.

use std::collections::BTreeSet;

use bellwether_api::CompactJson;
use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation, finalizer, label};
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

/// Which object a manifest is about.
pub fn identity_of(manifest: &Manifest) -> Identity {
    let text = |path: &[&str]| {
        str_at(&manifest.object, path)
            .unwrap_or_default()
            .to_owned()
    };
    identity(&ManagedResource {
        cluster: manifest.cluster.clone(),
        api_version: text(&["apiVersion"]),
        kind: text(&["kind"]),
        namespace: text(&["metadata", "namespace"]),
        name: text(&["metadata", "name"]),
        ..ManagedResource::default()
    })
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
        raw: (!policies.apply_once.keeps_everything()).then(|| CompactJson::from(&manifest.object)),
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

/// The name of the tracker of a revision: the one that it has, or a new one. What is published has the name of its version,
/// however often the spec changes meanwhile.
pub fn name_of(application: &Application, revision: &str, known: &[ResourceTracker]) -> String {
    let annotations = application.metadata.annotations.as_ref();
    if let Some(version) = annotations.and_then(|all| all.get(annotation::PUBLISH_VERSION)) {
        let app = application.metadata.name.as_deref().unwrap_or_default();
        return format!("{app}-{version}-{}", namespace(application));
    }
    let revision_of = |tracker: &ResourceTracker| {
        let labels = tracker.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(label::APP_REVISION).cloned())
    };
    let is_own = |tracker: &&ResourceTracker| {
        tracker.spec.tracker_type == ResourceTrackerType::Versioned
            && revision_of(tracker).as_deref() == Some(revision)
    };
    if let Some(name) = known
        .iter()
        .find(is_own)
        .and_then(|own| own.metadata.name.clone())
    {
        return name;
    }
    let app = application.metadata.name.as_deref().unwrap_or_default();
    let namespace = namespace(application);
    let generation = application.metadata.generation.unwrap_or_default();
    let name = format!("{app}-v{generation}-{namespace}");
    // The workflow or a policy that it refers to changed, which is a revision but no generation.
    let is_taken = known
        .iter()
        .any(|it| it.metadata.name.as_ref() == Some(&name));
    if is_taken {
        let number = revision
            .rsplit_once("-v")
            .map_or(revision, |(_, number)| number);
        return format!("{app}-v{generation}-r{number}-{namespace}");
    }
    name
}

/// The name of the tracker of what stays longer than a version.
pub fn root_name(application: &Application) -> String {
    let app = application.metadata.name.as_deref().unwrap_or_default();
    format!("{app}-{}", namespace(application))
}

/// A tracker that has nothing yet.
pub fn new(
    application: &Application,
    name: String,
    revision: &str,
    tracker_type: ResourceTrackerType,
) -> ResourceTracker {
    let generation = match tracker_type {
        ResourceTrackerType::Root => 0,
        _ => application.metadata.generation.unwrap_or_default(),
    };
    tracker(
        application,
        name,
        revision,
        tracker_type,
        generation,
        Vec::new(),
    )
}

/// Adds an entry, or puts it in the place of the one that it had; tells whether that is a change.
pub fn add(tracker: &mut ResourceTracker, entry: ManagedResource) -> bool {
    let wanted = identity(&entry);
    let entries = &mut tracker.spec.managed_resources;
    match entries.iter_mut().find(|known| identity(known) == wanted) {
        Some(known) if *known == entry => false,
        Some(known) => {
            *known = entry;
            true
        }
        None => {
            entries.push(entry);
            true
        }
    }
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

    fn version(generation: i64, revision: &str, entries: &[(&str, &str)]) -> ResourceTracker {
        let application = application(generation);
        let name = name_of(&application, revision, &[]);
        let mut tracker = new(&application, name, revision, ResourceTrackerType::Versioned);
        for (name, cluster) in entries {
            assert!(add(&mut tracker, entry(name, cluster)));
        }
        tracker
    }

    #[test]
    fn what_only_older_versions_have_is_left_over() {
        let older = [version(
            1,
            "shop-v1",
            &[("a", ""), ("b", ""), ("c", "east")],
        )];
        let current = [version(2, "shop-v2", &[("a", "local"), ("c", "west")])];
        let names: Vec<_> = leftovers(&older, &current)
            .iter()
            .map(|entry| (entry.name.as_str(), entry.cluster.as_str()))
            .collect();
        assert_eq!(names, [("b", ""), ("c", "east")]);
    }

    #[test]
    fn a_revision_keeps_its_tracker_and_a_new_one_gets_its_own() {
        let known = [version(3, "shop-v2", &[])];
        let name =
            |generation: i64, revision: &str| name_of(&application(generation), revision, &known);
        assert_eq!(name(3, "shop-v2"), "shop-v3-n");
        // Something that is not part of the spec made a generation, but no revision.
        assert_eq!(name(4, "shop-v2"), "shop-v3-n");
        assert_eq!(name(4, "shop-v3"), "shop-v4-n");
        // A workflow that it refers to made a revision, but no generation.
        assert_eq!(name(3, "shop-v3"), "shop-v3-r3-n");
        assert_eq!(root_name(&application(3)), "shop-n");
    }

    #[test]
    fn an_object_is_recorded_once() {
        let mut tracker = version(1, "shop-v1", &[("a", "")]);
        assert!(!add(&mut tracker, entry("a", "")));
        let mut changed = entry("a", "");
        changed.raw = Some(json!({}).into());
        assert!(add(&mut tracker, changed));
        assert_eq!(tracker.spec.managed_resources.len(), 1);
    }
}
