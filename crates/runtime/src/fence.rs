//! A fence before a cluster: requests that change something pass only while a lease is held.
//!
//! A process may be paused between a decision and its request, for longer than its lease lasts. When it
//! goes on, another process leads, and what it was about to write is out of date. The fence is the
//! last thing that a request passes before it is sent, and looks at the time then.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

use crate::clock::Clock;

/// Whether requests that change something may be sent. Cheap to clone; all clones are one fence.
#[derive(Debug, Clone)]
pub struct Fence {
    clock: Clock,
    /// Until when it is open. Timers stand still while a machine sleeps, and clocks may be set back:
    /// both have to agree.
    open_until: Arc<Mutex<Option<(Instant, Timestamp)>>>,
}

/// A request was held back because this process does not lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the lease that allows it to write")]
pub struct Fenced;

impl Fence {
    /// A closed fence.
    pub fn closed(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            open_until: Arc::default(),
        }
    }

    /// Opens it for a span from a moment on.
    pub(crate) fn open(&self, from: (Instant, Timestamp), span: Duration) {
        let until = from.1.checked_add(span).unwrap_or(Timestamp::MAX);
        *self.open_until.lock() = Some((from.0 + span, until));
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        *self.open_until.lock() = None;
    }

    /// Returns true if requests may pass now.
    pub fn is_open(&self) -> bool {
        let open_until = *self.open_until.lock();
        open_until.is_some_and(|(timer, time)| Instant::now() < timer && self.clock.now() < time)
    }

    /// Returns a client whose writes pass only while the fence is open. Reads always pass.
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let fence = self.clone();
        let guarded = tower::service_fn(move |request: Request<Body>| {
            let (client, fence) = (client.clone(), fence.clone());
            async move {
                let reads = [Method::GET, Method::HEAD].contains(request.method());
                if !reads && !fence.is_open() {
                    return Err(BoxError::from(Fenced));
                }
                client.send(request).await.map_err(BoxError::from)
            }
        });
        Client::new(guarded, namespace)
    }
}
