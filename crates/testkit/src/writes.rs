//! Finding controllers that fight: one object that is written again and again while nobody outside
//! changes anything.
//!
//! Clients of controllers and agents are made with [`Writes::of_controllers`], those of the test itself
//! with [`Writes::from_outside`]. An object that the former write more than [`MOST_WRITES`] times within
//! a minute in which the latter write nothing at all is a fight. Leases and events do not count: the former are
//! written for the sake of time, the latter are not one object.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;

/// How often an object may be written within [`WINDOW`] without a change from outside. Long rollouts write
/// the status of their replica set with each step; two controllers that disagree write hundreds of times.
pub const MOST_WRITES: usize = 20;
/// The time in which writes are counted.
const WINDOW: Duration = Duration::from_mins(1);

/// Counts the writes of controllers. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<String, Count>,
    worst: Option<(String, usize)>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    writes: usize,
}

impl Writes {
    /// A service of a cluster whose writes are counted.
    pub fn of_controllers<S>(&self, cluster: &str, inner: S) -> Watched<S> {
        Watched {
            inner,
            writes: self.clone(),
            cluster: Some(cluster.into()),
        }
    }

    /// A service of any cluster whose writes are changes from outside.
    pub fn from_outside<S>(&self, inner: S) -> Watched<S> {
        Watched {
            inner,
            writes: self.clone(),
            cluster: None,
        }
    }

    /// Notes a change from outside, after which controllers have something to do.
    pub fn change_from_outside(&self) {
        self.state.lock().counts.clear();
    }

    /// The object that was written most often without a change from outside, and how often.
    pub fn worst(&self) -> Option<(String, usize)> {
        self.state.lock().worst.clone()
    }

    /// Fails if an object was written too often.
    #[track_caller]
    pub fn assert_no_fight(&self) {
        if let Some((object, writes)) = self.worst() {
            assert!(
                writes <= MOST_WRITES,
                "controllers fight: {object} was written {writes} times within {WINDOW:?} without a change \
                 from outside"
            );
        }
    }

    fn count(&self, cluster: &str, method: &Method, path: &str) {
        let is_update = [Method::PUT, Method::PATCH, Method::DELETE].contains(method);
        if !is_update || path.contains("/leases/") || path.contains("/events/") {
            return;
        }
        let path = path.strip_suffix("/status").unwrap_or(path);
        let object = format!("{cluster}:{path}");
        let now = Instant::now();
        let mut state = self.state.lock();
        let count = state.counts.entry(object.clone()).or_insert(Count {
            since: now,
            writes: 0,
        });
        if now.duration_since(count.since) > WINDOW {
            *count = Count {
                since: now,
                writes: 0,
            };
        }
        count.writes += 1;
        let writes = count.writes;
        if state.worst.as_ref().is_none_or(|(_, most)| writes > *most) {
            state.worst = Some((object, writes));
        }
    }
}

/// A service whose writes are counted, or are changes from outside.
#[derive(Debug, Clone)]
pub struct Watched<S> {
    inner: S,
    writes: Writes,
    /// The cluster of a controller.
    cluster: Option<Arc<str>>,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Watched<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        match &self.cluster {
            Some(cluster) => {
                let (method, path) = (request.method(), request.uri().path());
                self.writes.count(cluster, method, path);
            }
            None if request.method() == Method::GET => {}
            None => self.writes.change_from_outside(),
        }
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_written_again_and_again_is_found() {
        let writes = Writes::default();
        let write = |times: usize, path: &str| {
            for _ in 0..times {
                writes.count("hub", &Method::PATCH, path);
            }
        };
        write(MOST_WRITES, "/api/v1/configmaps/a/status");
        writes.count("hub", &Method::GET, "/api/v1/configmaps/a");
        write(MOST_WRITES * 2, "/apis/x/namespaces/y/leases/z");
        writes.change_from_outside();
        write(MOST_WRITES, "/api/v1/configmaps/a");
        tokio::time::sleep(WINDOW + Duration::from_secs(1)).await;
        write(MOST_WRITES, "/api/v1/configmaps/a");
        writes.assert_no_fight();
        write(1, "/api/v1/configmaps/a/status");
        let worst = ("hub:/api/v1/configmaps/a".to_owned(), MOST_WRITES + 1);
        assert_eq!(writes.worst(), Some(worst));
    }
}
