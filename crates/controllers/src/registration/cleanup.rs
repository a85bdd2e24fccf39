//! What a cluster runs, and how the hub has it removed when the cluster leaves: works of both
//! interfaces, those of the lowest priority first.

use std::fmt::Debug;

use bellwether_api::Kind;
use bellwether_api::cluster::names::annotation;
use bellwether_api::multicluster::Work;
use bellwether_api::work::ManifestWork;
use kube::api::{DeleteParams, ListParams, Patch};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::decide::Remains;
use crate::hub::written_by;

/// A work of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Load {
    interface: Interface,
    name: String,
    /// Its turn in a clean-up, from 0 to 100.
    priority: u8,
    /// Whether it is deleted, and only waits for somebody.
    is_going: bool,
    has_finalizers: bool,
}

/// Of which of the two kinds a work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    ManifestWork,
    Work,
}

/// All works of a cluster.
pub(super) async fn loads(client: &Client, cluster: &str) -> Result<Vec<Load>, kube::Error> {
    let mut loads = of_kind::<ManifestWork>(client, cluster, Interface::ManifestWork).await?;
    loads.extend(of_kind::<Work>(client, cluster, Interface::Work).await?);
    Ok(loads)
}

async fn of_kind<K>(
    client: &Client,
    cluster: &str,
    interface: Interface,
) -> Result<Vec<Load>, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), cluster);
    let list = match api.list_metadata(&ListParams::default()).await {
        Ok(list) => list.items,
        // A hub that does not know such works has none to clean up.
        Err(kube::Error::Api(status)) if status.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    let load = |work: kube::core::PartialObjectMeta<K>| {
        let priority = work.annotations().get(annotation::CLEANUP_PRIORITY);
        Load {
            interface,
            name: work.name_any(),
            priority: priority
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
                .min(100),
            is_going: work.metadata.deletion_timestamp.is_some(),
            has_finalizers: !work.finalizers().is_empty(),
        }
    };
    Ok(list.into_iter().map(load).collect())
}

/// How much is left.
pub(super) fn remains(loads: &[Load]) -> Remains {
    let is_small = |load: &Load| load.interface == Interface::Work;
    Remains {
        resource: if !loads.is_empty() && loads.iter().all(is_small) {
            Work::NAMES.plural
        } else {
            ManifestWork::NAMES.plural
        },
        works: loads.len(),
        pending: loads.iter().filter(|load| load.is_going).count(),
    }
}

/// Deletes the works whose turn it is: those of the lowest priority.
pub(super) async fn delete_next(
    client: &Client,
    cluster: &str,
    loads: &[Load],
) -> Result<(), kube::Error> {
    let lowest = loads.iter().map(|load| load.priority).min();
    let is_next = |load: &&Load| Some(load.priority) == lowest && !load.is_going;
    for load in loads.iter().filter(is_next) {
        delete(client, cluster, load).await?;
    }
    Ok(())
}

async fn delete(client: &Client, cluster: &str, load: &Load) -> Result<(), kube::Error> {
    let client = client.clone();
    match load.interface {
        Interface::ManifestWork => {
            remove_one::<ManifestWork>(&Api::namespaced(client, cluster), &load.name).await
        }
        Interface::Work => remove_one::<Work>(&Api::namespaced(client, cluster), &load.name).await,
    }
}

/// Deletes an object, unless it is gone already.
pub(super) async fn remove_one<K>(api: &Api<K>, name: &str) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    unless_gone(api.delete(name, &DeleteParams::default()).await)
}

fn unless_gone<T>(done: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match done {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives up on what a cluster runs, as a person may ask for when its agent will never answer: its
/// works are deleted, and nobody is waited for.
pub async fn force_removal(client: &Client, cluster: &str) -> Result<(), kube::Error> {
    let none = Patch::Merge(json!({"metadata": {"finalizers": Value::Null}}));
    for load in loads(client, cluster).await? {
        delete(client, cluster, &load).await?;
        if !load.has_finalizers {
            continue;
        }
        let (client, name) = (client.clone(), &load.name);
        match load.interface {
            Interface::ManifestWork => {
                let works: Api<ManifestWork> = Api::namespaced(client, cluster);
                unless_gone(works.patch(name, &written_by(), &none).await)?;
            }
            Interface::Work => {
                let works: Api<Work> = Api::namespaced(client, cluster);
                unless_gone(works.patch(name, &written_by(), &none).await)?;
            }
        }
    }
    Ok(())
}
