//! What works run on: everything in this process, or real servers and an agent beside it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bellwether_agent::work::{AgentOptions, Metrics, WorkAgents};
use bellwether_apiserver::{ApiServer, HUB, Identity};
use bellwether_runtime::Clock;
use bellwether_testkit::objects::namespace;
use bellwether_testkit::{Assets, Embedded, JsonClient, RealCluster, Usage};
use kube::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::progress::Progress;

/// Requests of agents, without watches and events.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) hub: u64,
    pub(crate) member: u64,
}

/// A hub, members and agents.
pub(crate) struct Bed {
    pub(crate) name: &'static str,
    pub(crate) hub: Client,
    pub(crate) progress: Progress,
    kind: Kind,
}

enum Kind {
    Embedded {
        server: ApiServer,
        metrics: Arc<Metrics>,
        agents: JoinHandle<()>,
    },
    Real {
        servers: Box<[RealCluster; 2]>,
        agent: Child,
        /// Where the agent tells its numbers.
        metrics: String,
    },
}

impl Drop for Bed {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::Embedded { agents, .. } => agents.abort(),
            Kind::Real { agent, .. } => {
                let _ = agent.kill();
                let _ = agent.wait();
            }
        }
    }
}

impl Bed {
    /// Everything in this process, in memory.
    pub(crate) async fn embedded(members: usize) -> Self {
        let clock = Clock::system();
        let server = Embedded::fleet(clock.clone()).await.server;
        let client = |cluster: &str| server.client(cluster, Identity::administrator("agent"));
        let options = AgentOptions::default();
        let agents = WorkAgents::start(client(HUB), "embedded", None, clock, options).await;
        for number in 1..=members {
            let name = format!("cluster{number}");
            server.add_cluster(&name).await.unwrap();
            server.ensure(HUB, namespace(&name)).await.unwrap();
            agents.add_member(&name, client(&name));
        }
        let hub = server.client(HUB, Identity::administrator("bench"));
        Self {
            name: "embedded",
            progress: Progress::follow(hub.clone()),
            hub,
            kind: Kind::Embedded {
                metrics: Arc::clone(agents.metrics()),
                agents: tokio::spawn(agents.run()),
                server,
            },
        }
    }

    /// Two real API servers, and the agent as a process of its own.
    pub(crate) async fn real(assets: &Assets) -> Self {
        // One after the other: each takes ports that nobody else has.
        let hub = RealCluster::start(assets).await.unwrap();
        let member = RealCluster::start(assets).await.unwrap();
        let client = hub.client().await.unwrap();
        let objects = JsonClient::from(client.clone());
        objects.define(bellwether_api::definitions()).await;
        objects.create(&namespace("cluster1")).await;
        let mut agent = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .args(["agent", "--cluster-name", "cluster1"])
            .args(["--metrics-listen", "127.0.0.1:0"])
            .arg("--hub-kubeconfig")
            .arg(hub.kubeconfig())
            .arg("--kubeconfig")
            .arg(member.kubeconfig())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.split("http://").nth(1).unwrap();
        let metrics = address.trim_end_matches("/metrics").to_owned();
        lines.next().unwrap().unwrap();
        Self {
            name: "real",
            progress: Progress::follow(client.clone()),
            hub: client,
            kind: Kind::Real {
                servers: Box::new([hub, member]),
                agent,
                metrics,
            },
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self.kind, Kind::Real { .. })
    }

    /// A client of a member.
    pub(crate) async fn member(&self, name: &str) -> Client {
        match &self.kind {
            Kind::Embedded { server, .. } => server.client(name, Identity::administrator("bench")),
            Kind::Real { servers, .. } => servers[1].client().await.unwrap(),
        }
    }

    /// What the agent has used; if everything is one process, that.
    pub(crate) fn agent_usage(&self) -> Usage {
        let process = match &self.kind {
            Kind::Embedded { .. } => std::process::id(),
            Kind::Real { agent, .. } => agent.id(),
        };
        Usage::of(process).unwrap()
    }

    /// What servers of their own have used.
    pub(crate) fn server_usage(&self) -> Usage {
        match &self.kind {
            Kind::Embedded { .. } => Usage::default(),
            Kind::Real { servers, .. } => {
                let processes: Vec<u32> = servers.iter().flat_map(RealCluster::processes).collect();
                Usage::of_all(&processes)
            }
        }
    }

    /// Requests of agents so far.
    pub(crate) async fn counted(&self) -> Counted {
        match &self.kind {
            Kind::Embedded { metrics, .. } => Counted {
                hub: metrics.hub_requests.get(),
                member: metrics.member_requests.get(),
            },
            Kind::Real { metrics, .. } => Counted::read(&scrape(metrics).await),
        }
    }
}

impl Counted {
    fn read(text: &str) -> Self {
        let number = |to: &str| {
            let name = format!("bellwether_work_requests_total{{to=\"{to}\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&name));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        Self {
            hub: number("hub"),
            member: number("member"),
        }
    }
}

async fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nhost: agent\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
