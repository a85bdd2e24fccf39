//! `bellwether install` and `uninstall`: a hub or an agent on a cluster with an API server of its own.

mod chart;
#[cfg(test)]
mod generated;
mod owned;
mod progress;
mod stored_versions;
mod uninstall;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::cluster::names::registration::AGENT_NAMESPACE;
use bellwether_ctl::{Manifest, apply};
use bellwether_helm::ValueSources;
use bellwether_json::yaml::to_yaml;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::objects::duration;

use owned::Identity;
pub(crate) use uninstall::{UninstallArgs, run as uninstall};

/// Who owns the fields that an installation writes.
const FIELD_MANAGER: &str = "bellwether-install";

/// What to install.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    what: InstallCommand,
}

#[derive(Debug, Subcommand)]
enum InstallCommand {
    Hub(HubArgs),
    Agent(AgentArgs),
}

/// Print the manifests of a hub, or apply them.
///
/// Definitions come first, then the account of the hub with the rights of its controllers and no others, then its processes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether install hub | kubectl apply --server-side -f -\n  bellwether install hub --apply\n  bellwether install hub --image registry.example.com/bellwether:0.1.0 --set applyOnceOnly=on --apply"
)]
struct HubArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The namespace of the hub.
    #[arg(short, long, value_name = "NAME", default_value = "bellwether-system")]
    namespace: String,
    /// The name of the installation and of its objects.
    #[arg(long, value_name = "NAME", default_value = "bellwether-hub")]
    name: String,
}

/// Print the manifests of the agent of a member, or apply them.
///
/// The member joins with the kubeconfig of --bootstrap-kubeconfig, or with the one that `bellwether cluster join` has kept on it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether token create --cluster-name edge1 --write edge1.bootstrap.yaml\n  bellwether install agent --cluster-name edge1 --bootstrap-kubeconfig edge1.bootstrap.yaml --context edge1 --apply"
)]
struct AgentArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The name of the member on the hub.
    #[arg(long, value_name = "NAME")]
    cluster_name: String,
    /// A kubeconfig with which the agent asks to join.
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig: Option<PathBuf>,
    /// The namespace of the agent.
    #[arg(short, long, value_name = "NAME", default_value = AGENT_NAMESPACE)]
    namespace: String,
    /// The name of the installation and of its objects.
    #[arg(long, value_name = "NAME", default_value = "bellwether-agent")]
    name: String,
}

/// What is the same for hubs and agents.
#[derive(Debug, Args)]
struct CommonArgs {
    /// The image, such as registry.example.com/bellwether:0.1.0 or …@sha256:….
    #[arg(long, value_name = "REF")]
    image: Option<String>,
    /// How many processes run, of which one acts (default: 2).
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// A file with values of the chart; may be repeated, later ones win.
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    values: Vec<PathBuf>,
    /// Set values of the chart: key1=value1,key2=value2; docs/install.md lists them.
    #[arg(long, value_name = "K=V")]
    set: Vec<String>,
    /// Apply the manifests, and wait until everything runs.
    #[arg(long)]
    apply: bool,
    /// How long to wait with --apply.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration, requires = "apply")]
    timeout: Duration,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// An installation: what it is called, where it is, and what it consists of.
struct Installation {
    identity: Identity,
    objects: Vec<Value>,
}

pub(crate) async fn run(arguments: InstallArgs) -> anyhow::Result<()> {
    let (common, installation) = match arguments.what {
        InstallCommand::Hub(hub) => {
            let flags = json!({"mode": "hub"});
            let values = hub.common.sources(flags)?;
            let definitions = bellwether_api::definitions().collect();
            let identity = Identity {
                name: hub.name,
                namespace: hub.namespace,
                mode: "hub",
            };
            let installed = Installation::new(identity, definitions, &values)?;
            (hub.common, installed)
        }
        InstallCommand::Agent(agent) => {
            let mut flags = json!({"mode": "agent", "agent": {"clusterName": agent.cluster_name}});
            if let Some(path) = &agent.bootstrap_kubeconfig {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                bellwether_runtime::parse_kubeconfig(&text)
                    .with_context(|| format!("{} is not a kubeconfig", path.display()))?;
                flags["agent"]["bootstrapKubeconfig"] = text.into();
            }
            let values = agent.common.sources(flags)?;
            let definitions = bellwether_api::member_definitions();
            let identity = Identity {
                name: agent.name,
                namespace: agent.namespace,
                mode: "agent",
            };
            let installed = Installation::new(identity, definitions, &values)?;
            (agent.common, installed)
        }
    };
    if common.apply {
        return installation.apply(&common).await;
    }
    let documents: Vec<String> = installation.objects.iter().map(to_yaml).collect();
    say(documents.join("---\n").trim_end());
    Ok(())
}

impl CommonArgs {
    /// Values of flags and files; what is set by hand wins, then flags.
    fn sources(&self, mut flags: Value) -> anyhow::Result<ValueSources> {
        // The definitions are part of what is installed.
        flags["createDefinitions"] = false.into();
        if let Some(replicas) = self.replicas {
            flags["replicaCount"] = replicas.into();
        }
        if let Some(image) = &self.image {
            flags["image"] = image_values(image)?;
        }
        let mut files = Vec::new();
        for path in &self.values {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.push((path.display().to_string(), text));
        }
        files.push(("the flags".to_owned(), to_yaml(&flags)));
        Ok(ValueSources {
            files,
            set: self.set.clone(),
            ..ValueSources::default()
        })
    }
}

/// The values of the chart that an image becomes.
fn image_values(image: &str) -> anyhow::Result<Value> {
    let (rest, digest) = image.split_once('@').unwrap_or((image, ""));
    // A colon before a slash is that of a port.
    let (repository, tag) = match rest.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (rest, ""),
    };
    anyhow::ensure!(
        !repository.is_empty() && !image.contains(char::is_whitespace),
        "--image: {image:?} is not an image reference, such as registry.example.com/bellwether:0.1.0"
    );
    Ok(json!({"repository": repository, "tag": tag, "digest": digest}))
}

impl Installation {
    fn new(
        identity: Identity,
        definitions: Vec<Value>,
        values: &ValueSources,
    ) -> anyhow::Result<Self> {
        let Identity {
            name, namespace, ..
        } = &identity;
        let rendered = chart::render(name, namespace, values)?;
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let mut objects = vec![own];
        objects.extend(definitions);
        objects.extend(rendered);
        Ok(Self { identity, objects })
    }

    /// Applies everything, waits until all processes are available, and removes what earlier values made and these do not.
    async fn apply(self, common: &CommonArgs) -> anyhow::Result<()> {
        let connection = common.connect.open(None).await?;
        let is_definition = |it: &&Value| it["kind"] == "CustomResourceDefinition";
        let definitions: Vec<Value> = self.objects.iter().filter(is_definition).cloned().collect();
        stored_versions::prepare(&connection.client, &definitions).await?;
        let how = apply::Apply {
            server_side: true,
            force_conflicts: true,
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..apply::Apply::default()
        };
        let manifests = self.objects.iter().map(|object| Manifest {
            place: "the chart".to_owned(),
            object: object.clone(),
        });
        let (mut out, mut notes) = (std::io::stdout(), std::io::stderr());
        apply::run(&connection, &how, manifests.collect(), &mut out, &mut notes).await?;
        let Identity {
            name, namespace, ..
        } = &self.identity;
        let client = &connection.client;
        progress::until_available(client.clone(), namespace, name, common.timeout).await?;
        let there = owned::find(client, &self.identity).await?;
        let surplus = owned::surplus(there, &self.objects);
        uninstall::remove(&connection, surplus, common.timeout).await?;
        say(&format!("{name} is installed"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(image: &str, expected: [&str; 3]) {
        let [repository, tag, digest] = expected;
        let expected = json!({"repository": repository, "tag": tag, "digest": digest});
        assert_eq!(image_values(image).unwrap(), expected);
    }

    #[test]
    fn an_image_has_a_tag_or_a_digest() {
        check("bellwether", ["bellwether", "", ""]);
        check("bellwether:0.1.0", ["bellwether", "0.1.0", ""]);
        check("localhost:5000/a/b", ["localhost:5000/a/b", "", ""]);
        check("localhost:5000/a/b:c", ["localhost:5000/a/b", "c", ""]);
        check("a/b:c@sha256:00", ["a/b", "c", "sha256:00"]);
        for image in ["", ":tag", "a b"] {
            assert!(image_values(image).is_err(), "{image}");
        }
    }
}
