//! Requests as they go over the wire, without the wire: method, path and JSON in, status and JSON out.

use bellwether_apiserver::{ApiServer, Body, Caller, Clock, HUB, Identity};
use bellwether_store::{Options, Store};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

pub const MERGE: &str = "application/merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A server with one cluster, asked by an administrator.
pub struct Http {
    pub server: ApiServer,
}

impl Http {
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Self {
        let server = ApiServer::new(Store::in_memory(options), Clock::system());
        server.add_cluster(HUB).await.unwrap();
        Self { server }
    }

    /// Sends a request and returns status code and body.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Value,
    ) -> (u16, Value) {
        let response = self.respond(method, path, content_type, body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn respond(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Value,
    ) -> http::Response<Body> {
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        self.respond_to_bytes(method, path, content_type, bytes)
            .await
    }

    /// Reads, in the representation that `accept` names.
    pub async fn get_as(&self, path: &str, accept: &str) -> http::Response<Body> {
        let request = Request::builder()
            .uri(path)
            .header("accept", accept)
            .extension(caller())
            .body(Full::new(Bytes::new()))
            .unwrap();
        self.server.handle(request).await
    }

    /// Sends a body as it is.
    pub async fn respond_to_bytes(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        bytes: Bytes,
    ) -> http::Response<Body> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "test/1")
            .extension(caller())
            .body(Full::new(bytes))
            .unwrap();
        self.server.handle(request).await
    }

    /// Sends JSON and expects success.
    #[track_caller]
    pub fn ok(&self, method: &str, path: &str, body: Value) -> impl Future<Output = Value> {
        self.done(method, path, "application/json", body)
    }

    /// Sends a patch and expects success.
    #[track_caller]
    pub fn patch(&self, kind: &str, path: &str, body: Value) -> impl Future<Output = Value> {
        self.done("PATCH", path, kind, body)
    }

    #[track_caller]
    fn done(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Value,
    ) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let (code, answer) = self.send(method, path, kind, body).await;
            assert!(code < 300, "{place}: {method} {path}: {code} {answer}");
            answer
        }
    }

    /// Reads a watch to its end.
    pub async fn watch(&self, path: &str) -> Vec<(String, Value)> {
        let response = self.respond("GET", path, "", Value::Null).await;
        assert_eq!(response.status(), 200, "{path}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let event: Value = serde_json::from_slice(line).unwrap();
                (
                    event["type"].as_str().unwrap().to_owned(),
                    event["object"].clone(),
                )
            })
            .collect()
    }
}

fn caller() -> Caller {
    Caller {
        identity: Some(Identity::administrator("test")),
        only_cluster: Some(HUB.into()),
        expires: None,
        address: None,
        in_process: true,
    }
}
