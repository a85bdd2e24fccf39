//! Clients in this process: a `kube::Client` that calls the server without a socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bellwether_runtime::ClusterHandle;
use http::{HeaderValue, Request, Response};

use crate::access::Identity;
use crate::authenticate::Caller;
use crate::outgoing::Body;
use crate::pki::{Credentials, PkiError};
use crate::server::ApiServer;

/// One cluster of a server as a `tower` service, on behalf of one identity.
#[derive(Debug, Clone)]
pub struct ClusterService {
    server: ApiServer,
    caller: Caller,
    authorization: Option<HeaderValue>,
}

impl ApiServer {
    /// A client of one cluster. It passes the same checks as one that comes over TLS.
    ///
    /// Must be called within a tokio runtime, because a client has a task of its own.
    pub fn client(&self, cluster: &str, identity: Identity) -> kube::Client {
        kube::Client::new(self.service(cluster, identity), "default")
    }

    /// What such a client sends its requests to, for those who want to stand in between.
    pub fn service(&self, cluster: &str, identity: Identity) -> ClusterService {
        let caller = Caller {
            identity: Some(identity),
            ..caller(cluster)
        };
        ClusterService::new(self, caller)
    }

    /// A client of one cluster that shows a token with every request.
    pub fn client_with_token(&self, cluster: &str, token: &str) -> kube::Client {
        let mut service = ClusterService::new(self, caller(cluster));
        service.authorization = format!("Bearer {token}").try_into().ok();
        kube::Client::new(service, "default")
    }

    /// What a client of one cluster sends its requests to that holds a certificate of this server's authority, and its
    /// key. It is let in for as long as it would be over TLS.
    pub fn service_with_certificate(
        &self,
        cluster: &str,
        credentials: &Credentials,
    ) -> Result<ClusterService, PkiError> {
        let certified = self.identify(credentials)?;
        let caller = Caller {
            identity: Some(certified.identity),
            // One of another cluster proves nothing here.
            only_cluster: Some(cluster.to_owned()).filter(|it| *it == certified.cluster),
            expires: Some(certified.expires),
            ..caller(cluster)
        };
        Ok(ClusterService::new(self, caller))
    }
}

/// Nobody in particular, within one cluster.
fn caller(cluster: &str) -> Caller {
    Caller {
        only_cluster: Some(cluster.to_owned()),
        in_process: true,
        ..Caller::default()
    }
}

impl ClusterService {
    fn new(server: &ApiServer, caller: Caller) -> Self {
        Self {
            server: server.clone(),
            caller,
            authorization: None,
        }
    }

    /// The cluster for those who seldom need a client of it, on behalf of the same identity.
    pub fn reach(self) -> ClusterHandle {
        ClusterHandle::new(move || kube::Client::new(self.clone(), "default"))
    }
}

impl tower::Service<Request<kube::client::Body>> for ClusterService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        let server = self.server.clone();
        request.extensions_mut().insert(self.caller.clone());
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(http::header::AUTHORIZATION, authorization.clone());
        }
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
