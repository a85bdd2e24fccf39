//! The cluster that a pod runs in: its address from the environment, token and authority from files that the kubelet keeps up to
//! date.

use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
    NamedCluster, NamedContext,
};
use kube::{Client, Config};

use crate::authority::follow_authority;

/// Where the kubelet puts the token of a pod's service account, and what belongs to it.
pub const SERVICE_ACCOUNT_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The file with the authority of the API server.
const AUTHORITY: &str = "ca.crt";

/// What the only cluster, user and context of the kubeconfig are called.
const NAME: &str = "in-cluster";

/// The cluster that this process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCluster {
    /// The host of the API server: `KUBERNETES_SERVICE_HOST`.
    pub host: String,
    /// The port of the API server: `KUBERNETES_SERVICE_PORT`.
    pub port: u16,
    /// The directory with `token`, `ca.crt` and `namespace`.
    pub directory: PathBuf,
}

impl InCluster {
    /// Returns true if there is a token.
    pub fn has_token(&self) -> bool {
        self.directory.join("token").exists()
    }

    /// Returns the address of the API server.
    pub fn address(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            format!("https://[{host}]:{port}")
        } else {
            format!("https://{host}:{port}")
        }
    }

    /// Returns a kubeconfig that names the files: clients read the token again when it is a minute old, so that they always have
    /// one that is valid.
    pub fn kubeconfig(&self) -> Kubeconfig {
        let path = |name: &str| self.directory.join(name).display().to_string();
        let cluster = Cluster {
            server: Some(self.address()),
            certificate_authority: Some(path(AUTHORITY)),
            ..Cluster::default()
        };
        let user = AuthInfo {
            token_file: Some(path("token")),
            ..AuthInfo::default()
        };
        let context = Context {
            cluster: NAME.to_owned(),
            user: Some(NAME.to_owned()),
            namespace: namespace(&self.directory),
            ..Context::default()
        };
        Kubeconfig {
            clusters: vec![NamedCluster {
                name: NAME.to_owned(),
                cluster: Some(cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: NAME.to_owned(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: NAME.to_owned(),
                context: Some(context),
                ..NamedContext::default()
            }],
            current_context: Some(NAME.to_owned()),
            ..Kubeconfig::default()
        }
    }
}

impl InCluster {
    /// Returns a client with the account of the pod, which follows what the kubelet writes: a token that is replaced, and an authority
    /// that is replaced. Requests that fail are not repeated: a repetition could come after the end of a lease.
    pub async fn client(&self) -> Result<Client, InClusterError> {
        let cluster = self.clone();
        let connect = move || {
            let cluster = cluster.clone();
            async move { cluster.connect().await }
        };
        follow_authority(self.directory.join(AUTHORITY), connect).await
    }

    /// Returns a client that trusts the authority of this moment.
    async fn connect(&self) -> Result<Client, InClusterError> {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(self.kubeconfig(), &options).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }
}

/// Why the account of a pod cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InClusterError {
    /// The files cannot be read, or are not what they should be.
    #[error("the account of the pod cannot be used")]
    Account(#[from] KubeconfigError),
    /// What they say does not suffice for a client.
    #[error("there can be no client with the account of the pod")]
    Client(#[from] kube::Error),
}

/// The namespace of the pod, if the kubelet wrote it down.
fn namespace(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(directory.join("namespace")).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_names_the_files_of_the_pod() {
        let directory = tempfile::tempdir().unwrap();
        let pod = |host: &str| InCluster {
            host: host.to_owned(),
            port: 443,
            directory: directory.path().to_owned(),
        };
        assert!(!pod("10.0.0.1").has_token());
        std::fs::write(directory.path().join("token"), "t").unwrap();
        std::fs::write(directory.path().join("namespace"), "fleet\n").unwrap();
        assert!(pod("10.0.0.1").has_token());
        assert_eq!(pod("10.0.0.1").address(), "https://10.0.0.1:443");
        assert_eq!(pod("fd00::1").address(), "https://[fd00::1]:443");
        let kubeconfig = pod("10.0.0.1").kubeconfig();
        let user = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
        let token = directory.path().join("token").display().to_string();
        assert_eq!(user.token_file, Some(token));
        assert!(user.token.is_none(), "a token that is kept would expire");
        let context = kubeconfig.contexts[0].context.as_ref().unwrap();
        assert_eq!(context.namespace.as_deref(), Some("fleet"));
    }
}
