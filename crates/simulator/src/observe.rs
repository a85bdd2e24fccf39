//! Picking what a decision may look at.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::behaviour::Behaviour;
use crate::kind::{Kind, Reference, controller_of, is_deleting, label, uid_of};
use crate::member::{Key, Member};
use crate::plan::Plan;
use crate::select::{matches, selects};
use crate::world::World;
use crate::{
    account, autoscaler, certificate, claim, cron_job, daemon_set, deployment, disruption, job,
    node, pod, pods, replica_set, scheduler, service, stateful_set,
};
use bellwether_api::workload::certificate::NAME;
use bellwether_api::workload::service::SERVICE_NAME;
use bellwether_runtime::ObjectKey;
use jiff::tz::TimeZone;

/// What has to be done for an object; nothing if it is gone.
pub(crate) fn decide(member: &Member, key: &Key, now: Timestamp) -> Plan {
    let name = &key.object;
    let plan = match key.kind {
        Kind::Deployment => of_deployment(&member.world().read(), name, now),
        Kind::ReplicaSet => of_replica_set(&member.world().read(), name, now),
        Kind::ReplicationController => of_replication_controller(&member.world().read(), name, now),
        Kind::Pod => of_pod(member, name, now),
        Kind::StatefulSet => of_stateful_set(&member.world().read(), name, now),
        Kind::DaemonSet => of_daemon_set(&member.world().read(), name, now),
        Kind::Job => of_job(member, name, now),
        Kind::CronJob => of_cron_job(&member.world().read(), name, now),
        Kind::Service => of_service(&member.world().read(), name),
        Kind::Claim => of_claim(&member.world().read(), name),
        Kind::Volume => of_volume(&member.world().read(), name),
        Kind::Autoscaler => of_autoscaler(&member.world().read(), name, now),
        Kind::DisruptionBudget => of_budget(&member.world().read(), name, now),
        Kind::Node => member
            .world()
            .read()
            .nodes
            .get(name)
            .map(|node| node::decide(node, now)),
        Kind::Namespace => of_namespace(&member.world().read(), name, member.certificate()),
        Kind::ControllerRevision
        | Kind::Endpoints
        | Kind::EndpointSlice
        | Kind::StorageClass
        | Kind::ServiceAccount
        | Kind::ConfigMap => None,
    };
    plan.unwrap_or_default()
}

fn of_deployment(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let deployment = world.deployments.get(name)?;
    let uid = uid_of(deployment.as_ref());
    let sets: Vec<_> = world.replica_sets.owned_by(uid).cloned().collect();
    let orphans: Vec<_> = world
        .replica_sets
        .orphans(&name.namespace)
        .cloned()
        .collect();
    let next = ObjectKey::new(&name.namespace, &deployment::next_set_name(deployment));
    let namesake = world.replica_sets.get(&next);
    let has_pods = |uid: &str| world.pods.owned_by(uid).any(|pod| !pods::has_ended(pod));
    let sets_with_pods: Vec<_> = sets
        .iter()
        .map(|set| uid_of(set.as_ref()).to_owned())
        .filter(|uid| has_pods(uid))
        .collect();
    let view = deployment::View {
        deployment,
        sets: &sets,
        orphans: &orphans,
        name_is_taken: namesake.is_some(),
        sets_with_pods: &sets_with_pods,
        trouble: world.troubles.get(uid).map(String::as_str),
        now,
    };
    Some(deployment::decide(&view))
}

fn of_replica_set(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let set = world.replica_sets.get(name)?;
    let subject = replica_set::Subject::of_set(set)?;
    Some(of_replicas(
        world,
        &subject,
        uid_of(set.as_ref()),
        name,
        now,
    ))
}

fn of_replication_controller(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let controller = world.replication_controllers.get(name)?;
    let subject = replica_set::Subject::of_controller(controller)?;
    let uid = uid_of(controller.as_ref());
    Some(of_replicas(world, &subject, uid, name, now))
}

fn of_replicas(
    world: &World,
    subject: &replica_set::Subject,
    uid: &str,
    name: &ObjectKey,
    now: Timestamp,
) -> Plan {
    replica_set::decide(&replica_set::View {
        subject,
        pods: &collect(world.pods.owned_by(uid)),
        orphans: &collect(world.pods.orphans(&name.namespace)),
        trouble: world.troubles.get(uid).map(String::as_str),
        now,
    })
}

fn of_stateful_set(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let set = world.stateful_sets.get(name)?;
    let uid = uid_of(set.as_ref());
    let view = stateful_set::View {
        set,
        pods: &collect(world.pods.owned_by(uid)),
        orphans: &collect(world.pods.orphans(&name.namespace)),
        revisions: &collect(world.revisions.owned_by(uid)),
        claims: &collect(world.claims.in_namespace(&name.namespace)),
        now,
    };
    Some(stateful_set::decide(&view))
}

fn of_daemon_set(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let set = world.daemon_sets.get(name)?;
    let uid = uid_of(set.as_ref());
    let view = daemon_set::View {
        set,
        pods: &collect(world.pods.owned_by(uid)),
        orphans: &collect(world.pods.orphans(&name.namespace)),
        revisions: &collect(world.revisions.owned_by(uid)),
        nodes: &collect(world.nodes.all()),
        now,
    };
    Some(daemon_set::decide(&view))
}

fn of_job(member: &Member, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let known = member.world();
    let world = known.read();
    let job = Arc::clone(world.jobs.get(name)?);
    let uid = uid_of(job.as_ref());
    let pods = collect(world.pods.owned_by(uid));
    let mut endings = world.endings.get(uid).cloned().unwrap_or_default();
    drop(world);
    if job::finished(&job).is_none() {
        endings.learn(job.spec.as_ref()?, &pods);
        let mut world = known.write();
        world.endings.insert(uid.to_owned(), endings.clone());
    }
    let view = job::View {
        job: &job,
        pods: &pods,
        endings: &endings,
        now,
    };
    Some(job::decide(&view))
}

fn of_cron_job(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let cron_job = world.cron_jobs.get(name)?;
    let zone = cron_job
        .spec
        .as_ref()
        .and_then(|spec| spec.time_zone.as_deref());
    let zone = match zone {
        None => Some(TimeZone::UTC),
        Some(name) => TimeZone::get(name).ok(),
    };
    let view = cron_job::View {
        cron_job,
        jobs: &collect(world.jobs.owned_by(uid_of(cron_job.as_ref()))),
        zone: zone.as_ref(),
        now,
    };
    Some(cron_job::decide(&view))
}

fn of_service(world: &World, name: &ObjectKey) -> Option<Plan> {
    let service = world.services.get(name)?;
    let selector = service
        .spec
        .as_ref()
        .and_then(|spec| spec.selector.as_ref());
    let pods = world.pods.in_namespace(&name.namespace);
    let slices = world.slices.in_namespace(&name.namespace);
    let view = service::View {
        service,
        pods: &collect(pods.filter(|pod| selects(selector, pod.metadata.labels.as_ref()))),
        slices: &collect(
            slices.filter(|slice| label(&slice.metadata, SERVICE_NAME) == Some(&name.name)),
        ),
        endpoints: world.endpoints.get(name).map(AsRef::as_ref),
    };
    Some(service::decide(&view))
}

fn of_claim(world: &World, name: &ObjectKey) -> Option<Plan> {
    let claim = world.claims.get(name)?;
    let uses = |pod: &&Arc<Pod>| {
        let volumes = pod
            .spec
            .iter()
            .flat_map(|spec| spec.volumes.iter().flatten());
        let mut sources = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        sources.any(|source| source.claim_name == *name.name)
    };
    let view = claim::View {
        claim,
        volumes: &collect(world.volumes.all()),
        classes: &collect(world.classes.all()),
        is_used: world
            .pods
            .in_namespace(&name.namespace)
            .any(|pod| !pods::has_ended(pod) && uses(&pod)),
    };
    Some(claim::decide(&view))
}

fn of_volume(world: &World, name: &ObjectKey) -> Option<Plan> {
    let volume = world.volumes.get(name)?;
    let bound = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref());
    let key = bound.map(|bound| {
        ObjectKey::new(
            bound.namespace.as_deref().unwrap_or_default(),
            bound.name.as_deref().unwrap_or_default(),
        )
    });
    let claim = key.and_then(|key| world.claims.get(&key));
    Some(claim::decide_volume(volume, claim.map(AsRef::as_ref)))
}

fn of_namespace(world: &World, name: &ObjectKey, certificate: Option<&str>) -> Option<Plan> {
    let namespace = world.namespaces.get(name)?;
    let account = ObjectKey::new(&name.name, account::DEFAULT);
    let published = ObjectKey::new(&name.name, NAME);
    let mut plan = account::decide(namespace, world.accounts.get(&account).is_some());
    if let Some(certificate) = certificate {
        let published = world.certificates.get(&published).map(AsRef::as_ref);
        certificate::decide(namespace, published, certificate, &mut plan);
    }
    Some(plan)
}

fn of_autoscaler(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let autoscaler = world.autoscalers.get(name)?;
    let wanted = &autoscaler.spec.as_ref()?.scale_target_ref;
    let key = ObjectKey::new(&name.namespace, &wanted.name);
    let kind = Kind::of_reference(
        wanted.api_version.as_deref().unwrap_or_default(),
        &wanted.kind,
    );
    macro_rules! target {
        ($objects:ident, $actual:expr) => {
            world.$objects.get(&key).map(|found| autoscaler::Target {
                reference: Reference::to(found.as_ref()),
                wanted: found
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.replicas)
                    .unwrap_or(1),
                actual: found.status.as_ref().map_or(0, $actual),
            })
        };
    }
    let target = match kind {
        Some(Kind::Deployment) => target!(deployments, |status| status.replicas.unwrap_or(0)),
        Some(Kind::ReplicaSet) => target!(replica_sets, |status| status.replicas),
        Some(Kind::ReplicationController) => {
            target!(replication_controllers, |status| status.replicas)
        }
        Some(Kind::StatefulSet) => target!(stateful_sets, |status| status.replicas),
        _ => None,
    };
    Some(autoscaler::decide(autoscaler, target.as_ref(), now))
}

fn of_budget(world: &World, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let budget = world.budgets.get(name)?;
    let selector = budget.spec.as_ref()?.selector.as_ref();
    let selected = |pod: &&Arc<Pod>| {
        selector.is_some_and(|selector| matches(selector, pod.metadata.labels.as_ref()))
    };
    let pods = collect(world.pods.in_namespace(&name.namespace).filter(selected));
    let owners = pods.iter().filter_map(|pod| controller_of(&pod.metadata));
    let scales = owners.filter_map(|owner| {
        let scale = scale_of(world, &name.namespace, owner)?;
        Some((owner.uid.clone(), scale))
    });
    let scales = scales.collect();
    let view = disruption::View {
        budget,
        pods: &pods,
        scales: &scales,
        now,
    };
    Some(disruption::decide(&view))
}

/// How many pods the controller of a pod wants, or why that cannot be said; nothing if it is not
/// there.
fn scale_of(
    world: &World,
    namespace: &str,
    owner: &OwnerReference,
) -> Option<Result<disruption::Scale, String>> {
    let key = ObjectKey::new(namespace, &owner.name);
    let scale = |metadata: &ObjectMeta, replicas: Option<i32>| disruption::Scale {
        uid: metadata.uid.clone().unwrap_or_default(),
        replicas: replicas.unwrap_or(1),
    };
    let kind = Kind::of_reference(&owner.api_version, &owner.kind)?;
    let found = match kind {
        Kind::ReplicaSet => {
            let set = world.replica_sets.get(&key)?;
            let deployment = controller_of(&set.metadata)
                .filter(|owner| owner.kind == Kind::Deployment.names().kind)
                .and_then(|owner| {
                    let key = ObjectKey::new(namespace, &owner.name);
                    world.deployments.get(&key)
                });
            match deployment {
                Some(found) => scale(&found.metadata, found.spec.as_ref()?.replicas),
                None => scale(&set.metadata, set.spec.as_ref()?.replicas),
            }
        }
        Kind::StatefulSet => {
            let found = world.stateful_sets.get(&key)?;
            scale(&found.metadata, found.spec.as_ref()?.replicas)
        }
        Kind::ReplicationController => {
            let found = world.replication_controllers.get(&key)?;
            scale(&found.metadata, found.spec.as_ref()?.replicas)
        }
        other => {
            let names = other.names();
            let dot = if names.group.is_empty() { "" } else { "." };
            let resource = format!("{}{dot}{}", names.plural, names.group);
            return Some(Err(format!(
                "{resource} does not implement the scale subresource"
            )));
        }
    };
    Some(Ok(found))
}

fn collect<'a, K: 'a>(objects: impl Iterator<Item = &'a Arc<K>>) -> Vec<Arc<K>> {
    objects.cloned().collect()
}

fn of_pod(member: &Member, name: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let known = member.world();
    let world = known.read();
    let pod = Arc::clone(world.pods.get(name)?);
    if job::is_tracked(&pod) && !has_job(&world, &pod) {
        return Some(job::release(&pod));
    }
    let Some(node) = scheduler::node_of(&pod) else {
        return is_waiting(&pod).then(|| schedule(&world, &pod, now));
    };
    let node = world.nodes.get(&ObjectKey::cluster_scoped(node));
    let host = node
        .and_then(|node| node::address(node))
        .unwrap_or("0.0.0.0")
        .to_owned();
    let chain = owners(&world, &pod.metadata);
    let policy = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.restart_policy.as_deref());
    let behaviour = Behaviour::of(&chain, policy.unwrap_or("Always"));
    let uid = uid_of(pod.as_ref()).to_owned();
    let since = world
        .moments
        .get(&uid)
        .copied()
        .unwrap_or_else(|| last_change(&pod, now));
    let stopping_since = world.stopping.get(&uid).copied();
    drop(world);
    let mut world = known.write();
    let has_address = pod
        .status
        .as_ref()
        .is_some_and(|status| status.pod_ip.is_some());
    let address = if has_address {
        String::new()
    } else {
        world.take_address()
    };
    if is_deleting(&pod.metadata) {
        world.stopping.entry(uid).or_insert(now);
    }
    drop(world);
    let view = pod::View {
        pod: &pod,
        behaviour: &behaviour,
        since,
        stopping_since,
        address: &address,
        host: &host,
        now,
    };
    Some(pod::decide(&view))
}

/// Whether the job that a pod belongs to is still there.
fn has_job(world: &World, pod: &Pod) -> bool {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    controller_of(&pod.metadata).is_some_and(|owner| {
        let job = world.jobs.get(&ObjectKey::new(namespace, &owner.name));
        job.is_some_and(|job| uid_of(job.as_ref()) == owner.uid)
    })
}

fn is_waiting(pod: &Pod) -> bool {
    pods::is_active(pod)
}

fn schedule(world: &World, pod: &Pod, now: Timestamp) -> Plan {
    let nodes: Vec<_> = world.nodes.all().cloned().collect();
    let on_node = |pod: &&Arc<Pod>| scheduler::node_of(pod).is_some();
    let placed: Vec<_> = world.pods.all().filter(on_node).cloned().collect();
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let claims: Vec<_> = world.claims.in_namespace(namespace).cloned().collect();
    let view = scheduler::View {
        pod,
        nodes: &nodes,
        placed: &placed,
        claims: &claims,
        now,
    };
    scheduler::decide(&view)
}

/// The metadata of an object, of its controller, of that one's controller, and so on.
fn owners<'a>(world: &'a World, metadata: &'a ObjectMeta) -> Vec<&'a ObjectMeta> {
    // Cron job, job, pod: there is no longer chain.
    const LONGEST: usize = 4;
    let mut chain = vec![metadata];
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let mut current = metadata;
    while chain.len() < LONGEST {
        let Some(owner) = controller_of(current) else {
            break;
        };
        let key = ObjectKey::new(namespace, &owner.name);
        let kind = Kind::of_reference(&owner.api_version, &owner.kind);
        let found = match kind {
            Some(Kind::ReplicaSet) => world.replica_sets.get(&key).map(|found| &found.metadata),
            Some(Kind::ReplicationController) => {
                let found = world.replication_controllers.get(&key);
                found.map(|found| &found.metadata)
            }
            Some(Kind::Deployment) => world.deployments.get(&key).map(|found| &found.metadata),
            Some(Kind::StatefulSet) => world.stateful_sets.get(&key).map(|found| &found.metadata),
            Some(Kind::DaemonSet) => world.daemon_sets.get(&key).map(|found| &found.metadata),
            Some(Kind::Job) => world.jobs.get(&key).map(|found| &found.metadata),
            Some(Kind::CronJob) => world.cron_jobs.get(&key).map(|found| &found.metadata),
            _ => None,
        };
        let Some(found) = found.filter(|found| found.uid.as_ref() == Some(&owner.uid)) else {
            break;
        };
        chain.push(found);
        current = found;
    }
    chain
}

/// When the status of a pod last changed, as far as it says; it writes whole seconds only.
fn last_change(pod: &Pod, now: Timestamp) -> Timestamp {
    let Some(status) = &pod.status else {
        return now;
    };
    let conditions = status.conditions.iter().flatten();
    let conditions = conditions.filter_map(|condition| condition.last_transition_time.as_ref());
    let containers = status.container_statuses.iter().flatten();
    let containers = containers
        .flat_map(|status| [&status.state, &status.last_state])
        .flatten();
    let containers = containers.filter_map(|state| match (&state.running, &state.terminated) {
        (Some(running), _) => running.started_at.as_ref(),
        (_, Some(end)) => end.finished_at.as_ref(),
        _ => None,
    });
    let times = conditions.chain(containers).chain(&status.start_time);
    times.map(|time| time.0).max().unwrap_or(now)
}
