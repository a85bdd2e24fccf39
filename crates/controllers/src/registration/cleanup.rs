//! What a cluster runs, and how the hub has it removed when the cluster leaves: its add-ons, where the
//! hub knows such, then its works of both interfaces, those of the lowest priority first.

use bellwether_api::Kind as _;
use bellwether_api::addon::ManagedClusterAddOn;
use bellwether_api::cluster::names::annotation;
use bellwether_api::multicluster::Work;
use bellwether_api::work::ManifestWork;
use bellwether_runtime::{delete_if_exists, unless_gone, written_by};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch};
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::decide::{Remains, Turn};

/// Something that a cluster runs, by the object on the hub that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Load {
    kind: LoadKind,
    name: String,
    /// Its turn among those of its kind, from 0 to 100.
    priority: u8,
    /// Whether it is deleted, and only waits for somebody.
    is_going: bool,
    has_finalizers: bool,
}

/// What says that a cluster runs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadKind {
    AddOn,
    ManifestWork,
    Work,
}

impl LoadKind {
    const ALL: [Self; 3] = [Self::AddOn, Self::ManifestWork, Self::Work];

    fn resource(self) -> ApiResource {
        match self {
            Self::AddOn => ApiResource::erase::<ManagedClusterAddOn>(&()),
            Self::ManifestWork => ApiResource::erase::<ManifestWork>(&()),
            Self::Work => ApiResource::erase::<Work>(&()),
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::AddOn => ManagedClusterAddOn::NAMES.plural,
            Self::ManifestWork => ManifestWork::NAMES.plural,
            Self::Work => Work::NAMES.plural,
        }
    }

    /// Add-ons go first: they make works.
    fn turn(self) -> u8 {
        match self {
            Self::AddOn => 0,
            Self::ManifestWork | Self::Work => 1,
        }
    }

    fn api(self, client: &Client, cluster: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), cluster, &self.resource())
    }
}

/// Everything that a cluster runs.
pub(super) async fn loads(client: &Client, cluster: &str) -> Result<Vec<Load>, kube::Error> {
    let mut loads = Vec::new();
    for kind in LoadKind::ALL {
        let list = kind.api(client, cluster);
        let list = match list.list_metadata(&ListParams::default()).await {
            Ok(list) => list.items,
            // A hub that does not know the kind has none to clean up, and says so in no form.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error),
        };
        loads.extend(list.into_iter().map(|object| {
            let priority = object.annotations().get(annotation::CLEANUP_PRIORITY);
            Load {
                kind,
                name: object.name_any(),
                priority: priority
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0)
                    .min(100),
                is_going: object.metadata.deletion_timestamp.is_some(),
                has_finalizers: !object.finalizers().is_empty(),
            }
        }));
    }
    Ok(loads)
}

/// How much is left.
pub(super) fn remains(loads: &[Load]) -> Remains {
    let works = loads.iter().filter(|load| load.kind != LoadKind::AddOn);
    let turn = loads.iter().map(|load| load.kind.turn()).min();
    let next: Vec<&Load> = loads
        .iter()
        .filter(|load| Some(load.kind.turn()) == turn)
        .collect();
    Remains {
        works: works.count(),
        turn: next.first().map(|first| Turn {
            resource: first.kind.plural(),
            count: next.len(),
            pending: next.iter().filter(|load| load.is_going).count(),
        }),
    }
}

/// Deletes what is next: add-ons before works, and of these those of the lowest priority.
pub(super) async fn delete_next(
    client: &Client,
    cluster: &str,
    loads: &[Load],
) -> Result<(), kube::Error> {
    let place = |load: &Load| (load.kind.turn(), load.priority);
    let first = loads.iter().map(place).min();
    let is_next = |load: &&Load| Some(place(load)) == first && !load.is_going;
    for load in loads.iter().filter(is_next) {
        let api = load.kind.api(client, cluster);
        delete_if_exists(&api, &load.name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Gives up on what a cluster runs, as a person may ask for when its agent will never answer: all of
/// it is deleted on the hub, and nobody is waited for.
pub async fn force_removal(client: &Client, cluster: &str) -> Result<(), kube::Error> {
    let none = Patch::Merge(json!({"metadata": {"finalizers": Value::Null}}));
    for load in loads(client, cluster).await? {
        let api = load.kind.api(client, cluster);
        delete_if_exists(&api, &load.name, &DeleteParams::default()).await?;
        if load.has_finalizers {
            unless_gone(api.patch(&load.name, &written_by(), &none).await)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(kind: LoadKind, is_going: bool) -> Load {
        Load {
            kind,
            name: "l".to_owned(),
            priority: 0,
            is_going,
            has_finalizers: false,
        }
    }

    #[test]
    fn what_is_left_is_told_by_whose_turn_it_is() {
        let check = |loads: &[Load], works: usize, turn: Option<(&'static str, usize, usize)>| {
            let turn = turn.map(|(resource, count, pending)| Turn {
                resource,
                count,
                pending,
            });
            assert_eq!(remains(loads), Remains { works, turn });
        };
        let (work, small) = (LoadKind::ManifestWork, LoadKind::Work);
        check(&[], 0, None);
        check(&[load(small, true)], 1, Some(("works", 1, 1)));
        let both = [load(work, false), load(small, true)];
        check(&both, 2, Some(("manifestworks", 2, 1)));
        let add_on = [load(LoadKind::AddOn, true), load(work, false)];
        check(&add_on, 1, Some(("managedclusteraddons", 1, 1)));
    }
}
