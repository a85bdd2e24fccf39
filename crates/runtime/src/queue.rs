//! Keys that have to be reconciled: each once, some of them later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::retry::Retry;

/// The wait after the first failure; doubled with each further one, up to a minute.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_mins(1));
/// The same for refusals. Rights take effect at a real API server one after the other, so that the
/// first retries are not far off.
const SLOWLY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));

/// Keys that have to be reconciled. Cheap to clone; all clones are the same queue.
///
/// A key that is added several times before it is taken is taken once. While one is being
/// reconciled no other worker gets it; if it is added meanwhile, it comes again afterwards.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    clock: Clock,
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    due: VecDeque<K>,
    /// What is in `due`.
    waiting: BTreeSet<K>,
    /// What is being reconciled, and whether it is to come again.
    taken: BTreeMap<K, bool>,
    later: BTreeSet<(Timestamp, K)>,
    /// The time at which a key is in `later`: it is there once.
    times: BTreeMap<K, Timestamp>,
    failures: BTreeMap<K, u32>,
    /// Until when keys rest that have just been reconciled, and the same by time.
    resting: BTreeMap<K, Timestamp>,
    ends_of_rest: BTreeSet<(Timestamp, K)>,
}

impl<K: Clone + Ord> Queue<K> {
    /// An empty queue.
    pub fn new(clock: Clock) -> Self {
        let state = State {
            due: VecDeque::new(),
            waiting: BTreeSet::new(),
            taken: BTreeMap::new(),
            later: BTreeSet::new(),
            times: BTreeMap::new(),
            failures: BTreeMap::new(),
            resting: BTreeMap::new(),
            ends_of_rest: BTreeSet::new(),
        };
        Self {
            shared: Arc::new(Shared {
                clock,
                state: Mutex::new(state),
                changed: Notify::new(),
            }),
        }
    }

    /// Adds a key that is to be reconciled as soon as possible.
    pub fn add(&self, key: K) {
        let now = self.shared.clock.now();
        self.shared.state.lock().add(key, now);
        self.shared.changed.notify_one();
    }

    /// Adds a key that is to be reconciled as soon as possible, and forgets how often it failed: what
    /// it failed on has changed.
    pub fn renew(&self, key: K) {
        let now = self.shared.clock.now();
        let mut state = self.shared.state.lock();
        state.failures.remove(&key);
        state.add(key, now);
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Adds a key that is to be reconciled at that time, or earlier if that is asked for too.
    pub fn add_at(&self, key: K, time: Timestamp) {
        self.shared.state.lock().add_at(key, time);
        self.shared.changed.notify_one();
    }

    /// Adds a key that is to be reconciled after a while, or earlier if that is asked for too.
    pub fn add_after(&self, key: K, delay: Duration) {
        let time = self.shared.clock.now().checked_add(delay);
        self.add_at(key, time.unwrap_or(Timestamp::MAX));
    }

    /// The next key. To be followed by [`done`](Self::done) or [`failed`](Self::failed).
    pub async fn next(&self) -> K {
        loop {
            let changed = self.shared.changed.notified();
            let wake = {
                let mut state = self.shared.state.lock();
                state.make_due(self.shared.clock.now());
                if let Some(key) = state.take() {
                    if !state.due.is_empty() {
                        self.shared.changed.notify_one();
                    }
                    return key;
                }
                state.later.first().map(|(time, _)| *time)
            };
            match wake {
                None => changed.await,
                Some(time) => tokio::select! {
                    () = changed => {}
                    () = self.shared.clock.until(time) => {}
                },
            }
        }
    }

    /// Reconciling the key succeeded.
    pub fn done(&self, key: &K) {
        self.done_and_rest(key, Duration::ZERO);
    }

    /// Reconciling the key succeeded, and it is not to be taken again before that long.
    pub fn done_and_rest(&self, key: &K, rest: Duration) {
        let now = self.shared.clock.now();
        let mut state = self.shared.state.lock();
        state.failures.remove(key);
        if !rest.is_zero()
            && let Ok(until) = now.checked_add(rest)
        {
            state.resting.insert(key.clone(), until);
            state.ends_of_rest.insert((until, key.clone()));
        }
        state.release(key, now);
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Reconciling the key failed. It comes again after a wait, which is returned; `None` if it waits
    /// for a change.
    pub fn failed(&self, key: &K, retry: Retry) -> Option<Duration> {
        let (first, last) = match retry {
            Retry::Backoff => BACKOFF,
            Retry::Slowly => SLOWLY,
            Retry::After(wait) => (wait, wait.max(BACKOFF.1)),
            Retry::Never => {
                self.done(key);
                return None;
            }
        };
        let now = self.shared.clock.now();
        let mut state = self.shared.state.lock();
        let failures = state.failures.entry(key.clone()).or_default();
        let wait = first.saturating_mul(1 << (*failures).min(16)).min(last);
        *failures = failures.saturating_add(1);
        state.add_at(key.clone(), now.checked_add(wait).unwrap_or(Timestamp::MAX));
        state.release(key, now);
        drop(state);
        self.shared.changed.notify_one();
        Some(wait)
    }

    /// Returns the clock by which keys are taken.
    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Returns how many keys wait to be reconciled now.
    pub fn due(&self) -> usize {
        self.shared.state.lock().due.len()
    }

    /// Returns true if there is nothing to do now; there may be something later.
    pub fn is_idle(&self) -> bool {
        let state = self.shared.state.lock();
        state.due.is_empty() && state.taken.is_empty()
    }
}

impl<K: Clone + Ord> State<K> {
    fn add(&mut self, key: K, now: Timestamp) {
        if let Some(until) = self.resting.get(&key)
            && now < *until
            && !self.taken.contains_key(&key)
        {
            let until = *until;
            self.add_at(key, until);
            return;
        }
        self.forget_time(&key);
        if let Some(again) = self.taken.get_mut(&key) {
            *again = true;
        } else if self.waiting.insert(key.clone()) {
            self.due.push_back(key);
        }
    }

    fn add_at(&mut self, key: K, time: Timestamp) {
        if self.waiting.contains(&key) || self.times.get(&key).is_some_and(|known| *known <= time) {
            return;
        }
        self.forget_time(&key);
        self.times.insert(key.clone(), time);
        self.later.insert((time, key));
    }

    fn forget_time(&mut self, key: &K) {
        if let Some(time) = self.times.remove(key) {
            self.later.remove(&(time, key.clone()));
        }
    }

    /// Moves what was to come later and whose time has come.
    fn make_due(&mut self, now: Timestamp) {
        while self
            .ends_of_rest
            .first()
            .is_some_and(|(end, _)| *end <= now)
        {
            if let Some((end, key)) = self.ends_of_rest.pop_first()
                && self.resting.get(&key) == Some(&end)
            {
                self.resting.remove(&key);
            }
        }
        while self.later.first().is_some_and(|(time, _)| *time <= now) {
            if let Some((_, key)) = self.later.pop_first() {
                self.times.remove(&key);
                self.add(key, now);
            }
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.due.pop_front()?;
        self.waiting.remove(&key);
        self.taken.insert(key.clone(), false);
        Some(key)
    }

    fn release(&mut self, key: &K, now: Timestamp) {
        if self.taken.remove(key) == Some(true) {
            self.add(key.clone(), now);
        }
    }
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        formatter
            .debug_struct("Queue")
            .field("due", &state.due.len())
            .field("later", &state.later.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> (Queue<&'static str>, Clock) {
        let clock = Clock::of_runtime("2026-01-01T00:00:00Z".parse().unwrap());
        (Queue::new(clock.clone()), clock)
    }

    fn in_seconds(clock: &Clock, seconds: u64) -> Timestamp {
        clock.now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_added_twice_is_taken_once() {
        let (queue, _) = queue();
        for key in ["a", "b", "a"] {
            queue.add(key);
        }
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        queue.done(&"a");
        queue.done(&"b");
        assert!(queue.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_changes_while_it_is_reconciled_comes_again() {
        let (queue, _) = queue();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "b", "a is taken");
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_several_times_counts() {
        let (queue, clock) = queue();
        let start = clock.now();
        queue.add_at("a", in_seconds(&clock, 3600));
        queue.add_at("a", in_seconds(&clock, 60));
        queue.add_at("a", in_seconds(&clock, 600));
        assert_eq!(queue.next().await, "a");
        assert_eq!(clock.now(), start + Duration::from_mins(1));
        queue.done(&"a");
        assert!(queue.shared.state.lock().later.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_due_now_is_not_due_later() {
        let (queue, clock) = queue();
        queue.add_at("a", in_seconds(&clock, 60));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert!(queue.shared.state.lock().later.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_and_longer_until_one_succeeds() {
        let (queue, _) = queue();
        queue.add("a");
        let mut waits = Vec::new();
        for _ in 0..13 {
            let key = queue.next().await;
            waits.push(queue.failed(&key, Retry::Backoff).unwrap().as_millis());
        }
        assert_eq!(waits[..4], [20, 40, 80, 160]);
        assert_eq!(waits[12], 60_000);
        queue.next().await;
        queue.done(&"a");
        queue.add("a");
        queue.next().await;
        assert_eq!(queue.failed(&"a", Retry::Backoff), Some(BACKOFF.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_cannot_succeed_waits_for_a_change() {
        let (queue, _) = queue();
        queue.add("a");
        queue.next().await;
        assert_eq!(queue.failed(&"a", Retry::Never), None);
        assert!(queue.is_idle() && queue.shared.state.lock().later.is_empty());
        queue.add("a");
        queue.next().await;
        let asked_for = Duration::from_secs(7);
        assert_eq!(queue.failed(&"a", Retry::After(asked_for)), Some(asked_for));
    }

    #[tokio::test(start_paused = true)]
    async fn changes_during_a_rest_are_gathered() {
        let (queue, clock) = queue();
        let start = clock.now();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.done_and_rest(&"a", Duration::from_millis(50));
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "b", "b does not rest");
        assert_eq!(queue.next().await, "a");
        assert_eq!(clock.now(), start + Duration::from_millis(50));
        queue.done(&"a");
        queue.done(&"b");
        assert!(queue.is_idle());
        let state = queue.shared.state.lock();
        assert!(state.resting.is_empty() && state.later.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_obstacle_is_gone_begins_with_the_first_wait() {
        let (queue, clock) = queue();
        queue.add("a");
        for _ in 0..10 {
            let key = queue.next().await;
            queue.failed(&key, Retry::Backoff);
        }
        let now = clock.now();
        queue.renew("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(clock.now(), now, "it does not wait");
        assert_eq!(queue.failed(&"a", Retry::Backoff), Some(BACKOFF.0));
    }

    #[tokio::test(start_paused = true)]
    async fn several_workers_share_what_is_due() {
        let (queue, _) = queue();
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        for key in ["a", "b", "c"] {
            queue.add(key);
        }
        let mut seen = Vec::new();
        for worker in workers {
            seen.push(worker.await.unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, ["a", "b", "c"]);
    }
}
