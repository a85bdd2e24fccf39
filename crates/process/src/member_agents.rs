//! What looks after members: the agents of works and of policies, in one process for all members.

use bellwether_agent::policy::PolicyAgents;
use bellwether_agent::work::{AgentOptions, WorkAgents};
use bellwether_runtime::{Clock, ClusterHandle, Tasks};
use kube::Client;
use ring::rand::{SecureRandom as _, SystemRandom};

/// All agents of a process that belong to one hub. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MemberAgents {
    /// The agents of works.
    pub works: WorkAgents,
    policies: PolicyAgents,
}

impl MemberAgents {
    /// Begins to watch a hub, for one cluster or for all.
    pub async fn start(
        hub: Client,
        address: &str,
        cluster: Option<&str>,
        clock: Clock,
        options: AgentOptions,
    ) -> Self {
        let metrics = options.controller_metrics.clone();
        let policies =
            PolicyAgents::start(hub.clone(), cluster, clock.clone(), fill_randomly, metrics);
        Self {
            works: WorkAgents::start(hub, address, cluster, clock, options).await,
            policies,
        }
    }

    /// Has what is written to the hub for a member written with the rights of the member.
    pub fn use_hub_client(&self, cluster: &str, hub: &ClusterHandle) {
        self.works.use_hub_client(cluster, hub.clone());
        self.policies.use_hub_client(cluster, hub.clone());
    }

    /// Takes care of a member from now on.
    pub fn add_member(&self, cluster: &str, member: impl Into<ClusterHandle>) {
        let member = member.into();
        self.works.add_member(cluster, member.clone());
        self.policies.add_member(cluster, member);
    }

    /// Takes no more care of a member.
    pub fn remove_member(&self, cluster: &str) {
        self.works.remove_member(cluster);
        self.policies.remove_member(cluster);
    }

    /// Runs them; the name says for whom.
    pub fn spawn(self, tasks: &mut Tasks, of: &str) {
        tasks.spawn(format!("work agent{of}"), self.works.run());
        tasks.spawn(format!("policy agent{of}"), self.policies.run());
    }
}

/// Fills a buffer with random bytes. Templates that ask for some get zeros on systems without any.
fn fill_randomly(bytes: &mut [u8]) {
    let _ = SystemRandom::new().fill(bytes);
}
