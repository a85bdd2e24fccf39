//! How an agent reaches its hub: with a token at first, with a certificate from then on.

use std::fmt::Debug;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_runtime::{ClusterHandle, Fence, Pacer};
use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::keyring::Credentials;
use super::roster::Roster;

/// Why a hub cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("the hub cannot be reached: {0}")]
pub struct ConnectError(pub String);

/// How an agent reaches its hub.
pub trait HubConnector: Debug + Send + Sync + 'static {
    /// A client that may ask to join.
    fn bootstrap_client(&self) -> Result<Client, ConnectError>;

    /// The hub for somebody whom a certificate vouches for.
    fn connect(&self, credentials: &Credentials) -> Result<ClusterHandle, ConnectError>;

    /// A watch of the hub's clusters that there is already in this process; without one, an agent
    /// watches its own cluster.
    fn roster(&self) -> Option<Roster> {
        None
    }

    /// Called once when the cluster has been detached, before its credentials are removed.
    fn on_detached(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Where the hub is, which tells it from other hubs.
    fn address(&self) -> String;

    /// A kubeconfig that names the files `tls.crt` and `tls.key` beside it, for others than us.
    fn kubeconfig(&self) -> Option<String>;
}

/// A hub that is reached over the network, as a kubeconfig says.
#[derive(Debug)]
pub struct KubeconfigConnector {
    config: Config,
    server: String,
    authority: Option<String>,
    fence: Option<Fence>,
    pacer: Option<Pacer>,
}

impl KubeconfigConnector {
    /// Reads a kubeconfig, with a token or whatever else lets a stranger in.
    pub async fn new(kubeconfig: Kubeconfig) -> Result<Self, ConnectError> {
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| ConnectError(error.to_string()))?;
        let server = config.cluster_url.to_string();
        let authority = config.root_cert.as_ref().map(|certificates| {
            certificates
                .iter()
                .map(|der| pem("CERTIFICATE", der))
                .collect()
        });
        Ok(Self {
            config,
            server,
            authority,
            fence: None,
            pacer: None,
        })
    }

    /// Sends writes to the hub only while the fence is open.
    #[must_use]
    pub fn behind(mut self, fence: Option<&Fence>) -> Self {
        self.fence = fence.cloned();
        // A repetition could be sent after the fence was closed.
        self.config.default_retry = self.fence.is_none();
        self
    }

    /// Sends requests to the hub at a pace that all its clients share.
    #[must_use]
    pub fn at_pace(mut self, pacer: &Pacer) -> Self {
        self.pacer = Some(pacer.clone());
        self
    }

    fn connect(&self, config: Config) -> Result<Client, ConnectError> {
        let mut client =
            Client::try_from(config).map_err(|error| ConnectError(error.to_string()))?;
        if let Some(fence) = &self.fence {
            client = fence.guard(client);
        }
        // A request waits for its turn before the fence, which looks at the time when it is sent.
        Ok(match &self.pacer {
            Some(pacer) => pacer.limit(client),
            None => client,
        })
    }
}

impl HubConnector for KubeconfigConnector {
    fn bootstrap_client(&self) -> Result<Client, ConnectError> {
        self.connect(self.config.clone())
    }

    fn connect(&self, credentials: &Credentials) -> Result<ClusterHandle, ConnectError> {
        let mut config = self.config.clone();
        let user = json!({
            "client-certificate-data": STANDARD.encode(&credentials.certificate),
            "client-key-data": STANDARD.encode(&credentials.key),
        });
        config.auth_info =
            serde_json::from_value(user).map_err(|error| ConnectError(error.to_string()))?;
        self.connect(config).map(ClusterHandle::from)
    }

    fn address(&self) -> String {
        self.server.clone()
    }

    fn kubeconfig(&self) -> Option<String> {
        let mut cluster = json!({"server": self.server});
        if self.config.accept_invalid_certs {
            cluster["insecure-skip-tls-verify"] = json!(true);
        }
        if let Some(authority) = &self.authority {
            cluster["certificate-authority-data"] = json!(STANDARD.encode(authority));
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "default-context",
            "clusters": [{"name": "default-cluster", "cluster": cluster}],
            "users": [{"name": "default-auth",
                "user": {"client-certificate": "tls.crt", "client-key": "tls.key"}}],
            "contexts": [{"name": "default-context",
                "context": {"cluster": "default-cluster", "user": "default-auth"}}],
        });
        Some(config.to_string())
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        lines.push(line.to_owned());
        rest = more;
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}
