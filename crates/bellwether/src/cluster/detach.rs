//! `bellwether cluster detach`

use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::cluster::ManagedCluster;
use bellwether_api::cluster::names::condition;
use bellwether_api::meta::condition as find;
use bellwether_controllers::registration::clusters::force_removal;
use clap::Args;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::wait::await_condition;

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Detach clusters, after what they run for the hub has been removed.
///
/// The hub deletes the works of a cluster, waits for its agent to remove what they applied, and takes
/// the cluster's rights away. The namespace of the cluster stays, with what people have put there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether cluster detach edge1\n  bellwether cluster detach edge1 --force"
)]
pub(crate) struct DetachArgs {
    /// The clusters.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Do not wait for an agent that will never answer: what it applied stays on the member.
    #[arg(long)]
    force: bool,
    /// How long to wait, in seconds; 0 does not wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: DetachArgs) -> anyhow::Result<()> {
    let client = arguments.connect.open(None).await?.client;
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    for name in &arguments.names {
        let deleted = clusters.delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("cannot detach {name}"))?;
        if arguments.force {
            let forced = force_removal(&client, name).await;
            forced.with_context(|| format!("cannot remove the works of {name}"))?;
        }
    }
    if arguments.timeout == 0 {
        return Ok(());
    }
    for name in &arguments.names {
        let is_gone = |cluster: Option<&ManagedCluster>| cluster.is_none();
        let gone = await_condition(clusters.clone(), name, is_gone);
        let timeout = Duration::from_secs(arguments.timeout);
        if tokio::time::timeout(timeout, gone).await.is_err() {
            let cluster = clusters.get_opt(name).await?;
            let status = cluster
                .and_then(|cluster| cluster.status)
                .unwrap_or_default();
            let why = find(&status.conditions, condition::DELETING);
            let why = why.map_or_else(String::new, |it| format!(": {}", it.message));
            anyhow::bail!(
                "{name} is still there after {} seconds{why}; if its agent will never answer, use --force",
                arguments.timeout
            );
        }
        say(&format!("{name} is detached; its namespace stays"));
    }
    Ok(())
}
