//! How far the rollout of a replica set of works is on a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use bellwether_api::cluster::names::label::PLACEMENT;
use bellwether_api::cluster::{ManagedCluster, PlacementDecision};
use bellwether_api::work::names::label::REPLICA_SET;
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet};
use bellwether_apiserver::Clock;
use bellwether_ctl::Connection;
use bellwether_placement::rollout::Group;
use bellwether_work::Programs;
use bellwether_work::replica_set::{Chosen, Observed, owner_label, report};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::print::{PrintArgs, line};

/// Prints how far a cluster is, for every placement of the replica set.
pub(super) async fn explain(
    connection: &Connection,
    cluster: &str,
    name: &str,
    print: PrintArgs,
) -> anyhow::Result<()> {
    let (client, namespace) = (connection.client.clone(), connection.namespace.as_str());
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(client.clone(), namespace);
    let set = sets
        .get(name)
        .await
        .with_context(|| format!("cannot read the replica set {namespace}/{name}"))?;
    let known = clusters(&client).await?;
    anyhow::ensure!(
        known.contains_key(cluster),
        "there is no cluster {cluster}; see bellwether cluster list",
    );
    let works: Api<ManifestWork> = Api::all(client);
    let own = ListParams::default().labels(&format!("{REPLICA_SET}={}", owner_label(&set)));
    let works: Vec<Arc<ManifestWork>> = works.list(&own).await?.into_iter().map(Arc::new).collect();
    let placements = chosen(connection, &set).await?;
    let observed = Observed {
        set: &set,
        placements: &placements,
        works: &works,
        cluster: &|name| known.get(name).cloned(),
        now: Clock::system().now(),
    };
    let mut reasons = Vec::new();
    for placement in report(&observed, &Programs::default()).placements {
        let found = placement.clusters().find(|it| &*it.name == cluster);
        let reason = if let Some(found) = found {
            format!("{cluster} {}", found.reason)
        } else {
            let verdict = super::verdict(connection, cluster, &placement.name).await?;
            format!("{cluster} is not chosen. {verdict}")
        };
        reasons.push((placement.name, reason));
    }
    anyhow::ensure!(
        !reasons.is_empty(),
        "{name} has nothing to roll out; see bellwether status mwrs/{name}"
    );
    let document = json!({
        "cluster": cluster, "manifestWorkReplicaSet": name, "namespace": namespace,
        "placements": reasons
            .iter()
            .map(|(placement, reason)| json!({"placement": placement, "reason": reason}))
            .collect::<Vec<_>>(),
    });
    let mut lines = vec![line([&format!("{cluster} and mwrs/{name}:")])];
    lines.extend(
        reasons
            .iter()
            .map(|(placement, reason)| line([&format!("placement {placement}: {reason}")])),
    );
    print.print(&document, &lines)
}

/// All clusters by name.
async fn clusters(client: &Client) -> anyhow::Result<BTreeMap<String, Arc<ManagedCluster>>> {
    let api: Api<ManagedCluster> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await?;
    let named = |it: ManagedCluster| Some((it.metadata.name.clone()?, Arc::new(it)));
    Ok(list.into_iter().filter_map(named).collect())
}

/// What the placements of a replica set have chosen.
async fn chosen(
    connection: &Connection,
    set: &ManifestWorkReplicaSet,
) -> anyhow::Result<BTreeMap<String, Chosen>> {
    let api: Api<PlacementDecision> =
        Api::namespaced(connection.client.clone(), &connection.namespace);
    let mut placements = BTreeMap::new();
    for reference in &set.spec.placement_refs {
        let own = ListParams::default().labels(&format!("{PLACEMENT}={}", reference.name));
        let written = api.list(&own).await?;
        let written: Vec<Value> = written
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()?;
        let groups = Group::from_decisions(&written);
        let selected: usize = groups.iter().map(|group| group.clusters.len()).sum();
        let selected = i64::try_from(selected).unwrap_or(i64::MAX);
        placements.insert(reference.name.clone(), Chosen { groups, selected });
    }
    Ok(placements)
}
