//! Which cluster a command is about: flags that all commands share.

use std::ffi::OsString;
use std::path::PathBuf;

use bellwether_ctl::explain::Members;
use bellwether_ctl::{Connection, Locator};
use clap::Args;
use futures::future::BoxFuture;
use kube::Client;

use bellwether_process::election::client_without_retries;
use bellwether_process::pod::PodArgs;

/// Which cluster a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectArgs {
    /// The kubeconfig (default: .bellwether/kubeconfig, else ~/.kube/config, else the account of the pod).
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<OsString>,
    /// The context in the kubeconfig, such as hub or cluster1.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    pod: PodArgs,
}

impl ConnectArgs {
    /// A cluster that other flags name.
    pub(crate) fn new(kubeconfig: Option<OsString>, context: Option<String>) -> Self {
        Self {
            kubeconfig,
            context,
            pod: PodArgs::default(),
        }
    }

    /// Finds the cluster; nothing is sent yet.
    pub(crate) async fn open(&self, namespace: Option<&str>) -> anyhow::Result<Connection> {
        Ok(Connection::open(&self.locator(namespace)).await?)
    }

    /// Where the cluster is, and how it is known to be the right one.
    pub(crate) async fn config(&self) -> anyhow::Result<kube::Config> {
        Ok(self.locator(None).config().await?.1)
    }

    /// A client whose failed requests are not repeated by itself, and the address of its cluster. With the account of the pod it follows the
    /// files of the pod.
    pub(crate) async fn client_without_retries(&self) -> anyhow::Result<(Client, String)> {
        let locator = self.locator(None);
        if let Some(cluster) = locator.account() {
            return Ok((cluster.client().await?, cluster.address()));
        }
        let config = locator.config().await?.1;
        let address = config.cluster_url.to_string();
        Ok((client_without_retries(config)?, address))
    }

    fn locator(&self, namespace: Option<&str>) -> Locator {
        let mut fallbacks = vec![PathBuf::from(".bellwether/kubeconfig")];
        fallbacks.extend(std::env::home_dir().map(|home| home.join(".kube/config")));
        Locator {
            kubeconfig: self.kubeconfig.clone().filter(|list| !list.is_empty()),
            fallbacks,
            in_cluster: self.pod.in_cluster(),
            context: self.context.clone(),
            namespace: namespace.map(str::to_owned),
        }
    }
}

/// Members have a context of their name in the kubeconfig, if somebody put one there: `bellwether up`
/// does.
impl Members for ConnectArgs {
    fn client<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Option<Client>> {
        Box::pin(async move {
            let locator = Locator {
                context: Some(cluster.to_owned()),
                ..self.locator(None)
            };
            let connection = Connection::open(&locator).await.ok()?;
            Some(connection.client)
        })
    }
}
