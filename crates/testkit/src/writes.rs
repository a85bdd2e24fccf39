//! Finding controllers that fight: one object that is written again and again while nobody outside
//! changes anything.
//!
//! Clients of controllers and agents are made with [`Writes::of_controllers`], those of the test itself
//! with [`Writes::from_outside`]. An object that the former write more than [`MOST_WRITES`] times within
//! a minute in which the latter write nothing at all is a fight. Leases and events do not count: the former are
//! written for the sake of time, the latter are not one object.
//!
//! Where controllers run in a process of their own, [`Writes::of_audit_log`] counts what its audit log says.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tower::Service;

/// How often an object may be written within a minute without a change from outside. Long rollouts write
/// the status of their replica set with each step; two controllers that disagree write hundreds of times.
pub const MOST_WRITES: usize = 20;
/// The time in which writes are counted.
const WINDOW: Duration = Duration::from_mins(1);

/// Users that speak for agents, wherever they run.
const AGENTS: &str = "system:open-cluster-management:";

/// Counts the writes of controllers. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub struct Writes {
    start: Instant,
    state: Arc<Mutex<State>>,
}

impl Default for Writes {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            state: Arc::default(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<String, Count>,
    worst: Option<(String, usize)>,
}

#[derive(Debug)]
struct Count {
    since: Duration,
    writes: usize,
}

impl State {
    fn count(&mut self, object: String, now: Duration) {
        let count = self.counts.entry(object.clone()).or_insert(Count {
            since: now,
            writes: 0,
        });
        if now.saturating_sub(count.since) > WINDOW {
            *count = Count {
                since: now,
                writes: 0,
            };
        }
        count.writes += 1;
        let writes = count.writes;
        if self.worst.as_ref().is_none_or(|(_, most)| writes > *most) {
            self.worst = Some((object, writes));
        }
    }
}

impl Writes {
    /// What the audit log of a server says. Its own controllers and agents send requests without an address;
    /// requests with one are of agents if their user is, and changes from outside otherwise.
    pub fn of_audit_log(log: &str) -> Self {
        let writes = Self::default();
        // A line may have been cut off when the server was killed.
        let lines = log
            .lines()
            .map_while(|line| serde_json::from_str(line).ok());
        lines.for_each(|line: Value| writes.read_audit_line(&line));
        writes
    }

    fn read_audit_line(&self, line: &Value) {
        let text = |pointer: &str| line.pointer(pointer).and_then(Value::as_str);
        let user = text("/user/username").unwrap_or_default();
        let mut state = self.state.lock();
        if line.get("sourceIPs").is_some() && !user.starts_with(AGENTS) {
            state.counts.clear();
            return;
        }
        let part = |name: &str| text(&format!("/objectRef/{name}")).unwrap_or_default();
        let is_update = ["update", "patch", "delete"].contains(&text("/verb").unwrap_or_default());
        if !is_update || ["leases", "events"].contains(&part("resource")) {
            return;
        }
        let cluster = text("/annotations/bellwether.dev~1cluster").unwrap_or_default();
        let object = ["resource", "namespace", "name"].map(part).join("/");
        let time = text("/requestReceivedTimestamp").and_then(|time| time.parse().ok());
        let passed = time.map(|time: Timestamp| time.duration_since(Timestamp::UNIX_EPOCH));
        let passed = passed.and_then(|passed| Duration::try_from(passed).ok());
        state.count(format!("{cluster}:{object}"), passed.unwrap_or_default());
    }

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
        self.state.lock().count(object, self.start.elapsed());
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

    #[test]
    fn an_audit_log_is_counted_between_changes_from_outside() {
        let line = |second: usize, user: &str, is_remote: bool, verb: &str, resource: &str| {
            let mut line = serde_json::json!({
                "verb": verb, "user": {"username": user},
                "objectRef": {"resource": resource, "namespace": "c1", "name": "a", "subresource": "status"},
                "requestReceivedTimestamp": format!("2026-01-01T00:{:02}:{:02}.000001Z", second / 60, second % 60),
                "annotations": {"bellwether.dev/cluster": "hub"},
            });
            if is_remote {
                line["sourceIPs"] = serde_json::json!(["127.0.0.1"]);
            }
            line.to_string()
        };
        let agent = |second| {
            line(
                second,
                "system:open-cluster-management:c1:a",
                true,
                "patch",
                "manifestworks",
            )
        };
        let mut log: Vec<String> = (0..30).map(agent).collect();
        log.push(line(
            30,
            "bellwether-admin",
            true,
            "create",
            "manifestworks",
        ));
        log.extend(
            (30..40).map(|second| line(second, "bellwether-hub", false, "update", "manifestworks")),
        );
        log.extend(
            (30..90).map(|second| line(second, "bellwether-hub", false, "update", "leases")),
        );
        log.push("{\"verb\": ".to_owned());
        let worst = ("hub:manifestworks/c1/a".to_owned(), 30);
        assert_eq!(Writes::of_audit_log(&log.join("\n")).worst(), Some(worst));
        let late: Vec<String> = (0..15).map(|number| agent(number * 10)).collect();
        Writes::of_audit_log(&late.join("\n")).assert_no_fight();
    }
}
