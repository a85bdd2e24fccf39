//! The thread that makes writes durable, many at a time.
//!
//! It takes all requests that are waiting, [decides](crate::group) them in order, commits what they
//! change in one transaction, makes that visible and answers. What arrives meanwhile is the next
//! group: the more there is to do, the more a transaction does, and a single writer waits for
//! nobody.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{oneshot, watch};

use crate::engine::Engine;
use crate::engine::disk::Snapshot;
use crate::error::{StorageError, WriteError};
use crate::group::{Group, Unsettled};
use crate::space::Space;
use crate::value::{Entry, Revision, Value};
use crate::write::{Action, Expected};

/// How many requests a transaction takes at most. It bounds the time until the first of them is
/// answered, and keeps a burst from pushing events out of the history before a watcher can see
/// them.
const GROUP: usize = 1024;

/// How long the thread waits for as many requests as the last group had. Clients that have just
/// been answered tend to ask again at once; without waiting, the first of them would get a
/// transaction of its own, and the others the next. It is a fraction of what a transaction takes.
const GATHER: Duration = Duration::from_micros(100);

/// How often a full disk is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Something the thread is asked to do.
pub(crate) enum Request<V> {
    /// Write to a key.
    Write(WriteRequest<V>),
    /// Remove a keyspace.
    Drop {
        space: Arc<Space<V>>,
        answer: oneshot::Sender<Result<(), Arc<StorageError>>>,
    },
    /// Remove what is no longer needed of keyspaces, without telling anybody.
    Sweep(Vec<Arc<Space<V>>>),
    /// Take the state after all requests before this one.
    Snapshot(oneshot::Sender<Result<Snapshot, Arc<StorageError>>>),
}

/// A write to a key.
pub(crate) struct WriteRequest<V> {
    pub(crate) space: Arc<Space<V>>,
    pub(crate) key: Box<str>,
    pub(crate) action: Action,
    pub(crate) expected: Expected,
    pub(crate) make: Box<dyn FnOnce(Revision) -> V + Send>,
    pub(crate) answer: oneshot::Sender<Answer<V>>,
}

/// The answer to a write; a panic of its closure is handed back to be continued by the writer.
pub(crate) type Answer<V> = std::thread::Result<Result<Entry<V>, WriteError<V>>>;

/// Why the storage accepts no writes, if it does not.
#[derive(Debug, Default)]
struct Health(Mutex<Option<Arc<StorageError>>>);

/// The handle of the thread, which ends when this is dropped or closed.
pub(crate) struct Writer<V> {
    queue: Arc<Queue<V>>,
    health: Arc<Health>,
    /// Closed when the thread has ended and the engine is released.
    ended: watch::Receiver<()>,
}

impl<V: Value> Writer<V> {
    /// Starts the thread.
    pub(crate) fn start(engine: impl Engine<V>) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new());
        let (running, ended) = watch::channel(());
        let taker = Taker(Arc::clone(&queue));
        let health: Arc<Health> = Arc::default();
        let reported = Arc::clone(&health);
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                run(&taker, engine, &reported);
                drop(taker);
                drop(running);
            })?;
        Ok(Self {
            queue,
            health,
            ended,
        })
    }

    /// Why the storage accepts no writes, if it does not.
    pub(crate) fn failure(&self) -> Option<Arc<StorageError>> {
        self.health.0.lock().clone()
    }

    /// Hands a request over; it is dropped unanswered if it is too late for that.
    pub(crate) fn submit(&self, request: Request<V>) {
        self.queue.push(request);
    }

    /// Lets the thread complete what it has been asked, and waits for its end.
    pub(crate) async fn close(&self) {
        self.queue.close();
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

impl<V> Drop for Writer<V> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A storage that accepts no writes.
struct Failure<V> {
    error: Arc<StorageError>,
    /// What it may hold nevertheless.
    unsettled: Unsettled<V>,
    /// When to try again; never, if only a restart helps.
    retry_at: Option<Instant>,
}

fn run<V: Value>(queue: &Taker<V>, mut engine: impl Engine<V>, health: &Health) {
    let mut failure: Option<Failure<V>> = None;
    let mut last = 1;
    loop {
        let retry_at = failure.as_ref().and_then(|failure| failure.retry_at);
        let Some(requests) = queue.0.take(last, retry_at) else {
            return;
        };
        last = requests.len().max(1);
        let mut group = Group::new();
        let mut snapshots = Vec::new();
        for request in requests {
            match request {
                Request::Snapshot(answer) => snapshots.push(answer),
                request => group.add(request),
            }
        }
        failure = match failure {
            None => commit(group, &mut engine),
            Some(mut failure) => {
                failure.unsettled.add(group.fail(&failure.error));
                retry(failure, &mut engine)
            }
        };
        let error = failure.as_ref().map(|failure| Arc::clone(&failure.error));
        for answer in snapshots {
            let snapshot = match &error {
                Some(error) => Err(Arc::clone(error)),
                None => engine.snapshot().map_err(Arc::new),
            };
            // Those who have stopped waiting need no answer.
            let _ = answer.send(snapshot);
        }
        *health.0.lock() = error;
    }
}

/// Commits a group and answers.
fn commit<V: Value>(group: Group<V>, engine: &mut impl Engine<V>) -> Option<Failure<V>> {
    let Err(error) = group.commit(engine) else {
        group.publish();
        return None;
    };
    tracing::error!(%error, "the store accepts no writes");
    let error = Arc::new(error);
    Some(Failure {
        unsettled: group.fail(&error),
        retry_at: retry_at(&error),
        error,
    })
}

/// Makes the storage usable again if it is time, and possible.
fn retry<V: Value>(mut failure: Failure<V>, engine: &mut impl Engine<V>) -> Option<Failure<V>> {
    if failure.retry_at.is_none_or(|at| now() < at) {
        return Some(failure);
    }
    match failure.unsettled.settle(engine) {
        Ok(()) => {
            tracing::warn!("there is space on the disk again: the store accepts writes");
            None
        }
        Err(error) => {
            failure.retry_at = retry_at(&error);
            failure.error = Arc::new(error);
            Some(failure)
        }
    }
}

fn retry_at(error: &StorageError) -> Option<Instant> {
    error.is_full().then(|| now() + RETRY)
}

#[expect(
    clippy::disallowed_methods,
    reason = "how often the disk is tried depends on no other clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// The requests that are waiting.
struct Queue<V> {
    state: Mutex<QueueState<V>>,
    ready: Condvar,
}

struct QueueState<V> {
    waiting: Vec<Request<V>>,
    /// How many requests the thread waits for.
    wanted: usize,
    closed: bool,
}

impl<V> Queue<V> {
    fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                waiting: Vec::new(),
                wanted: 1,
                closed: false,
            }),
            ready: Condvar::new(),
        }
    }

    fn push(&self, request: Request<V>) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        state.waiting.push(request);
        if state.waiting.len() == state.wanted {
            self.ready.notify_one();
        }
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_one();
    }

    /// Waits for requests, and a little for as many as are likely to come; nothing after the last
    /// one of a closed queue. With a deadline, it returns none if the first is not there by then.
    fn take(&self, likely: usize, deadline: Option<Instant>) -> Option<Vec<Request<V>>> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state.wanted = 1;
            match deadline {
                None => self.ready.wait(&mut state),
                Some(deadline) => {
                    if self.ready.wait_until(&mut state, deadline).timed_out() {
                        return Some(Vec::new());
                    }
                }
            }
        }
        if state.waiting.len() < likely && !state.closed {
            state.wanted = likely;
            self.ready.wait_for(&mut state, GATHER);
        }
        if state.waiting.len() <= GROUP {
            return Some(std::mem::take(&mut state.waiting));
        }
        Some(state.waiting.drain(..GROUP).collect())
    }
}

/// The thread's end of the queue: nobody waits for an answer of a thread that has panicked.
struct Taker<V>(Arc<Queue<V>>);

impl<V> Drop for Taker<V> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        state.waiting.clear();
    }
}
