//! Requests of clients, counted, and altered where a test wants that.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request};
use kube::client::Body;
use tower::Service;

type Alter = Box<dyn Fn(&mut Request<Body>) + Send + Sync>;

/// Counts requests by what they do. One may be shared by several clients.
#[derive(Default)]
pub struct Counts {
    reads: AtomicUsize,
    writes: AtomicUsize,
    watches: AtomicUsize,
    events: AtomicUsize,
    alter: Option<Alter>,
}

impl Counts {
    /// Also alters each request before it is counted and sent.
    pub fn altering(alter: impl Fn(&mut Request<Body>) + Send + Sync + 'static) -> Self {
        Self {
            alter: Some(Box::new(alter)),
            ..Self::default()
        }
    }

    /// A service whose requests are counted here.
    pub fn of<S>(self: &Arc<Self>, inner: S) -> Counting<S> {
        Counting {
            inner,
            counts: Arc::clone(self),
        }
    }

    /// Reads of objects and lists; watches and events do not count.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// Writes of anything but events.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// All requests but those about events.
    pub fn all(&self) -> usize {
        self.reads() + self.writes() + self.watches.load(Ordering::SeqCst)
    }

    /// All requests, with those about events.
    pub fn with_events(&self) -> usize {
        self.all() + self.events.load(Ordering::SeqCst)
    }

    fn count(&self, request: &Request<Body>) {
        let uri = request.uri().to_string();
        let counter = if uri.contains("watch=true") {
            &self.watches
        } else if uri.contains("/events") {
            &self.events
        } else if request.method() == Method::GET {
            &self.reads
        } else {
            &self.writes
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Counts")
            .field("reads", &self.reads)
            .field("writes", &self.writes)
            .field("watches", &self.watches)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counting<S> {
    inner: S,
    counts: Arc<Counts>,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Counting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        if let Some(alter) = &self.counts.alter {
            alter(&mut request);
        }
        self.counts.count(&request);
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_altered_and_counted_by_what_they_do() {
        let counts = Arc::new(Counts::altering(|request| {
            if request.uri().path() == "/secret" {
                *request.uri_mut() = http::Uri::from_static("/events");
            }
        }));
        let echo = tower::service_fn(async |request: Request<Body>| {
            Ok::<_, std::convert::Infallible>(request.uri().to_string())
        });
        let mut service = counts.of(echo);
        for (method, path) in [
            ("GET", "/a"),
            ("GET", "/a?watch=true"),
            ("POST", "/a"),
            ("DELETE", "/a"),
            ("POST", "/events"),
            ("GET", "/secret"),
        ] {
            let request = Request::builder().method(method).uri(path);
            let Ok(sent) = service.call(request.body(Body::empty()).unwrap()).await;
            assert_eq!(sent == path, path != "/secret");
        }
        assert_eq!((counts.reads(), counts.writes()), (1, 2));
        assert_eq!((counts.all(), counts.with_events()), (4, 6));
    }
}
