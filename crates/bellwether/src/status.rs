//! `bellwether status`: where something stands, as a tree.

use anyhow::Context as _;
use bellwether_api::multicluster::Work;
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet};
use bellwether_work::tree;
use clap::Args;
use kube::Api;

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Show where a work or a replica set of works stands, as a tree.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether status work/web -n cluster1\n  bellwether status mwrs/web -n default"
)]
pub(crate) struct StatusArgs {
    /// What is meant, as KIND/NAME: work/web, mwrs/web.
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// The namespace; of a work it has the name of the cluster.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: StatusArgs) -> anyhow::Result<()> {
    let (kind, name) = arguments.object.split_once('/').with_context(|| {
        format!(
            "{:?} is not of the form KIND/NAME, such as work/web",
            arguments.object
        )
    })?;
    let connection = arguments
        .connect
        .open(arguments.namespace.as_deref())
        .await?;
    let namespace = &connection.namespace;
    let missing = || format!("cannot read {kind}/{name} in namespace {namespace}");
    match kind.to_lowercase().as_str() {
        word @ ("work" | "works" | "manifestwork" | "manifestworks") => {
            let large: Api<ManifestWork> = Api::namespaced(connection.client.clone(), namespace);
            let large = large.get_opt(name).await.with_context(missing)?;
            // Works of the work API are meant by the same word. A hub need not know them.
            let small: Api<Work> = Api::namespaced(connection.client.clone(), namespace);
            let small = if word.starts_with("work") {
                small.get_opt(name).await.with_context(missing)?
            } else {
                None
            };
            anyhow::ensure!(
                large.is_some() || small.is_some(),
                "there is no {kind} {name} in namespace {namespace}: works are in the namespace \
                 that has the name of their cluster; use -n CLUSTER"
            );
            let trees = [
                large.as_ref().map(tree::of_work),
                small.as_ref().map(tree::of_small_work),
            ];
            for tree in trees.into_iter().flatten() {
                say(tree.trim_end());
            }
        }
        "mwrs" | "manifestworkreplicaset" | "manifestworkreplicasets" => {
            let api: Api<ManifestWorkReplicaSet> =
                Api::namespaced(connection.client.clone(), namespace);
            let set = api.get(name).await.with_context(missing)?;
            say(tree::of_replica_set(&set).trim_end());
        }
        _ => anyhow::bail!("{kind} has no status to show; use work/NAME or mwrs/NAME"),
    }
    Ok(())
}
