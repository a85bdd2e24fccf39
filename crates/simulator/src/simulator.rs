//! The simulator of a process: one queue and one set of workers for all its clusters.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_apiserver::{ApiError, ApiServer, Changes};
use bellwether_runtime::{
    Clock, Controller, ControllerMetrics, Next, Queue, Reconcile, spawn_vital,
};
use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::account;
use crate::act::ActError;
use crate::certificate;
use crate::follow::follow_all;
use crate::kind::Kind;
use crate::kubelet::SimulatedKubelet;
use crate::member::{Key, Member};
use crate::node;
use crate::observe;
use crate::plan::{Action, Part};

/// How many objects are reconciled at once: enough that their writes share commits.
const WORKERS: usize = 32;

/// The namespaces that a new cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Simulates the workloads of the clusters that it is given; ends when it is dropped.
#[derive(Debug)]
pub struct Simulator {
    shared: Arc<Shared>,
    /// Tells of clusters that are to be followed.
    arrivals: mpsc::UnboundedSender<(Arc<Member>, Changes)>,
    tasks: [AbortHandle; 2],
}

#[derive(Debug)]
struct Shared {
    server: ApiServer,
    clock: Clock,
    queue: Queue<Key>,
    members: RwLock<HashMap<Arc<str>, Arc<Member>>>,
}

impl Simulator {
    /// A simulator without clusters. Must be called within a tokio runtime.
    pub fn start(server: ApiServer, clock: Clock) -> Self {
        let queue = Queue::new(clock.clone());
        let shared = Arc::new(Shared {
            server,
            clock,
            queue: queue.clone(),
            members: RwLock::default(),
        });
        let (arrivals, arriving) = mpsc::unbounded_channel();
        let metrics = ControllerMetrics::default();
        let workers = Controller::with_queue("simulator", queue, &metrics).workers(WORKERS);
        let workers = spawn_vital("simulator", workers.run(Arc::clone(&shared)));
        let follower = spawn_vital("watches of the simulator", follow_all(arriving));
        Self {
            shared,
            arrivals,
            tasks: [workers.abort_handle(), follower.abort_handle()],
        }
    }

    /// Simulates the workloads of a cluster that the server has, beginning with a node for them.
    /// Does nothing if it is available already.
    pub async fn add(&self, cluster: &str) -> Result<(), ApiError> {
        let Shared {
            server,
            clock,
            queue,
            members,
        } = self.shared.as_ref();
        if members.read().contains_key(cluster) {
            return Ok(());
        }
        server
            .ensure(cluster, node::new_node(cluster, clock.now()))
            .await?;
        server.ensure(cluster, node::storage_class()).await?;
        for namespace in NAMESPACES {
            server
                .ensure(cluster, account::new_account(namespace))
                .await?;
            if let Some(text) = server.certificate() {
                let published = certificate::new_map(namespace, text);
                server.ensure(cluster, published).await?;
            }
        }
        let Some(served) = server.cluster(cluster) else {
            return Ok(());
        };
        served.keep_accounts();
        served.attach_kubelet(Arc::new(SimulatedKubelet));
        let changes = served.changes();
        let member = Arc::new(Member::new(
            cluster,
            server.clone(),
            clock.clone(),
            queue.clone(),
        ));
        members.write().insert(cluster.into(), Arc::clone(&member));
        // An error means that the runtime is being shut down.
        let _ = self.arrivals.send((member, changes));
        Ok(())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Reconcile for Shared {
    type Key = Key;
    type Error = ActError;

    async fn reconcile(&self, key: &Key) -> Result<Next, ActError> {
        let member = self.members.read().get(&key.cluster).cloned();
        let Some(member) = member.filter(|member| member.is_ready()) else {
            return Ok(None);
        };
        let now = member.now();
        let plan = observe::decide(&member, key, now);
        let wake = plan.wake;
        let moved = moved_pod(&plan.actions);
        member.carry_out(plan.actions).await?;
        if let Some(uid) = moved {
            member.world().write().moments.insert(uid, now);
        }
        Ok(wake)
    }

    fn cluster_of(key: &Key) -> Option<&str> {
        Some(&key.cluster)
    }
}

/// The pod whose status is changed by a plan.
fn moved_pod(actions: &[Action]) -> Option<String> {
    actions.iter().find_map(|action| match action {
        Action::Patch {
            subject,
            part: Part::Status,
            ..
        } if subject.kind == Kind::Pod => Some(subject.uid.clone()),
        _ => None,
    })
}
