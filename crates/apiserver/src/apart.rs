//! Requests that take much work run apart from the others: on threads of their own, few at once, and
//! no user takes more than half of the places.
//!
//! A request begins where all are served, within a small budget of [`Effort`]. If that does not
//! suffice, nothing has been written yet, and it begins again here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellwether_schema::RuleLimits;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::limits::Account;
use crate::status::ApiError;

/// Bodies and stored objects up to this size are handled where all requests are: that takes a
/// millisecond or two.
pub(crate) const LIGHT_BYTES: usize = 32 * 1024;

/// What rules of a definition may cost where all requests are served: about a millisecond.
pub(crate) const LIGHT_COST: u64 = 20_000;

/// Requests under way for each thread: those that wait for the store leave the thread to others.
const PLACES_PER_THREAD: usize = 4;

/// The threads, and the places on them.
pub(crate) struct Apart {
    threads: usize,
    /// Started when the first request needs it; nothing if the system gives no threads.
    runtime: OnceLock<Option<Runtime>>,
    places: Arc<Semaphore>,
}

impl Apart {
    /// Half as many threads as the machine has processors.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.div_ceil(2);
        Self {
            threads,
            runtime: OnceLock::new(),
            places: Arc::new(Semaphore::new(threads * PLACES_PER_THREAD)),
        }
    }

    /// How many places one user may take.
    pub(crate) fn places_per_user(&self) -> usize {
        (self.threads * PLACES_PER_THREAD / 2).max(1)
    }

    /// Does some work, within a time that includes waiting for a place. It is interrupted when the
    /// time is up, and when nobody waits for it any longer.
    pub(crate) async fn run<T, W>(
        &self,
        account: &Account,
        interrupt: Interrupt,
        time: Duration,
        work: W,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let _interrupted_at_the_end = InterruptOnDrop(interrupt.clone());
        let (turns, places) = (account.turns(), Arc::clone(&self.places));
        let done = async {
            interrupt.seat.offer(turns, places);
            interrupt.seat.take().await;
            let Some(runtime) = self.runtime() else {
                return work.await;
            };
            let task = runtime.spawn(async move {
                let done = work.await;
                interrupt.seat.leave();
                done
            });
            let _aborted_at_the_end = AbortOnDrop(task.abort_handle());
            let threads = runtime.handle().clone();
            // A clock that a test has paused stands still while a thread of the blocking pool waits;
            // it would leap to the end of the time otherwise.
            let waited = tokio::task::spawn_blocking(move || threads.block_on(task));
            match waited.await {
                Ok(Ok(done)) => done,
                Ok(Err(error)) | Err(error) => Err(ApiError::internal(error.to_string())),
            }
        };
        let limited = tokio::time::timeout(time, done).await;
        limited.unwrap_or_else(|_| Err(ApiError::timeout()))
    }

    fn runtime(&self) -> Option<&Runtime> {
        let start = || {
            let runtime = Builder::new_multi_thread()
                .worker_threads(self.threads)
                .thread_name("apart")
                .enable_all()
                .build();
            runtime
                .inspect_err(|error| tracing::warn!(%error, "no threads for large requests"))
                .ok()
        };
        self.runtime.get_or_init(start).as_ref()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.runtime.take() {
            // What still runs ends with the process; nobody waits for it.
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Apart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Apart")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Ends a task that nobody waits for, where it waits itself.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells work that it should end, and keeps its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    is_set: Arc<AtomicBool>,
    seat: Arc<Seat>,
}

impl Interrupt {
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

/// The place of some work, which it may leave to others while it waits for somebody.
#[derive(Debug, Default)]
struct Seat {
    /// Where the turn of its user and the place among all come from; none for work of our own.
    offered: OnceLock<(Arc<Semaphore>, Arc<Semaphore>)>,
    taken: Mutex<Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>>,
}

impl Seat {
    fn offer(&self, turns: Arc<Semaphore>, places: Arc<Semaphore>) {
        let _ = self.offered.set((turns, places));
    }

    async fn take(&self) {
        let Some((turns, places)) = self.offered.get() else {
            return;
        };
        if self.taken.lock().is_some() {
            return;
        }
        // They are never closed.
        let turn = Arc::clone(turns).acquire_owned().await;
        let place = Arc::clone(places).acquire_owned().await;
        if let (Ok(turn), Ok(place)) = (turn, place) {
            *self.taken.lock() = Some((turn, place));
        }
    }

    fn leave(&self) {
        drop(self.taken.lock().take());
    }
}

struct InterruptOnDrop(Interrupt);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }
}

/// How much work a request may take where it is.
#[derive(Debug, Clone)]
pub(crate) enum Effort {
    /// Little, because others are served on the same threads; whether that was not enough.
    Light(Arc<AtomicBool>),
    /// Much, until it is interrupted.
    Full(Interrupt),
}

impl Effort {
    /// A small budget.
    pub(crate) fn light() -> Self {
        Self::Light(Arc::default())
    }

    /// As much as it takes: for what the server does itself.
    pub(crate) fn unlimited() -> Self {
        Self::Full(Interrupt::default())
    }

    /// Refuses to handle an object of this size here, or at all if nobody waits for it.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), ApiError> {
        match self {
            Self::Light(_) if bytes > LIGHT_BYTES => Err(self.exceeded()),
            Self::Full(interrupt) if interrupt.is_set() => Err(ApiError::timeout()),
            _ => Ok(()),
        }
    }

    /// What rules may cost here.
    pub(crate) fn rules<R>(&self, run: impl FnOnce(RuleLimits<'_>) -> R) -> R {
        match self {
            Self::Light(_) => run(RuleLimits {
                cost: LIGHT_COST,
                is_interrupted: &|| false,
            }),
            Self::Full(interrupt) => run(RuleLimits {
                is_interrupted: &|| interrupt.is_set(),
                ..RuleLimits::default()
            }),
        }
    }

    /// Waits for somebody else; meanwhile others may work here.
    pub(crate) async fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        let Self::Full(interrupt) = self else {
            return what.await;
        };
        interrupt.seat.leave();
        let done = what.await;
        interrupt.seat.take().await;
        done
    }

    /// The error of work that does not fit here.
    pub(crate) fn exceeded(&self) -> ApiError {
        match self {
            Self::Light(exceeded) => {
                exceeded.store(true, Ordering::Relaxed);
                ApiError::internal("the request takes too much work to be handled here")
            }
            Self::Full(_) => ApiError::timeout(),
        }
    }

    /// True if a small budget was not enough.
    pub(crate) fn is_exceeded(&self) -> bool {
        matches!(self, Self::Light(exceeded) if exceeded.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::task::JoinHandle;

    use super::*;
    use crate::access::Identity;
    use crate::limits::{InFlight, Limits, Load};

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn one_user_leaves_places_for_others() {
        let apart = Arc::new(Apart::new());
        let in_flight = InFlight::new(Limits::default(), apart.places_per_user());
        let admit = |name: &str| {
            let identity = Identity::authenticated(name, []);
            in_flight.admit("hub", &identity, Load::Request).unwrap()
        };
        // Ann asks for more than there are places, and none of it ever ends.
        let ann = admit("ann");
        let mut waiting = Vec::new();
        for _ in 0..10 * apart.places_per_user() {
            let (apart, account) = (Arc::clone(&apart), Arc::clone(ann.account()));
            waiting.push(tokio::spawn(async move {
                let never = std::future::pending::<Result<(), ApiError>>();
                apart.run(&account, Interrupt::default(), LONG, never).await
            }));
        }
        let bob = admit("bob");
        let work = async { Ok(7) };
        let done = apart.run(bob.account(), Interrupt::default(), LONG, work);
        assert_eq!(done.await.unwrap(), 7);
        waiting.iter().for_each(JoinHandle::abort);
    }

    #[tokio::test]
    async fn work_that_waits_for_somebody_leaves_its_place() {
        let apart = Arc::new(Apart::new());
        let in_flight = InFlight::new(Limits::default(), apart.places_per_user());
        let ann = Identity::authenticated("ann", []);
        let ann = in_flight.admit("hub", &ann, Load::Request).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..10 * apart.places_per_user() {
            let (apart, account) = (Arc::clone(&apart), Arc::clone(ann.account()));
            waiting.push(tokio::spawn(async move {
                let interrupt = Interrupt::default();
                let effort = Effort::Full(interrupt.clone());
                let work = async move {
                    effort.wait(std::future::pending::<()>()).await;
                    Ok(())
                };
                apart.run(&account, interrupt, LONG, work).await
            }));
        }
        tokio::task::yield_now().await;
        // She has all her places again.
        let done = apart.run(ann.account(), Interrupt::default(), LONG, async { Ok(7) });
        assert_eq!(done.await.unwrap(), 7);
        waiting.iter().for_each(JoinHandle::abort);
    }

    #[tokio::test]
    async fn work_is_interrupted_when_its_time_is_up_or_nobody_waits() {
        let apart = Apart::new();
        let in_flight = InFlight::new(Limits::default(), apart.places_per_user());
        let ann = Identity::authenticated("ann", []);
        let permit = in_flight.admit("hub", &ann, Load::Request).unwrap();
        for time in [Duration::from_millis(20), LONG] {
            let (ended, end) = mpsc::channel();
            let interrupt = Interrupt::default();
            let effort = Effort::Full(interrupt.clone());
            // Work that looks up from time to time, and never waits.
            let work = async move {
                while effort.admit(0).is_ok() {
                    std::thread::yield_now();
                }
                ended.send(()).unwrap();
                Ok(())
            };
            let run = apart.run(permit.account(), interrupt, time, work);
            if time < LONG {
                assert_eq!(run.await.unwrap_err().code, 504);
            } else {
                // The client goes away.
                let gone = tokio::time::timeout(Duration::from_millis(20), run).await;
                assert!(gone.is_err());
            }
            end.recv_timeout(LONG).unwrap();
        }
    }

    #[test]
    fn a_small_budget_is_exceeded_by_large_objects() {
        let light = Effort::light();
        light.admit(LIGHT_BYTES).unwrap();
        assert!(!light.is_exceeded());
        assert!(light.admit(LIGHT_BYTES + 1).is_err() && light.is_exceeded());
        Effort::unlimited().admit(usize::MAX).unwrap();
    }
}
