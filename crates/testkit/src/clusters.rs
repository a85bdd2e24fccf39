//! A hub and members, embedded or real, and what tests do with them.
//!
//! Embedded clusters live in this process, under a runtime whose time is paused and leaps. Real ones are two
//! kube-apiservers, the hub and [`MEMBER`]; their time cannot be paused, so the clock of controllers is set forward
//! instead. Further members are always embedded. Controllers are started by tests, with clients from here.

use std::sync::Arc;
use std::time::Duration;

use bellwether_apiserver::{ApiServer, HUB, Identity, ServerOptions};
use bellwether_runtime::{Clock, Forward};
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::counts::Counts;
use crate::embedded::{Embedded, leaping_clock};
use crate::json_client::JsonClient;
use crate::objects::{condition, namespace};
use crate::pair::RealPair;
use crate::polling::Polling;
use crate::writes::Writes;

/// The member of most tests, and the one that may be real.
pub const MEMBER: &str = "cluster1";

/// How long it takes at most until a change has come round through two real servers.
const QUIET: Duration = Duration::from_millis(400);

/// A hub and members. When it is dropped, controllers that fought over an object fail the test.
#[derive(Debug)]
pub struct Clusters {
    /// The embedded clusters: all of them, or those that are not real.
    pub server: ApiServer,
    /// The time of controllers.
    pub clock: Clock,
    /// What controllers write: no two of them may fight.
    pub writes: Writes,
    /// The identity of controllers on an embedded hub.
    pub hub_identity: Identity,
    /// The identity of controllers on embedded members.
    pub member_identity: Identity,
    real: Option<(Arc<RealPair>, Forward)>,
}

impl Drop for Clusters {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.writes.assert_no_fight();
        }
    }
}

impl Clusters {
    /// An embedded hub without any kinds but the built-in ones. The runtime's time is to be paused.
    pub async fn embedded(options: ServerOptions) -> Self {
        Self::new(leaping_clock(), options, None).await
    }

    /// An embedded hub with a clock of the test.
    pub async fn with_clock(clock: Clock, options: ServerOptions) -> Self {
        Self::new(clock, options, None).await
    }

    /// A real hub and a real member. Further members are embedded, on a server with those options.
    pub async fn real(pair: &Arc<RealPair>, options: ServerOptions) -> Self {
        let (clock, forward) = Clock::system().adjustable();
        Self::new(clock, options, Some((Arc::clone(pair), forward))).await
    }

    async fn new(
        clock: Clock,
        options: ServerOptions,
        real: Option<(Arc<RealPair>, Forward)>,
    ) -> Self {
        let embedded = Embedded::with_options(clock.clone(), options).await;
        Self {
            server: embedded.server,
            clock,
            writes: Writes::default(),
            hub_identity: Identity::administrator("agent"),
            member_identity: Identity::administrator("agent"),
            real,
        }
    }

    /// Creates objects on the embedded hub, without admission: definitions of kinds, roles.
    ///
    /// # Panics
    /// If one is refused.
    #[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    pub async fn ensure(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.server.ensure(HUB, object).await.unwrap();
        }
    }

    /// Returns true if the hub and the first member are real.
    pub fn is_real(&self) -> bool {
        self.real.is_some()
    }

    /// Adds a member, with its namespace on the hub.
    ///
    /// # Panics
    /// If the hub refuses the namespace.
    #[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    pub async fn add_cluster(&self, member: &str) {
        if self.real_client(member).is_none() {
            self.server.add_cluster(member).await.unwrap();
        }
        match self.try_create(HUB, namespace(member)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other.unwrap()),
        }
    }

    fn real_client(&self, cluster: &str) -> Option<Client> {
        let (pair, _) = self.real.as_ref()?;
        match cluster {
            HUB => Some(pair.hub.client()),
            MEMBER => Some(pair.member.client()),
            _ => None,
        }
    }

    /// A client for controllers and agents, whose requests are counted.
    pub fn counting(&self, cluster: &str, counts: &Arc<Counts>) -> Client {
        if let Some(client) = self.real_client(cluster) {
            let inner = self.writes.of_controllers(cluster, forwarding(client));
            return Client::new(counts.of(inner), "default");
        }
        let identity = if cluster == HUB {
            &self.hub_identity
        } else {
            &self.member_identity
        };
        let inner = self.server.service(cluster, identity.clone());
        let inner = self.writes.of_controllers(cluster, inner);
        Client::new(counts.of(inner), "default")
    }

    /// A client for controllers and agents.
    pub fn controller_client(&self, cluster: &str) -> Client {
        self.counting(cluster, &Arc::default())
    }

    /// A client of the test itself, with all rights. What it writes is a change from outside.
    pub fn client(&self, cluster: &str) -> Client {
        if let Some(client) = self.real_client(cluster) {
            return Client::new(self.writes.from_outside(forwarding(client)), "default");
        }
        let inner = self
            .server
            .service(cluster, Identity::administrator("test"));
        Client::new(self.writes.from_outside(inner), "default")
    }

    fn json(&self, cluster: &str) -> JsonClient {
        self.client(cluster).into()
    }

    /// Creates an object; a status is not written.
    pub async fn create(&self, cluster: &str, object: Value) -> Value {
        self.json(cluster).create(&object).await
    }

    /// Creates an object, unless the cluster refuses it.
    pub async fn try_create(&self, cluster: &str, object: Value) -> Result<Value, kube::Error> {
        self.json(cluster).try_create(&object).await
    }

    /// Creates an object, and returns the whole response with its headers.
    pub async fn respond_to_create(&self, cluster: &str, object: &Value) -> http::Response<Body> {
        self.json(cluster).respond_to_create(object).await
    }

    /// Returns an object, if it is there.
    pub async fn get(&self, cluster: &str, object: &Value) -> Option<Value> {
        self.json(cluster).get(object).await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, cluster: &str, object: &Value, patch: Value) -> Value {
        self.json(cluster).merge(object, &patch).await
    }

    /// Changes the status of an object by a merge patch.
    pub async fn merge_status(&self, cluster: &str, object: &Value, status: Value) -> Value {
        self.json(cluster).merge_status(object, &status).await
    }

    /// Deletes an object at once.
    pub async fn delete(&self, cluster: &str, object: &Value) {
        self.json(cluster).delete(object).await;
    }

    /// Returns all objects at a path.
    pub async fn list(&self, cluster: &str, path: &str) -> Vec<Value> {
        self.json(cluster).list(path).await
    }

    /// Sends any request with a body of that media type.
    pub async fn send(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        media_type: &str,
    ) -> Result<Value, kube::Error> {
        let body = body.unwrap_or(&Value::Null);
        let client = self.json(cluster);
        client.send_as(method, path, body, media_type).await
    }

    /// How long and how often to wait for something here.
    pub fn polling(&self) -> Polling {
        if self.is_real() {
            Polling::REAL
        } else {
            Polling::LEAPING
        }
    }

    /// Waits until something is true of an object, or of its absence, and returns it.
    pub async fn until(
        &self,
        cluster: &str,
        object: &Value,
        what: &str,
        holds: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let client = self.json(cluster);
        self.polling()
            .until(what, async || {
                let found = client.get(object).await;
                if holds(found.as_ref()) {
                    return Ok(found);
                }
                Err(LastState(found))
            })
            .await
    }

    /// Waits until an object on the hub has a condition, and returns the object.
    pub async fn until_condition(&self, object: &Value, name: &str, status: &str) -> Value {
        let has = |object: Option<&Value>| {
            object.is_some_and(|it| condition(&it["status"], name)["status"] == status)
        };
        let what = format!("{name} is {status}");
        self.until(HUB, object, &what, has)
            .await
            .unwrap_or_default()
    }

    /// Waits until an object on the hub has a condition of its present generation, and returns the object.
    pub async fn until_current(&self, object: &Value, name: &str, status: &str) -> Value {
        let has = |object: Option<&Value>| {
            object.is_some_and(|it| {
                let found = condition(&it["status"], name);
                found["status"] == status
                    && found["observedGeneration"] == it["metadata"]["generation"]
            })
        };
        let what = format!("{name} is {status} and current");
        self.until(HUB, object, &what, has)
            .await
            .unwrap_or_default()
    }

    /// Waits until an object is there, and returns it.
    pub async fn until_there(&self, cluster: &str, object: &Value) -> Value {
        let is_there = |object: Option<&Value>| object.is_some();
        let found = self.until(cluster, object, "it is there", is_there).await;
        found.unwrap_or_default()
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, cluster: &str, object: &Value) {
        let is_gone = |object: Option<&Value>| object.is_none();
        self.until(cluster, object, "it is gone", is_gone).await;
    }

    /// Lets time pass. Beside real servers this sets the clock forward, and returns when controllers have been idle
    /// for a while.
    pub async fn pass(&self, milliseconds: u64, is_idle: impl Fn() -> bool) {
        let span = Duration::from_millis(milliseconds);
        match &self.real {
            None => tokio::time::sleep(span).await,
            Some((_, forward)) => {
                forward.by(span);
                settle(is_idle).await;
            }
        }
    }
}

/// What an object was when it was last read; formatted only if a test fails.
struct LastState(Option<Value>);

impl std::fmt::Display for LastState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(object) => write!(formatter, "{object:#}"),
            None => formatter.write_str("not there"),
        }
    }
}

/// A service that sends requests by a client.
fn forwarding(
    client: Client,
) -> impl tower::Service<
    Request<Body>,
    Response = http::Response<Body>,
    Error = kube::Error,
    Future = impl Future<Output = Result<http::Response<Body>, kube::Error>> + Send,
> + Send
+ Clone {
    tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    })
}

async fn settle(is_idle: impl Fn() -> bool) {
    const STEP: Duration = Duration::from_millis(25);
    let mut quiet = Duration::ZERO;
    while quiet < QUIET {
        tokio::time::sleep(STEP).await;
        quiet = if is_idle() {
            quiet + STEP
        } else {
            Duration::ZERO
        };
    }
}
