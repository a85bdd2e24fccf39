//! Whom a change concerns: the keys that have to be looked at because of it.

use std::collections::BTreeSet;

use bellwether_api::simulator;
use bellwether_api::workload::service::SERVICE_NAME;
use bellwether_runtime::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::kind::{Kind, annotation, controller_of, key_of, label};
use crate::select::{matches, selects};
use crate::world::{Difference, LiveObject, World};

/// An object of a cluster that has to be looked at.
pub(crate) type Target = (Kind, ObjectKey);

/// The targets that a change concerns.
pub(crate) fn affected(world: &World, kind: Kind, difference: &Difference) -> BTreeSet<Target> {
    let mut targets = BTreeSet::new();
    let states = [difference.old.as_ref(), difference.new.as_ref()];
    if difference.new.is_some() {
        targets.insert((kind, difference.key.clone()));
    }
    for metadata in states.into_iter().flatten().map(LiveObject::metadata) {
        targets.extend(owner(metadata));
        if controller_of(metadata).is_none() {
            targets.extend(adopters(world, kind, metadata));
        }
    }
    match kind {
        Kind::Pod => targets.extend(of_pod(world, difference)),
        Kind::Endpoints => {
            targets.insert((Kind::Service, difference.key.clone()));
        }
        Kind::EndpointSlice => {
            targets.extend(states.into_iter().flatten().filter_map(|known| {
                let service = label(known.metadata(), SERVICE_NAME)?;
                let key = ObjectKey::new(&difference.key.namespace, service);
                Some((Kind::Service, key))
            }));
        }
        Kind::Claim => targets.extend(users_of_claim(world, &difference.key)),
        Kind::Volume | Kind::StorageClass => {
            let claims = world.claims.all();
            targets.extend(claims.map(|claim| (Kind::Claim, key_of(claim.as_ref()))));
        }
        Kind::Node => targets.extend(of_node(world)),
        Kind::ServiceAccount | Kind::ConfigMap => {
            let namespace = ObjectKey::cluster_scoped(&difference.key.namespace);
            targets.insert((Kind::Namespace, namespace));
        }
        _ => {}
    }
    if is_scalable(kind) {
        // The size of a workload is what a budget's percentage is of.
        let budgets = world.budgets.in_namespace(&difference.key.namespace);
        targets.extend(budgets.map(|found| (Kind::DisruptionBudget, key_of(found.as_ref()))));
        targets.extend(autoscalers_of(world, kind, &difference.key));
    }
    if steering(states[0]) != steering(states[1]) {
        let uid = states.into_iter().flatten().next();
        let uid = uid.and_then(|known| known.metadata().uid.as_deref());
        targets.extend(pods_below(world, uid.unwrap_or_default()));
    }
    targets
}

/// Everything that there is, for a start.
pub(crate) fn everything(world: &World) -> Vec<Target> {
    let mut targets = Vec::new();
    macro_rules! add {
        ($($kind:ident from $objects:ident),* $(,)?) => {
            $(targets.extend(world.$objects.all().map(|object| (Kind::$kind, key_of(object.as_ref()))));)*
        };
    }
    add!(
        Deployment from deployments, ReplicaSet from replica_sets,
        ReplicationController from replication_controllers, StatefulSet from stateful_sets,
        Node from nodes, DaemonSet from daemon_sets, Job from jobs, CronJob from cron_jobs, Pod from pods,
        Service from services, Namespace from namespaces, Claim from claims, Volume from volumes,
        Autoscaler from autoscalers, DisruptionBudget from budgets,
    );
    targets
}

fn owner(metadata: &ObjectMeta) -> Option<Target> {
    let owner = controller_of(metadata)?;
    let kind = Kind::of_reference(&owner.api_version, &owner.kind)?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    Some((kind, ObjectKey::new(namespace, &owner.name)))
}

/// Controllers that may want an object that has none.
fn adopters(world: &World, kind: Kind, metadata: &ObjectMeta) -> Vec<Target> {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let labels = metadata.labels.as_ref();
    let mut found = Vec::new();
    match kind {
        Kind::Pod => {
            let sets = world.replica_sets.in_namespace(namespace).filter(|set| {
                set.spec
                    .as_ref()
                    .is_some_and(|spec| matches(&spec.selector, labels))
            });
            found.extend(sets.map(|set| (Kind::ReplicaSet, key_of(set.as_ref()))));
            let controllers = world.replication_controllers.in_namespace(namespace);
            let controllers = controllers.filter(|controller| {
                let spec = controller.spec.as_ref();
                selects(spec.and_then(|spec| spec.selector.as_ref()), labels)
            });
            found.extend(controllers.map(|found| (Kind::ReplicationController, key_of(&**found))));
            let sets = world.stateful_sets.in_namespace(namespace).filter(|set| {
                set.spec
                    .as_ref()
                    .is_some_and(|spec| matches(&spec.selector, labels))
            });
            found.extend(sets.map(|set| (Kind::StatefulSet, key_of(set.as_ref()))));
            let sets = world.daemon_sets.in_namespace(namespace).filter(|set| {
                set.spec
                    .as_ref()
                    .is_some_and(|spec| matches(&spec.selector, labels))
            });
            found.extend(sets.map(|set| (Kind::DaemonSet, key_of(set.as_ref()))));
        }
        Kind::ReplicaSet => {
            let owners = world.deployments.in_namespace(namespace).filter(|owner| {
                owner
                    .spec
                    .as_ref()
                    .is_some_and(|spec| matches(&spec.selector, labels))
            });
            found.extend(owners.map(|owner| (Kind::Deployment, key_of(owner.as_ref()))));
        }
        _ => {}
    }
    found
}

/// Services and budgets that select a pod, and the deployment that waits for its end.
fn of_pod(world: &World, difference: &Difference) -> Vec<Target> {
    let namespace = &difference.key.namespace;
    let states = [difference.old.as_ref(), difference.new.as_ref()];
    let labels: Vec<_> = states
        .into_iter()
        .flatten()
        .map(|known| known.metadata().labels.as_ref())
        .collect();
    let mut found = Vec::new();
    let services = world.services.in_namespace(namespace).filter(|service| {
        let selector = service
            .spec
            .as_ref()
            .and_then(|spec| spec.selector.as_ref());
        labels.iter().any(|labels| selects(selector, *labels))
    });
    found.extend(services.map(|service| (Kind::Service, key_of(service.as_ref()))));
    let budgets = world.budgets.in_namespace(namespace).filter(|budget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| labels.iter().any(|labels| matches(selector, *labels)))
    });
    found.extend(budgets.map(|budget| (Kind::DisruptionBudget, key_of(budget.as_ref()))));
    let specs = states
        .into_iter()
        .flatten()
        .filter_map(|known| match known {
            LiveObject::Pod(pod) => pod.spec.as_ref(),
            LiveObject::Other(_) => None,
        });
    let volumes = specs.flat_map(|spec| spec.volumes.iter().flatten());
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    found.extend(claims.map(|claim| (Kind::Claim, ObjectKey::new(namespace, &claim.claim_name))));
    if difference.new.is_none() {
        let set = states.into_iter().flatten().find_map(|known| {
            let (_, key) = owner(known.metadata()).filter(|(kind, _)| *kind == Kind::ReplicaSet)?;
            world.replica_sets.get(&key)
        });
        found.extend(set.and_then(|set| owner(&set.metadata)));
        // A place on a node is free.
        found.extend(unscheduled(world));
    }
    found
}

/// Pods that wait for a claim, and the claim's volume.
fn users_of_claim(world: &World, claim: &ObjectKey) -> Vec<Target> {
    let waiting = world.pods.in_namespace(&claim.namespace).filter(|pod| {
        pod.spec.as_ref().is_some_and(|spec| {
            spec.node_name.is_none()
                && spec.volumes.iter().flatten().any(|volume| {
                    let source = volume.persistent_volume_claim.as_ref();
                    source.is_some_and(|source| source.claim_name == *claim.name)
                })
        })
    });
    let mut found: Vec<_> = waiting
        .map(|pod| (Kind::Pod, key_of(pod.as_ref())))
        .collect();
    let volumes = world.volumes.all().filter(|volume| {
        let bound = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.claim_ref.as_ref());
        bound.is_some_and(|bound| {
            bound.name.as_deref() == Some(&*claim.name)
                && bound.namespace.as_deref() == Some(&*claim.namespace)
        })
    });
    found.extend(volumes.map(|volume| (Kind::Volume, key_of(volume.as_ref()))));
    found
}

/// A node that changed may take pods that nobody took, and needs its daemons.
fn of_node(world: &World) -> Vec<Target> {
    let daemons = world.daemon_sets.all();
    let mut found: Vec<_> = daemons
        .map(|set| (Kind::DaemonSet, key_of(set.as_ref())))
        .collect();
    found.extend(unscheduled(world));
    found
}

fn unscheduled(world: &World) -> impl Iterator<Item = Target> {
    let waiting = world.pods.all().filter(|pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_none()
    });
    waiting.map(|pod| (Kind::Pod, key_of(pod.as_ref())))
}

fn is_scalable(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Deployment | Kind::ReplicaSet | Kind::ReplicationController | Kind::StatefulSet
    )
}

fn autoscalers_of(world: &World, kind: Kind, key: &ObjectKey) -> Vec<Target> {
    let autoscalers = world.autoscalers.in_namespace(&key.namespace);
    autoscalers
        .filter(|autoscaler| {
            autoscaler.spec.as_ref().is_some_and(|spec| {
                let target = &spec.scale_target_ref;
                target.kind == kind.names().kind && target.name == *key.name
            })
        })
        .map(|autoscaler| (Kind::Autoscaler, key_of(autoscaler.as_ref())))
        .collect()
}

/// The annotations that steer the simulation.
fn steering(known: Option<&LiveObject>) -> Option<[Option<&str>; 5]> {
    let metadata = known?.metadata();
    Some(
        [
            simulator::READY_AFTER,
            simulator::RUN_FOR,
            simulator::FAIL,
            simulator::EXIT_CODE,
            simulator::FAIL_INDEXES,
        ]
        .map(|name| annotation(metadata, name)),
    )
}

/// The pods of a workload, directly or by way of its replica sets and jobs.
fn pods_below(world: &World, uid: &str) -> Vec<Target> {
    let sets = world.replica_sets.owned_by(uid).map(|set| &set.metadata);
    let jobs = world.jobs.owned_by(uid).map(|job| &job.metadata);
    let between = sets
        .chain(jobs)
        .filter_map(|metadata| metadata.uid.as_deref());
    std::iter::once(uid)
        .chain(between)
        .flat_map(|uid| world.pods.owned_by(uid))
        .map(|pod| (Kind::Pod, key_of(pod.as_ref())))
        .collect()
}
