//! Requests over HTTP, to where the hub allows.
//!
//! The address that is connected to is the one that was checked: a name that resolves to something else later
//! leads nowhere else. Answers that name another address are followed, and that address is checked as well.

mod redirect;
pub(super) mod tls;

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_workflow::duration;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use redirect::Hop;

/// How long an answer is waited for if the action does not say.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The longest wait that an action may ask for.
const LONGEST: Duration = Duration::from_mins(5);
/// The largest answer that is read.
const LARGEST: usize = 1024 * 1024;
/// No more rate limits than this are remembered.
const MOST_LIMITS: usize = 10_000;

/// Where actions may send requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPolicy {
    /// What is allowed.
    pub allowed: Vec<HostPattern>,
}

impl Default for HttpPolicy {
    fn default() -> Self {
        Self {
            allowed: vec![HostPattern::Any],
        }
    }
}

/// Hosts that requests may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// All but this machine itself.
    Any,
    /// This machine itself.
    Loopback,
    /// One host.
    Host(String),
    /// All hosts of a domain.
    Domain(String),
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "*" => Ok(Self::Any),
            "loopback" => Ok(Self::Loopback),
            "" => Err("a host is empty".to_owned()),
            text => match text.strip_prefix("*.") {
                Some(domain) => Ok(Self::Domain(format!(".{}", domain.to_ascii_lowercase()))),
                None => Ok(Self::Host(text.to_ascii_lowercase())),
            },
        }
    }
}

impl HttpPolicy {
    /// Whether a request to a host at an address may be sent.
    pub fn allows(&self, host: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if is_forbidden(address) {
            return false;
        }
        let host = host.to_ascii_lowercase();
        self.allowed.iter().any(|pattern| match pattern {
            HostPattern::Any => !address.is_loopback(),
            HostPattern::Loopback => address.is_loopback(),
            HostPattern::Host(allowed) => *allowed == host,
            HostPattern::Domain(domain) => {
                host.ends_with(domain.as_str()) && !address.is_loopback()
            }
        })
    }
}

/// Where clouds serve their metadata, besides the addresses of the link.
const METADATA: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Addresses that are never right: those of this link, where clouds serve their metadata, and those that are no hosts.
fn is_forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_link_local()
                || METADATA.contains(&address)
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_broadcast()
        }
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                // Where a cloud serves its metadata.
                || address.segments() == [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254]
                || translated(address).is_some_and(|address| is_forbidden(address.into()))
        }
    }
}

/// The address that a network translates one to (NAT64).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let (prefix, rest) = octets.split_at(12);
    let is_translated = prefix == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
    let rest: [u8; 4] = rest.try_into().ok()?;
    is_translated.then(|| rest.into())
}

/// What is sent with a request besides what its parameters say.
#[derive(Debug, Default)]
pub struct Extras {
    /// Headers with what Secrets hold; they are sent to the first host only.
    pub secret_headers: Vec<(String, String)>,
    /// Other headers.
    pub headers: Vec<(String, String)>,
    /// How connections are encrypted, if not as usual.
    pub tls: Option<Arc<ClientConfig>>,
}

/// Sends requests.
pub struct HttpClient {
    policy: HttpPolicy,
    tls: Arc<ClientConfig>,
    /// When the requests of a rate limit were sent.
    limits: Mutex<HashMap<String, Vec<Instant>>>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client that sends requests where a policy allows.
    pub fn new(policy: &HttpPolicy) -> Self {
        let tls = ClientConfig::builder()
            .with_root_certificates(tls::native_roots())
            .with_no_client_auth();
        Self {
            policy: policy.clone(),
            tls: Arc::new(tls),
            limits: Mutex::default(),
        }
    }

    /// Sends the request that parameters describe, with what else goes with it.
    pub async fn send(&self, params: &Value, extras: &Extras) -> Result<Value, String> {
        let method = params["method"].as_str().unwrap_or("GET");
        let url = params["url"].as_str().unwrap_or_default();
        let request = &params["request"];
        self.count(method, url, &request["ratelimiter"])?;
        let timeout = match request["timeout"].as_str() {
            None | Some("") => TIMEOUT,
            Some(text) => {
                let span = duration::parse(text).map_err(|error| error.to_string())?;
                span.unsigned_abs().min(LONGEST)
            }
        };
        let first = Hop::first(method, url).map_err(|problem| format!("{url:?}: {problem}"))?;
        let verb = first.verb();
        match tokio::time::timeout(timeout, self.follow(first, request, extras)).await {
            Ok(result) => result,
            Err(_) => Err(format!(
                "{verb} {url:?}: context deadline exceeded (no answer within {timeout:?})"
            )),
        }
    }

    /// Sends a request, and on to where answers send it.
    async fn follow(&self, first: Hop, params: &Value, extras: &Extras) -> Result<Value, String> {
        let mut hop = first;
        for _ in 0..redirect::MOST_REQUESTS {
            let place = |problem: String| format!("{} {:?}: {problem}", hop.verb(), hop.url);
            let answer = self.exchange(&hop, params, extras).await.map_err(place)?;
            let status = answer["statusCode"].as_u64().unwrap_or_default();
            let location = answer["header"]["Location"][0].as_str();
            let next = hop.next(u16::try_from(status).unwrap_or_default(), location);
            match next.map_err(place)? {
                Some(next) => hop = next,
                None => return Ok(answer),
            }
        }
        Err(format!(
            "{} {:?}: {}",
            hop.verb(),
            hop.url,
            redirect::TOO_MANY
        ))
    }

    /// Counts a request against its rate limit.
    fn count(&self, method: &str, url: &str, limit: &Value) -> Result<(), String> {
        let (Some(most), Some(period)) = (limit["limit"].as_u64(), limit["period"].as_str()) else {
            return Ok(());
        };
        let period = duration::parse(period)
            .map_err(|error| error.to_string())?
            .unsigned_abs();
        let key = format!("{method} {}", url.split('?').next().unwrap_or(url));
        let now = Instant::now();
        let mut limits = self.limits.lock();
        if limits.len() >= MOST_LIMITS {
            limits.clear();
        }
        let sent = limits.entry(key).or_default();
        sent.retain(|time| now.duration_since(*time) < period);
        if u64::try_from(sent.len()).unwrap_or(u64::MAX) >= most {
            return Err("request exceeds the rate limiter".to_owned());
        }
        sent.push(now);
        Ok(())
    }

    async fn exchange(&self, hop: &Hop, params: &Value, extras: &Extras) -> Result<Value, String> {
        let host = hop.uri.host().ok_or("the URL names no host")?.to_owned();
        let is_secure = match hop.uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("unsupported protocol scheme".to_owned()),
        };
        let port = hop.uri.port_u16();
        let port = port.unwrap_or(if is_secure { 443 } else { 80 });
        let request = build(hop, params, extras)?;
        let stream = self.connect(&host, port).await?;
        if is_secure {
            let tls = extras.tls.as_ref().unwrap_or(&self.tls);
            let stream = encrypt(tls, &host, stream).await?;
            converse(stream, request).await
        } else {
            converse(stream, request).await
        }
    }

    /// Encrypts a connection to a host.
    pub(super) async fn encrypt(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        encrypt(&self.tls, host, stream).await
    }

    /// Connects to a host, if that is allowed.
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        self.policy.connect(host, port).await
    }
}

impl HttpPolicy {
    /// Connects to a host, if that is allowed. The address that is connected to is the one that was checked.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let name = host.trim_matches(['[', ']']);
        let addresses = tokio::net::lookup_host((name, port))
            .await
            .map_err(|error| error.to_string())?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let allowed = addresses
            .iter()
            .filter(|address| self.allows(name, address.ip()));
        let allowed: Vec<SocketAddr> = allowed.copied().collect();
        if allowed.is_empty() {
            return Err(format!(
                "the hub does not allow requests to {name} (see --workflow-http-allow)"
            ));
        }
        TcpStream::connect(&*allowed).await.map_err(|error| {
            let first = addresses
                .first()
                .map_or_else(|| name.to_owned(), ToString::to_string);
            format!("dial tcp {first}: connect: {error}")
        })
    }
}

async fn encrypt(
    tls: &Arc<ClientConfig>,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = host.trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    stream.await.map_err(|error| error.to_string())
}

/// What is sent as a body.
type Body = BoxBody<Bytes, Infallible>;

/// The request that parameters describe, to one of the hosts that it is sent to.
fn build(hop: &Hop, params: &Value, extras: &Extras) -> Result<Request<Body>, String> {
    let target = hop.uri.path_and_query();
    let authority = hop.uri.authority().map(ToString::to_string);
    let mut builder = Request::builder()
        .method(hop.method.clone())
        .uri(target.map_or("/", |target| target.as_str()))
        .header("Host", authority.unwrap_or_default());
    let given = params["header"].as_object();
    if given.is_none_or(Map::is_empty) {
        builder = builder.header("Content-Type", "application/json");
    }
    for (name, value) in given.into_iter().flatten() {
        if hop.sends(name) {
            builder = builder.header(name, value.as_str().unwrap_or_default());
        }
    }
    let secret = extras.secret_headers.iter().filter(|_| hop.is_trusted);
    for (name, value) in secret.chain(&extras.headers) {
        builder = builder.header(name, value);
    }
    builder = builder.header("User-Agent", "bellwether");
    let text = params["body"].as_str().filter(|_| hop.has_body);
    let body = Full::new(Bytes::from(text.unwrap_or_default().to_owned()));
    let trailers = trailers(params)?;
    let body = if trailers.is_empty() || !hop.has_body {
        body.boxed()
    } else {
        let names: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
        builder = builder
            .header("Trailer", names.join(", "))
            .header("Transfer-Encoding", "chunked");
        body.with_trailers(std::future::ready(Some(Ok(trailers))))
            .boxed()
    };
    builder.body(body).map_err(|error| error.to_string())
}

/// The headers that are sent after a body.
fn trailers(params: &Value) -> Result<HeaderMap, String> {
    let mut trailers = HeaderMap::new();
    for (name, value) in params["trailer"].as_object().into_iter().flatten() {
        let value = HeaderValue::from_str(value.as_str().unwrap_or_default());
        let name = HeaderName::from_bytes(name.as_bytes());
        let wrong = |error: String| format!("trailer: {error}");
        trailers.insert(
            name.map_err(|error| wrong(error.to_string()))?,
            value.map_err(|error| wrong(error.to_string()))?,
        );
    }
    Ok(trailers)
}

/// Sends a request over a connection, and reads the answer.
async fn converse<S>(stream: S, request: Request<Body>) -> Result<Value, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let text = |error: hyper::Error| {
        if error.is_incomplete_message() {
            "EOF".to_owned()
        } else {
            error.to_string()
        }
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(text)?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(text);
    let answer = match answer {
        Ok(answer) => answer,
        Err(problem) => {
            connection.abort();
            return Err(problem);
        }
    };
    let status = answer.status().as_u16();
    let headers = listed(answer.headers());
    let collected = Limited::new(answer.into_body(), LARGEST).collect().await;
    connection.abort();
    let collected = collected.map_err(|error| error.to_string())?;
    let trailer = collected.trailers().map(listed).unwrap_or_default();
    let body = collected.to_bytes();
    Ok(json!({
        "body": String::from_utf8_lossy(&body),
        "header": headers,
        "trailer": trailer,
        "statusCode": status,
    }))
}

/// Headers by name, each with all of its values.
fn listed(headers: &HeaderMap) -> Map<String, Value> {
    let mut listed: Map<String, Value> = Map::new();
    for (name, value) in headers {
        let value = json!(String::from_utf8_lossy(value.as_bytes()));
        let name = canonical(name.as_str());
        if let Value::Array(values) = listed.entry(name).or_insert_with(|| json!([])) {
            values.push(value);
        }
    }
    listed
}

/// A header name with capital letters at the beginning of its words.
fn canonical(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests;
