//! Changes of any object of a kind: for policies that look at all of them.
//!
//! One watch a kind, which keeps nothing. A change of any object enqueues the policies that have looked
//! at objects of the kind without knowing their names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bellwether_apply::ResourceType;
use bellwether_runtime::objects::collection;
use bellwether_runtime::{ClusterHandle, FeedEvent, Queue, Selection, follow, spawn_vital};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::PolicyKey;

/// How long the first list of a kind is waited for.
const WATCH_START_TIMEOUT: Duration = Duration::from_secs(10);

/// Group and name of a kind in paths.
type Kind = (String, String);

/// The watches of one member.
pub(super) struct ListWatches {
    cluster: ClusterHandle,
    queue: Queue<PolicyKey>,
    kinds: Mutex<HashMap<Kind, Watch>>,
}

struct Watch {
    task: AbortHandle,
    keys: Arc<Mutex<BTreeSet<PolicyKey>>>,
    settled: tokio::sync::watch::Receiver<bool>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ListWatches {
    pub(super) fn new(cluster: ClusterHandle, queue: Queue<PolicyKey>) -> Self {
        Self {
            cluster,
            queue,
            kinds: Mutex::default(),
        }
    }

    /// Has a policy enqueued when an object of a kind changes, and waits until the watch has begun.
    pub(super) async fn track(&self, resource: &ResourceType, key: &PolicyKey) {
        let mut settled = {
            let mut kinds = self.kinds.lock();
            let kind = (resource.group.clone(), resource.plural.clone());
            let watch = kinds.entry(kind).or_insert_with(|| self.start(resource));
            watch.keys.lock().insert(key.clone());
            watch.settled.clone()
        };
        // In vain means that changes are seen only from the next list on.
        let begun = settled.wait_for(|settled| *settled);
        let _ = tokio::time::timeout(WATCH_START_TIMEOUT, begun).await;
    }

    /// Ends what [`track`](Self::track) began, but for these kinds. The last policy ends a watch.
    pub(super) fn retain(&self, key: &PolicyKey, kept: &BTreeSet<Kind>) {
        self.kinds.lock().retain(|kind, watch| {
            let mut keys = watch.keys.lock();
            if !kept.contains(kind) {
                keys.remove(key);
            }
            !keys.is_empty()
        });
    }

    fn start(&self, resource: &ResourceType) -> Watch {
        let keys: Arc<Mutex<BTreeSet<PolicyKey>>> = Arc::default();
        let (sender, settled) = tokio::sync::watch::channel(false);
        let (cluster, queue) = (self.cluster.clone(), self.queue.clone());
        let path = collection(resource, "").url_path;
        let interested = Arc::clone(&keys);
        let task = spawn_vital(format!("watch of {path}"), async move {
            let enqueue = || {
                for key in interested.lock().iter() {
                    queue.add(key.clone());
                }
            };
            let mut has_list = false;
            follow(
                cluster,
                &path,
                &Selection::default(),
                &mut |event| match event {
                    FeedEvent::ListDone(_) => {
                        // What the first list has, those who wait for it read themselves.
                        if std::mem::replace(&mut has_list, true) {
                            enqueue();
                        }
                        sender.send_replace(true);
                    }
                    FeedEvent::Applied(_) | FeedEvent::Deleted(_) => enqueue(),
                    FeedEvent::Disconnected(_) => {
                        sender.send_replace(true);
                    }
                    FeedEvent::ListStarted | FeedEvent::Listed(_) => {}
                },
            )
            .await;
        });
        Watch {
            task: task.abort_handle(),
            keys,
            settled,
        }
    }
}
