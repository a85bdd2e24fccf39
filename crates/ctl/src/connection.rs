//! Finding a cluster by its kubeconfig.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bellwether_runtime::{InCluster, read_kubeconfig};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::BoxError;
use tower::util::MapErrLayer;

use crate::error::Error;

/// What the user says about the cluster that is meant.
#[derive(Debug, Clone, Default)]
pub struct Locator {
    /// Kubeconfig files, separated as in `PATH`; several are merged.
    pub kubeconfig: Option<OsString>,
    /// Where to look if none is named, in this order.
    pub fallbacks: Vec<PathBuf>,
    /// The cluster that this process runs in, if there is no kubeconfig.
    pub in_cluster: Option<InCluster>,
    /// The context, if not the current one.
    pub context: Option<String>,
    /// The namespace, if not that of the context.
    pub namespace: Option<String>,
}

/// A cluster, and the namespace that commands are about.
#[derive(Clone)]
pub struct Connection {
    /// The cluster.
    pub client: Client,
    /// The namespace if nothing else is said.
    pub namespace: String,
}

impl Connection {
    /// Reads the kubeconfig. Nothing is sent yet. Must be called within a tokio runtime.
    pub async fn open(locator: &Locator) -> Result<Self, Error> {
        let (path, config) = locator.config().await?;
        let namespace = locator
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.authority().map(ToString::to_string);
        let server = server.unwrap_or_default();
        let builder = ClientBuilder::try_from(config).map_err(|error| Error::Kubeconfig {
            path,
            why: error.to_string(),
        })?;
        let name_it = MapErrLayer::new(move |error: BoxError| -> BoxError {
            Unreachable::new(&server, &*error).into()
        });
        let client = builder.with_layer(&name_it).build();
        Ok(Self { client, namespace })
    }
}

/// A server did not answer. The words are kubectl's.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unreachable {
    /// Nobody listens there.
    #[error(
        "The connection to the server {0} was refused - did you specify the right host or port?"
    )]
    Refused(String),
    /// Something else is in the way.
    #[error("Unable to connect to the server: {0}")]
    Other(String),
}

impl Unreachable {
    fn new(server: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let causes = std::iter::successors(Some(error), |error| error.source());
        let is_refused = |error: &(dyn std::error::Error + 'static)| {
            let error = error.downcast_ref::<std::io::Error>();
            error.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        if causes.clone().any(is_refused) {
            return Self::Refused(server.to_owned());
        }
        // The innermost says what happened, the others only to whom.
        Self::Other(causes.last().map(ToString::to_string).unwrap_or_default())
    }
}

impl Locator {
    /// Where the cluster is, and how it is known to be the right one; with the file that says so.
    pub async fn config(&self) -> Result<(Option<PathBuf>, Config), Error> {
        let (path, kubeconfig) = self.read()?;
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        match Config::from_custom_kubeconfig(kubeconfig, &options).await {
            Ok(config) => Ok((path, config)),
            Err(error) => Err(Error::Kubeconfig {
                path,
                why: error.to_string(),
            }),
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Locator {
    /// Returns the cluster that this process runs in, if that is the one that is meant: nothing names a kubeconfig or a context.
    pub fn account(&self) -> Option<&InCluster> {
        let has_file = match &self.kubeconfig {
            Some(_) => true,
            None => self.fallbacks.iter().any(|path| path.exists()),
        };
        self.in_cluster
            .as_ref()
            .filter(|_| !has_file && self.context.is_none())
    }

    fn read(&self) -> Result<(Option<PathBuf>, Kubeconfig), Error> {
        let paths: Vec<PathBuf> = match &self.kubeconfig {
            Some(list) => std::env::split_paths(list)
                .filter(|path| !path.as_os_str().is_empty())
                .collect(),
            None => self
                .fallbacks
                .iter()
                .find(|path| path.exists())
                .into_iter()
                .cloned()
                .collect(),
        };
        match &*paths {
            [] => match &self.in_cluster {
                Some(cluster) => Ok((None, cluster.kubeconfig())),
                None => Err(Error::NoKubeconfig),
            },
            [path] => Ok((Some(path.clone()), read(path)?)),
            // Of several, those that are missing are passed over, as kubectl does.
            several => {
                let mut merged = Kubeconfig::default();
                for path in several.iter().filter(|path| path.exists()) {
                    merged = merged
                        .merge(read(path)?)
                        .map_err(|error| Error::Kubeconfig {
                            path: Some(path.clone()),
                            why: error.to_string(),
                        })?;
                }
                Ok((None, merged))
            }
        }
    }
}

fn read(path: &Path) -> Result<Kubeconfig, Error> {
    read_kubeconfig(path).map_err(|error| Error::Kubeconfig {
        path: Some(path.to_owned()),
        why: error.to_string(),
    })
}
