//! ResourceQuotas: what a namespace may hold and ask for in all.
//!
//! `status.used` of a quota is what counts: a creation adds to it first, and
//! housekeeping counts again when something is deleted. Both hold the lock of the cluster's quotas while
//! they do, so that nothing is counted twice or not at all.

use std::sync::Arc;

use bellwether_kinds::Amounts;
use bellwether_kinds::quota::{Counted, missing_amounts, zero};
use bellwether_store::{Expected, Range, WriteError};
use serde_json::Value;
use tokio::sync::MutexGuard;

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::metadata;
use crate::object::Draft;
use crate::ownership::{Ownership, record_update};
use crate::resource::{Part, Resource};
use crate::status::ApiError;

/// Where quotas are kept.
pub(crate) const PREFIX: &str = "core/resourcequotas/";

/// Who writes the status of quotas.
const CONTROLLER: &str = "kube-apiserver";

/// A place in the quotas of a namespace, for an object that is about to be written.
pub(crate) struct Reservation<'a> {
    cluster: &'a Arc<Cluster>,
    /// The quotas that count the object.
    keys: Vec<Arc<str>>,
    lock: MutexGuard<'a, ()>,
}

impl std::fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reservation").field(&self.keys).finish()
    }
}

impl Reservation<'_> {
    /// Gives the place back, since the object was not written.
    pub(crate) async fn cancel(self) {
        drop(self.lock);
        for key in &self.keys {
            recount(self.cluster, key).await;
        }
    }
}

fn counted(resource: &Resource) -> Counted<'_> {
    Counted {
        group: &resource.group,
        plural: &resource.plural,
    }
}

/// The quotas of a namespace.
pub(crate) fn keys_of(cluster: &Cluster, namespace: &str) -> Vec<Arc<str>> {
    let prefix = format!("{PREFIX}{namespace}/");
    let page = cluster.keyspace().range(Range::prefix(&prefix));
    let entries = page.map(|page| page.entries).unwrap_or_default();
    entries.into_iter().map(|entry| entry.key).collect()
}

/// Takes a place for an object in all quotas of its namespace that count it, or refuses it. A change
/// (`live` is what was) takes what it uses more.
pub(crate) async fn reserve<'a>(
    cx: &'a RequestContext,
    object: &Value,
    live: Option<&Value>,
    dry_run: bool,
) -> Result<Option<Reservation<'a>>, ApiError> {
    let counted = counted(&cx.resource);
    let Some(namespace) = cx.namespace.as_deref().filter(|_| cx.resource.namespaced) else {
        return Ok(None);
    };
    if live.is_some() && !counted.can_grow() {
        return Ok(None);
    }
    let keys = keys_of(&cx.cluster, namespace);
    if keys.is_empty() {
        return Ok(None);
    }
    let lock = cx.cluster.quotas().lock().await;
    let mut usage = counted.usage(object, cx.now);
    if let Some(live) = live {
        usage = usage.increase_since(&counted.usage(live, cx.now));
    }
    let mut taken = Vec::new();
    for key in keys {
        let Some(entry) = cx.cluster.keyspace().get(&key) else {
            continue;
        };
        let quota = entry.value.to_untyped_value();
        if let Some(requested) = admit(cx, counted, &quota, object, live.is_none(), &usage)? {
            taken.push((key, requested));
        }
    }
    if taken.is_empty() || dry_run {
        return Ok(None);
    }
    for (key, requested) in &taken {
        write_status(&cx.cluster, key, |quota| {
            let mut used = used(&cx.cluster, quota);
            used.add(requested);
            used
        })
        .await?;
    }
    Ok(Some(Reservation {
        cluster: &cx.cluster,
        keys: taken.into_iter().map(|(key, _)| key).collect(),
        lock,
    }))
}

/// What an object takes of a quota; nothing if the quota does not count it. Refuses it if there is not
/// that much left.
fn admit(
    cx: &RequestContext,
    counted: Counted<'_>,
    quota: &Value,
    object: &Value,
    is_new: bool,
    usage: &Amounts,
) -> Result<Option<Amounts>, ApiError> {
    if !counted.matches(quota, object) {
        return Ok(None);
    }
    let refuse = |why: &str| {
        let name = metadata::text(object, "name");
        ApiError::forbidden(cx.resource.subject(), name, why)
    };
    let name = metadata::text(quota, "name");
    let mut hard = Amounts::read(&quota["spec"]["hard"]);
    hard.retain(|name| counted.is_counted_by(name));
    if is_new
        && &*cx.resource.plural == "pods"
        && let Some(why) = missing_amounts(object, &hard)
    {
        return Err(refuse(&format!("failed quota: {name}: {why}")));
    }
    let mut requested = usage.clone();
    requested.retain(|name| hard.get(name).is_some());
    requested.0.retain(|_, amount| !amount.is_zero());
    if requested.0.is_empty() {
        return Ok(None);
    }
    let used = used(&cx.cluster, quota);
    let mut after = used.clone();
    after.add(&requested);
    let exceeded = |name: &str| {
        let (after, hard) = (after.get(name), hard.get(name));
        after.zip(hard).is_some_and(|(after, hard)| after > hard)
    };
    let failed = |amounts: &Amounts| {
        let mut failed = amounts.clone();
        failed.retain(|name| requested.get(name).is_some() && exceeded(name));
        failed
    };
    if failed(&requested).0.is_empty() {
        return Ok(Some(requested));
    }
    Err(refuse(&format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        failed(&requested),
        failed(&used),
        failed(&hard)
    )))
}

/// What a quota says is used, or what really is if nobody has counted for its present bounds.
fn used(cluster: &Cluster, quota: &Value) -> Amounts {
    if quota["status"]["hard"] == quota["spec"]["hard"] {
        return Amounts::read(&quota["status"]["used"]);
    }
    count(cluster, quota)
}

/// What the objects of a quota's namespace use of it.
fn count(cluster: &Cluster, quota: &Value) -> Amounts {
    let namespace = metadata::text(quota, "namespace");
    let hard = Amounts::read(&quota["spec"]["hard"]);
    let now = cluster.clock().now();
    let resources = cluster.resources();
    let mut sum = Amounts::default();
    for resource in resources.stored().filter(|resource| resource.namespaced) {
        let counted = counted(resource);
        let names: Vec<&String> = hard
            .0
            .keys()
            .filter(|name| counted.is_counted_by(name))
            .collect();
        if names.is_empty() {
            continue;
        }
        for name in names {
            sum.0.entry(name.clone()).or_insert_with(zero);
        }
        let prefix = resource.collection_prefix(Some(namespace));
        let page = cluster.keyspace().range(Range::prefix(&prefix));
        for entry in page.map(|page| page.entries).unwrap_or_default() {
            let object = resource.read(&entry.value);
            if counted.matches(quota, &object) {
                sum.add(&counted.usage(&object, now));
            }
        }
    }
    sum.retain(|name| hard.get(name).is_some());
    sum
}

/// Counts what is used of a quota again.
pub(crate) async fn recount(cluster: &Arc<Cluster>, key: &str) {
    let lock = cluster.quotas().lock().await;
    let written = write_status(cluster, key, |quota| count(cluster, quota)).await;
    drop(lock);
    if let Err(error) = written {
        tracing::warn!(cluster = cluster.name(), name = key, %error, "cannot count what a quota limits");
    }
}

/// Writes what is used, and the bounds for which that was counted.
async fn write_status(
    cluster: &Arc<Cluster>,
    key: &str,
    used: impl Fn(&Value) -> Amounts,
) -> Result<(), ApiError> {
    let resources = cluster.resources();
    let found = resources.find("", "v1", "resourcequotas");
    let resource = found.ok_or_else(ApiError::no_such_resource)?;
    let cx = RequestContext::internal(cluster, resource, key, CONTROLLER);
    loop {
        let Some(entry) = cluster.keyspace().get(key) else {
            return Ok(());
        };
        let live = resource.read(&entry.value);
        let mut object = live.clone();
        object["status"]["used"] = used(&live).to_json();
        object["status"]["hard"] = live["spec"]["hard"].clone();
        if object == live {
            return Ok(());
        }
        let ownership = Ownership::Update(CONTROLLER.into());
        let object = record_update(&cx, Part::Status, object, Some(&live), &ownership);
        let draft = Draft::new(&object);
        let expected = Expected::Revision(entry.modified);
        let finish = move |revision| draft.finish(revision);
        match cluster.keyspace().put(key, expected, finish).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Conflict { .. } | WriteError::NotFound) => {}
            Err(error) => return Err(ApiError::unwritten(&error)),
        }
    }
}
