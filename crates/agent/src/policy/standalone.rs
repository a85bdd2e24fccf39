//! Policies on a member that no policy of the hub has made: they are evaluated where they are, and report in
//! their own status.

use std::collections::BTreeMap;

use bellwether_api::policy::names::label;
use bellwether_api::policy::{CertificatePolicy, ConfigurationPolicy, OperatorPolicy, Policy};
use bellwether_api::{Kind as _, KindNames};
use bellwether_runtime::objects::collection;
use bellwether_runtime::{
    ClusterHandle, FeedEvent, Next, Queue, RequestError, Selection, follow, spawn_vital,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use tokio::task::AbortHandle;

use super::answers::Answers;
use super::evaluate::{Evaluator, microseconds};
use super::member::{Member, resource_of};
use super::{PolicyKey, Shared, removal};

/// Kinds that this agent evaluates.
pub(super) const KINDS: [KindNames; 3] = [
    ConfigurationPolicy::NAMES,
    CertificatePolicy::NAMES,
    OperatorPolicy::NAMES,
];

/// Watches of policies in the namespace of a member.
pub(super) struct Standalone {
    cluster: Arc<str>,
    handle: ClusterHandle,
    queue: Queue<PolicyKey>,
    watches: Mutex<BTreeMap<&'static str, AbortHandle>>,
}

impl Drop for Standalone {
    fn drop(&mut self) {
        self.watches.lock().values().for_each(AbortHandle::abort);
    }
}

/// What is read of a watched policy.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
struct HeadMetadata {
    #[serde(default)]
    name: String,
}

impl Standalone {
    pub(super) fn new(cluster: Arc<str>, handle: ClusterHandle, queue: Queue<PolicyKey>) -> Self {
        Self {
            cluster,
            handle,
            queue,
            watches: Mutex::default(),
        }
    }

    /// Watches a kind that the member serves.
    pub(super) fn watch(&self, names: KindNames) {
        let mut watches = self.watches.lock();
        watches
            .entry(names.plural)
            .or_insert_with(|| self.start(names));
    }

    /// The kinds that are watched: those that the member has been seen to serve.
    pub(super) fn watched(&self) -> Vec<KindNames> {
        let watches = self.watches.lock();
        let mut kinds = KINDS.to_vec();
        kinds.retain(|names| watches.contains_key(names.plural));
        kinds
    }

    fn start(&self, names: KindNames) -> AbortHandle {
        let (handle, queue) = (self.handle.clone(), self.queue.clone());
        let cluster = Arc::clone(&self.cluster);
        let path = collection(&resource_of(names), &cluster).url_path;
        // Those of policies of the hub have a label.
        let alone = Selection::labels(&format!("!{}", label::POLICY));
        let name = format!("watch of {} of {cluster}", names.plural);
        let task = spawn_vital(name, async move {
            let mut on_event = |event: FeedEvent<'_>| {
                let (FeedEvent::Listed(text) | FeedEvent::Applied(text) | FeedEvent::Deleted(text)) =
                    event
                else {
                    return;
                };
                if let Ok(head) = serde_json::from_str::<Head>(text) {
                    queue.add(key(&cluster, names, &head.metadata.name));
                }
            };
            follow(handle, &path, &alone, &mut on_event).await;
        });
        task.abort_handle()
    }
}

/// The key of a policy that stands alone. Names of replicas have no slash.
fn key(cluster: &Arc<str>, names: KindNames, name: &str) -> PolicyKey {
    PolicyKey {
        cluster: Arc::clone(cluster),
        policy: format!("{}/{name}", names.plural).into(),
    }
}

/// The kind and the name of a policy that stands alone.
pub(super) fn parse(key: &PolicyKey) -> Option<(KindNames, &str)> {
    let (plural, name) = key.policy.split_once('/')?;
    let names = KINDS.into_iter().find(|names| names.plural == plural)?;
    Some((names, name))
}

/// Evaluates a policy that stands alone.
pub(super) async fn reconcile(
    shared: &Shared,
    member: &Member,
    key: &PolicyKey,
    (names, name): (KindNames, &str),
) -> Result<Next, RequestError> {
    let resource = Arc::new(resource_of(names));
    let answers = Answers::new(member, key);
    let live = answers.object(&resource, &key.cluster, name).await?;
    let Some(live) = live.filter(|live| !is_owned(live)) else {
        removal::forget(member, key);
        return Ok(None);
    };
    let evaluator = Evaluator {
        shared,
        answers: &answers,
        // Without a name, nobody gets compliance events.
        policy: &Policy::default(),
        now: microseconds(shared.clock.now()),
    };
    let is_deleted = live["metadata"]["deletionTimestamp"].is_string();
    let is_configuration = names.kind == ConfigurationPolicy::NAMES.kind;
    let next = if is_deleted && is_configuration {
        let waits = evaluator.release(&live).await?.is_some();
        waits.then(|| removal::next_check(shared)).flatten()
    } else if is_deleted {
        None
    } else {
        evaluator.evaluate_kind(names.kind, live).await?.1
    };
    answers.finish();
    Ok(next)
}

/// Whether a policy belongs to one of the hub.
fn is_owned(live: &Value) -> bool {
    let owners = live["metadata"]["ownerReferences"].as_array();
    let is_policy = |owner: &Value| owner["kind"] == Policy::NAMES.kind;
    live["metadata"]["labels"][label::POLICY].is_string()
        || owners.is_some_and(|owners| owners.iter().any(is_policy))
}
