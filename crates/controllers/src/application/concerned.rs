//! Which applications a change concerns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::delivery::names::label::DISTRIBUTION;
use bellwether_api::oam::names::label;
use bellwether_api::oam::{Application, ResourceTracker};
use bellwether_api::work::ManifestWork;
use bellwether_application::member::{self, object_key};
use bellwether_runtime::{Cache, Change, ObjectKey};
use parking_lot::Mutex;

/// The applications that the labels of an object name, before and after a change.
pub(super) fn owners<K: kube::Resource>(change: &Change<'_, K>) -> Vec<ObjectKey> {
    let objects = [change.old, change.new].into_iter().flatten();
    objects
        .filter_map(|object| owner_of(object.meta().labels.as_ref()))
        .collect()
}

/// Whether a tracker is gone, or is heard of when its application has a newer one already: what it has may be left over.
pub(super) fn is_late_or_gone(
    applications: &Cache<Application>,
    change: &Change<'_, ResourceTracker>,
) -> bool {
    let Some(tracker) = change.new else {
        return true;
    };
    let generation = tracker.spec.application_generation;
    let owner = owner_of(tracker.metadata.labels.as_ref());
    let application = owner.and_then(|owner| applications.get(&owner));
    let newest = application.and_then(|application| application.metadata.generation);
    generation != 0 && newest.is_some_and(|newest| newest > generation)
}

/// Applications that wait for an object of a member to be let go of, by what finds the object.
pub(super) type Contested = Mutex<HashMap<u64, BTreeSet<ObjectKey>>>;

/// The applications that wait for an object that a work no longer has.
pub(super) fn rivals(contested: &Contested, change: &Change<'_, ManifestWork>) -> Vec<ObjectKey> {
    let mut contested = contested.lock();
    if contested.is_empty() {
        return Vec::new();
    }
    let is_going = |work: &&Arc<ManifestWork>| work.metadata.deletion_timestamp.is_some();
    let now = change.new.filter(|work| !is_going(work));
    let now = now.map_or_else(Vec::new, |work| object_keys(work));
    let before = change.old.map_or_else(Vec::new, |work| object_keys(work));
    let freed = before.into_iter().filter(|key| !now.contains(key));
    let waiting = freed.filter_map(|key| contested.remove(&key));
    waiting.flatten().collect()
}

/// The objects that a work of an application brings to its member.
pub(super) fn object_keys(work: &ManifestWork) -> Vec<u64> {
    let labels = work.metadata.labels.as_ref();
    let is_distributed = labels.is_some_and(|all| all.contains_key(DISTRIBUTION));
    if !is_distributed && delivered_by(work).is_none() {
        return Vec::new();
    }
    let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
    let workload = work.spec.workload.as_ref();
    let objects = workload.map_or(&[][..], |workload| &workload.manifests);
    let keys = objects.iter();
    keys.map(|object| object_key(cluster, object)).collect()
}

/// The application whose objects a work brings to a member. Works that components and steps bring along are objects like
/// others, and those of a distribution are looked after by its controller.
pub(super) fn delivered_by(work: &ManifestWork) -> Option<ObjectKey> {
    let owner = owner_of(work.metadata.labels.as_ref())?;
    let name = member::work_name(&owner.namespace, &owner.name);
    (work.metadata.name.as_ref() == Some(&name)).then_some(owner)
}

/// The application that labels name.
pub(super) fn owner_of(labels: Option<&BTreeMap<String, String>>) -> Option<ObjectKey> {
    let labels = labels?;
    Some(ObjectKey::new(
        labels.get(label::APP_NAMESPACE)?,
        labels.get(label::APP_NAME)?,
    ))
}

pub(super) fn in_namespace(applications: &Cache<Application>, namespace: &str) -> Vec<ObjectKey> {
    let applications = applications.in_namespace(namespace);
    applications
        .iter()
        .map(|application| ObjectKey::of(&**application))
        .collect()
}
