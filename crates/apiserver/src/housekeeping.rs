//! What happens behind the requests: contents of deleted namespaces and definitions are removed,
//! objects without owners are collected, old events expire, tokens and certificates are issued.
//!
//! One task per cluster follows all its objects. Each helper is told of every change, keeps what it
//! needs to know, and says which objects it wants to look at; nothing is polled.

mod aggregation;
mod deadlines;
mod expiry;
mod garbage;
mod namespaces;
mod rewrite;
mod signing;
mod teardown;
mod tokens;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_store::{Event, Range, Watch};

use crate::cluster::Cluster;
use crate::object::StoredObject;
use crate::watching::try_next;

pub(crate) use garbage::{FOREGROUND, ORPHAN};
pub(crate) use rewrite::rewrite;

/// Follows a cluster until it is closed.
pub(crate) async fn keep_house(cluster: Arc<Cluster>) {
    loop {
        let mut house = House::new(cluster.clone());
        let Some(watch) = house.survey() else { return };
        if house.follow(watch).await {
            return;
        }
        // The watch fell behind: look at everything anew.
        tracing::debug!(cluster = cluster.name(), "housekeeping starts over");
    }
}

struct House {
    cluster: Arc<Cluster>,
    garbage: garbage::Graph,
    expiry: expiry::Expiry,
    aggregation: aggregation::Aggregation,
    /// Objects to look at later.
    deadlines: deadlines::Deadlines,
    /// Objects to look at, by key.
    todo: BTreeSet<Arc<str>>,
}

impl House {
    fn new(cluster: Arc<Cluster>) -> Self {
        Self {
            cluster,
            garbage: garbage::Graph::default(),
            expiry: expiry::Expiry::default(),
            aggregation: aggregation::Aggregation::default(),
            deadlines: deadlines::Deadlines::default(),
            todo: BTreeSet::new(),
        }
    }

    /// Takes in what is there and begins to watch from that moment.
    fn survey(&mut self) -> Option<Watch<StoredObject>> {
        let keyspace = self.cluster.keyspace().clone();
        let range = Range {
            prefix: "",
            start_after: None,
            limit: None,
            at: None,
        };
        let page = keyspace.range(range).ok()?;
        for entry in &page.entries {
            self.notice(&entry.key, None, Some(&entry.value));
        }
        keyspace.watch("", page.revision).ok()
    }

    /// Returns true when the cluster is closed, false when the watch fell behind.
    async fn follow(&mut self, mut watch: Watch<StoredObject>) -> bool {
        loop {
            self.work().await;
            let now = self.cluster.clock().now();
            let expires = self.expiry.next(now);
            let wake = self.deadlines.next(now).into_iter().chain(expires).min();
            let event = tokio::select! {
                event = watch.next() => event,
                () = sleep(wake) => {
                    self.expire().await;
                    continue;
                }
            };
            match event {
                Some(Ok(event)) => self.notice_event(&event),
                Some(Err(_)) => return false,
                None => return true,
            }
            while let Some(Ok(event)) = try_next(&mut watch) {
                self.notice_event(&event);
            }
        }
    }

    fn notice_event(&mut self, event: &Event<StoredObject>) {
        let now = (!event.is_delete()).then(|| event.value());
        self.notice(&event.key, event.previous(), now);
    }

    fn notice(
        &mut self,
        key: &Arc<str>,
        before: Option<&Arc<StoredObject>>,
        now: Option<&Arc<StoredObject>>,
    ) {
        self.garbage.notice(
            key,
            before.map(|o| &o.facts),
            now.map(|o| &o.facts),
            &mut self.todo,
        );
        self.expiry
            .notice(key, now.is_some(), self.cluster.clock().now());
        if let Some(object) = now
            && object.facts.deleting
        {
            self.todo.insert(key.clone());
        }
        self.notice_credentials(key, now);
        self.aggregation
            .notice(key, now.map(|object| &**object), &mut self.todo);
        if now.is_none() {
            self.todo.extend(tokens::of_account(&self.cluster, key));
            // Whatever waits for the last of its contents may go on now.
            self.todo.extend(namespaces::of_key(&self.cluster, key));
            self.todo
                .extend(teardown::definition_of_key(&self.cluster, key));
            if let Some(object) = before {
                self.todo
                    .extend(garbage::owner_keys(&self.cluster, key, &object.facts));
            }
        }
    }

    /// Secrets and certificate signing requests are looked at when they change, and in time.
    fn notice_credentials(&mut self, key: &Arc<str>, now: Option<&Arc<StoredObject>>) {
        let deadline = if key.starts_with(signing::PREFIX) {
            if now.is_some() {
                self.todo.insert(key.clone());
            }
            now.and_then(|object| signing::deadline(&object.to_untyped_value()))
        } else if key.starts_with(tokens::SECRETS) {
            if now.is_some_and(|object| tokens::concerns(key, object)) {
                self.todo.insert(key.clone());
            }
            now.and_then(|object| tokens::deadline(key, object))
        } else {
            return;
        };
        self.deadlines.set(key, deadline);
    }

    async fn work(&mut self) {
        while let Some(key) = self.todo.pop_first() {
            if key.starts_with("core/namespaces/") {
                namespaces::finish(&self.cluster, &key).await;
            } else if key.starts_with(crate::custom::PREFIX) {
                teardown::finish(&self.cluster, &key).await;
            } else if key.starts_with(tokens::SECRETS) {
                tokens::finish(&self.cluster, &key).await;
            } else if key.starts_with(signing::PREFIX) {
                signing::finish(&self.cluster, &key).await;
            } else if aggregation::concerns(&key) {
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

/// Waits; for ever if there is nothing to wait for.
async fn sleep(duration: Option<std::time::Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
