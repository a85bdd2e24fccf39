//! Events are kept for a while: an hour, if nothing else is said.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bellwether_store::Expected;
use jiff::{SignedDuration, Timestamp};

use crate::cluster::Cluster;
use crate::object::Draft;

/// How long an event is kept after it was last written, as kube-apiserver does.
pub(crate) const TIME_TO_LIVE: SignedDuration = SignedDuration::from_hours(1);

const PREFIX: &str = "core/events/";

/// When which event expires.
#[derive(Debug)]
pub(super) struct Expiry {
    /// How long an event is kept after it was last written.
    time_to_live: SignedDuration,
    /// In the order of expiry. An event that is written again stands here twice; only the later
    /// entry counts, because the earlier finds the object younger than it thought.
    queue: VecDeque<(Timestamp, Arc<str>)>,
    latest: HashMap<Arc<str>, Timestamp>,
}

impl Expiry {
    pub(super) fn new(time_to_live: SignedDuration) -> Self {
        Self {
            time_to_live,
            queue: VecDeque::new(),
            latest: HashMap::new(),
        }
    }

    pub(super) fn observe(&mut self, key: &Arc<str>, exists: bool, now: Timestamp) {
        if !key.starts_with(PREFIX) {
            return;
        }
        if !exists {
            self.latest.remove(key);
            return;
        }
        let at = now
            .saturating_add(self.time_to_live)
            .unwrap_or(Timestamp::MAX);
        self.latest.insert(key.clone(), at);
        self.queue.push_back((at, key.clone()));
    }

    /// How long until the next event expires.
    pub(super) fn next(&self, now: Timestamp) -> Option<Duration> {
        let (at, _) = self.queue.front()?;
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
    }

    /// The events that have expired.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let mut due = Vec::new();
        while self.queue.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((at, key)) = self.queue.pop_front()
                && self.latest.get(&key) == Some(&at)
            {
                self.latest.remove(&key);
                due.push(key);
            }
        }
        due
    }
}

/// Removes an expired event.
pub(super) async fn remove(cluster: &Cluster, key: &str) {
    let Some(entry) = cluster.keyspace().get(key) else {
        return;
    };
    let draft = Draft::new(&entry.value.to_untyped_value());
    let expected = Expected::Revision(entry.modified);
    // If it was written meanwhile it is not expired, and will be noticed again.
    let _ = cluster
        .keyspace()
        .delete(key, expected, move |revision| draft.finish(revision))
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_written_again_lives_longer() {
        let mut expiry = Expiry::new(TIME_TO_LIVE);
        let key: Arc<str> = "core/events/default/e".into();
        let start = Timestamp::UNIX_EPOCH;
        let minutes = |n: i64| start.saturating_add(SignedDuration::from_mins(n)).unwrap();
        expiry.observe(&key, true, start);
        expiry.observe(&"core/pods/default/p".into(), true, start);
        expiry.observe(&key, true, minutes(30));
        assert_eq!(expiry.next(start), Some(Duration::from_hours(1)));
        assert!(expiry.due(minutes(60)).is_empty());
        assert_eq!(expiry.due(minutes(90)), [key]);
        assert_eq!(expiry.next(minutes(90)), None);
    }
}
