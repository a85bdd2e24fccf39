//! The loop of a controller.

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;

use crate::queue::Queue;

/// How long the wait after a failure has to be until people hear of it: what passes by itself is over
/// by then.
const TOLD_AT: Duration = Duration::from_secs(2);

/// When to look at a key again, if nothing changes before.
pub type Next = Option<Timestamp>;

/// Looks at one key: observes, decides, and does what has been decided.
pub trait Reconcile: Send + Sync + 'static {
    /// What is looked at.
    type Key: Clone + Ord + Debug + Send + Sync + 'static;
    /// Why it could not be done.
    type Error: Display + Send;

    /// Brings what the key stands for in order. It is called again after an error, and must be
    /// ready to be cut off anywhere: what it was about to do is found out anew.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Next, Self::Error>> + Send;
}

/// Looks at the keys of a queue, so many at a time, for ever.
pub async fn run<R: Reconcile>(queue: Queue<R::Key>, reconciler: Arc<R>, workers: usize) {
    join_all((0..workers.max(1)).map(|_| work(&queue, reconciler.as_ref()))).await;
}

async fn work<R: Reconcile>(queue: &Queue<R::Key>, reconciler: &R) {
    loop {
        let key = queue.next().await;
        match reconciler.reconcile(&key).await {
            Ok(next) => {
                if let Some(time) = next {
                    queue.add_at(key.clone(), time);
                }
                queue.done(&key);
            }
            Err(error) => {
                let wait = queue.failed(&key);
                // Waits double, so that this is said once while a failure lasts.
                if (TOLD_AT..TOLD_AT * 2).contains(&wait) {
                    tracing::warn!(?key, %error, "fails again and again, and is tried on");
                } else {
                    tracing::debug!(?key, %error, ?wait, "will be tried again");
                }
            }
        }
    }
}
