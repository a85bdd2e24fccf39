//! `bellwether apiserver`: the embedded API server alone.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_agent::work::AgentOptions;
use bellwether_apiserver::{
    ApiError, ApiServer, AuditLog, Authority, Clock, HUB, Identity, ServerOptions, StoredObject,
    serve, tls_config,
};
use bellwether_json::duration::GoDuration;
use bellwether_process::member_agents::MemberAgents;
use bellwether_process::signal::stop_signal;
use bellwether_runtime::{ClusterHandle, MetricsRegistry, spawn_vital};
use bellwether_simulator::Simulator;
use bellwether_store::Store;
use clap::Args;
use futures::FutureExt as _;
use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::backup::BackupSocket;
use crate::cli::say;
use crate::data::{DataDir, write_private};
use crate::kubeconfig::kubeconfig;

/// Run only the embedded API server: one cluster that kubectl and controllers take for a real one.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  bellwether apiserver --in-memory --listen 127.0.0.1:7443\n  kubectl --kubeconfig .bellwether/kubeconfig get namespaces"
)]
pub(crate) struct ApiserverArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Where a server listens and keeps its data.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Where data, certificates and the kubeconfig are kept.
    #[arg(long, value_name = "DIR", default_value = ".bellwether")]
    pub(crate) data_dir: PathBuf,
    /// Address to listen on; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    pub(crate) listen: SocketAddr,
    /// Keep everything in memory; only the kubeconfig is written.
    #[arg(long)]
    pub(crate) in_memory: bool,
    /// Whether workloads behave as if they ran: deployments become ready, jobs end.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub(crate) simulate_workloads: bool,
    /// Write an audit log to this file: every request that may change something, one JSON line each.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    /// Write requests that only read to the audit log as well.
    #[arg(long, requires = "audit_log")]
    pub(crate) audit_reads: bool,
    /// How long events are kept after they were last written.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = time_to_live)]
    pub(crate) event_ttl: SignedDuration,
}

pub(crate) async fn run(arguments: ApiserverArgs) -> anyhow::Result<()> {
    let running = Running::start(&arguments.server).await?;
    running.add_cluster(HUB).await?;
    for name in running.stored_clusters() {
        running.add_cluster(&name).await?;
    }
    let path = running.publish()?;
    say(&format!(
        "API server ready at {}; kubeconfig in {}",
        running.address,
        path.display()
    ));
    running.until_stopped().await
}

fn time_to_live(text: &str) -> Result<SignedDuration, String> {
    let parsed: Result<GoDuration, _> = text.parse();
    let duration = parsed.map(GoDuration::to_signed);
    duration
        .ok()
        .filter(SignedDuration::is_positive)
        .ok_or_else(|| format!("{text:?} is not a duration, such as 10m or 1h30m"))
}

/// A server that accepts connections.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) server: ApiServer,
    /// `https://…`
    pub(crate) address: String,
    store: Store<StoredObject>,
    authority: Arc<Authority>,
    pub(crate) clock: Clock,
    /// Brings workloads to life, if that is wanted.
    simulator: Option<Simulator>,
    data: DataDir,
    audit: Option<AuditLog>,
    listener: JoinHandle<()>,
    /// Answers those who want a backup.
    backups: Option<BackupSocket>,
    stop: tokio::sync::oneshot::Sender<()>,
    /// Metrics of all components.
    pub(crate) metrics: MetricsRegistry,
    /// The certificate authority was lost: members have to join again.
    pub(crate) has_new_authority: bool,
}

impl Running {
    /// Binds the address first, so that a port in use is found before anything is touched.
    pub(crate) async fn start(arguments: &ServerArgs) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(arguments.listen).await.with_context(|| {
            format!(
                "cannot listen on {}: choose another address with --listen",
                arguments.listen
            )
        })?;
        let bound = listener.local_addr()?;
        let clock = Clock::system();
        let data = DataDir::create(&arguments.data_dir)?;
        let store = data.open_store(arguments.in_memory, &clock)?;
        let is_new = store.keyspaces().is_empty();
        let has_new_authority = data.has_lost_authority(arguments.in_memory, is_new);
        let authority = Arc::new(data.authority(arguments.in_memory, is_new, &clock)?);
        let config = tls_config(
            authority.clone(),
            &SERVER_NAMES,
            &server_addresses(bound.ip()),
            clock.clone(),
        )?;
        let audit = arguments.audit_log.as_deref().map(open_audit_log);
        let mut audit = audit.transpose()?;
        if arguments.audit_reads {
            audit = audit.map(AuditLog::with_reads);
        }
        let metrics = MetricsRegistry::default();
        let options = ServerOptions {
            authority: Some(authority.clone()),
            token_key: Some(data.token_key(arguments.in_memory)?),
            audit: audit.clone(),
            event_time_to_live: Some(arguments.event_ttl),
            metrics: metrics.clone(),
            admission: bellwether_controllers::registry::admission(),
            ..ServerOptions::default()
        };
        let server = ApiServer::with_options(store.clone(), clock.clone(), options);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let stopped = stopped.map(drop).boxed();
        let listener = spawn_vital(
            "the listener of the API server",
            serve(server.clone(), listener, config, stopped),
        );
        let backups =
            (!arguments.in_memory).then(|| BackupSocket::open(data.path(), store.clone()));
        let address = format!("https://{}", reachable(bound));
        let simulator = arguments
            .simulate_workloads
            .then(|| Simulator::start(server.clone(), clock.clone()));
        Ok(Self {
            server,
            address,
            store,
            authority,
            clock,
            simulator,
            data,
            audit,
            listener,
            backups,
            stop,
            metrics,
            has_new_authority,
        })
    }

    /// The clusters that the data directory has, whether or not they are served.
    pub(crate) fn stored_clusters(&self) -> Vec<String> {
        self.store.keyspaces()
    }

    /// Deletes everything that the data directory has of a cluster, which must not be served.
    pub(crate) async fn drop_stored(&self, name: &str) -> anyhow::Result<()> {
        let dropped = self.store.drop_keyspace(name).await;
        dropped.with_context(|| format!("cannot delete the cluster {name}"))?;
        Ok(())
    }

    /// Makes a cluster available, with workloads that live.
    pub(crate) async fn add_cluster(&self, name: &str) -> Result<(), ApiError> {
        self.server.add_cluster(name).await?;
        match &self.simulator {
            Some(simulator) => simulator.add(name).await,
            None => Ok(()),
        }
    }

    /// A client of one cluster that may do everything there.
    pub(crate) fn client(&self, cluster: &str, user: &str) -> kube::Client {
        self.server.client(cluster, Identity::administrator(user))
    }

    /// The same for those who seldom need a client.
    pub(crate) fn reach(&self, cluster: &str, user: &str) -> ClusterHandle {
        let identity = Identity::administrator(user);
        self.server.service(cluster, identity).reach()
    }

    /// Starts the agents of members of this hub; which ones is yet to be said.
    pub(crate) async fn start_agents(&self, options: AgentOptions) -> MemberAgents {
        let hub = self.client(HUB, crate::up::AGENT);
        let clock = self.clock.clone();
        let agents = MemberAgents::start(hub, &self.address, None, clock, options).await;
        agents.works.metrics().register(&self.metrics);
        agents
    }

    /// Writes the kubeconfig for all clusters; what waits for it finds everything ready.
    pub(crate) fn publish(&self) -> anyhow::Result<PathBuf> {
        let path = self.data.kubeconfig();
        let clusters = self.server.clusters();
        let text = kubeconfig(&self.address, &self.authority, &clusters, self.clock.now())?;
        write_private(&path, &text)?;
        Ok(path)
    }

    /// Serves until Ctrl-C or SIGTERM, then ends cleanly.
    pub(crate) async fn until_stopped(self) -> anyhow::Result<()> {
        let stopped = tokio::select! {
            stopped = stop_signal() => stopped,
            () = self.renew_kubeconfig() => Ok(()),
        };
        self.stop().await;
        stopped
    }

    /// Writes the kubeconfig again from time to time, forever.
    async fn renew_kubeconfig(&self) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Err(error) = self.publish() {
                tracing::error!(error = format!("{error:#}"), "cannot renew the kubeconfig");
            }
        }
    }

    /// Ends cleanly.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.listener.await;
        drop(self.backups);
        drop(self.simulator);
        drop(self.server);
        if let Some(audit) = self.audit {
            audit.flush().await;
        }
        let _ = tokio::time::timeout(Duration::from_secs(5), self.store.close()).await;
    }
}

fn open_audit_log(path: &Path) -> anyhow::Result<AuditLog> {
    AuditLog::open(path).with_context(|| format!("cannot open the audit log {}", path.display()))
}

/// The names under which a server is reached.
const SERVER_NAMES: [&str; 4] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// How often the kubeconfig gets new certificates while the server runs. They are good for a year.
const RENEWAL: Duration = Duration::from_hours(30 * 24);

/// The addresses under which a server that listens on `ip` is reached.
fn server_addresses(ip: IpAddr) -> Vec<IpAddr> {
    let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), "::1".parse().unwrap_or(ip)];
    if !ip.is_unspecified() && !addresses.contains(&ip) {
        addresses.push(ip);
    }
    addresses
}

/// The address to put in a kubeconfig.
fn reachable(bound: SocketAddr) -> SocketAddr {
    match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from(([127, 0, 0, 1], bound.port())),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, bound.port()))
        }
        _ => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_life_of_events_is_a_duration_of_some_length() {
        for (text, seconds) in [
            ("1h30m", Some(5400)),
            ("90s", Some(90)),
            ("0s", None),
            ("x", None),
        ] {
            let parsed = time_to_live(text).ok();
            assert_eq!(parsed.map(|it| it.as_secs()), seconds, "{text}");
        }
    }
}
