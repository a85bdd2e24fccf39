//! `bellwether why`: why a cluster is chosen or has something, or what kept it out.

mod replica_set;

use anyhow::Context as _;
use bellwether_api::cluster::Placement;
use bellwether_apiserver::Clock;
use bellwether_ctl::Connection;
use bellwether_placement::schedule::Verdict;
use clap::Args;
use kube::Api;
use serde_json::json;

use crate::connect::ConnectArgs;
use crate::print::{PrintArgs, line};
use crate::scene::Known;

/// Say why a cluster is chosen by a placement, or what kept it out; or how far a rollout is there.
///
/// Of a placement: the first predicate that does not match, the taint that is not tolerated, or the
/// score that is too low. Of a ManifestWorkReplicaSet (mwrs): what the cluster waits for.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether why cluster3 placement/canary\n  bellwether why cluster3 placement/canary -n apps -o json\n  bellwether why cluster3 mwrs/shop"
)]
pub(crate) struct WhyArgs {
    /// The cluster.
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    /// What it is asked about: placement/NAME or mwrs/NAME.
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: WhyArgs) -> anyhow::Result<()> {
    let (kind, name) = arguments.object.split_once('/').with_context(|| {
        format!(
            "{:?} is not KIND/NAME, such as placement/canary",
            arguments.object
        )
    })?;
    let connection = arguments
        .connect
        .open(arguments.namespace.as_deref())
        .await?;
    match kind.to_ascii_lowercase().as_str() {
        "placement" | "placements" | "placement.cluster.open-cluster-management.io" => {
            placement(&arguments, &connection, name).await
        }
        "mwrs" | "manifestworkreplicaset" | "manifestworkreplicasets" => {
            replica_set::explain(&connection, &arguments.cluster, name, arguments.print).await
        }
        _ => anyhow::bail!("{kind} is not known here; there are placement and mwrs"),
    }
}

async fn placement(arguments: &WhyArgs, connection: &Connection, name: &str) -> anyhow::Result<()> {
    let verdict = verdict(connection, &arguments.cluster, name).await?;
    let is_chosen = matches!(verdict, Verdict::Chosen { .. });
    let document = json!({
        "cluster": arguments.cluster, "placement": name, "namespace": connection.namespace,
        "chosen": is_chosen, "reason": verdict.to_string(),
    });
    let heading = format!("{} and placement/{name}:", arguments.cluster);
    let words = verdict.to_string();
    arguments
        .print
        .print(&document, &[line([&heading]), line([&words])])
}

/// What a placement makes of a cluster.
async fn verdict(connection: &Connection, cluster: &str, name: &str) -> anyhow::Result<Verdict> {
    let placements: Api<Placement> =
        Api::namespaced(connection.client.clone(), &connection.namespace);
    let placement = placements
        .get(name)
        .await
        .with_context(|| format!("cannot read the placement {}/{name}", connection.namespace))?;
    let known = Known::of_hub(&connection.client).await?;
    let scene = known.scene(&serde_json::to_value(&placement)?, Clock::system().now());
    let verdict = scene.why(cluster);
    anyhow::ensure!(
        verdict != Verdict::Unknown,
        "there is no cluster {cluster}; see bellwether cluster list",
    );
    Ok(verdict)
}
