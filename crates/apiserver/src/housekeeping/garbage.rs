//! Owner references: what is owned goes with its last owner, or is left behind on request.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::handler::delete::delete_object;
use crate::housekeeping::rewrite::{keep, remove_finalizer, rewrite};
use crate::metadata;
use crate::object::{Owner, StoredObject};
use crate::params::{DeleteOptions, Propagation};
use crate::resource::Resource;
use crate::status::ApiError;

/// Keeps a deleted object until its dependents have forgotten it.
pub(crate) const ORPHAN: &str = "orphan";
/// Keeps a deleted object until the dependents that block it are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

const CONTROLLER: &str = "generic-garbage-collector";

/// Who depends on whom, by the owner's uid.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

impl Graph {
    /// Takes in a change and adds to `todo` what it affects.
    pub(super) fn observe(
        &mut self,
        key: &Arc<str>,
        before: Option<&StoredObject>,
        now: Option<&StoredObject>,
        todo: &mut BTreeSet<Arc<str>>,
    ) {
        let old = before.map_or(&[][..], StoredObject::owners);
        let new = now.map_or(&[][..], StoredObject::owners);
        if old != new {
            for owner in old {
                self.forget(&owner.uid, key);
            }
            for owner in new {
                self.dependents
                    .entry(owner.uid.clone())
                    .or_default()
                    .insert(key.clone());
            }
            if !new.is_empty() {
                todo.insert(key.clone());
            }
        }
        match (before, now) {
            // Dependents have to find out that their owner is gone.
            (Some(gone), None) => todo.extend(self.of(gone.uid())),
            (_, Some(now)) if now.is_deleting() => {
                todo.insert(key.clone());
            }
            _ => {}
        }
    }

    /// The keys of the objects that `uid` owns.
    fn of(&self, uid: &str) -> Vec<Arc<str>> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    fn forget(&mut self, uid: &str, key: &Arc<str>) {
        if let Some(keys) = self.dependents.get_mut(uid) {
            keys.remove(key);
            if keys.is_empty() {
                self.dependents.remove(uid);
            }
        }
    }
}

/// How an owner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnerState {
    /// It is there and stays.
    Solid,
    /// It is gone, or somebody else bears its name.
    Absent,
    /// It is there, but is being deleted and waits for its dependents.
    Waiting,
    /// Its kind is not known here, so nothing can be said.
    Unknown,
}

/// Looks at one object: does it go with its owners, and may it leave its dependents?
pub(super) async fn collect(
    cluster: &Arc<Cluster>,
    graph: &Graph,
    key: &Arc<str>,
    todo: &mut BTreeSet<Arc<str>>,
) {
    let Some(entry) = cluster.keyspace().get(key) else {
        return;
    };
    let Some(resource) = resource_of(cluster, key) else {
        return;
    };
    let object = entry.value;
    let result = if object.is_deleting() {
        let value = object.to_untyped_value();
        let finalizers = metadata::finalizers(&value);
        if finalizers.contains(&ORPHAN) {
            release_dependents(cluster, graph, &resource, key, &object).await
        } else if finalizers.contains(&FOREGROUND) {
            wait_for_dependents(cluster, graph, &resource, key, &object, todo).await
        } else {
            Ok(())
        }
    } else if object.owners().is_empty() {
        Ok(())
    } else {
        follow_owners(cluster, graph, &resource, key, &object, todo).await
    };
    if let Err(error) = result
        && error.reason != "NotFound"
        && error.reason != "Conflict"
    {
        tracing::warn!(cluster = cluster.name(), name = &**key, %error, "cannot collect an object");
    }
}

fn resource_of(cluster: &Cluster, key: &str) -> Option<Arc<Resource>> {
    cluster.resources().of_key(key).cloned()
}

/// Deletes an object whose owners are gone; removes references to those that are if others remain.
async fn follow_owners(
    cluster: &Arc<Cluster>,
    graph: &Graph,
    resource: &Arc<Resource>,
    key: &Arc<str>,
    object: &StoredObject,
    todo: &mut BTreeSet<Arc<str>>,
) -> Result<(), ApiError> {
    let (namespace, _) = resource.split_key(key);
    let standings: Vec<(&Owner, OwnerState)> = object
        .owners()
        .iter()
        .map(|owner| (owner, standing(cluster, owner, namespace)))
        .collect();
    let any = |wanted: OwnerState| standings.iter().any(|(_, standing)| *standing == wanted);
    if any(OwnerState::Unknown) {
        return Ok(());
    }
    let cx = RequestContext::internal(cluster, resource, key, CONTROLLER);
    if any(OwnerState::Solid) {
        let gone: Vec<&str> = standings
            .iter()
            .filter(|(_, standing)| *standing != OwnerState::Solid)
            .map(|(owner, _)| &*owner.uid)
            .collect();
        return if gone.is_empty() {
            Ok(())
        } else {
            remove_owners(&cx, &gone).await
        };
    }
    let has_dependents = !graph.of(object.uid()).is_empty();
    let propagation = if any(OwnerState::Waiting) && has_dependents {
        Some(Propagation::Foreground)
    } else {
        None
    };
    let options = DeleteOptions {
        uid: Some(object.uid().to_owned()),
        propagation,
        ..DeleteOptions::default()
    };
    delete_object(&cx, &options).await?;
    // An owner that waits may go on.
    todo.extend(standings.iter().filter_map(|(owner, standing)| {
        let waits = *standing == OwnerState::Waiting;
        waits
            .then(|| owner_key(cluster, owner, namespace))
            .flatten()
    }));
    Ok(())
}

/// The keys of the owners of an object, some of which may wait for it to go.
pub(super) fn owner_keys(cluster: &Cluster, key: &str, object: &StoredObject) -> Vec<Arc<str>> {
    let Some(resource) = resource_of(cluster, key) else {
        return Vec::new();
    };
    let (namespace, _) = resource.split_key(key);
    object
        .owners()
        .iter()
        .filter_map(|owner| owner_key(cluster, owner, namespace))
        .collect()
}

fn owner_key(cluster: &Cluster, owner: &Owner, namespace: Option<&str>) -> Option<Arc<str>> {
    let resources = cluster.resources();
    let resource = resources.find_kind(&owner.api_version, &owner.kind)?;
    let namespace = namespace.filter(|_| resource.namespaced);
    if resource.namespaced && namespace.is_none() {
        return None;
    }
    Some(resource.key(namespace, &owner.name).into())
}

fn standing(cluster: &Cluster, owner: &Owner, namespace: Option<&str>) -> OwnerState {
    let Some(key) = owner_key(cluster, owner, namespace) else {
        return OwnerState::Unknown;
    };
    match cluster.keyspace().get(&key) {
        Some(entry) if entry.value.uid() == &*owner.uid => {
            let waiting = entry.value.is_deleting()
                && metadata::finalizers(&entry.value.to_untyped_value()).contains(&FOREGROUND);
            if waiting {
                OwnerState::Waiting
            } else {
                OwnerState::Solid
            }
        }
        _ => OwnerState::Absent,
    }
}

/// Removes references to owners.
async fn remove_owners(cx: &RequestContext, uids: &[&str]) -> Result<(), ApiError> {
    rewrite(cx, |object| {
        keep(object, "ownerReferences", |owner| {
            !owner["uid"].as_str().is_some_and(|uid| uids.contains(&uid))
        });
    })
    .await
}

/// Makes all dependents forget the object, then lets it go.
async fn release_dependents(
    cluster: &Arc<Cluster>,
    graph: &Graph,
    resource: &Arc<Resource>,
    key: &Arc<str>,
    object: &StoredObject,
) -> Result<(), ApiError> {
    for dependent in graph.of(object.uid()) {
        let Some(resource) = resource_of(cluster, &dependent) else {
            continue;
        };
        let cx = RequestContext::internal(cluster, &resource, &dependent, CONTROLLER);
        match remove_owners(&cx, &[object.uid()]).await {
            Err(error) if error.reason != "NotFound" => return Err(error),
            _ => {}
        }
    }
    let cx = RequestContext::internal(cluster, resource, key, CONTROLLER);
    remove_finalizer(&cx, ORPHAN).await
}

/// Deletes the dependents; lets the object go when none that blocks it is left.
async fn wait_for_dependents(
    cluster: &Arc<Cluster>,
    graph: &Graph,
    resource: &Arc<Resource>,
    key: &Arc<str>,
    object: &StoredObject,
    todo: &mut BTreeSet<Arc<str>>,
) -> Result<(), ApiError> {
    let mut blocked = false;
    for dependent in graph.of(object.uid()) {
        let Some(entry) = cluster.keyspace().get(&dependent) else {
            continue;
        };
        blocked |= entry
            .value
            .owners()
            .iter()
            .any(|owner| *owner.uid == *object.uid() && owner.block_owner_deletion);
        if !entry.value.is_deleting() {
            todo.insert(dependent);
        }
    }
    if blocked {
        Ok(())
    } else {
        let cx = RequestContext::internal(cluster, resource, key, CONTROLLER);
        remove_finalizer(&cx, FOREGROUND).await
    }
}
