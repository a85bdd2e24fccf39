//! Clients in this process: a `kube::Client` that calls the server without a socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};

use crate::access::Identity;
use crate::answer::Body;
use crate::authenticate::Caller;
use crate::server::ApiServer;

/// One cluster of a server as a `tower` service, on behalf of one identity.
#[derive(Debug, Clone)]
pub struct ClusterService {
    server: ApiServer,
    caller: Caller,
}

impl ApiServer {
    /// A client of one cluster. It passes the same checks as one that comes over TLS.
    ///
    /// Must be called within a tokio runtime, because a client has a task of its own.
    pub fn client(&self, cluster: &str, identity: Identity) -> kube::Client {
        let caller = Caller {
            identity: Some(identity),
            only_cluster: Some(cluster.to_owned()),
            expires: None,
            in_process: true,
        };
        kube::Client::new(
            ClusterService {
                server: self.clone(),
                caller,
            },
            "default",
        )
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
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
