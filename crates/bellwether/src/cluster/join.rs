//! `bellwether cluster join`

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_agent::registration::{
    Agent, ClaimOptions, HubConnector as _, KubeconfigConnector, join, keep_bootstrap,
};
use bellwether_api::cluster::ClusterClaim;
use bellwether_api::cluster::names::registration::{AGENT_NAMESPACE, BOOTSTRAP_SECRET};
use bellwether_api::definition;
use bellwether_api::multicluster::AppliedWork;
use bellwether_api::work::AppliedManifestWork;
use bellwether_apiserver::Clock;
use bellwether_json::yaml::to_yaml;
use bellwether_runtime::read_kubeconfig;
use clap::Args;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::{check_cluster_name, read_labels};
use crate::cli::say;
use crate::connect::ConnectArgs;

/// Ask a hub to let a cluster join.
///
/// The private key is made here and stays on the member, in a Secret beside the certificate. If the
/// token was made for this cluster, it is let in at once; otherwise this waits until somebody accepts
/// it on the hub.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether cluster join --cluster-name edge1 --hub-kubeconfig edge1.bootstrap.yaml --kubeconfig edge1.yaml\n  bellwether cluster join --cluster-name edge1 --hub-apiserver https://hub:6443 --hub-token abcdef.0123456789abcdef --ca-file ca.crt"
)]
pub(crate) struct JoinArgs {
    /// Name of the cluster on the hub.
    #[arg(long, value_name = "NAME")]
    cluster_name: String,
    /// A kubeconfig with which to ask, as `bellwether token create --write` makes one.
    #[arg(long, value_name = "FILE", required_unless_present = "hub_apiserver")]
    hub_kubeconfig: Option<PathBuf>,
    /// The address of the hub, instead of a kubeconfig.
    #[arg(
        long,
        value_name = "URL",
        requires = "hub_token",
        conflicts_with = "hub_kubeconfig"
    )]
    hub_apiserver: Option<String>,
    /// The token with which to ask.
    #[arg(long, value_name = "TOKEN", requires = "hub_apiserver")]
    hub_token: Option<String>,
    /// The certificate of the hub's authority; without it that of a public one is expected.
    #[arg(long, value_name = "FILE", requires = "hub_apiserver")]
    ca_file: Option<PathBuf>,
    /// Labels that the cluster begins with, such as region=emea.
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',')]
    labels: Vec<String>,
    /// Requested certificate lifetime in seconds (default: set by the hub).
    #[arg(long, value_name = "SECONDS")]
    client_cert_expiration_seconds: Option<i32>,
    /// How long to wait to be accepted, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// The kubeconfig of the member. It has to be named here or by --context: the one in use is the
    /// hub's more often than not.
    #[arg(long, value_name = "FILE", required_unless_present = "context")]
    kubeconfig: Option<PathBuf>,
    /// The context of the member, in that kubeconfig or in your own.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Your own kubeconfig, for --context.
    #[arg(long, hide = true, env = "KUBECONFIG")]
    own_kubeconfig: Option<OsString>,
}

pub(crate) async fn run(arguments: JoinArgs) -> anyhow::Result<()> {
    check_cluster_name(&arguments.cluster_name)?;
    let labels = read_labels(&arguments.labels)?;
    let kubeconfig = bootstrap(&arguments)?;
    let text = to_yaml(&kubeconfig);
    let kubeconfig: Kubeconfig =
        serde_json::from_value(kubeconfig).context("the hub's kubeconfig cannot be understood")?;
    let connector = KubeconfigConnector::new(kubeconfig).await?;
    let file = arguments.kubeconfig.clone().map(PathBuf::into_os_string);
    let file = file.or_else(|| arguments.own_kubeconfig.clone());
    let connect = ConnectArgs::new(file, arguments.context.clone());
    let address = connect.config().await?.cluster_url.to_string();
    anyhow::ensure!(
        arguments.context.is_some()
            || address.trim_end_matches('/') != connector.address().trim_end_matches('/'),
        "{} leads to the hub itself, {address}: name the kubeconfig of the member; to make the hub a member of its own, say which context is meant with --context",
        arguments
            .kubeconfig
            .as_deref()
            .unwrap_or(Path::new("the kubeconfig"))
            .display(),
    );
    let member = connect.open(None).await?.client;
    let definitions = [
        definition::<ClusterClaim>(),
        definition::<AppliedManifestWork>(),
        definition::<AppliedWork>(),
    ];
    let defined = crate::hub::ensure_definitions(&member, definitions).await;
    defined.context("cannot define on the member what its agent works with")?;
    keep_bootstrap(&member, &text).await.with_context(|| {
        format!("cannot write the Secret {AGENT_NAMESPACE}/{BOOTSTRAP_SECRET} of the member")
    })?;
    let name = arguments.cluster_name.clone();
    let agent = Agent {
        cluster: name.clone(),
        connector: Arc::new(connector),
        member: member.into(),
        clock: Clock::system(),
        labels,
        client_configs: Vec::new(),
        expiration_seconds: arguments.client_cert_expiration_seconds,
        claims: ClaimOptions::default(),
    };
    say(&format!(
        "Join request sent for {name}. If the token does not admit it automatically, run on the hub:\n  bellwether cluster accept {name}"
    ));
    let timeout = Duration::from_secs(arguments.timeout);
    tokio::time::timeout(timeout, join(&agent))
        .await
        .with_context(|| {
            format!(
                "{name} was not accepted within {} seconds",
                arguments.timeout
            )
        })??;
    say(&format!(
        "{name} has its certificate. Next, start its agent:\n  bellwether agent --cluster-name {name} --kubeconfig MEMBER"
    ));
    Ok(())
}

/// The kubeconfig with which to ask.
fn bootstrap(arguments: &JoinArgs) -> anyhow::Result<Value> {
    if let Some(path) = &arguments.hub_kubeconfig {
        let kubeconfig =
            read_kubeconfig(path).with_context(|| format!("cannot read {}", path.display()))?;
        return Ok(serde_json::to_value(kubeconfig)?);
    }
    let mut cluster = json!({"server": arguments.hub_apiserver});
    if let Some(path) = &arguments.ca_file {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bootstrap",
        "clusters": [{"name": "hub", "cluster": cluster}],
        "users": [{"name": "bootstrap", "user": {"token": arguments.hub_token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "hub", "user": "bootstrap"}}],
    }))
}
