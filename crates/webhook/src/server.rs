//! The listener: reviews in, answers out, over TLS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::admission::Admission;
use bellwether_runtime::{Clock, MetricsRegistry};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use kube::Client;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::answer::{Task, answer};
use crate::certificate::Serving;
use crate::configuration::Location;
use crate::facts::{KnownFacts, fetch};

/// The largest review, in bytes: two objects of the largest size, and what is around them.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Connections at once; others wait.
const MOST_CONNECTIONS: usize = 256;
/// How long a handshake, and how long the head of a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take: the API server does not wait longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often rules may come up with new questions about one review.
const MOST_ROUNDS: usize = 8;
/// The wait when a connection cannot be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// What a webhook server is given.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the API server finds it.
    pub location: Location,
    /// Namespace and name of the Secret with its authority.
    pub secret: (String, String),
    /// Certificates that callers have to be signed by, in PEM; anybody may call without.
    pub client_authorities: Option<String>,
    /// The rules.
    pub admissions: Vec<Arc<dyn Admission>>,
}

/// Answers reviews by the rules of a hub. Cheap to clone.
#[derive(Clone)]
pub struct WebhookServer {
    client: Client,
    clock: Clock,
    pub(crate) options: Arc<Options>,
    pub(crate) serving: Arc<Serving>,
    metrics: Metrics,
}

impl std::fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookServer")
            .field("location", &self.options.location)
            .finish_non_exhaustive()
    }
}

/// Why the server cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up TLS: {0}")]
pub struct TlsError(String);

#[derive(Debug, Clone, Default)]
struct Metrics {
    reviews: Family<ByOutcome, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    admission: &'static str,
    operation: &'static str,
    outcome: &'static str,
}

impl WebhookServer {
    /// A server that asks the hub by a client which may create SubjectAccessReviews.
    pub fn new(client: Client, clock: Clock, options: Options, registry: &MetricsRegistry) -> Self {
        let metrics = Metrics::default();
        registry.register(|registry| {
            registry.register(
                "bellwether_webhook_reviews",
                "Admission reviews by rules, what they were asked, and how they answered",
                metrics.reviews.clone(),
            );
        });
        Self {
            client,
            clock,
            options: Arc::new(options),
            serving: Arc::default(),
            metrics,
        }
    }

    /// How connections are made safe.
    pub fn tls_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let wrong = |error: &dyn std::fmt::Display| TlsError(error.to_string());
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?;
        let builder = match &self.options.client_authorities {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                use tokio_rustls::rustls::pki_types::CertificateDer;
                use tokio_rustls::rustls::pki_types::pem::PemObject as _;
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
                    let certificate = certificate.map_err(|error| wrong(&error))?;
                    roots.add(certificate).map_err(|error| wrong(&error))?;
                }
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = verifier.build().map_err(|error| wrong(&error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_cert_resolver(self.serving.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Serves until it is dropped. Boxed, so that it is compiled with this crate, and not with each program
    /// that serves.
    pub fn serve(self, listener: TcpListener) -> BoxFuture<'static, Result<(), TlsError>> {
        self.accept(listener).boxed()
    }

    async fn accept(self, listener: TcpListener) -> Result<(), TlsError> {
        let acceptor = TlsAcceptor::from(self.tls_config()?);
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            // It is never closed.
            let place = Arc::clone(&places).acquire_owned().await;
            match listener.accept().await {
                Ok((stream, caller)) => {
                    let (server, acceptor) = (self.clone(), acceptor.clone());
                    tokio::spawn(async move {
                        let _place = place;
                        server.serve_connection(stream, caller, acceptor).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn serve_connection(self, stream: TcpStream, caller: SocketAddr, acceptor: TlsAcceptor) {
        let stream = match tokio::time::timeout(REQUEST_TIMEOUT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%caller, %error, "TLS handshake failed"),
            Err(_) => return,
        };
        let service = service_fn(move |request| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT);
        if let Err(error) = builder
            .serve_connection(TokioIo::new(stream), service)
            .await
        {
            tracing::debug!(%caller, %error, "connection ended");
        }
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        match (&parts.method, self.task(parts.uri.path())) {
            (&Method::GET, None) if parts.uri.path() == "/healthz" => text(StatusCode::OK, "ok\n"),
            (_, None) => text(StatusCode::NOT_FOUND, "not found\n"),
            (&Method::POST, Some((task, admission))) => {
                let answered = self.review(task, &*admission, body);
                match tokio::time::timeout(ANSWER_TIMEOUT, answered).await {
                    Ok(response) => response,
                    Err(_) => text(
                        StatusCode::GATEWAY_TIMEOUT,
                        "the hub did not answer in time\n",
                    ),
                }
            }
            _ => text(StatusCode::METHOD_NOT_ALLOWED, "only POST is allowed\n"),
        }
    }

    /// What a path asks for: `/validate/NAME` or `/mutate/NAME`.
    fn task(&self, path: &str) -> Option<(Task, Arc<dyn Admission>)> {
        let (verb, name) = path.strip_prefix('/')?.split_once('/')?;
        let task = match verb {
            "mutate" => Task::Mutate,
            "validate" => Task::Validate,
            _ => return None,
        };
        let mut admissions = self.options.admissions.iter();
        let admission = admissions.find(|it| it.name() == name)?;
        Some((task, Arc::clone(admission)))
    }

    async fn review(
        &self,
        task: Task,
        admission: &dyn Admission,
        body: Incoming,
    ) -> Response<Full<Bytes>> {
        let Ok(bytes) = Limited::new(body, MOST_BYTES).collect().await else {
            return text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large\n");
        };
        let Ok(body) = serde_json::from_slice::<Value>(&bytes.to_bytes()) else {
            return text(StatusCode::BAD_REQUEST, "the body is not JSON\n");
        };
        let answered = self.decide(task, admission, &body).await;
        let outcome = match &answered {
            Ok(answer) if answer["response"]["allowed"] == true => "allowed",
            Ok(_) => "denied",
            Err(_) => "failed",
        };
        let operation = body["request"]["operation"].as_str();
        let operation = operation.and_then(bellwether_api::admission::Operation::parse);
        let label = ByOutcome {
            admission: admission.name(),
            operation: operation.map_or("", bellwether_api::admission::Operation::as_str),
            outcome,
        };
        self.metrics.reviews.get_or_create(&label).inc();
        match answered {
            Ok(answer) => {
                let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err((status, why)) => {
                tracing::warn!(
                    admission = admission.name(),
                    error = why,
                    "cannot answer a review"
                );
                text(status, &why)
            }
        }
    }

    /// Asks the rules until they have no more questions.
    async fn decide(
        &self,
        task: Task,
        admission: &dyn Admission,
        body: &Value,
    ) -> Result<Value, (StatusCode, String)> {
        let mut known = KnownFacts::default();
        let user = &body["request"]["userInfo"];
        for _ in 0..MOST_ROUNDS {
            let found = answer(admission, task, body, &known, self.clock.now())
                .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
            let open = known.open();
            if open.is_empty() {
                return Ok(found);
            }
            for question in open {
                let reply = fetch(&self.client, user, &question)
                    .await
                    .map_err(|error| {
                        let why = format!("cannot ask the hub: {error}");
                        (StatusCode::INTERNAL_SERVER_ERROR, why)
                    })?;
                known.insert(question, reply);
            }
        }
        let why = "the rules keep asking".to_owned();
        Err((StatusCode::INTERNAL_SERVER_ERROR, why))
    }
}

fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_owned())));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
