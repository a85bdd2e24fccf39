//! `bellwether up`: a hub and its members in one process.

use std::time::Instant;

use bellwether_api::Kind as _;
use bellwether_api::cluster::ManagedCluster;
use bellwether_apiserver::{ApiError, HUB};
use clap::Args;
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use crate::apiserver::{Running, ServerArgs};
use crate::cli::say;

/// Who the agents are to hub and members.
pub(crate) const AGENT: &str = "system:bellwether:work-agent";

/// How many members are set up at a time: enough that their writes share commits.
const MEMBERS_AT_ONCE: usize = 32;

/// Run a hub and member clusters in one process, in the foreground.
///
/// Everything is kept in the data directory; stop it at any moment, start it again, and it carries
/// on. Ctrl-C ends it cleanly.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether up\n  bellwether up --clusters 100 --in-memory\n  bellwether up --listen 127.0.0.1:7443 --data-dir /tmp/fleet"
)]
pub(crate) struct UpArgs {
    /// How many member clusters, named cluster1, cluster2, …
    #[arg(long, value_name = "N", default_value_t = 3)]
    clusters: usize,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) async fn run(arguments: UpArgs) -> anyhow::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "only to tell how long the start took"
    )]
    let started = Instant::now();
    let running = Running::start(&arguments.server).await?;
    running.add_cluster(HUB).await?;
    say(&format!("hub ready at {}", running.address));
    let (launched, server) = (&running, &running.server);
    let definitions = bellwether_api::definitions();
    try_join_all(
        definitions
            .into_iter()
            .map(|definition| server.ensure(HUB, definition)),
    )
    .await?;
    let mut members = stream::iter(1..=arguments.clusters)
        .map(|number| async move {
            let name = format!("cluster{number}");
            launched.add_cluster(&name).await?;
            server.ensure(HUB, managed_cluster(&name, number)).await?;
            server.ensure(HUB, namespace(&name)).await?;
            Ok::<_, ApiError>(name)
        })
        .buffered(MEMBERS_AT_ONCE);
    let agents = launched.start_agents().await;
    while let Some(name) = members.try_next().await? {
        agents.add_member(&name, launched.client(&name, AGENT));
        say(&format!("{name} ready"));
    }
    drop(members);
    let path = running.publish()?;
    say(&format!(
        "\nEverything is up after {} ms. Next:\n  export KUBECONFIG={}\n  kubectl get managedclusters --show-labels\n  kubectl --context cluster1 create configmap hello --from-literal=from=bellwether",
        started.elapsed().as_millis(),
        path.display()
    ));
    running.until_stopped().await
}

/// The namespace on the hub in which the works of a member are.
fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A member as the hub knows it, with labels that give examples something to select.
fn managed_cluster(name: &str, number: usize) -> Value {
    const REGIONS: [&str; 3] = ["emea", "amer", "apac"];
    const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];
    let index = number.saturating_sub(1);
    let kind = ManagedCluster::NAMES;
    json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": {"name": name, "labels": {
            "region": REGIONS[index % REGIONS.len()],
            // Shifted with each round, so that nine members have all combinations.
            "environment": ENVIRONMENTS[(index + index / REGIONS.len()) % ENVIRONMENTS.len()],
        }},
        "spec": {"hubAcceptsClient": true},
    })
}
