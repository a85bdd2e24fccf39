//! Requests over HTTP, to where the hub allows.
//!
//! The address that is connected to is the one that was checked: a name that resolves to something else later
//! leads nowhere else.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_workflow::duration;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

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

/// Sends requests. An answer that names another address is returned as it is: nothing is sent there.
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
        let mut roots = RootCertStore::empty();
        for certificate in rustls_native_certs::load_native_certs().certs {
            // A certificate that cannot be read is one that is not trusted.
            let _ = roots.add(certificate);
        }
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            policy: policy.clone(),
            tls: Arc::new(tls),
            limits: Mutex::default(),
        }
    }

    /// Sends the request that parameters describe, with further headers.
    pub async fn send(
        &self,
        params: &Value,
        headers: &[(String, String)],
    ) -> Result<Value, String> {
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
        let verb = match method {
            "GET" => "Get",
            "POST" => "Post",
            "PUT" => "Put",
            "DELETE" => "Delete",
            other => other,
        };
        match tokio::time::timeout(timeout, self.exchange(method, url, request, headers)).await {
            Ok(result) => result.map_err(|problem| format!("{verb} {url:?}: {problem}")),
            Err(_) => Err(format!(
                "{verb} {url:?}: context deadline exceeded (no answer within {timeout:?})"
            )),
        }
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

    async fn exchange(
        &self,
        method: &str,
        url: &str,
        params: &Value,
        headers: &[(String, String)],
    ) -> Result<Value, String> {
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("invalid URL: {error}"))?;
        let host = uri.host().ok_or("the URL names no host")?.to_owned();
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("unsupported protocol scheme".to_owned()),
        };
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let request = build(method, &uri, params, headers)?;
        let stream = self.connect(&host, port).await?;
        if is_secure {
            let stream = self.encrypt(&host, stream).await?;
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
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| error.to_string())
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

/// The request that parameters describe.
fn build(
    method: &str,
    uri: &Uri,
    params: &Value,
    headers: &[(String, String)],
) -> Result<Request<Full<Bytes>>, String> {
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let body = params["body"].as_str().unwrap_or_default().to_owned();
    let mut builder = Request::builder()
        .method(method)
        .uri(target)
        .header("Host", authority);
    let given = params["header"].as_object();
    if given.is_none_or(Map::is_empty) {
        builder = builder.header("Content-Type", "application/json");
    }
    for (name, value) in given.into_iter().flatten() {
        builder = builder.header(name, value.as_str().unwrap_or_default());
    }
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder = builder.header("User-Agent", "bellwether");
    builder
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())
}

/// Sends a request over a connection, and reads the answer.
async fn converse<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Value, String>
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
    let mut headers: Map<String, Value> = Map::new();
    for (name, value) in answer.headers() {
        let value = json!(String::from_utf8_lossy(value.as_bytes()));
        let name = canonical(name.as_str());
        if let Value::Array(values) = headers.entry(name).or_insert_with(|| json!([])) {
            values.push(value);
        }
    }
    let collected = Limited::new(answer.into_body(), LARGEST).collect().await;
    connection.abort();
    let body = collected.map_err(|error| error.to_string())?.to_bytes();
    Ok(json!({
        "body": String::from_utf8_lossy(&body),
        "header": headers,
        "statusCode": status,
    }))
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
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], host: &str, address: &str, allowed: bool) {
        let policy = HttpPolicy {
            allowed: patterns.iter().map(|text| text.parse().unwrap()).collect(),
        };
        assert_eq!(
            policy.allows(host, address.parse().unwrap()),
            allowed,
            "{patterns:?} {host} {address}"
        );
    }

    #[test]
    fn this_machine_has_to_be_allowed_by_name() {
        check(&["*"], "example.org", "192.0.2.1", true);
        check(&["*"], "localhost", "127.0.0.1", false);
        check(&["*"], "trick.example.org", "127.0.0.1", false);
        check(&["*"], "trick.example.org", "::ffff:127.0.0.1", false);
        check(&["*", "loopback"], "localhost", "127.0.0.1", true);
        check(&["*.example.org"], "hooks.example.org", "192.0.2.1", true);
        check(&["*.example.org"], "example.com", "192.0.2.1", false);
        check(
            &["hooks.example.org"],
            "HOOKS.example.org",
            "192.0.2.1",
            true,
        );
    }

    #[test]
    fn metadata_of_clouds_cannot_be_allowed() {
        for address in [
            "169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "0.0.0.0",
            "100.100.100.200",
            "168.63.129.16",
            "64:ff9b::a9fe:a9fe",
        ] {
            check(&["*", "loopback", "metadata"], "metadata", address, false);
        }
        check(&["*"], "example.org", "64:ff9b::c000:201", true);
    }

    #[tokio::test]
    async fn an_answer_that_names_another_address_is_not_followed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1024];
            let _ = stream.read(&mut buffer).await;
            let answer = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let client = HttpClient::new(&HttpPolicy {
            allowed: vec![HostPattern::Loopback],
        });
        let params = json!({"method": "GET", "url": format!("http://{address}/")});
        let answer = client.send(&params, &[]).await.unwrap();
        assert_eq!(answer["statusCode"], 302);
        let refused = json!({"url": "http://169.254.169.254/"});
        let refused = client.send(&refused, &[]).await.unwrap_err();
        assert!(refused.contains("--workflow-http-allow"), "{refused}");
    }
}
