//! A webhook that answers as its path says, and remembers what it was asked.

use std::convert::Infallible;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_apiserver::{Authority, Clock, tls_config};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A webhook on a port of its own.
pub struct Hook {
    authority: Arc<Authority>,
    pub address: String,
    asked: Asked,
}

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

impl Hook {
    pub async fn start() -> Self {
        let clock = Clock::system();
        let authority = Arc::new(Authority::generate(clock.now()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bound = listener.local_addr().unwrap();
        let names = ["hook.default.svc"];
        let config = tls_config(authority.clone(), &names, &[bound.ip()], clock).unwrap();
        let asked = Asked::default();
        let remembered = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, asked) = (TlsAcceptor::from(config.clone()), remembered.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| answer(request, asked.clone()));
                    // A real API server speaks HTTP/2 to this machine.
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            authority,
            address: format!("https://{bound}"),
            asked,
        }
    }

    /// What was asked since the last time, with the paths.
    pub fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.asked.lock())
    }

    /// A `clientConfig` for a path.
    pub fn at(&self, path: &str) -> Value {
        let authority = &self.authority.credentials().certificate;
        json!({"url": format!("{}{path}", self.address), "caBundle": BASE64.encode(authority)})
    }

    /// A webhook for ConfigMaps whose answers a path decides; `change` replaces fields.
    pub fn webhook(&self, name: &str, path: &str, change: &Value) -> Value {
        let mut webhook = json!({
            "name": name, "clientConfig": self.at(path), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
            }],
            "objectSelector": {"matchExpressions": [{"key": "hooked", "operator": "Exists"}]},
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            webhook[key] = value.clone();
        }
        webhook
    }
}

/// A configuration of webhooks.
pub fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": webhooks,
    })
}

async fn answer(
    request: Request<Incoming>,
    asked: Asked,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let uid = review["request"]["uid"].clone();
    asked.lock().push((path.clone(), review.clone()));
    let mut response = json!({"uid": uid, "allowed": true});
    match path.as_str() {
        "/deny" => {
            response["allowed"] = false.into();
            response["status"] = json!({
                "message": "no sheep today", "code": 403, "reason": "Forbidden",
                "details": {"causes": [{"message": "rain", "field": "spec.weather"}]},
            });
        }
        "/deny-silently" => response["allowed"] = false.into(),
        "/label" => patch(
            &mut response,
            &json!([
                {"op": "add", "path": "/metadata/labels/mutated", "value": "yes"},
            ]),
        ),
        // Says how many labels there are: whether it came before or after others.
        "/count" => {
            let labels = review["request"]["object"]["metadata"]["labels"].as_object();
            let count = labels.map_or(0, serde_json::Map::len).to_string();
            patch(
                &mut response,
                &json!([
                    {"op": "add", "path": "/metadata/annotations", "value": {"count": count}},
                ]),
            );
        }
        "/break" => patch(
            &mut response,
            &json!([
                {"op": "add", "path": "/data", "value": {"a": 5}},
            ]),
        ),
        "/replicas" => patch(
            &mut response,
            &json!([{"op": "add", "path": "/spec/replicas", "value": 4}]),
        ),
        "/warn" => response["warnings"] = json!(["mind the gap"]),
        "/lie" => response["uid"] = "another".into(),
        "/hang" => std::future::pending().await,
        "/fail" => {
            let mut response = Response::new(Full::new(Bytes::from("oops")));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return Ok(response);
        }
        _ => {}
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    let mut response = Response::new(Full::new(Bytes::from(review.to_string())));
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    Ok(response)
}

fn patch(response: &mut Value, patch: &Value) {
    response["patchType"] = "JSONPatch".into();
    response["patch"] = BASE64.encode(patch.to_string()).into();
}
