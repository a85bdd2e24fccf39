//! `/metrics`, `/healthz` and `/readyz` for processes that serve nothing else.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_runtime::{METRICS_CONTENT_TYPE, MetricsRegistry, spawn_vital};
use clap::Args;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

use crate::output::say;

/// How long a connection may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may last: a scraper that is slower is cut off.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(1);
/// The wait when there are too many connections.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Where a process can be asked how it is.
#[derive(Debug, Clone, Args)]
pub struct DiagnosticsArgs {
    /// Serve /metrics, /healthz and /readyz at this address over HTTP, such as 127.0.0.1:9090.
    #[arg(long, value_name = "ADDRESS", alias = "metrics")]
    metrics_listen: Option<SocketAddr>,
}

impl DiagnosticsArgs {
    /// Begins to serve, if an address was given.
    pub async fn serve(&self, metrics: &MetricsRegistry, health: &Health) -> anyhow::Result<()> {
        let Some(address) = self.metrics_listen else {
            return Ok(());
        };
        let bound = serve(address, metrics.clone(), health.clone()).await?;
        say(&format!("metrics are at http://{bound}/metrics"));
        Ok(())
    }
}

/// Whether a process is ready, and why. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<Result<Cow<'static, str>, Cow<'static, str>>>>);

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Err("starting".into()))))
    }
}

impl Health {
    /// The process is ready: it acts, or would take over at once.
    pub fn set_ready(&self, why: impl Into<Cow<'static, str>>) {
        *self.0.lock() = Ok(why.into());
    }

    /// The process is not ready.
    pub fn set_unready(&self, why: impl Into<Cow<'static, str>>) {
        *self.0.lock() = Err(why.into());
    }
}

/// Serves for as long as the process lives; returns the address.
async fn serve(
    address: SocketAddr,
    metrics: MetricsRegistry,
    health: Health,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--metrics-listen: cannot listen at {address}"))?;
    let bound = listener.local_addr()?;
    drop(spawn_vital("diagnostics", async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = connection(stream, metrics.clone(), health.clone());
                    tokio::spawn(tokio::time::timeout(CONNECTION_TIMEOUT, connection));
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            }
        }
    }));
    Ok(bound)
}

async fn connection(stream: TcpStream, metrics: MetricsRegistry, health: Health) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answer(request.method(), request.uri().path(), &metrics, &health);
        async { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection for diagnostics ended");
    }
}

fn answer(
    method: &Method,
    path: &str,
    metrics: &MetricsRegistry,
    health: &Health,
) -> Response<Full<Bytes>> {
    let (status, body) = match (method, path) {
        (&Method::GET, "/metrics") => (StatusCode::OK, metrics.render()),
        (&Method::GET, "/healthz" | "/livez") => (StatusCode::OK, "ok\n".to_owned()),
        (&Method::GET, "/readyz") => match &*health.0.lock() {
            Ok(why) => (StatusCode::OK, format!("ok: {why}\n")),
            Err(why) => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not ready: {why}\n"),
            ),
        },
        (&Method::GET, _) => (
            StatusCode::NOT_FOUND,
            "not found: there are /metrics, /healthz, /livez and /readyz\n".to_owned(),
        ),
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET is allowed\n".to_owned(),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = match path {
        "/metrics" => METRICS_CONTENT_TYPE,
        _ => "text/plain; charset=utf-8",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn scrapers_and_probes_get_their_answers() {
        let (metrics, health) = (MetricsRegistry::default(), Health::default());
        let address = serve(([127, 0, 0, 1], 0).into(), metrics, health.clone());
        let address = address.await.unwrap();
        let check = async |method: &str, path: &str, status: &str, body: &str| {
            let answer = ask(address, method, path).await;
            let head = format!("HTTP/1.1 {status}");
            assert!(
                answer.starts_with(&head) && answer.ends_with(body),
                "{answer}"
            );
        };
        check("GET", "/metrics", "200", "# EOF\n").await;
        check("GET", "/healthz", "200", "ok\n").await;
        check("GET", "/readyz", "503", "not ready: starting\n").await;
        health.set_ready("leading");
        check("GET", "/readyz", "200", "ok: leading\n").await;
        check("GET", "/secrets", "404", "/readyz\n").await;
        check("POST", "/metrics", "405", "only GET is allowed\n").await;
    }
}
