//! `bellwether up`: a hub and its members in one process.

use std::time::Instant;

use bellwether_apiserver::HUB;
use clap::Args;

use crate::apiserver::{Running, ServerArgs};
use crate::cli::say;

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
    running.server.add_cluster(HUB).await?;
    say(&format!("hub ready at {}", running.address));
    for number in 1..=arguments.clusters {
        let name = format!("cluster{number}");
        running.server.add_cluster(&name).await?;
        say(&format!("{name} ready"));
    }
    let path = running.publish()?;
    say(&format!(
        "\nEverything is up after {} ms. Next:\n  export KUBECONFIG={}\n  kubectl get namespaces\n  kubectl --context cluster1 create configmap hello --from-literal=from=bellwether",
        started.elapsed().as_millis(),
        path.display()
    ));
    running.until_stopped().await
}
