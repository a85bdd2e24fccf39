//! The cluster that this process runs in, if it runs in a pod.

use std::path::PathBuf;

use bellwether_runtime::{InCluster, SERVICE_ACCOUNT_DIRECTORY};
use clap::Args;

/// What the kubelet tells a process in a pod.
#[derive(Debug, Clone, Args)]
pub struct PodArgs {
    /// The host of the API server of the cluster that this process runs in.
    #[arg(
        long,
        value_name = "HOST",
        env = "KUBERNETES_SERVICE_HOST",
        hide = true
    )]
    kubernetes_service_host: Option<String>,
    /// The port of the API server of the cluster that this process runs in.
    #[arg(
        long,
        value_name = "PORT",
        env = "KUBERNETES_SERVICE_PORT",
        default_value_t = 443,
        hide = true
    )]
    kubernetes_service_port: u16,
    /// The directory with the token of this process, which is read again when it is replaced.
    #[arg(long, value_name = "DIR", default_value = SERVICE_ACCOUNT_DIRECTORY, hide = true)]
    service_account_dir: PathBuf,
}

impl PodArgs {
    /// The cluster that this process runs in.
    pub fn in_cluster(&self) -> Option<InCluster> {
        let cluster = InCluster {
            host: self.kubernetes_service_host.clone()?,
            port: self.kubernetes_service_port,
            directory: self.service_account_dir.clone(),
        };
        cluster.has_token().then_some(cluster)
    }
}

impl Default for PodArgs {
    fn default() -> Self {
        Self {
            kubernetes_service_host: None,
            kubernetes_service_port: 443,
            service_account_dir: SERVICE_ACCOUNT_DIRECTORY.into(),
        }
    }
}
