//! Clusters in this process: what tests and benchmarks of all crates begin with.

use std::sync::Arc;

use bellwether_apiserver::{ApiServer, Clock, HUB, Identity, ServerOptions, StoredObject};
use bellwether_store::{Options, Store};
use kube::Client;

/// When tests begin whose time leaps.
pub const START: &str = "2026-01-01T00:00:00Z";

/// A clock that begins at [`START`] and goes as the runtime of the test does, which may be paused.
pub fn leaping_clock() -> Clock {
    Clock::of_runtime(START.parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// An embedded server with a hub.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// The server, for further clusters.
    pub server: ApiServer,
    /// The time of server and store.
    pub clock: Clock,
}

impl Embedded {
    /// A hub in memory.
    pub async fn start(clock: Clock) -> Self {
        Self::with_options(clock, ServerOptions::default()).await
    }

    /// A hub in memory that knows the kinds of a fleet.
    pub async fn fleet(clock: Clock) -> Self {
        let embedded = Self::start(clock).await;
        embedded.define_kinds().await;
        embedded
    }

    /// A hub in memory on a server with options.
    pub async fn with_options(clock: Clock, options: ServerOptions) -> Self {
        let store = Store::in_memory(store_options(&clock));
        Self::on(store, clock, options).await
    }

    /// A hub on a store.
    ///
    /// # Panics
    /// If the store cannot be written to.
    #[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    pub async fn on(store: Store<StoredObject>, clock: Clock, options: ServerOptions) -> Self {
        let server = ApiServer::with_options(store, clock.clone(), options);
        server.add_cluster(HUB).await.unwrap();
        Self { server, clock }
    }

    /// Defines the kinds of a fleet on the hub.
    ///
    /// # Panics
    /// If the server refuses a definition.
    #[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    pub async fn define_kinds(&self) {
        for definition in bellwether_api::definitions() {
            self.server.ensure(HUB, definition).await.unwrap();
        }
    }

    /// A client of a cluster with all rights, as a user of that name.
    pub fn client(&self, cluster: &str, user: &str) -> Client {
        self.server.client(cluster, Identity::administrator(user))
    }

    /// A client of the hub with all rights.
    pub fn hub(&self) -> Client {
        self.client(HUB, "test")
    }
}

/// Options of a store whose objects have times of that clock.
pub fn store_options(clock: &Clock) -> Options {
    let clock = clock.clone();
    Options::new(Arc::new(move || clock.now()))
}
