//! Who watches what: the watched prefixes of one keyspace, and the recent events of each.
//!
//! A write has to find the prefixes of its key among thousands without looking at the others, and
//! a watcher has to find its events without looking at those of others. So watches of the same
//! prefix share one [`Subscription`], which refers to those events of the history that match, and
//! subscriptions are found by an ordered search over the prefixes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::event::Event;
use crate::value::Revision;

/// All watches of one prefix.
pub(crate) struct Subscription<V> {
    /// The events of the history whose keys have the prefix.
    pub(crate) events: VecDeque<Arc<Event<V>>>,
    /// The latest revision of a matching event that is no longer in the history. Events that never
    /// matched do not count, so a watch of a quiet prefix does not expire.
    pub(crate) forgotten: Revision,
    /// Wakes the watches.
    pub(crate) bell: Arc<Notify>,
    watches: usize,
}

/// The subscriptions of one keyspace, by prefix.
pub(crate) struct Subscriptions<V> {
    // Bytes rather than strings: the search cuts keys where they differ, also inside a character.
    by_prefix: BTreeMap<Box<[u8]>, Subscription<V>>,
}

impl<V> Subscriptions<V> {
    pub(crate) fn new() -> Self {
        Self {
            by_prefix: BTreeMap::new(),
        }
    }

    /// Adds a watch, and returns what wakes it. `history` is asked for the matching events, and
    /// for the latest revision that is not among them, if there is no such subscription yet.
    pub(crate) fn join(
        &mut self,
        prefix: &str,
        history: impl FnOnce() -> (VecDeque<Arc<Event<V>>>, Revision),
    ) -> Arc<Notify> {
        let subscription = self
            .by_prefix
            .entry(prefix.as_bytes().into())
            .or_insert_with(|| {
                let (events, forgotten) = history();
                Subscription {
                    events,
                    forgotten,
                    bell: Arc::new(Notify::new()),
                    watches: 0,
                }
            });
        subscription.watches += 1;
        Arc::clone(&subscription.bell)
    }

    /// Removes a watch.
    pub(crate) fn leave(&mut self, prefix: &str) {
        if let Some(subscription) = self.by_prefix.get_mut(prefix.as_bytes()) {
            subscription.watches -= 1;
            if subscription.watches == 0 {
                self.by_prefix.remove(prefix.as_bytes());
            }
        }
    }

    pub(crate) fn get(&self, prefix: &str) -> Option<&Subscription<V>> {
        self.by_prefix.get(prefix.as_bytes())
    }

    /// Adds an event to the subscriptions it matches, and collects the bells to ring.
    pub(crate) fn publish(&mut self, event: &Arc<Event<V>>, bells: &mut Vec<Arc<Notify>>) {
        self.for_each_match(event.key.as_bytes(), |subscription| {
            subscription.events.push_back(Arc::clone(event));
            bells.push(Arc::clone(&subscription.bell));
        });
    }

    /// Removes an event that left the history, which must be the oldest one.
    pub(crate) fn forget(&mut self, event: &Event<V>) {
        self.for_each_match(event.key.as_bytes(), |subscription| {
            let oldest = subscription.events.pop_front();
            debug_assert_eq!(oldest.map(|oldest| oldest.revision), Some(event.revision));
            subscription.forgotten = event.revision;
        });
    }

    /// Gives memory back after many events have been forgotten.
    pub(crate) fn shrink(&mut self) {
        for subscription in self.by_prefix.values_mut() {
            if subscription.events.len() < subscription.events.capacity() / 4 {
                subscription.events.shrink_to_fit();
            }
        }
    }

    /// The bells of all subscriptions.
    pub(crate) fn bells(&self) -> Vec<Arc<Notify>> {
        let bells = self.by_prefix.values();
        bells.map(|it| Arc::clone(&it.bell)).collect()
    }

    /// Visits the subscriptions whose prefix the key has.
    ///
    /// The greatest prefix that is not greater than the key either is one of the key's, or differs
    /// from the key at some position; then no longer part of the key can be among the prefixes, and
    /// the search goes on with the part that they share.
    fn for_each_match(&mut self, key: &[u8], mut visit: impl FnMut(&mut Subscription<V>)) {
        if self.by_prefix.is_empty() {
            return;
        }
        let mut upper = Bound::Included(key);
        loop {
            let below = (Bound::Unbounded, upper);
            let Some((prefix, subscription)) =
                self.by_prefix.range_mut::<[u8], _>(below).next_back()
            else {
                return;
            };
            let shared = shared_length(prefix, key);
            if shared == prefix.len() {
                visit(subscription);
                upper = Bound::Excluded(&key[..shared]);
            } else {
                upper = Bound::Included(&key[..shared]);
            }
        }
    }
}

fn shared_length(left: &[u8], right: &[u8]) -> usize {
    let pairs = left.iter().zip(right);
    pairs.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::EventKind;

    fn event(revision: Revision, key: &str) -> Arc<Event<()>> {
        let (value, previous) = (Arc::new(()), None);
        Arc::new(Event {
            revision,
            key: key.into(),
            kind: EventKind::Put { value, previous },
        })
    }

    fn revisions(subscriptions: &Subscriptions<()>, prefix: &str) -> Vec<Revision> {
        let events = subscriptions.get(prefix).unwrap().events.iter();
        events.map(|event| event.revision).collect()
    }

    proptest! {
        // Few letters, one of them of two bytes, so that prefixes are often shared in part.
        #[test]
        fn an_event_reaches_the_prefixes_of_its_key_and_no_others(
            prefixes in prop::collection::btree_set("[aàáb/]{0,5}", 0..20),
            keys in prop::collection::vec("[aàáb/]{0,7}", 1..20),
        ) {
            let mut subscriptions = Subscriptions::new();
            for prefix in &prefixes {
                subscriptions.join(prefix, || (VecDeque::new(), 0));
            }
            let events: Vec<_> = (1..).zip(&keys).map(|(revision, key)| event(revision, key)).collect();
            for event in &events {
                let mut bells = Vec::new();
                subscriptions.publish(event, &mut bells);
                let matching = prefixes.iter().filter(|prefix| event.key.starts_with(*prefix));
                prop_assert_eq!(bells.len(), matching.count());
            }
            for prefix in &prefixes {
                let matching = events.iter().filter(|event| event.key.starts_with(prefix));
                let expected: Vec<_> = matching.map(|event| event.revision).collect();
                prop_assert_eq!(revisions(&subscriptions, prefix), expected);
            }
            for event in &events {
                subscriptions.forget(event);
            }
            for prefix in &prefixes {
                prop_assert!(revisions(&subscriptions, prefix).is_empty());
            }
        }
    }

    #[test]
    fn a_subscription_lasts_as_long_as_its_last_watch() {
        let mut subscriptions: Subscriptions<()> = Subscriptions::new();
        subscriptions.join("a", || (VecDeque::new(), 7));
        subscriptions.join("a", || unreachable!("the subscription exists"));
        subscriptions.leave("a");
        assert_eq!(subscriptions.get("a").unwrap().forgotten, 7);
        subscriptions.leave("a");
        assert!(subscriptions.get("a").is_none());
    }

    #[test]
    fn only_matching_events_count_as_forgotten() {
        let mut subscriptions = Subscriptions::new();
        subscriptions.join("a", || (VecDeque::new(), 1));
        subscriptions.publish(&event(2, "a"), &mut Vec::new());
        subscriptions.publish(&event(3, "b"), &mut Vec::new());
        subscriptions.forget(&event(2, "a"));
        subscriptions.forget(&event(3, "b"));
        assert_eq!(subscriptions.get("a").unwrap().forgotten, 2);
    }
}
