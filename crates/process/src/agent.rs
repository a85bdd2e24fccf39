//! `bellwether agent`: what works on a hub say is made so on one member.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_agent::registration::{self, Agent, ClaimOptions, KubeconfigConnector};
use bellwether_agent::work::AgentOptions;
use bellwether_controllers::registry::to_rules;
use bellwether_controllers::rights;
use bellwether_json::duration::GoDuration;
use bellwether_runtime::{
    Clock, Fence, MetricsRegistry, Pacer, Tasks, parse_kubeconfig, read_kubeconfig,
};
use clap::Args;
use jiff::SignedDuration;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::watch;

use crate::diagnostics::{DiagnosticsArgs, Health};
use crate::election::{ElectionArgs, Term, client_without_retries};
use crate::member_agents::MemberAgents;
use crate::missing_rights;
use crate::output::say;
use crate::pace::PaceArgs;
use crate::pod::PodArgs;
use crate::signal::stop_signal;

/// Apply the works of a hub on one member, keep them in place, and report.
///
/// Hub and member may be any clusters, embedded or real, and even the same one. Several processes may
/// run for one member: the one that holds the lease on the member acts, the others stand by. The agent
/// is ready as soon as both clusters have answered, and ends cleanly on Ctrl-C and SIGTERM; the next
/// one carries on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether agent --kubeconfig edge1.yaml --cluster-name edge1\n  bellwether agent --hub-kubeconfig hub.yaml --kubeconfig member.yaml --cluster-name cluster1\n  bellwether agent --hub-kubeconfig all.yaml --hub-context hub --kubeconfig all.yaml --context cluster1 --cluster-name cluster1"
)]
pub struct AgentArgs {
    /// How to reach the hub. Without it the agent joins the hub, or goes on with the certificate
    /// that it has from joining.
    #[arg(long, value_name = "FILE", alias = "workload-source-config")]
    hub_kubeconfig: Option<PathBuf>,
    /// A kubeconfig with which to join, if none was kept by `bellwether cluster join`.
    #[arg(long, value_name = "FILE", conflicts_with = "hub_kubeconfig")]
    bootstrap_kubeconfig: Option<PathBuf>,
    /// The context of the hub's kubeconfig, if not the current one.
    #[arg(long, value_name = "NAME")]
    hub_context: Option<String>,
    /// How to reach the member; the account of the pod if the agent runs on the member.
    #[arg(long, value_name = "FILE", alias = "spoke-kubeconfig")]
    kubeconfig: Option<PathBuf>,
    /// The context of the member's kubeconfig, if not the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The name of the member on the hub: the namespace of its works.
    #[arg(long, value_name = "NAME", alias = "spoke-cluster-name")]
    cluster_name: String,
    /// Identity of this agent in its records on the member (default: a hash of the hub's address).
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// How often to read objects that cannot be watched, such as 10s or 1m.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    status_sync_interval: String,
    /// How long to keep objects after their work has disappeared from the hub, such as 60m.
    #[arg(long, value_name = "DURATION", default_value = "60m")]
    appliedmanifestwork_eviction_grace_period: String,
    /// Maximum length of a JSON value in status feedback, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    max_json_raw_length: usize,
    /// How many works are reconciled at once.
    #[arg(long, value_name = "N", default_value_t = 10)]
    workload_agent_workers: usize,
    #[command(flatten)]
    pod: PodArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    election: ElectionArgs,
    #[command(flatten)]
    diagnostics: DiagnosticsArgs,
    /// Requested certificate lifetime in seconds (default: set by the hub).
    #[arg(long, value_name = "SECONDS", conflicts_with = "hub_kubeconfig")]
    client_cert_expiration_seconds: Option<i32>,
    /// How many claims of the member are reported besides the reserved ones.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        conflicts_with = "hub_kubeconfig"
    )]
    max_custom_cluster_claims: usize,
    /// Suffixes of further reserved claims, which are always reported.
    #[arg(
        long,
        value_name = "SUFFIX,…",
        value_delimiter = ',',
        conflicts_with = "hub_kubeconfig"
    )]
    reserved_cluster_claim_suffixes: Vec<String>,
    /// Features to switch on or off: RawFeedbackJsonString=true lets lists and maps come back,
    /// ClusterProperty=true reports properties of the about API as claims.
    #[arg(long, value_name = "NAME=BOOL,…", value_delimiter = ',')]
    feature_gates: Vec<String>,
}

/// Runs an agent until it is ended.
pub fn run(arguments: AgentArgs) -> anyhow::Result<()> {
    crate::complete(small_runtime()?, serve(arguments))
}

/// For a program that mostly waits, and of which there is one in every cluster: with one thread it
/// takes as little on a machine of many cores as on a small one.
fn small_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

async fn serve(arguments: AgentArgs) -> anyhow::Result<()> {
    let gates = Gates::read(&arguments.feature_gates)?;
    let mut options = options(&arguments)?;
    options.raw_feedback = gates.raw_feedback;
    anyhow::ensure!(
        arguments.hub_kubeconfig.is_none() || !gates.cluster_property,
        "--feature-gates: ClusterProperty is for agents that join, which report claims: leave out --hub-kubeconfig"
    );
    let (health, registry) = (Health::default(), MetricsRegistry::default());
    options.metrics.register(&registry);
    options.controller_metrics.register(&registry);
    arguments.diagnostics.serve(&registry, &health).await?;
    let member = arguments.member().await.context("the member")?;
    let lease = format!("bellwether-agent-{}", arguments.cluster_name);
    let election = arguments.election.clone();
    let (pacer, hub_pacer) = (arguments.pace.pacer(), arguments.pace.pacer());
    let term = AgentTerm {
        claims: ClaimOptions {
            most_custom: arguments.max_custom_cluster_claims,
            reserved_suffixes: arguments.reserved_cluster_claim_suffixes.clone(),
            properties: gates.cluster_property,
        },
        arguments,
        options,
        member: member.clone(),
        pacer,
        hub_pacer,
        health: health.clone(),
    };
    let parts = rights::AGENT.iter();
    let needed = parts.map(|part| (part.name, to_rules(part.rights)));
    let reporting = tokio::spawn(missing_rights::report(
        member.clone(),
        needed.collect(),
        Vec::new(),
    ));
    let ended = election
        .run(&member, &lease, &health, &term, stop_signal())
        .await;
    reporting.abort();
    ended
}

impl AgentArgs {
    /// A client of the member: by a kubeconfig, or by the account of the pod.
    async fn member(&self) -> anyhow::Result<Client> {
        if let Some(path) = &self.kubeconfig {
            return Ok(connect(path, self.context.as_deref()).await?.0);
        }
        let cluster = self.pod.in_cluster().context(
            "--kubeconfig is missing, and this process does not run in a pod with a service account",
        )?;
        Ok(cluster.client().await?)
    }
}

/// Why an agent is not ready that leads, and does not know the works of its hub.
const WAITING_FOR_HUB: &str = "waiting for the hub";

/// The agent of a member while this process leads.
struct AgentTerm {
    arguments: AgentArgs,
    options: AgentOptions,
    claims: ClaimOptions,
    member: Client,
    /// The pace of requests to the member.
    pacer: Pacer,
    /// The pace of requests to the hub, which has limits of its own.
    hub_pacer: Pacer,
    health: Health,
}

/// The member, and what guards writes to it and to the hub.
struct Guarded {
    member: Client,
    fence: Option<Fence>,
}

impl Guarded {
    fn guard(&self, client: Client) -> Client {
        match &self.fence {
            Some(fence) => fence.guard(client),
            None => client,
        }
    }
}

impl Term for AgentTerm {
    type Prepared = Guarded;

    async fn prepare(&self, fence: Option<&Fence>) -> anyhow::Result<Guarded> {
        let member = self.member.clone();
        let mut guarded = Guarded {
            member: member.clone(),
            fence: fence.cloned(),
        };
        guarded.member = self.pacer.limit(guarded.guard(member));
        Ok(guarded)
    }

    async fn lead(&self, guarded: Guarded) -> anyhow::Result<()> {
        self.health.set_unready(WAITING_FOR_HUB);
        match &self.arguments.hub_kubeconfig {
            Some(kubeconfig) => self.serve_known_hub(kubeconfig, guarded).await,
            None => self.as_member(&guarded).await,
        }
    }
}

impl AgentTerm {
    /// Applies the works of the hub that a kubeconfig names.
    async fn serve_known_hub(&self, kubeconfig: &Path, guarded: Guarded) -> anyhow::Result<()> {
        let (hub, address) = connect(kubeconfig, self.arguments.hub_context.as_deref())
            .await
            .context("the hub")?;
        let hub = self.hub_pacer.limit(guarded.guard(hub));
        let mut agent = self.work_agent(hub, &address, &guarded.member).await;
        Err(agent.ended().await.into())
    }

    /// Starts to apply works.
    async fn work_agent(&self, hub: Client, address: &str, member: &Client) -> Tasks {
        let cluster = self.arguments.cluster_name.as_str();
        let options = self.options.clone();
        let clock = Clock::system();
        let agents = MemberAgents::start(hub, address, Some(cluster), clock, options).await;
        agents.add_member(cluster, member.clone());
        self.health.set_ready("leading");
        say(&format!("the agent of {cluster} is ready; hub {address}"));
        let mut tasks = Tasks::new();
        agents.spawn(&mut tasks, &format!(" of {cluster}"));
        tasks
    }

    /// Serves the hub that the kubeconfig for joining names, and starts over when that is replaced, as
    /// by one for another hub.
    async fn as_member(&self, guarded: &Guarded) -> anyhow::Result<()> {
        loop {
            let found = Bootstrap::find(&self.arguments, &guarded.member).await?;
            let Bootstrap { kubeconfig, kept } = found;
            let replaced = async {
                match &kept {
                    Some(kept) => {
                        registration::replaced_bootstrap(&guarded.member, kept).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = self.serve_hub(kubeconfig, guarded) => return ended,
                () = replaced => say("the bootstrap kubeconfig was replaced; starting over"),
            }
        }
    }

    /// Joins the hub, or goes on with the certificate from joining, and applies works with it. With a
    /// new certificate it starts over.
    async fn serve_hub(&self, kubeconfig: Kubeconfig, guarded: &Guarded) -> anyhow::Result<()> {
        let cluster = self.arguments.cluster_name.as_str();
        let address =
            server_of(&kubeconfig, None).context("the bootstrap kubeconfig has no server")?;
        let connector = KubeconfigConnector::new(kubeconfig).await?;
        let connector = connector
            .behind(guarded.fence.as_ref())
            .at_pace(&self.hub_pacer);
        let agent = Agent {
            cluster: cluster.to_owned(),
            connector: Arc::new(connector),
            member: guarded.member.clone().into(),
            clock: Clock::system(),
            labels: BTreeMap::new(),
            client_configs: Vec::new(),
            expiration_seconds: self.arguments.client_cert_expiration_seconds,
            claims: self.claims.clone(),
        };
        let (sender, mut clients) = watch::channel(None);
        let mut registration = Tasks::new();
        registration.spawn_finite(
            format!("registration of {cluster}"),
            registration::run(agent, sender),
        );
        loop {
            // Also after a certificate is lost.
            self.health.set_unready(WAITING_FOR_HUB);
            let client = tokio::select! {
                client = clients.wait_for(Option::is_some) => client.map(|client| client.clone()),
                ended = registration.ended() => return Err(ended.into()),
            };
            let Ok(client) = client else {
                say(&format!(
                    "{cluster} was detached from its hub, and its credentials were removed; to join again:\n  bellwether cluster join --cluster-name {cluster} …"
                ));
                return Ok(());
            };
            let Some(hub) = client else { continue };
            clients.mark_unchanged();
            let mut works = self
                .work_agent(hub.client(), &address, &guarded.member)
                .await;
            tokio::select! {
                ended = works.ended() => return Err(ended.into()),
                ended = registration.ended() => return Err(ended.into()),
                _ = clients.changed() => {}
            }
        }
    }
}

/// The kubeconfig with which to join.
struct Bootstrap {
    kubeconfig: Kubeconfig,
    /// Its text, if it was kept on the member and not in a file.
    kept: Option<String>,
}

impl Bootstrap {
    async fn find(arguments: &AgentArgs, member: &Client) -> anyhow::Result<Self> {
        if let Some(path) = &arguments.bootstrap_kubeconfig {
            let kubeconfig =
                read_kubeconfig(path).with_context(|| format!("cannot read {}", path.display()))?;
            return Ok(Self {
                kubeconfig,
                kept: None,
            });
        }
        let kept = registration::kept_bootstrap(member).await?;
        let kept = kept.context(
            "the member has not been asked to join: use --hub-kubeconfig, --bootstrap-kubeconfig, or bellwether cluster join",
        )?;
        let kubeconfig =
            parse_kubeconfig(&kept).context("the kept kubeconfig cannot be understood")?;
        Ok(Self {
            kubeconfig,
            kept: Some(kept),
        })
    }
}

fn options(arguments: &AgentArgs) -> anyhow::Result<AgentOptions> {
    let interval = duration("--status-sync-interval", &arguments.status_sync_interval)?;
    let grace = duration(
        "--appliedmanifestwork-eviction-grace-period",
        &arguments.appliedmanifestwork_eviction_grace_period,
    )?;
    Ok(AgentOptions {
        agent_id: arguments.agent_id.clone(),
        status_sync_interval: Duration::try_from(interval)
            .context("--status-sync-interval is negative")?,
        eviction_grace: grace,
        max_json_raw: arguments.max_json_raw_length,
        workers: arguments.workload_agent_workers.max(1),
        ..AgentOptions::default()
    })
}

/// Features that are switched on.
#[derive(Debug, Default)]
pub struct Gates {
    /// Lists and maps come back as JSON.
    pub raw_feedback: bool,
    /// Properties of the about API are reported as claims.
    pub cluster_property: bool,
}

impl Gates {
    /// The gates as they are written on the command line.
    pub fn read(gates: &[String]) -> anyhow::Result<Self> {
        let mut read = Self::default();
        for gate in gates {
            let (name, value) = gate.split_once('=').unwrap_or((gate, "true"));
            let value: bool = value.parse().with_context(|| {
                format!("--feature-gates: {name} is true or false, not {value:?}")
            })?;
            match name {
                "RawFeedbackJsonString" => read.raw_feedback = value,
                "ClusterProperty" => read.cluster_property = value,
                // Reviews are asked only before a write, so there is nothing to be cached.
                "ExecutorValidatingCaches" => {}
                _ => anyhow::bail!(
                    "--feature-gates: {name} is not known; there are RawFeedbackJsonString, ClusterProperty and ExecutorValidatingCaches"
                ),
            }
        }
        Ok(read)
    }
}

fn duration(flag: &str, text: &str) -> anyhow::Result<SignedDuration> {
    let parsed: GoDuration = text
        .parse()
        .with_context(|| format!("{flag}: {text:?} is not a duration, such as 10s or 1h30m"))?;
    Ok(parsed.to_signed())
}

/// A client of the cluster that a kubeconfig names, and its address as it is written there: the
/// records of works are identified by it.
async fn connect(path: &Path, context: Option<&str>) -> anyhow::Result<(Client, String)> {
    let shown = path.display();
    let kubeconfig = read_kubeconfig(path).with_context(|| format!("cannot read {shown}"))?;
    let address = server_of(&kubeconfig, context)
        .with_context(|| format!("{shown} names no server for its context"))?;
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .with_context(|| format!("cannot use {shown}"))?;
    if let Some(at) = expired_since(&config, Clock::system().now()) {
        anyhow::bail!(
            "the client certificate in {shown} expired at {at}: get another kubeconfig; `bellwether up` and `bellwether apiserver` write theirs again at each start"
        );
    }
    let client = client_without_retries(config).with_context(|| format!("cannot use {shown}"))?;
    Ok((client, address))
}

/// When the client certificate of a configuration expired, if it did.
fn expired_since(config: &Config, now: jiff::Timestamp) -> Option<jiff::Timestamp> {
    let user = &config.auth_info;
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => String::from_utf8(STANDARD.decode(data).ok()?).ok()?,
        (None, Some(path)) => std::fs::read_to_string(path).ok()?,
        (None, None) => return None,
    };
    registration::certificate_expiry(&pem).filter(|at| *at <= now)
}

fn server_of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig
        .contexts
        .iter()
        .find(|entry| entry.name == name)?;
    let cluster = &named.context.as_ref()?.cluster;
    let entry = kubeconfig
        .clusters
        .iter()
        .find(|entry| entry.name == *cluster)?;
    entry.cluster.as_ref()?.server.clone()
}
