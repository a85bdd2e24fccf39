//! How a cluster is reached: by a client that is there while somebody needs it.
//!
//! A client has a task and buffers of its own, about eleven kilobytes. A process may look after
//! thousands of clusters, nearly all of which are idle at any time.

use std::fmt;
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;

/// How a cluster is reached. Cheap to clone; all clones share one client while somebody holds it.
#[derive(Clone)]
pub struct ClusterHandle {
    inner: Arc<Inner<dyn Fn() -> Client + Send + Sync>>,
}

struct Inner<F: ?Sized> {
    held: Mutex<Held>,
    make: F,
}

#[derive(Default)]
struct Held {
    holders: usize,
    client: Option<Client>,
}

/// Keeps the client of a cluster at hand until it is dropped: for those who are about to send
/// several requests.
#[must_use = "the client is let go with it"]
#[derive(Debug)]
pub struct ClientLease(ClusterHandle);

impl ClusterHandle {
    /// A cluster whose clients are made by the function, within a tokio runtime.
    pub fn new(make: impl Fn() -> Client + Send + Sync + 'static) -> Self {
        Self {
            inner: Arc::new(Inner {
                held: Mutex::default(),
                make,
            }),
        }
    }

    /// A client: the one that is held, or a new one.
    pub fn client(&self) -> Client {
        let mut held = self.inner.held.lock();
        if held.holders == 0 {
            drop(held);
            return (self.inner.make)();
        }
        let client = &mut held.client;
        client.get_or_insert_with(|| (self.inner.make)()).clone()
    }

    /// Holds the client that the next request needs.
    pub fn hold(&self) -> ClientLease {
        self.inner.held.lock().holders += 1;
        ClientLease(self.clone())
    }
}

impl Drop for ClientLease {
    fn drop(&mut self) {
        let mut held = self.0.inner.held.lock();
        held.holders -= 1;
        if held.holders == 0 {
            held.client = None;
        }
    }
}

impl From<Client> for ClusterHandle {
    /// A cluster whose client is there all the time, as one over a network should be.
    fn from(client: Client) -> Self {
        Self::new(move || client.clone())
    }
}

impl From<&Client> for ClusterHandle {
    fn from(client: &Client) -> Self {
        client.clone().into()
    }
}

impl fmt::Debug for ClusterHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holders = self.inner.held.lock().holders;
        formatter
            .debug_struct("ClusterHandle")
            .field("holders", &holders)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[tokio::test]
    async fn a_client_is_shared_while_somebody_holds_it() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let reach = ClusterHandle::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer =
                |_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) };
            Client::new(tower::service_fn(answer), "default")
        });
        let made = || made.load(Ordering::SeqCst);
        for expected in [1, 2] {
            drop(reach.client());
            assert_eq!(made(), expected, "nobody holds it");
        }
        let (first, second) = (reach.hold(), reach.clone().hold());
        assert_eq!(made(), 2, "nobody has needed one yet");
        drop((reach.client(), reach.client()));
        drop(first);
        drop(reach.client());
        assert_eq!(made(), 3);
        drop(second);
        drop(reach.client());
        assert_eq!(made(), 4);
    }
}
