//! Calling a webhook: where it is, whom it is trusted by, how long it may take.
//!
//! Nothing is sent along that proves who we are: a webhook learns of a request and of nothing else. Each
//! webhook has connections of its own, and only so many calls under way, so that one that hangs holds up
//! nobody else, and one that calls itself by way of this server comes to an end.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellwether_admission::webhook::{Endpoint, Webhook};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::host::stored_in;
use crate::cluster::Cluster;

/// Calls of one webhook at once; others wait, within their time.
const MOST_CALLS: usize = 64;

/// Connections of one webhook that are kept for the next call.
const MOST_IDLE: usize = 4;

/// The largest answer that is read, in bytes: a patch may replace an object several times over.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// What an answer that is no answer is quoted up to, in characters.
const MOST_QUOTED: usize = 2_048;

type Connection = SendRequest<Full<Bytes>>;

/// A webhook that can be called.
pub(super) struct Callee {
    pub(super) webhook: Webhook,
    calls: Semaphore,
    idle: Mutex<Vec<Connection>>,
    /// Whom it is trusted by; made at the first call.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// Where a webhook listens, and under which name.
struct Place {
    host: String,
    port: u16,
    /// The name that its certificate has to have.
    name: String,
}

impl Callee {
    pub(super) fn new(webhook: Webhook) -> Self {
        Self {
            webhook,
            calls: Semaphore::new(MOST_CALLS),
            idle: Mutex::default(),
            tls: OnceLock::new(),
        }
    }

    /// Sends a review and returns the answer; the error says what went wrong, as Go's client does.
    pub(super) async fn call(&self, cluster: &Cluster, review: &Value) -> Result<Value, String> {
        let url = with_timeout(&self.webhook.endpoint.url(), self.webhook.timeout);
        let sent = async {
            let _permit = self.calls.acquire().await;
            self.send(cluster, &url, review).await
        };
        let answered = tokio::time::timeout(self.webhook.timeout, sent).await;
        let answered =
            answered.unwrap_or_else(|_| Err(Fault::at(&url, "context deadline exceeded")));
        answered.map_err(|fault| fault.0)
    }

    async fn send(&self, cluster: &Cluster, url: &str, review: &Value) -> Result<Value, Fault> {
        let uri: Uri = url.parse().map_err(|error| Fault::at(url, &error))?;
        let body = Bytes::from(review.to_string());
        let idle = self.take_idle();
        let reused = idle.is_some();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self
                .connect(cluster, &uri)
                .await
                .map_err(|why| Fault::at(url, &why))?,
        };
        let mut response = connection.send_request(request(&uri, body.clone())).await;
        // The other side may have closed a connection that was kept, before it saw the request.
        if reused
            && response
                .as_ref()
                .is_err_and(|error| error.is_canceled() || error.is_closed())
        {
            connection = self
                .connect(cluster, &uri)
                .await
                .map_err(|why| Fault::at(url, &why))?;
            response = connection.send_request(request(&uri, body)).await;
        }
        let response = response.map_err(|error| Fault::at(url, &chain(&error)))?;
        let status = response.status();
        let bytes = Limited::new(response.into_body(), MOST_BYTES)
            .collect()
            .await
            .map_err(|error| Fault::at(url, &error))?
            .to_bytes();
        if connection.is_ready() {
            self.keep(connection);
        }
        read(status, &bytes).map_err(Fault)
    }

    /// A connection that was kept and still is one.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        std::iter::from_fn(|| idle.pop())
            .find(|connection| connection.is_ready() && !connection.is_closed())
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(connection);
        }
    }

    async fn connect(&self, cluster: &Cluster, uri: &Uri) -> Result<Connection, String> {
        let place = self.place(cluster, uri)?;
        let address = format!("{}:{}", place.host, place.port);
        let bare = place.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((bare, place.port))
            .await
            .map_err(|error| format!("dial tcp {address}: {}", dial_error(&error)))?;
        // A request is written in one go.
        let _ = stream.set_nodelay(true);
        let config = self.tls.get_or_init(|| trust(&self.webhook.authorities));
        let config = config.as_ref().map_err(Clone::clone)?;
        let name = place.name.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(Arc::clone(config))
            .connect(name, stream)
            .await
            .map_err(|error| format!("tls: failed to verify certificate: {error}"))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (connection, driver) = handshake.map_err(|error| error.to_string())?;
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Where the webhook is: Services are looked up in the cluster, since nobody routes to their
    /// addresses here.
    fn place(&self, cluster: &Cluster, uri: &Uri) -> Result<Place, String> {
        let host = uri.host().unwrap_or_default().to_owned();
        match &self.webhook.endpoint {
            Endpoint::Url(_) => Ok(Place {
                name: host.clone(),
                host,
                port: uri.port_u16().unwrap_or(443),
            }),
            Endpoint::Service {
                namespace,
                name,
                port,
                ..
            } => {
                let (address, port) = resolve(cluster, namespace, name, *port)?;
                Ok(Place {
                    host: address,
                    port,
                    name: format!("{name}.{namespace}.svc"),
                })
            }
        }
    }
}

/// Why a call failed.
struct Fault(String);

impl Fault {
    /// In the words of Go's client.
    fn at(url: &str, why: &(impl Display + ?Sized)) -> Self {
        Self(format!("Post {url:?}: {why}"))
    }
}

fn request(uri: &Uri, body: Bytes) -> Request<Full<Bytes>> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = http::Method::POST;
    // A path of a valid address is one.
    *request.uri_mut() = path.parse().unwrap_or_default();
    let headers = request.headers_mut();
    let json = header::HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json.clone());
    headers.insert(header::ACCEPT, json);
    headers.insert(
        header::USER_AGENT,
        header::HeaderValue::from_static("kube-apiserver-admission"),
    );
    if let Ok(host) = header::HeaderValue::from_str(host) {
        headers.insert(header::HOST, host);
    }
    request
}

/// The address with the time that the webhook has, as Kubernetes tells it.
fn with_timeout(url: &str, timeout: Duration) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    let slash = match url.split_once("://") {
        Some((_, rest)) if !rest.contains('/') => "/",
        _ => "",
    };
    format!("{url}{slash}{separator}timeout={}s", timeout.as_secs())
}

/// Reads an answer; the error is worded as Kubernetes' client words it.
fn read(status: StatusCode, bytes: &[u8]) -> Result<Value, String> {
    let parsed: Result<Value, _> = serde_json::from_slice(bytes);
    if status.is_success() {
        return parsed
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"));
    }
    if let Ok(answer) = &parsed
        && answer["kind"] == "Status"
        && let Some(message) = answer["message"].as_str()
    {
        return Err(message.to_owned());
    }
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.trim().chars().take(MOST_QUOTED).collect();
    Err(match status.as_u16() {
        404 => "the server could not find the requested resource".to_owned(),
        500.. => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    })
}

fn dial_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    }
}

/// An error with what it comes from.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Trusts the certificates of a webhook, or those of the system if it names none.
fn trust(authorities: &[u8]) -> Result<Arc<ClientConfig>, String> {
    use rustls_platform_verifier::BuilderVerifierExt as _;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    if authorities.is_empty() {
        let builder = builder.with_platform_verifier();
        let builder = builder.map_err(|error| error.to_string())?;
        return Ok(Arc::new(builder.with_no_client_auth()));
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let config = builder.with_root_certificates(roots);
    Ok(Arc::new(config.with_no_client_auth()))
}

/// An address and a port behind a Service.
fn resolve(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<(String, u16), String> {
    let service = stored_in(cluster, "core/services", namespace, name)
        .ok_or_else(|| format!("service {name:?} not found"))?;
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let mut ports = ports.filter(|it| it["port"].as_u64() == Some(port.into()));
    let found = ports
        .next()
        .ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    if let Some(external) = service["spec"]["externalName"].as_str() {
        return Ok((external.to_owned(), port));
    }
    let port_name = found["name"].as_str().unwrap_or_default();
    let endpoints = stored_in(cluster, "core/endpoints", namespace, name);
    let subsets = endpoints.as_ref().map_or(&Value::Null, |it| &it["subsets"]);
    for subset in subsets.as_array().into_iter().flatten() {
        let address = subset["addresses"][0]["ip"].as_str();
        let ports = subset["ports"].as_array().into_iter().flatten();
        let mut ports = ports.filter(|it| it["name"].as_str().unwrap_or_default() == port_name);
        let port = ports.next().and_then(|it| it["port"].as_u64());
        let port = port.and_then(|port| u16::try_from(port).ok());
        if let (Some(address), Some(port)) = (address, port) {
            return Ok((address.to_owned(), port));
        }
    }
    Err(format!("no endpoints available for service {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_told_how_long_it_has() {
        for (url, expected) in [
            ("https://a.b:1/c", "https://a.b:1/c?timeout=5s"),
            ("https://a.b", "https://a.b/?timeout=5s"),
            ("https://a.b/c?d=e", "https://a.b/c?d=e&timeout=5s"),
        ] {
            assert_eq!(with_timeout(url, Duration::from_secs(5)), expected);
        }
    }

    #[test]
    fn an_answer_without_a_review_is_an_error() {
        let check = |status: u16, body: &str, expected: Result<Value, &str>| {
            let status = StatusCode::from_u16(status).unwrap();
            let found = read(status, body.as_bytes());
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check(200, "{\"a\":1}", Ok(serde_json::json!({"a": 1})));
        check(
            404,
            "x",
            Err("the server could not find the requested resource"),
        );
        let broken = "an error on the server (\"oops\") has prevented the request from succeeding";
        check(500, "oops\n", Err(broken));
        let refused = "{\"kind\":\"Status\",\"message\":\"no\"}";
        check(403, refused, Err("no"));
    }
}
