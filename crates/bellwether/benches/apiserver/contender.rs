//! Servers under load: ours as the binary that people run, and a real one.

use std::time::Duration;

use bellwether_testkit::{Assets, RealCluster, Usage};
use kube::Client;

use crate::embedded::{Embedded, now};

/// A server under load.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) is_real: bool,
    pub(crate) ready_after: Duration,
    server: Server,
}

enum Server {
    Embedded(Embedded),
    Real(RealCluster),
}

impl Contender {
    pub(crate) async fn embedded(name: &'static str, arguments: &[&str]) -> anyhow::Result<Self> {
        let server = Embedded::start(arguments).await?;
        Ok(Self {
            name,
            is_real: false,
            ready_after: server.ready_after,
            server: Server::Embedded(server),
        })
    }

    pub(crate) async fn real(assets: &Assets) -> anyhow::Result<Self> {
        let started = now();
        let server = RealCluster::start(assets).await?;
        Ok(Self {
            name: "etcd + kube-apiserver",
            is_real: true,
            ready_after: started.elapsed(),
            server: Server::Real(server),
        })
    }

    /// A client with a connection of its own.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        match &self.server {
            Server::Embedded(server) => server.client("hub").await,
            Server::Real(server) => server.client().await,
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        match &self.server {
            Server::Embedded(server) => server.usage(),
            Server::Real(server) => Usage::of_all(&server.processes()),
        }
    }
}
