//! Rights that may have changed on a member: works with an executor are reconciled when they do.
//!
//! Roles and bindings are watched while there is such a work. Where the agent may not watch them, an
//! executor is asked as often as [`executor`](super::executor) says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_runtime::{ClusterHandle, FeedEvent, Queue};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::WorkKey;
use super::arrivals::Feed;

/// What rights are made of.
const KINDS: [&str; 4] = [
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
];

/// How long the first lists are waited for.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The works of one member that have an executor.
pub(super) struct Rights {
    cluster: ClusterHandle,
    queue: Queue<WorkKey>,
    works: Arc<Mutex<BTreeSet<WorkKey>>>,
    /// Counts the changes.
    version: Arc<AtomicU64>,
    feeds: Mutex<Option<Feeds>>,
}

struct Feeds {
    /// Held for as long as there are works.
    _feeds: Vec<Feed>,
    /// How many kinds have been listed, or refused.
    settled: watch::Receiver<usize>,
}

impl Rights {
    pub(super) fn new(cluster: ClusterHandle, queue: Queue<WorkKey>) -> Self {
        Self {
            cluster,
            queue,
            works: Arc::default(),
            version: Arc::default(),
            feeds: Mutex::default(),
        }
    }

    /// The number of changes so far. An answer that was given at another number may be outdated.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Has a work reconciled whenever rights change, and waits until changes are seen.
    pub(super) async fn follow(&self, work: &WorkKey) {
        let mut settled = {
            let mut feeds = self.feeds.lock();
            self.works.lock().insert(work.clone());
            feeds.get_or_insert_with(|| self.start()).settled.clone()
        };
        let is_settled = settled.wait_for(|count| *count >= KINDS.len());
        // Without an answer the executor is asked all the same.
        let _ = tokio::time::timeout(LIST_TIMEOUT, is_settled).await;
    }

    /// A work has no executor any more, or is gone.
    pub(super) fn forget(&self, work: &WorkKey) {
        let mut feeds = self.feeds.lock();
        let mut works = self.works.lock();
        if works.remove(work) && works.is_empty() {
            *feeds = None;
        }
    }

    fn start(&self) -> Feeds {
        let (sender, settled) = watch::channel(0);
        let sender = Arc::new(sender);
        let feed = |path: &'static str| {
            let (works, version) = (Arc::clone(&self.works), Arc::clone(&self.version));
            let (queue, sender) = (self.queue.clone(), Arc::clone(&sender));
            let mut is_first = true;
            Feed::start(&self.cluster, path, move |event| {
                let settles = match event {
                    FeedEvent::ListDone(_) => true,
                    FeedEvent::Disconnected(error) => error.is_refusal(),
                    _ => false,
                };
                let is_change = match event {
                    FeedEvent::Applied(_) | FeedEvent::Deleted(_) => true,
                    // Between two lists anything may have happened.
                    FeedEvent::ListDone(_) => !is_first,
                    _ => false,
                };
                if is_change {
                    version.fetch_add(1, Ordering::AcqRel);
                    for work in works.lock().iter() {
                        queue.renew(work.clone());
                    }
                }
                if settles && std::mem::replace(&mut is_first, false) {
                    sender.send_modify(|count| *count += 1);
                }
            })
        };
        Feeds {
            _feeds: KINDS.map(feed).into_iter().collect(),
            settled,
        }
    }
}
