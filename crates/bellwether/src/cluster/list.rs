//! `bellwether cluster list`

use bellwether_api::cluster::names::{condition, label, object};
use bellwether_api::cluster::{ManagedCluster, ManagedClusterSet};
use bellwether_api::meta::{TRUE, condition as find};
use clap::Args;
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
    ])];
    lines.extend(list.items.iter().map(row));
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

fn row(cluster: &ManagedCluster) -> Vec<String> {
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
        cluster.spec.hub_accepts_client.to_string(),
        said(condition::JOINED),
        said(condition::AVAILABLE),
        dash(set.unwrap_or_default()),
        amount("cpu"),
        amount("memory"),
        dash(version.unwrap_or_default()),
        dash(taints.join(",")),
    ]
}
