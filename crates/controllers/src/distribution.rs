//! Distributes components of applications over clusters, by shares of their replicas.
//!
//! Which cluster gets how much is decided by `bellwether_application::distribution`. It is decided again when clusters come, go or
//! change their labels, also after the workflow has ended that asked for it. Entry point: [`run`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::delivery::names::{condition, finalizer, label, reason};
use bellwether_api::delivery::{
    DISTRIBUTION_GROUP, Distribution, DistributionCluster, DistributionStatus,
};
use bellwether_api::meta::{self, Condition, FALSE, TRUE, Time};
use bellwether_api::oam::Application;
use bellwether_api::oam::names::label as app_label;
use bellwether_api::work::ManifestWork;
use bellwether_application::distribution::works::{ClusterShare, report, work_name, works};
use bellwether_application::distribution::{left_over, select};
use bellwether_application::resources::{self, RenderedObject};
use bellwether_application::world::Cluster;
use bellwether_patch::three_way::merge_patch;
use bellwether_runtime::{
    Cache, Change, Controller, Next, ObjectKey, Reconcile, covers, delete_if_exists, ensure,
    patch_seen, write_status,
};
use futures::FutureExt as _;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use kube::{Api, Resource as _};
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};

/// How many distributions are reconciled at once.
const WORKERS: usize = 4;
/// When to look again for what a revision was rendered to, which nobody watches.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// The controller of distributions.
pub const ENTRY: Entry = Entry {
    name: "distribution",
    about: "distributes components of applications over clusters",
    watches: &[
        Watched::kind::<Distribution>(),
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<ManifestWork>(),
        Watched::kind::<Application>(),
    ],
    rights: &[
        Rule {
            group: DISTRIBUTION_GROUP,
            resources: &["distributions", "distributions/status"],
            verbs: &["patch"],
        },
        Rule {
            group: "work.open-cluster-management.io",
            resources: &["manifestworks"],
            verbs: &["get", "create", "patch", "delete"],
        },
        Rule {
            group: "",
            resources: &["configmaps"],
            verbs: &["get"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps everything distributed until it is dropped.
pub async fn run(hub: Hub) {
    let distributions: Cache<Distribution> = hub.cache();
    let reconciler = Reconciler {
        clusters: hub.cache(),
        works: hub.cache(),
        applications: hub.cache(),
        hub: hub.clone(),
    };
    let of_clusters = distributions.clone();
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&distributions, |change| Some(change.key.clone()))
        .on(&reconciler.works, of_work)
        .on(&reconciler.clusters, move |change| {
            if is_same_cluster(change) {
                Vec::new()
            } else {
                of_clusters.keys()
            }
        })
        .after(&reconciler.applications)
        .workers(WORKERS)
        .run(Arc::new(reconciler))
        .await;
}

/// The distribution that a work belongs to.
fn of_work(change: &Change<'_, ManifestWork>) -> Option<ObjectKey> {
    let labels = change.new.or(change.old)?.metadata.labels.as_ref()?;
    Some(ObjectKey::new(
        labels.get(label::DISTRIBUTION_NAMESPACE)?,
        labels.get(label::DISTRIBUTION)?,
    ))
}

/// True if nothing changed by which clusters are selected.
fn is_same_cluster(change: &Change<'_, ManagedCluster>) -> bool {
    let facts = |cluster: Option<&ManagedCluster>| {
        cluster.map(|it| (is_selectable(it), it.metadata.labels.clone()))
    };
    facts(change.old.map(|it| &**it)) == facts(change.new.map(|it| &**it))
}

fn is_selectable(cluster: &ManagedCluster) -> bool {
    cluster.spec.hub_accepts_client && cluster.metadata.deletion_timestamp.is_none()
}

struct Reconciler {
    hub: Hub,
    clusters: Cache<ManagedCluster>,
    works: Cache<ManifestWork>,
    applications: Cache<Application>,
}

/// What can be said of a distribution.
struct Verdict {
    /// Nothing if everything is where it should be.
    problem: Option<(&'static str, String)>,
    clusters: Vec<DistributionCluster>,
    remark: Option<String>,
}

impl Reconcile for Reconciler {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(distribution) = self.api(key).get_opt(&key.name).await? else {
            return Ok(None);
        };
        if distribution.metadata.deletion_timestamp.is_some() {
            self.remove(key, &distribution).await?;
            return Ok(None);
        }
        let Some(distribution) = self.claim(key, distribution).await? else {
            return Ok(None);
        };
        let rendered = match self.rendered(key, &distribution).await? {
            Ok(rendered) => rendered,
            Err(message) => {
                let clusters = known_clusters(&distribution).cloned().collect();
                let verdict = Verdict {
                    problem: Some((reason::WAITING, message)),
                    clusters,
                    remark: None,
                };
                self.publish(key, &distribution, verdict).await?;
                return Ok(self.hub.clock.now().checked_add(LOOK_AGAIN).ok());
            }
        };
        let selected = match select(&distribution.spec.placement, &self.fleet()) {
            Ok(selected) => selected,
            Err(error) => {
                let reason = if error.is_final() {
                    reason::INVALID
                } else {
                    reason::WAITING
                };
                let clusters = known_clusters(&distribution).cloned().collect();
                let verdict = Verdict {
                    problem: Some((reason, error.to_string())),
                    clusters,
                    remark: None,
                };
                self.publish(key, &distribution, verdict).await?;
                return Ok(None);
            }
        };
        let application = application_of(&distribution);
        let shares = works(&distribution, application, &rendered, &selected);
        let total = rendered.iter().filter(|it| it.is_workload());
        let total = total
            .filter_map(|it| bellwether_application::distribution::works::replicas_of(&it.object))
            .sum();
        let remark = left_over(&selected, total);
        self.deliver(key, distribution, &shares, remark).await?;
        Ok(None)
    }
}

/// The application that a distribution is of.
fn application_of(distribution: &Distribution) -> &str {
    let labels = distribution.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(app_label::APP_NAME))
        .map_or("", String::as_str)
}

fn known_clusters(distribution: &Distribution) -> impl Iterator<Item = &DistributionCluster> {
    distribution
        .status
        .iter()
        .flat_map(|status| &status.clusters)
}

impl Reconciler {
    fn api(&self, key: &ObjectKey) -> Api<Distribution> {
        Api::namespaced(self.hub.client.clone(), &key.namespace)
    }

    /// All clusters that may be selected.
    fn fleet(&self) -> Vec<Cluster> {
        let clusters = self.clusters.list();
        let clusters = clusters.iter().filter(|cluster| is_selectable(cluster));
        clusters
            .map(|cluster| Cluster {
                name: cluster.metadata.name.clone().unwrap_or_default(),
                labels: cluster.metadata.labels.clone().unwrap_or_default(),
                version: None,
            })
            .collect()
    }

    /// Makes the distribution go with its application, and its works with it.
    async fn claim(
        &self,
        key: &ObjectKey,
        distribution: Distribution,
    ) -> Result<Option<Distribution>, kube::Error> {
        let mut metadata = json!({});
        let known = distribution.metadata.finalizers.clone().unwrap_or_default();
        if !known.iter().any(|it| it == finalizer::WORKS) {
            let mut finalizers = known;
            finalizers.push(finalizer::WORKS.to_owned());
            metadata["finalizers"] = json!(finalizers);
        }
        let application = self.applications.get(&ObjectKey::new(
            &key.namespace,
            application_of(&distribution),
        ));
        let is_owned = distribution
            .metadata
            .owner_references
            .as_ref()
            .is_some_and(|it| !it.is_empty());
        if let Some(application) = application.filter(|_| !is_owned) {
            metadata["ownerReferences"] = json!([{
                "apiVersion": Application::api_version(&()),
                "kind": Application::kind(&()),
                "name": application.metadata.name,
                "uid": application.metadata.uid,
            }]);
        }
        if metadata.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(Some(distribution));
        }
        patch_seen(&self.api(key), &distribution, json!({"metadata": metadata})).await
    }

    async fn rendered(
        &self,
        key: &ObjectKey,
        distribution: &Distribution,
    ) -> Result<Result<Vec<RenderedObject>, String>, kube::Error> {
        let revision = &distribution.spec.app_revision;
        let api: Api<ConfigMap> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let found = if revision.is_empty() {
            None
        } else {
            api.get_opt(revision).await?
        };
        let Some(found) = found else {
            return Ok(Err(format!(
                "waits for ConfigMap {revision}, which has what the revision was rendered to"
            )));
        };
        let data = found.data.unwrap_or_default();
        let objects = resources::read(&data);
        let objects = objects
            .and_then(|objects| resources::of_components(objects, &distribution.spec.components));
        Ok(objects.map_err(|problem| format!("ConfigMap {revision}: {problem}")))
    }

    /// Writes works, and deletes those of clusters that get nothing any more.
    async fn deliver(
        &self,
        key: &ObjectKey,
        distribution: Distribution,
        shares: &BTreeMap<String, ClusterShare>,
        remark: Option<String>,
    ) -> Result<(), kube::Error> {
        let Some(distribution) = self.intend(key, distribution, shares).await? else {
            return Ok(());
        };
        let name = work_name(&key.namespace, &key.name);
        let mut clusters = Vec::new();
        for (cluster, share) in shares {
            let known = self.works.get(&ObjectKey::new(cluster, &name));
            let is_there = known
                .as_ref()
                .is_some_and(|known| covers(&to_json(&**known), &share.work));
            if !is_there {
                ensure(&self.hub.client, &share.work).await?;
            }
            clusters.push(report(
                cluster,
                share,
                known.as_deref().filter(|_| is_there),
            ));
        }
        let leaving: Vec<String> = known_clusters(&distribution)
            .map(|it| it.name.clone())
            .filter(|it| !shares.contains_key(it))
            .collect();
        for cluster in leaving {
            if !self.delete_work(&cluster, &name).await? {
                clusters.push(DistributionCluster {
                    name: cluster,
                    message: "its objects are being deleted".to_owned(),
                    ..DistributionCluster::default()
                });
            }
        }
        clusters.sort_by(|one, other| one.name.cmp(&other.name));
        let waiting = clusters.iter().find(|it| !it.available).map(|it| {
            (
                reason::WAITING,
                format!("cluster {}: {}", it.name, it.message),
            )
        });
        self.publish(
            key,
            &distribution,
            Verdict {
                problem: waiting,
                clusters,
                remark,
            },
        )
        .await
    }

    /// Records clusters before they get something, so that none is forgotten.
    async fn intend(
        &self,
        key: &ObjectKey,
        distribution: Distribution,
        shares: &BTreeMap<String, ClusterShare>,
    ) -> Result<Option<Distribution>, kube::Error> {
        let known: BTreeSet<&str> = known_clusters(&distribution)
            .map(|it| it.name.as_str())
            .collect();
        let new = shares.keys().filter(|name| !known.contains(name.as_str()));
        let mut clusters: Vec<DistributionCluster> = new
            .map(|name| DistributionCluster {
                name: name.clone(),
                message: "its work is not there yet".to_owned(),
                ..DistributionCluster::default()
            })
            .collect();
        if clusters.is_empty() {
            return Ok(Some(distribution));
        }
        clusters.extend(known_clusters(&distribution).cloned());
        clusters.sort_by(|one, other| one.name.cmp(&other.name));
        write_status(
            &self.api(key),
            &distribution,
            &json!({"clusters": clusters}),
        )
        .await
    }

    /// Deletes a work; true once it is gone.
    async fn delete_work(&self, cluster: &str, name: &str) -> Result<bool, kube::Error> {
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), cluster);
        if api.get_opt(name).await?.is_none() {
            return Ok(true);
        }
        delete_if_exists(&api, name, &DeleteParams::default()).await?;
        Ok(api.get_opt(name).await?.is_none())
    }

    /// Deletes all works, and lets the distribution go then.
    async fn remove(
        &self,
        key: &ObjectKey,
        distribution: &Distribution,
    ) -> Result<(), kube::Error> {
        let finalizers = distribution.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|it| it == finalizer::WORKS) {
            return Ok(());
        }
        let name = work_name(&key.namespace, &key.name);
        let mut is_gone = true;
        for cluster in known_clusters(distribution) {
            is_gone &= self.delete_work(&cluster.name, &name).await?;
        }
        if !is_gone {
            // The watch of works reports when they are gone.
            return Ok(());
        }
        let others: Vec<String> = finalizers
            .into_iter()
            .filter(|it| it != finalizer::WORKS)
            .collect();
        patch_seen(
            &self.api(key),
            distribution,
            json!({"metadata": {"finalizers": others}}),
        )
        .await?;
        Ok(())
    }

    async fn publish(
        &self,
        key: &ObjectKey,
        distribution: &Distribution,
        verdict: Verdict,
    ) -> Result<(), kube::Error> {
        let mut status = distribution.status.clone().unwrap_or_default();
        let (holds, reason, message) = match verdict.problem {
            None => (TRUE, reason::DONE, verdict.remark.unwrap_or_default()),
            Some((reason, message)) => (FALSE, reason, message),
        };
        status.message.clone_from(&message);
        status.observed_generation = distribution.metadata.generation;
        status.clusters = verdict.clusters;
        let condition = Condition {
            type_: condition::DISTRIBUTED.to_owned(),
            status: holds.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: Time(self.hub.clock.now()),
            observed_generation: distribution.metadata.generation,
        };
        meta::set_condition(&mut status.conditions, condition);
        let known = distribution
            .status
            .as_ref()
            .map_or_else(|| json!({}), to_json::<DistributionStatus>);
        let told = to_json(&status);
        if known != told {
            let patch = merge_patch(&known, &told, &known).unwrap_or(told);
            write_status(&self.api(key), distribution, &patch).await?;
        }
        Ok(())
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
