//! A hub and members with agents between them, on which every case of works runs.
//!
//! The clusters are those of `bellwether_testkit::Clusters`, embedded or real; agents are started here.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by tests, each of which uses what it needs"
)]

pub mod objects;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_agent::work::{AgentOptions, WorkAgents};
use bellwether_api::definition;
use bellwether_api::multicluster::{Work, WorkManifestConfig};
use bellwether_api::work::ManifestWork;
use bellwether_apiserver::{HUB, ServerOptions};
use bellwether_testkit::Clusters;
use serde_json::Value;
use tokio::task::JoinHandle;

pub use bellwether_testkit::{Counts, MEMBER, RealPair};
pub use objects::*;

/// The address of the hub, as agents know it.
pub const ADDRESS: &str = "https://hub.example:6443";

/// A case: it runs on embedded and on real clusters.
pub type Case = for<'a> fn(&'a mut Fleet) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Makes a test on embedded clusters of each case, and a list of all of them for real ones.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name(&mut $crate::fleet::Fleet::embedded().await).await;
                }
            )*
        }

        pub(crate) const ALL: &[(&str, $crate::fleet::Case)] = &[
            $((stringify!($name), |fleet| Box::pin($name(fleet))),)*
        ];
    };
}

/// What a member does not do for its agents for a while.
#[derive(Debug, Default)]
pub struct MemberFaults {
    /// Lists and watches of ConfigMaps are sent in the name of somebody who may nothing.
    pub lists_are_refused: AtomicBool,
    /// Nobody can create birds: their kind is defined, but not served yet.
    pub birds_are_unserved: AtomicBool,
}

impl MemberFaults {
    fn alter<T>(&self, request: &mut http::Request<T>) {
        let is = |method: http::Method, plural: &str, fault: &AtomicBool| {
            request.method() == method
                && request.uri().path().ends_with(plural)
                && fault.load(Ordering::SeqCst)
        };
        if is(http::Method::GET, "/configmaps", &self.lists_are_refused) {
            let nobody = http::HeaderValue::from_static("nobody");
            request.headers_mut().insert("Impersonate-User", nobody);
        } else if is(http::Method::POST, "/birds", &self.birds_are_unserved) {
            *request.uri_mut() = http::Uri::from_static("/apis/zoo.example/v0/birds");
        }
    }
}

/// A hub, members, and agents.
pub struct Fleet {
    clusters: Clusters,
    pub agents: Option<WorkAgents>,
    pub hub_counts: Arc<Counts>,
    pub member_counts: Arc<Counts>,
    pub member_faults: Arc<MemberFaults>,
    pub options: AgentOptions,
    tasks: Vec<JoinHandle<()>>,
}

impl Deref for Fleet {
    type Target = Clusters;

    fn deref(&self) -> &Clusters {
        &self.clusters
    }
}

impl DerefMut for Fleet {
    fn deref_mut(&mut self) -> &mut Clusters {
        &mut self.clusters
    }
}

fn server_options() -> ServerOptions {
    ServerOptions {
        admission: bellwether_controllers::registry::admission(),
        ..ServerOptions::default()
    }
}

impl Fleet {
    /// Embedded clusters, with an agent for one member. The runtime's time is to be paused.
    pub async fn embedded() -> Self {
        Self::with(AgentOptions::default(), &[MEMBER]).await
    }

    /// The same on two real API servers, in which nothing of other cases is left.
    pub async fn on_real_servers(pair: &Arc<RealPair>) -> Self {
        let clusters = Clusters::real(pair, server_options()).await;
        let mut fleet = Self::of(clusters, AgentOptions::default());
        fleet.add_cluster(MEMBER).await;
        fleet.start_agents(&[MEMBER]).await;
        fleet
    }

    pub async fn with(options: AgentOptions, members: &[&str]) -> Self {
        let mut fleet = Self::without_agents(options, members).await;
        fleet.start_agents(members).await;
        fleet
    }

    /// Embedded clusters, of whose works nobody takes care yet.
    pub async fn without_agents(options: AgentOptions, members: &[&str]) -> Self {
        Self::with_kinds(options, members, bellwether_api::definitions()).await
    }

    /// The same with no kinds but those of works, for tests that start thousands of fleets.
    pub async fn of_works(options: AgentOptions, members: &[&str]) -> Self {
        let kinds = [
            definition::<ManifestWork>(),
            definition::<Work>(),
            definition::<WorkManifestConfig>(),
        ];
        Self::with_kinds(options, members, kinds).await
    }

    async fn with_kinds(
        options: AgentOptions,
        members: &[&str],
        definitions: impl IntoIterator<Item = Value>,
    ) -> Self {
        let fleet = Self::of(Clusters::embedded(server_options()).await, options);
        fleet.ensure(definitions).await;
        for member in members {
            fleet.add_cluster(member).await;
        }
        fleet
    }

    fn of(clusters: Clusters, options: AgentOptions) -> Self {
        let member_faults: Arc<MemberFaults> = Arc::default();
        let faults = Arc::clone(&member_faults);
        Self {
            clusters,
            agents: None,
            hub_counts: Arc::default(),
            member_counts: Arc::new(Counts::altering(move |request| faults.alter(request))),
            member_faults,
            options,
            tasks: Vec::new(),
        }
    }

    /// Adds members, whose agents begin at once.
    pub async fn add_members(&mut self, members: &[&str]) {
        for member in members {
            self.add_cluster(member).await;
            let client = self.counting(member, &self.member_counts);
            self.agents.as_ref().unwrap().add_member(member, client);
        }
    }

    pub async fn start_agents(&mut self, members: &[&str]) {
        let agents = self.agents_of(ADDRESS, members).await;
        self.agents = Some(agents);
    }

    /// Agents of a hub of that address, which is this one.
    pub async fn agents_of(&mut self, address: &str, members: &[&str]) -> WorkAgents {
        let hub = self.counting(HUB, &self.hub_counts);
        let (clock, options) = (self.clock.clone(), self.options.clone());
        let agents = WorkAgents::start(hub, address, None, clock, options).await;
        for member in members {
            agents.add_member(member, self.counting(member, &self.member_counts));
        }
        self.run(agents.clone().run());
        agents
    }

    /// Runs something until the agents are killed.
    pub fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// Ends the agents at once, whatever they are doing.
    pub fn kill_agents(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.agents = None;
    }

    /// Lets time pass, and everybody do what they want to do by then.
    pub async fn pass(&self, milliseconds: u64) {
        let agents = self.agents.as_ref();
        let is_idle = || agents.is_none_or(WorkAgents::is_idle);
        self.clusters.pass(milliseconds, is_idle).await;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_agents();
    }
}
