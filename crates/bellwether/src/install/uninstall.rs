//! `bellwether uninstall`: removes a hub or an agent, and leaves what they delivered.

use std::time::Duration;

use bellwether_api::cluster::names::registration::AGENT_NAMESPACE;
use bellwether_ctl::delete::{self, Cascade, Delete};
use bellwether_ctl::{Connection, DryRun, Manifest, Scope};
use clap::{Args, Subcommand};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::owned::{self, Identity};
use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::objects::duration;
use crate::stop::until_without_pods;

/// What to remove.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    #[command(subcommand)]
    what: UninstallCommand,
}

#[derive(Debug, Subcommand)]
enum UninstallCommand {
    Hub(HubArgs),
    Agent(AgentArgs),
}

/// Remove a hub. Applications, works and everything on members stay; so do definitions.
///
/// A hub that is installed again carries on where this one ended.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether uninstall hub\n  bellwether uninstall hub --with-applications"
)]
struct HubArgs {
    /// The namespace of the hub.
    #[arg(short, long, value_name = "NAME", default_value = "bellwether-system")]
    namespace: String,
    /// The name of the installation.
    #[arg(long, value_name = "NAME", default_value = "bellwether-hub")]
    name: String,
    /// First delete all applications, works and policies, and wait until they are gone from all clusters.
    #[arg(long)]
    with_applications: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// Remove the agent of a member. What it applied stays, and so do its credentials and its records.
///
/// To remove what it applied as well, detach the cluster first: `bellwether cluster detach NAME`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether uninstall agent --context edge1")]
struct AgentArgs {
    /// The namespace of the agent.
    #[arg(short, long, value_name = "NAME", default_value = AGENT_NAMESPACE)]
    namespace: String,
    /// The name of the installation.
    #[arg(long, value_name = "NAME", default_value = "bellwether-agent")]
    name: String,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// How long to wait until objects are gone.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What the objects of a fleet are made from, in the order in which they go.
const DELIVERED: [&str; 9] = [
    "applications.core.oam.dev",
    "applicationconfigurations.core.oam.dev",
    "workflowruns.core.oam.dev",
    "rollouts.standard.oam.dev",
    "distributions.workflow.bellwether.dev",
    "manifestworkreplicasets.work.open-cluster-management.io",
    "policies.policy.open-cluster-management.io",
    "manifestworks.work.open-cluster-management.io",
    "works.multicluster.x-k8s.io",
];

pub(crate) async fn run(arguments: UninstallArgs) -> anyhow::Result<()> {
    match arguments.what {
        UninstallCommand::Hub(hub) => {
            let connection = hub.common.connect.open(None).await?;
            if hub.with_applications {
                for kind in DELIVERED {
                    let all = Delete {
                        words: vec![kind.to_owned()],
                        scope: scope(&connection, true),
                        all: true,
                        ..deletion(&connection, hub.common.timeout)
                    };
                    delete(&connection, &all).await?;
                }
            }
            let identity = Identity {
                name: hub.name.clone(),
                namespace: hub.namespace.clone(),
                mode: "hub",
            };
            let mut objects = owned::find(&connection.client, &identity).await?;
            // Made by the processes themselves.
            objects.push(named(
                "v1",
                "Secret",
                &hub.namespace,
                &format!("{}-webhook", hub.name),
            ));
            let lease = crate::hub::LEASE;
            objects.push(named(
                "coordination.k8s.io/v1",
                "Lease",
                &hub.namespace,
                lease,
            ));
            remove(&connection, objects, hub.common.timeout).await?;
            say(&format!(
                "{} is removed; applications, works and definitions stay",
                hub.name
            ));
        }
        UninstallCommand::Agent(agent) => {
            let connection = agent.common.connect.open(None).await?;
            let identity = Identity {
                name: agent.name.clone(),
                namespace: agent.namespace.clone(),
                mode: "agent",
            };
            let objects = owned::find(&connection.client, &identity).await?;
            remove(&connection, objects, agent.common.timeout).await?;
            say(&format!("{} is removed; what it applied stays", agent.name));
        }
    }
    Ok(())
}

fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}})
}

/// Removes objects in their order. A Deployment is stopped first: as long as one of its processes runs, it repairs what goes.
pub(super) async fn remove(
    connection: &Connection,
    objects: Vec<Value>,
    timeout: Duration,
) -> anyhow::Result<()> {
    for deployment in objects.iter().filter(|it| it["kind"] == "Deployment") {
        stop(&connection.client, deployment, timeout).await?;
    }
    let objects = objects.into_iter().map(|object| Manifest {
        place: "the chart".to_owned(),
        object,
    });
    let all = Delete {
        objects: objects.collect(),
        scope: scope(connection, false),
        ..deletion(connection, timeout)
    };
    delete(connection, &all).await
}

async fn stop(client: &Client, deployment: &Value, timeout: Duration) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &deployment["metadata"];
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{}",
        text(&metadata["namespace"]),
        text(&metadata["name"])
    );
    let no_pods = json!({"spec": {"replicas": 0}});
    let request = Request::patch(&path)
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(&no_pods)?)?;
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        other => drop(other?),
    }
    until_without_pods(client, &path, timeout).await
}

fn scope(connection: &Connection, all_namespaces: bool) -> Scope {
    Scope {
        namespace: connection.namespace.clone(),
        all_namespaces,
        labels: String::new(),
        fields: String::new(),
    }
}

fn deletion(connection: &Connection, timeout: Duration) -> Delete {
    Delete {
        words: Vec::new(),
        objects: Vec::new(),
        scope: scope(connection, false),
        all: false,
        cascade: Cascade::Background,
        grace_period: None,
        wait: Some(timeout),
        ignore_not_found: true,
        force: false,
        dry_run: DryRun::None,
        names: false,
    }
}

async fn delete(connection: &Connection, what: &Delete) -> anyhow::Result<()> {
    let (mut out, mut notes) = (std::io::stdout(), std::io::stderr());
    Ok(delete::run(connection, what, &mut out, &mut notes).await?)
}
