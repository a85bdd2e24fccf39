//! The loop of a controller: changes of watched objects become keys, and each key is reconciled.
//!
//! [`Controller`] is the entry point. It waits until its caches have seen everything that is there,
//! then reconciles keys until it is dropped. A panic in a reconcile ends that reconcile only: it is
//! logged, counted, and the key is retried like one that failed.

use std::any::Any;
use std::fmt::{Debug, Display};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::cache::{Cache, Change, Subscription};
use crate::clock::Clock;
use crate::metrics::{ControllerMetrics, OfController};
use crate::queue::Queue;
use crate::retry::{ReconcileError, with_sources};

/// How long the wait after a failure is when it is logged as a warning: what passes by itself is
/// over by then. Waits double, so that a lasting failure is logged once.
const WARN_AT: Duration = Duration::from_secs(2);

/// When to reconcile a key again if nothing changes before.
pub type Next = Option<Timestamp>;

/// Reconciles one key: observes, decides, and does what has been decided.
pub trait Reconcile: Send + Sync + 'static {
    /// What names the object.
    type Key: Clone + Ord + Debug + Display + Send + Sync + 'static;
    /// Why it could not be done.
    type Error: ReconcileError;

    /// Reconciles the object that the key names.
    ///
    /// It is called again after an error, and may be cancelled at any await: the next call must find
    /// out what is left to do.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// Returns the cluster that a key is about, for logs, if it is about one.
    fn cluster_of(_key: &Self::Key) -> Option<&str> {
        None
    }
}

/// Adds keys to the queue when the caches are complete.
type Begin<K> = Box<dyn FnOnce(&Queue<K>) + Send>;

/// A controller that is being put together.
///
/// ```no_run
/// # use bellwether_runtime::{Cache, Clock, Controller, ControllerMetrics, Next, ObjectKey, Reconcile};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use std::sync::Arc;
/// # struct Example { config_maps: Cache<ConfigMap> }
/// # impl Reconcile for Example {
/// #     type Key = ObjectKey;
/// #     type Error = kube::Error;
/// #     async fn reconcile(&self, _: &ObjectKey) -> Result<Next, kube::Error> { Ok(None) }
/// # }
/// # async fn example(config_maps: Cache<ConfigMap>, clock: Clock, metrics: ControllerMetrics) {
/// Controller::new("example", &clock, &metrics)
///     .on(&config_maps, |change| [change.key.clone()])
///     .workers(4)
///     .run(Arc::new(Example { config_maps }))
///     .await;
/// # }
/// ```
pub struct Controller<K> {
    name: &'static str,
    queue: Queue<K>,
    metrics: ControllerMetrics,
    workers: usize,
    rest_at_most: Duration,
    /// What has to be seen before anything is decided.
    ready: Vec<BoxFuture<'static, ()>>,
    /// Adds the keys that are reconciled first.
    begin: Vec<Begin<K>>,
    /// What runs while the controller does.
    beside: Vec<BoxFuture<'static, ()>>,
    /// End with the controller.
    subscriptions: Vec<Subscription>,
}

impl<K: Clone + Ord + Debug + Send + Sync + 'static> Controller<K> {
    /// Creates a controller of that name, which logs and metrics show.
    pub fn new(name: &'static str, clock: &Clock, metrics: &ControllerMetrics) -> Self {
        Self::with_queue(name, Queue::new(clock.clone()), metrics)
    }

    /// Creates a controller that reconciles the keys of an existing queue.
    pub fn with_queue(name: &'static str, queue: Queue<K>, metrics: &ControllerMetrics) -> Self {
        Self {
            name,
            queue,
            metrics: metrics.clone(),
            workers: 1,
            rest_at_most: Duration::ZERO,
            ready: Vec::new(),
            begin: Vec::new(),
            beside: Vec::new(),
            subscriptions: Vec::new(),
        }
    }

    /// Returns the queue, for keys that come from elsewhere than caches.
    pub fn queue(&self) -> Queue<K> {
        self.queue.clone()
    }

    /// Reconciles the keys that a change of an object concerns; waits for the cache first.
    #[must_use]
    pub fn on<T, I>(
        self,
        cache: &Cache<T>,
        keys: impl Fn(&Change<'_, T>) -> I + Send + 'static,
    ) -> Self
    where
        T: Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let queue = self.queue.clone();
        self.listen(cache, move |change| {
            keys(&change).into_iter().for_each(|key| queue.add(key));
        })
    }

    /// Does the same, but reconciles a key only after a while, together with everything that changes
    /// meanwhile: a thousand clusters that join are counted a few times, not a thousand times.
    #[must_use]
    pub fn gather<T, I>(
        self,
        delay: Duration,
        cache: &Cache<T>,
        keys: impl Fn(&Change<'_, T>) -> I + Send + 'static,
    ) -> Self
    where
        T: Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let queue = self.queue.clone();
        self.listen(cache, move |change| {
            for key in keys(&change) {
                queue.add_after(key, delay);
            }
        })
    }

    fn listen<T: Send + Sync + 'static>(
        mut self,
        cache: &Cache<T>,
        listener: impl Fn(Change<'_, T>) + Send + 'static,
    ) -> Self {
        let subscription = cache.subscribe_until_dropped(listener);
        self.subscriptions.push(subscription);
        self.after(cache)
    }

    /// Reconciles these keys first, when the caches are complete.
    #[must_use]
    pub fn begin_with<I>(mut self, keys: impl FnOnce() -> I + Send + 'static) -> Self
    where
        I: IntoIterator<Item = K>,
    {
        let begin = move |queue: &Queue<K>| keys().into_iter().for_each(|key| queue.add(key));
        self.begin.push(Box::new(begin));
        self
    }

    /// Runs a task for as long as the controller reconciles. If it ends, the controller does.
    #[must_use]
    pub fn beside(mut self, task: impl Future<Output = ()> + Send + 'static) -> Self {
        self.beside.push(task.boxed());
        self
    }

    /// Waits until a cache has seen everything that is there before anything is reconciled.
    #[must_use]
    pub fn after<T: Send + Sync + 'static>(mut self, cache: &Cache<T>) -> Self {
        let cache = cache.clone();
        self.ready.push(async move { cache.ready().await }.boxed());
        self
    }

    /// Lets a key rest after each reconcile for as long as the reconcile took, but not longer than
    /// this.
    ///
    /// A single change is reconciled at once. Many in a row are gathered meanwhile and reconciled
    /// together, so that at most half of the time is spent on what will soon be overtaken.
    #[must_use]
    pub fn debounce(mut self, at_most: Duration) -> Self {
        self.rest_at_most = at_most;
        self
    }

    /// Sets how many keys are reconciled at once; one by default.
    #[must_use]
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count.max(1);
        self
    }

    /// Reconciles keys until it is dropped.
    pub async fn run<R: Reconcile<Key = K>>(self, reconciler: Arc<R>) {
        self.metrics.set_ready(self.name, false);
        let _subscriptions = self.subscriptions;
        join_all(self.ready).await;
        for begin in self.begin {
            begin(&self.queue);
        }
        self.metrics.set_ready(self.name, true);
        tracing::debug!(controller = self.name, "caches are ready");
        let worker = Arc::new(Worker {
            name: self.name,
            metrics: self.metrics.of(self.name),
            queue: self.queue,
            reconciler,
            rest_at_most: self.rest_at_most,
        });
        // Each worker is a task of its own: one that computes for long does not hold up the others.
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let worker = Arc::clone(&worker);
            workers.spawn(async move { worker.work().await });
        }
        for task in self.beside {
            workers.spawn(task);
        }
        // Workers never end by themselves, and a panic ends one reconcile only. A task beside them that
        // ends takes the controller along.
        if let Some(Err(ended)) = workers.join_next().await
            && let Ok(panic) = ended.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<K> Debug for Controller<K> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Controller")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

struct Worker<R: Reconcile> {
    name: &'static str,
    metrics: OfController,
    queue: Queue<R::Key>,
    reconciler: Arc<R>,
    rest_at_most: Duration,
}

impl<R: Reconcile> Worker<R> {
    async fn work(&self) {
        loop {
            let key = self.queue.next().await;
            self.metrics.queued.set(count(self.queue.due()));
            // Of the level of a warning, so that warnings say what they are about however little is logged.
            let cluster = R::cluster_of(&key);
            let span = tracing::warn_span!("reconcile", controller = self.name, %key, cluster);
            self.reconcile(&key).instrument(span).await;
        }
    }

    async fn reconcile(&self, key: &R::Key) {
        let began = Instant::now();
        let outcome = AssertUnwindSafe(self.reconciler.reconcile(key));
        let outcome = outcome.catch_unwind().await;
        let took = began.elapsed();
        self.metrics.seconds.observe(took.as_secs_f64());
        match outcome {
            Ok(Ok(next)) => {
                self.metrics.count("success");
                if let Some(time) = next {
                    self.queue.add_at(key.clone(), time);
                }
                self.queue.done_and_rest(key, took.min(self.rest_at_most));
            }
            Ok(Err(error)) => {
                self.metrics.count(error.label());
                let wait = self.queue.failed(key, error.retry());
                let error = with_sources(&error);
                match wait {
                    None => tracing::warn!(%error, "failed; waits for a change"),
                    Some(wait) if (WARN_AT..WARN_AT * 2).contains(&wait) => {
                        tracing::warn!(%error, "still failing; will keep retrying");
                    }
                    Some(wait) => tracing::debug!(%error, ?wait, "will be retried"),
                }
            }
            Err(panic) => {
                self.metrics.count("panic");
                self.metrics.panics.inc();
                let wait = self.queue.failed(key, crate::retry::Retry::Backoff);
                let panic = text_of_panic(&*panic);
                tracing::error!(panic, ?wait, "reconcile panicked; will be retried");
            }
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What a panic said, if it said something readable.
pub(crate) fn text_of_panic(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::retry::Retry;

    /// Does what a script says for each attempt, and remembers when.
    struct Scripted {
        attempts: Mutex<Vec<(&'static str, Duration)>>,
        origin: Instant,
        script: fn(&'static str, usize) -> Result<Next, Refused>,
    }

    #[derive(Debug)]
    struct Refused(Retry);

    impl Display for Refused {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("refused")
        }
    }

    impl std::error::Error for Refused {}

    impl ReconcileError for Refused {
        fn retry(&self) -> Retry {
            self.0
        }
    }

    impl Reconcile for Scripted {
        type Key = &'static str;
        type Error = Refused;

        async fn reconcile(&self, key: &&'static str) -> Result<Next, Refused> {
            let earlier = {
                let mut attempts = self.attempts.lock();
                attempts.push((key, self.origin.elapsed()));
                attempts.iter().filter(|(other, _)| other == key).count() - 1
            };
            (self.script)(key, earlier)
        }

        fn cluster_of<'a>(key: &'a &'static str) -> Option<&'a str> {
            key.split_once('/').map(|(cluster, _)| cluster)
        }
    }

    /// Where a test finds what was logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_warning_says_which_object_of_which_cluster_it_is_about() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let second = Duration::from_secs(1);
        run(&["c1/web"], second, |_, _| Err(Refused(Retry::Never))).await;
        let text = String::from_utf8(log.0.lock().clone()).unwrap();
        let span = "reconcile{controller=\"scripted\" key=c1/web cluster=\"c1\"}";
        assert!(text.contains(span), "{text}");
        assert!(text.contains("failed; waits for a change"), "{text}");
    }

    /// Runs a script for keys until time has passed; returns attempts and how many panicked.
    async fn run(
        keys: &[&'static str],
        time: Duration,
        script: fn(&'static str, usize) -> Result<Next, Refused>,
    ) -> (Vec<(&'static str, Duration)>, u64) {
        let clock = Clock::of_runtime("2026-01-01T00:00:00Z".parse().unwrap());
        let metrics = ControllerMetrics::default();
        let controller = Controller::new("scripted", &clock, &metrics);
        for key in keys {
            controller.queue().add(*key);
        }
        let scripted = Arc::new(Scripted {
            attempts: Mutex::default(),
            origin: Instant::now(),
            script,
        });
        let running = controller.run(Arc::clone(&scripted));
        let ended: Result<(), _> = tokio::time::timeout(time, running).await;
        assert!(ended.is_err(), "a controller never ends by itself");
        let attempts = scripted.attempts.lock().clone();
        (attempts, metrics.panics("scripted"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_ends_one_reconcile_and_is_retried() {
        let script = |key, earlier| match (key, earlier) {
            ("bad", 0 | 1) => panic!("met the unexpected"),
            _ => Ok(None),
        };
        let (attempts, panics) = run(&["bad", "good"], Duration::from_secs(1), script).await;
        let keys: Vec<_> = attempts.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["bad", "good", "bad", "bad"]);
        assert_eq!(panics, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_retried_less_often_than_an_outage() {
        let minute = Duration::from_mins(1);
        let outage = run(&["a"], minute, |_, _| Err(Refused(Retry::Backoff))).await;
        let refusal = run(&["a"], minute, |_, _| Err(Refused(Retry::Slowly))).await;
        assert_eq!((outage.0.len(), refusal.0.len()), (12, 6));
        let useless = run(&["a"], minute, |_, _| Err(Refused(Retry::Never))).await;
        assert_eq!(useless.0.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_beside_a_controller_that_ends_takes_it_along() {
        let clock = Clock::of_runtime("2026-01-01T00:00:00Z".parse().unwrap());
        let metrics = ControllerMetrics::default();
        let scripted = Arc::new(Scripted {
            attempts: Mutex::default(),
            origin: Instant::now(),
            script: |_, _| Ok(None),
        });
        let controller = Controller::new("brief", &clock, &metrics)
            .begin_with(|| ["a"])
            .beside(tokio::time::sleep(Duration::from_secs(5)));
        controller.run(Arc::clone(&scripted)).await;
        assert_eq!(scripted.attempts.lock().len(), 1, "it began with a key");
        let mut missing = Vec::new();
        let ready = metrics.until_ready(&["brief"], |names| missing.extend_from_slice(names));
        ready.await;
        assert!(missing.is_empty());
    }
}
