//! A server in this process, with clients that come over TLS or without a socket.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses its own part"
)]

pub mod contract;
pub mod hook;
pub mod http;
pub mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use bellwether_apiserver::{
    ApiServer, Authority, Clock, HUB, Identity, ServerOptions, StoredObject, serve, tls_config,
};
use bellwether_store::{Options, Store};
use bellwether_testkit::Polling;
use jiff::SignedDuration;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, NamedAuthInfo};
use tokio::net::TcpListener;

/// A server with the clusters `hub` and `cluster1`.
pub struct TestServer {
    pub server: ApiServer,
    pub authority: Arc<Authority>,
    pub address: String,
    /// How far the server's clock is ahead of the machine's, in seconds.
    ahead: Arc<AtomicI64>,
}

impl TestServer {
    /// Starts over a store in memory and listens on a free port.
    pub async fn start() -> Self {
        Self::start_on(Store::in_memory(Options::default())).await
    }

    pub async fn start_on(store: Store<StoredObject>) -> Self {
        Self::start_with(store, ServerOptions::default()).await
    }

    pub async fn start_with(store: Store<StoredObject>, options: ServerOptions) -> Self {
        let ahead = Arc::new(AtomicI64::new(0));
        let (machine, shown) = (Clock::system(), ahead.clone());
        let clock = Clock::new(move || {
            machine.now() + SignedDuration::from_secs(shown.load(Ordering::Relaxed))
        });
        let authority = Arc::new(Authority::generate(clock.now()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bound = listener.local_addr().unwrap();
        let addresses = [bound.ip()];
        let config = tls_config(
            authority.clone(),
            &["localhost"],
            &addresses,
            Clock::system(),
        )
        .unwrap();
        let options = ServerOptions {
            authority: Some(authority.clone()),
            ..options
        };
        let server = ApiServer::with_options(store, clock, options);
        for name in [HUB, "cluster1"] {
            server.add_cluster(name).await.unwrap();
        }
        tokio::spawn(serve(
            server.clone(),
            listener,
            config,
            Box::pin(std::future::pending()),
        ));
        Self {
            server,
            authority,
            address: format!("https://{bound}"),
            ahead,
        }
    }

    /// Lets time pass for the server.
    pub fn pass(&self, time: SignedDuration) {
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    /// What the server's clock shows.
    pub fn now(&self) -> jiff::Timestamp {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Clock::system().now() + SignedDuration::from_secs(ahead)
    }

    /// A client in this process with all rights.
    pub fn local(&self, cluster: &str) -> kube::Client {
        self.server.client(cluster, Identity::administrator("test"))
    }

    /// A client over TLS, with a certificate that is good for `certified`.
    pub async fn remote(
        &self,
        cluster: &str,
        identity: &Identity,
        certified: &str,
    ) -> kube::Client {
        let user = self
            .authority
            .issue_client(identity, certified, Clock::system().now())
            .unwrap();
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {
                "server": format!("{}/clusters/{cluster}", self.address),
                "certificate-authority-data": encode(&self.authority.credentials().certificate),
            }}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "users": [],
        });
        let mut kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
        let auth = AuthInfo {
            client_certificate_data: Some(encode(&user.certificate)),
            client_key_data: Some(encode(&user.key).into()),
            ..AuthInfo::default()
        };
        kubeconfig.auth_infos = vec![NamedAuthInfo {
            name: "x".into(),
            auth_info: Some(auth),
            ..NamedAuthInfo::default()
        }];
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .unwrap();
        kube::Client::try_from(config).unwrap()
    }

    /// An administrator over TLS.
    pub async fn remote_admin(&self, cluster: &str) -> kube::Client {
        self.remote(cluster, &Identity::administrator("test"), cluster)
            .await
    }
}

/// Reads until `found` finds something, or fails after a while. The server wakes nobody here, so
/// this asks again.
pub async fn eventually<T, F>(what: &str, mut found: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let polling = Polling {
        attempts: 4000,
        interval: std::time::Duration::from_millis(5),
    };
    let ask = async || found().await.ok_or("nothing");
    polling.until(what, ask).await
}

/// Shares a server among tasks.
pub type Shared = Arc<TestServer>;
