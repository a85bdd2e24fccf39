//! `bellwether cluster list`

use bellwether_api::cluster::names::{condition, label, object, reason};
use bellwether_api::cluster::{ManagedCluster, ManagedClusterSet};
use bellwether_api::meta::{TRUE, condition as find};
use bellwether_apiserver::Clock;
use bellwether_kinds::human;
use clap::Args;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::cli::print_warning;
use crate::connect::ConnectArgs;
use crate::print::{PrintArgs, line};

/// Show the clusters of a hub.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether cluster list\n  bellwether cluster list -l region=emea -o json"
)]
pub(crate) struct ListArgs {
    /// Only clusters with such labels, such as region=emea.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: ListArgs) -> anyhow::Result<()> {
    let client = arguments.connect.open(None).await?.client;
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let params = ListParams {
        label_selector: arguments.selector.clone(),
        ..ListParams::default()
    };
    let list = clusters.list(&params).await?;
    let mut lines = vec![line([
        "NAME",
        "ACCEPTED",
        "JOINED",
        "AVAILABLE",
        "SET",
        "CPU",
        "MEMORY",
        "VERSION",
        "TAINTS",
        "AGE",
    ])];
    let now = Clock::system().now();
    lines.extend(list.items.iter().map(|cluster| row(cluster, now)));
    let document = json!({"apiVersion": "v1", "kind": "List", "items": list.items});
    arguments.print.print(&document, &lines)?;
    if let Some(warning) = heartbeat_loss(client).await? {
        print_warning(&warning);
    }
    Ok(())
}

/// What the hub says about a loss of heartbeats, if there is one.
async fn heartbeat_loss(client: Client) -> anyhow::Result<Option<String>> {
    let sets: Api<ManagedClusterSet> = Api::all(client);
    let set = match sets.get_opt(object::GLOBAL_CLUSTER_SET).await {
        // A user who may list clusters need not be allowed to read sets.
        Err(kube::Error::Api(status)) if status.code == 403 => None,
        set => set?,
    };
    let conditions = set
        .and_then(|set| set.status)
        .unwrap_or_default()
        .conditions;
    let loss = find(&conditions, condition::HEARTBEAT_LOSS).filter(|it| it.status == TRUE);
    Ok(loss.map(|it| format!("{} (since {})", it.message, it.last_transition_time.0)))
}

/// True for an accepted cluster. One that waits for somebody to accept it is pending.
fn acceptance(cluster: &ManagedCluster) -> &'static str {
    if cluster.spec.hub_accepts_client {
        return "true";
    }
    let status = cluster.status.as_ref();
    let said = status.and_then(|it| find(&it.conditions, condition::HUB_ACCEPTED));
    match said {
        Some(said) if said.reason == reason::HUB_CLUSTER_ADMIN_DENIED => "denied",
        _ => "pending",
    }
}

fn age(cluster: &ManagedCluster, now: Timestamp) -> String {
    let made = cluster.metadata.creation_timestamp.as_ref();
    made.map_or_else(
        || "-".to_owned(),
        |made| human(now.duration_since(made.0).as_secs()),
    )
}

fn row(cluster: &ManagedCluster, now: Timestamp) -> Vec<String> {
    let status = cluster.status.clone().unwrap_or_default();
    let said = |kind: &str| {
        let condition = find(&status.conditions, kind);
        condition.map_or_else(|| "-".to_owned(), |it| it.status.clone())
    };
    let amount = |resource: &str| {
        let amount = status
            .allocatable
            .get(resource)
            .or(status.capacity.get(resource));
        amount.map_or_else(|| "-".to_owned(), ToString::to_string)
    };
    let set = cluster.labels().get(label::CLUSTER_SET).cloned();
    let version = status
        .version
        .as_ref()
        .and_then(|version| version.kubernetes.clone());
    let taints: Vec<&str> = cluster
        .spec
        .taints
        .iter()
        .map(|taint| taint.key.rsplit('/').next().unwrap_or_default())
        .collect();
    let dash = |text: String| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text
        }
    };
    vec![
        cluster.name_any(),
        acceptance(cluster).to_owned(),
        said(condition::JOINED),
        said(condition::AVAILABLE),
        dash(set.unwrap_or_default()),
        amount("cpu"),
        amount("memory"),
        dash(version.unwrap_or_default()),
        dash(taints.join(",")),
        age(cluster, now),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_waits_is_pending() {
        let cluster = |accepts: bool, conditions: serde_json::Value| -> ManagedCluster {
            serde_json::from_value(json!({
                "metadata": {"name": "c1", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"hubAcceptsClient": accepts}, "status": {"conditions": conditions},
            }))
            .unwrap()
        };
        let denied = json!([{"type": "HubAcceptedManagedCluster", "status": "False",
            "reason": "HubClusterAdminDenied", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        assert_eq!(acceptance(&cluster(true, json!([]))), "true");
        assert_eq!(acceptance(&cluster(false, json!([]))), "pending");
        assert_eq!(acceptance(&cluster(false, denied)), "denied");
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        assert_eq!(row(&cluster(true, json!([])), now).pop().unwrap(), "5m");
    }
}
