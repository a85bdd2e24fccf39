//! `bellwether up`: a hub and its members in one process.

mod choice;

use std::collections::BTreeMap;
use std::time::Instant;

use bellwether_agent::work::AgentOptions;
use bellwether_api::workflow::names::SYSTEM_NAMESPACE;
use bellwether_apiserver::HUB;
use bellwether_controllers::registry::HubOptions;
use bellwether_process::agent::Gates;
use bellwether_process::signal::stop_signal;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::apiserver::{Running, ServerArgs};
use crate::apply_once::ApplyOnceArgs;
use crate::cli::say;
use crate::hub::HeartbeatArgs;
use crate::members::Members;
use crate::workflow::WorkflowArgs;
use choice::{Choice, ChoiceRequest, choose, number};

/// Who the agents are to hub and members.
pub(crate) const AGENT: &str = "system:bellwether:work-agent";

/// How many members are set up at a time: enough that their writes share commits, and few enough that
/// what setting up takes in memory is used again.
const MEMBERS_AT_ONCE: usize = 32;

/// How many definitions are created at a time, for the same reasons.
const DEFINITIONS_AT_ONCE: usize = 8;

/// Run a hub and member clusters in one process, in the foreground.
///
/// Everything is kept in the data directory; stop it at any moment, start it again, and it carries
/// on with the clusters that it had. Ctrl-C ends it cleanly.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether up\n  bellwether up --clusters 100 --in-memory\n  bellwether up --listen 127.0.0.1:7443 --data-dir /tmp/fleet"
)]
pub(crate) struct UpArgs {
    /// Number of member clusters, named cluster1, cluster2, … Those that are missing
    /// are created; without it those of the data directory run, and 3 in a new one.
    #[arg(long, value_name = "N")]
    clusters: Option<usize>,
    /// Delete member clusters beyond --clusters, with everything in them.
    #[arg(long, requires = "clusters")]
    remove: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// Features of the agents to switch on or off: RawFeedbackJsonString=true lets lists and maps
    /// come back as JSON.
    #[arg(long, value_name = "NAME=BOOL,…", value_delimiter = ',')]
    feature_gates: Vec<String>,
    #[command(flatten)]
    heartbeats: HeartbeatArgs,
    #[command(flatten)]
    workflows: WorkflowArgs,
    #[command(flatten)]
    apply_once: ApplyOnceArgs,
}

pub(crate) async fn run(arguments: UpArgs) -> anyhow::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "only to tell how long the start took"
    )]
    let started = Instant::now();
    let gates = Gates::read(&arguments.feature_gates)?;
    anyhow::ensure!(
        !gates.cluster_property,
        "--feature-gates: ClusterProperty is for `bellwether agent`"
    );
    let options = AgentOptions {
        raw_feedback: gates.raw_feedback,
        ..AgentOptions::default()
    };
    let running = Running::start(&arguments.server).await?;
    let stored = running.stored_clusters();
    let request = ChoiceRequest {
        clusters: arguments.clusters,
        may_remove: arguments.remove,
        is_new: !stored.iter().any(|name| name == HUB),
    };
    let present = stored.into_iter().filter(|name| name != HUB).collect();
    let Choice { keep, add, remove } = choose(present, request).map_err(anyhow::Error::msg)?;
    running.add_cluster(HUB).await?;
    say(&format!("hub ready at {}", running.address));
    let (launched, server) = (&running, &running.server);
    // Where definitions for all namespaces are.
    let system = serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE},
    });
    stream::iter(bellwether_api::definitions().chain([system]))
        .map(|object| server.ensure(HUB, object))
        .buffer_unordered(DEFINITIONS_AT_ONCE)
        .try_collect::<()>()
        .await?;
    let agents = launched.start_agents(options).await;
    let options = HubOptions {
        clusters: arguments.heartbeats.options(),
        workflows: arguments.workflows.options()?,
        apply_once: arguments.apply_once.mode,
        ..HubOptions::default()
    };
    let (clock, metrics) = (&launched.clock, &launched.metrics);
    let fleet = Members::start(server, clock, agents.clone(), options, metrics).await?;
    for name in &remove {
        fleet.delete(name).await?;
        launched.drop_stored(name).await?;
        say(&format!("{name} is deleted"));
    }
    let joining = &fleet;
    let mut members = stream::iter(keep.into_iter().chain(add))
        .map(|name| async move {
            launched.add_cluster(&name).await?;
            if joining.is_detached(&name).await? {
                return anyhow::Ok((name, None));
            }
            let member = launched.reach(&name, AGENT);
            let labels = labels(number(&name).unwrap_or_default());
            let is_available = joining.join(&name, member.clone(), labels).await?;
            anyhow::Ok((name, Some((member, is_available))))
        })
        .buffered(MEMBERS_AT_ONCE);
    while let Some((name, joined)) = members.try_next().await? {
        let Some((member, is_available)) = joined else {
            say(&format!(
                "{name} is detached: it is served, and has no agent"
            ));
            continue;
        };
        agents.add_member(&name, member);
        say(&if is_available {
            format!("{name} ready")
        } else {
            format!("{name} is not available: see bellwether cluster list")
        });
    }
    drop(members);
    // Members whose certificates are void have yet to join again; the token ends after an hour.
    if !running.has_new_authority {
        fleet.close().await?;
    }
    let path = running.publish()?;
    say(&format!(
        "\nEverything is up after {} ms. Next:\n  export KUBECONFIG={}\n  kubectl get managedclusters --show-labels\n  kubectl --context cluster1 create configmap hello --from-literal=from=bellwether",
        started.elapsed().as_millis(),
        path.display()
    ));
    let stopped = tokio::select! {
        stopped = stop_signal() => stopped,
        ended = fleet.ended() => Err(ended.into()),
    };
    fleet.stop().await;
    running.stop().await;
    stopped
}

/// Labels that give examples something to select.
fn labels(number: usize) -> BTreeMap<String, String> {
    const REGIONS: [&str; 3] = ["emea", "amer", "apac"];
    const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];
    let index = number.saturating_sub(1);
    let region = REGIONS[index % REGIONS.len()];
    // Shifted with each round, so that nine members have all combinations.
    let environment = ENVIRONMENTS[(index + index / REGIONS.len()) % ENVIRONMENTS.len()];
    [("region", region), ("environment", environment)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
