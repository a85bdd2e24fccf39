//! What happens behind the requests: contents of deleted namespaces and definitions are removed,
//! objects without owners are collected, old events expire, tokens and certificates are issued.
//!
//! One task follows the objects of all clusters. Each helper gets every change, keeps what it
//! needs to know, and says which objects it wants to look at; nothing is polled. A cluster where
//! something has to be done gets a task for as long as that takes, so that none waits for another.

mod aggregation;
mod deadlines;
mod expiry;
mod garbage;
mod namespaces;
mod quotas;
mod rewrite;
mod signing;
mod teardown;
mod tokens;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_store::{Event, Range, Watch, WatchError};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::object::StoredObject;
use crate::watching::try_next;

pub(crate) use expiry::TIME_TO_LIVE;
pub(crate) use garbage::{FOREGROUND, ORPHAN};
pub(crate) use rewrite::rewrite;

/// Runs housekeeping in all clusters that it is given, until the sender of clusters is gone.
pub(crate) async fn run_housekeeping(mut arrivals: mpsc::UnboundedReceiver<Arc<Cluster>>) {
    let mut resting = FuturesUnordered::new();
    let mut working = JoinSet::new();
    loop {
        // A janitor that is given back here has to be looked at.
        let janitor = tokio::select! {
            arrival = arrivals.recv() => match arrival {
                Some(cluster) => ClusterJanitor::load(cluster),
                None => return,
            },
            Some(mut janitor) = resting.next() => {
                let is_open = ClusterJanitor::drain(&mut janitor);
                is_open.then_some(janitor)
            }
            Some(done) = working.join_next() => done.unwrap_or_else(|error| {
                tracing::error!(%error, "housekeeping of a cluster has ended");
                None
            }),
        };
        match janitor {
            Some(janitor) if janitor.is_idle() => resting.push(janitor.wait()),
            Some(janitor) => drop(working.spawn(janitor.work())),
            // The cluster is closed.
            None => {}
        }
    }
}

/// What is known of a cluster, and what is to be done there.
struct ClusterJanitor {
    cluster: Arc<Cluster>,
    watch: Watch<StoredObject>,
    /// What the watch returned while the janitor was idle; nothing if a timer woke it.
    received: Option<Received>,
    garbage: garbage::Graph,
    expiry: expiry::Expiry,
    aggregation: aggregation::Aggregation,
    /// Objects to check later.
    deadlines: deadlines::Deadlines,
    /// Objects to look at, by key.
    todo: BTreeSet<Arc<str>>,
    /// Whether something has to be done because of the time.
    is_due: bool,
}

/// An event of a watch, or its end.
type Received = Option<Result<Arc<Event<StoredObject>>, WatchError>>;

impl ClusterJanitor {
    /// Takes in what is there and begins to watch from that moment; nothing if it is closed.
    fn load(cluster: Arc<Cluster>) -> Option<Box<Self>> {
        let keyspace = cluster.keyspace();
        let page = keyspace.range(Range::prefix("")).ok()?;
        let watch = keyspace.watch("", page.revision).ok()?;
        let event_time_to_live = cluster.event_time_to_live();
        let mut janitor = Box::new(Self {
            cluster,
            watch,
            received: None,
            garbage: garbage::Graph::default(),
            expiry: expiry::Expiry::new(event_time_to_live),
            aggregation: aggregation::Aggregation::default(),
            deadlines: deadlines::Deadlines::default(),
            todo: BTreeSet::new(),
            is_due: false,
        });
        for entry in &page.entries {
            janitor.observe(&entry.key, None, Some(&entry.value));
        }
        Some(janitor)
    }

    /// Whether there is nothing to do at present.
    fn is_idle(&self) -> bool {
        self.todo.is_empty() && !self.is_due
    }

    /// Waits until something happens, or has to.
    async fn wait(mut self: Box<Self>) -> Box<Self> {
        let now = self.cluster.clock().now();
        let expires = self.expiry.next(now);
        let wake = self.deadlines.next(now).into_iter().chain(expires).min();
        self.received = tokio::select! {
            received = self.watch.next() => Some(received),
            () = sleep(wake) => None,
        };
        self
    }

    /// Takes in what happened at rest and since; false if the cluster is closed.
    fn drain(self: &mut Box<Self>) -> bool {
        let mut received = self.received.take();
        self.is_due |= received.is_none();
        loop {
            match received {
                Some(Some(Ok(event))) => self.observe_event(&event),
                Some(Some(Err(_))) => {
                    // The watch fell behind: look at everything again.
                    tracing::debug!(cluster = self.cluster.name(), "housekeeping starts over");
                    let Some(fresh) = Self::load(Arc::clone(&self.cluster)) else {
                        return false;
                    };
                    *self = fresh;
                }
                Some(None) => return false,
                None => return true,
            }
            received = try_next(&mut self.watch).map(Some);
        }
    }

    /// Does what is to be done, also because of what happens meanwhile. Gives the janitor back unless
    /// the cluster is closed.
    async fn work(mut self: Box<Self>) -> Option<Box<Self>> {
        while !self.is_idle() {
            if std::mem::take(&mut self.is_due) {
                self.expire().await;
            }
            self.check_all().await;
            self.received = try_next(&mut self.watch).map(Some);
            if self.received.is_some() && !Self::drain(&mut self) {
                return None;
            }
        }
        Some(self)
    }

    fn observe_event(&mut self, event: &Event<StoredObject>) {
        let now = (!event.is_delete()).then(|| event.value());
        self.observe(&event.key, event.previous(), now);
    }

    fn observe(
        &mut self,
        key: &Arc<str>,
        before: Option<&Arc<StoredObject>>,
        now: Option<&Arc<StoredObject>>,
    ) {
        self.garbage.observe(
            key,
            before.map(|object| &**object),
            now.map(|object| &**object),
            &mut self.todo,
        );
        self.expiry
            .observe(key, now.is_some(), self.cluster.clock().now());
        if let Some(object) = now
            && (object.is_deleting() || teardown::is_waiting(key, object))
        {
            self.todo.insert(key.clone());
        }
        self.todo
            .extend(quotas::affected(&self.cluster, key, before, now));
        self.observe_credentials(key, now);
        self.aggregation
            .observe(key, now.map(|object| &**object), &mut self.todo);
        if now.is_none() {
            self.todo.extend(tokens::of_account(&self.cluster, key));
            // Whatever waits for the last of its contents may go on now.
            self.todo.extend(namespaces::of_key(&self.cluster, key));
            self.todo
                .extend(teardown::definition_of_key(&self.cluster, key));
            self.todo.extend(teardown::rivals(&self.cluster, key));
            if let Some(object) = before {
                self.todo
                    .extend(garbage::owner_keys(&self.cluster, key, object));
            }
        }
    }

    /// Secrets and certificate signing requests are checked when they change, and when a deadline passes.
    fn observe_credentials(&mut self, key: &Arc<str>, now: Option<&Arc<StoredObject>>) {
        let deadline = if key.starts_with(signing::PREFIX) {
            if now.is_some() {
                self.todo.insert(key.clone());
            }
            now.and_then(|object| signing::deadline(&object.to_untyped_value()))
        } else if key.starts_with(tokens::SECRETS) {
            if now.is_some_and(|object| tokens::is_relevant(key, object)) {
                self.todo.insert(key.clone());
            }
            now.and_then(|object| tokens::deadline(key, object))
        } else {
            return;
        };
        self.deadlines.set(key, deadline);
    }

    async fn check_all(&mut self) {
        while let Some(key) = self.todo.pop_first() {
            if key.starts_with("core/namespaces/") {
                namespaces::finish(&self.cluster, &key).await;
            } else if key.starts_with(crate::custom::PREFIX) {
                teardown::finish(&self.cluster, &key).await;
            } else if key.starts_with(quotas::PREFIX) {
                quotas::finish(&self.cluster, &key).await;
            } else if key.starts_with(tokens::SECRETS) {
                tokens::finish(&self.cluster, &key).await;
            } else if key.starts_with(signing::PREFIX) {
                signing::finish(&self.cluster, &key).await;
            } else if aggregation::is_relevant(&key) {
                aggregation::finish(&self.cluster, &key).await;
            }
            garbage::collect(&self.cluster, &self.garbage, &key, &mut self.todo).await;
        }
    }

    async fn expire(&mut self) {
        for key in self.expiry.due(self.cluster.clock().now()) {
            expiry::remove(&self.cluster, &key).await;
        }
        self.todo
            .extend(self.deadlines.due(self.cluster.clock().now()));
    }
}

/// Waits; forever if there is nothing to wait for.
async fn sleep(duration: Option<std::time::Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
