//! The agents of members: policies on the hub are evaluated on the member, enforced, and reported.
//!
//! [`PolicyAgents`] serves any number of members of one hub. One watch of the hub is shared; a member
//! costs nothing until there is a policy for it. What is decided is in `bellwether_policy`; what is here
//! reads, writes, and remembers what it has written:
//!
//! | module | for |
//! |---|---|
//! | `replicas` | policies as the hub has them, and what is reported to it |
//! | `member` | what is known of a member: kinds, watches, what was evaluated when |
//! | `list_watches` | changes of any object of a kind, for policies that look at all of them |
//! | `answers` | answers what an evaluation asks, and writes what it wants written |
//! | `sync` | one reconcile of one policy: copy, templates, evaluation, report |
//! | `templates` | the objects that templates are on the member |
//! | `evaluate` | one evaluation of one ConfigurationPolicy |
//! | `others` | evaluations of other kinds of templates |
//! | `removal` | policies that go |
//! | `standalone` | policies that the hub knows nothing of |
//! | `events` | compliance events |

mod answers;
mod evaluate;
mod events;
mod list_watches;
mod member;
mod others;
mod removal;
mod replicas;
mod standalone;
mod sync;
mod templates;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bellwether_runtime::{
    Clock, ClusterHandle, Controller, ControllerMetrics, Next, Queue, Reconcile, RequestError,
    SharedKinds,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use parking_lot::RwLock;

use member::Member;
use replicas::Replicas;

/// Who writes, as `managedFields` has it.
const MANAGER: &str = "bellwether-policy-agent";

/// How many policies are reconciled at once.
const WORKERS: usize = 16;

/// A policy of a member.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyKey {
    /// The member.
    pub cluster: Arc<str>,
    /// The name of the replica; `PLURAL/NAME` for a policy that stands alone.
    pub policy: Arc<str>,
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.cluster, self.policy)
    }
}

/// Fills a buffer with random bytes that nobody can guess.
pub type Random = fn(&mut [u8]);

/// All agents of a process that belong to one hub. Cheap to clone.
#[derive(Clone)]
pub struct PolicyAgents {
    shared: Arc<Shared>,
}

struct Shared {
    replicas: Replicas,
    members: RwLock<HashMap<Arc<str>, Arc<Member>>>,
    queue: Queue<PolicyKey>,
    clock: Clock,
    random: Random,
    metrics: ControllerMetrics,
    /// Kinds that members have in common.
    kinds: Arc<SharedKinds>,
}

impl PolicyAgents {
    /// Begins to watch the policies of a hub, of one cluster or of all.
    pub fn start(
        hub: Client,
        cluster: Option<&str>,
        clock: Clock,
        random: Random,
        metrics: ControllerMetrics,
    ) -> Self {
        let queue = Queue::new(clock.clone());
        let shared = Arc::new(Shared {
            replicas: Replicas::new(hub),
            members: RwLock::default(),
            queue,
            clock,
            random,
            metrics,
            kinds: Arc::default(),
        });
        let weak = Arc::downgrade(&shared);
        shared.replicas.watch(cluster, move |cluster, policy| {
            if let Some(shared) = weak.upgrade() {
                shared.enqueue(cluster, policy);
            }
        });
        Self { shared }
    }

    /// Has everything that is written to the hub for a member written by clients from there from now
    /// on: those that the member's certificate vouches for.
    pub fn use_hub_client(&self, cluster: &str, hub: impl Into<ClusterHandle>) {
        self.shared.replicas.use_client(cluster, hub.into());
    }

    /// Takes care of a member from now on. A member of that name is replaced.
    pub fn add_member(&self, cluster: &str, member: impl Into<ClusterHandle>) {
        let shared = &self.shared;
        let name: Arc<str> = cluster.into();
        let member = Member::new(
            Arc::clone(&name),
            member.into(),
            shared.queue.clone(),
            Arc::clone(&shared.kinds),
        );
        let mut members = shared.members.write();
        members.insert(name, Arc::new(member));
        drop(members);
        for policy in shared.replicas.names(cluster) {
            shared.enqueue(cluster, &policy);
        }
        // Copies of policies that went while nobody was there have to be found, too.
        shared.enqueue(cluster, "");
    }

    /// Takes no more care of a member.
    pub fn remove_member(&self, cluster: &str) {
        self.shared.members.write().remove(cluster);
        self.shared.replicas.remove_client(cluster);
    }

    /// Does all there is to do, until it is dropped. Boxed, so that it is compiled with this crate, and not with
    /// each program that runs it.
    pub fn run(self) -> BoxFuture<'static, ()> {
        let queue = self.shared.queue.clone();
        Controller::with_queue("policy-agent", queue, &self.shared.metrics)
            .workers(WORKERS)
            .run(Arc::new(Worker(Arc::clone(&self.shared))))
            .boxed()
    }

    /// Returns true if there is nothing to do now.
    pub fn is_idle(&self) -> bool {
        self.shared.queue.is_idle()
    }
}

impl fmt::Debug for PolicyAgents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PolicyAgents")
            .field("members", &self.shared.members.read().len())
            .field("queue", &self.shared.queue)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Has a policy reconciled, if it is of a member of ours. Without a name, copies are looked for
    /// whose policy is gone.
    fn enqueue(&self, cluster: &str, policy: &str) {
        let members = self.members.read();
        if let Some((cluster, _)) = members.get_key_value(cluster) {
            self.queue.add(PolicyKey {
                cluster: Arc::clone(cluster),
                policy: policy.into(),
            });
        }
    }

    fn member(&self, cluster: &str) -> Option<Arc<Member>> {
        self.members.read().get(cluster).cloned()
    }
}

struct Worker(Arc<Shared>);

impl Reconcile for Worker {
    type Key = PolicyKey;
    type Error = RequestError;

    async fn reconcile(&self, key: &PolicyKey) -> Result<Next, RequestError> {
        let Some(member) = self.0.member(&key.cluster) else {
            return Ok(None);
        };
        let _clients = (
            member.objects.hold(),
            self.0.replicas.hold_client(&key.cluster),
        );
        if key.policy.is_empty() {
            return removal::find_orphans(&self.0, &member).await;
        }
        if let Some(alone) = standalone::parse(key) {
            return standalone::reconcile(&self.0, &member, key, alone).await;
        }
        sync::reconcile(&self.0, &member, key).await
    }

    fn cluster_of(key: &PolicyKey) -> Option<&str> {
        Some(&key.cluster)
    }
}
