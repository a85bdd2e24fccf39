//! HTTP to one host after the other, to where connections are allowed.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::transport::{Connect, Stream};

/// How often a server may send the client elsewhere.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// A server, and the connection to it that is open.
pub(crate) struct Host {
    pub(crate) is_secure: bool,
    pub(crate) name: String,
    pub(crate) port: u16,
    /// Further certificates that the server may be signed by.
    certificates: Option<String>,
    connect: Arc<dyn Connect>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Host {
    pub(crate) fn new(
        connect: &Arc<dyn Connect>,
        certificates: Option<&str>,
        is_secure: bool,
        name: &str,
        port: u16,
    ) -> Self {
        Self {
            is_secure,
            name: name.to_owned(),
            port,
            certificates: certificates.map(str::to_owned),
            connect: Arc::clone(connect),
            connection: None,
        }
    }

    /// Goes to another server.
    pub(crate) fn move_to(&mut self, is_secure: bool, name: &str, port: u16) {
        (self.is_secure, self.port) = (is_secure, port);
        name.clone_into(&mut self.name);
        self.connection = None;
    }

    /// What the server is called in requests.
    pub(crate) fn authority(&self) -> String {
        let usual = if self.is_secure { 443 } else { 80 };
        if self.port == usual {
            self.name.clone()
        } else {
            format!("{}:{}", self.name, self.port)
        }
    }

    /// Sends a request over the connection, or over a new one if there is none.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, String> {
        let is_ready = match self.connection.as_mut() {
            Some(connection) => connection.ready().await.is_ok(),
            None => false,
        };
        if !is_ready {
            self.connection = Some(self.open().await?);
        }
        match self.connection.as_mut() {
            Some(connection) => connection
                .send_request(request)
                .await
                .map_err(|error| error.to_string()),
            None => Err("the connection was closed".to_owned()),
        }
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = self.connect.connect(&self.name, self.port).await?;
        if !self.is_secure {
            return handshake(stream).await;
        }
        let name = self.name.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::new(tls(self.certificates.as_deref())?));
        let stream = connector.connect(name, stream).await;
        handshake(stream.map_err(|error| error.to_string())?).await
    }
}

async fn handshake(stream: impl Stream) -> Result<SendRequest<Full<Bytes>>, String> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| error.to_string())?;
    // It ends when the sender is dropped.
    tokio::spawn(connection);
    Ok(sender)
}

fn tls(certificates: Option<&str>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // A certificate that cannot be read is one that is not trusted.
        let _ = roots.add(certificate);
    }
    if let Some(pem) = certificates {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let added = certificate.map_err(|error| error.to_string());
            let added = added.and_then(|der| roots.add(der).map_err(|error| error.to_string()));
            added.map_err(|error| format!("ca.crt cannot be read: {error}"))?;
        }
    }
    Ok(ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Reads an answer up to a limit. None if it is larger.
pub(crate) async fn body(
    answer: Response<Incoming>,
    limit: usize,
) -> Result<Option<Bytes>, String> {
    match Limited::new(answer.into_body(), limit).collect().await {
        Ok(body) => Ok(Some(body.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// What is fetched from an HTTP server.
#[derive(Debug, Clone)]
pub struct Get<'a> {
    /// The address.
    pub url: &'a str,
    /// Headers of the request. `Authorization` is not sent to another host.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Further certificates that the server may be signed by, as PEM.
    pub certificates: Option<&'a str>,
    /// The largest answer that is read.
    pub limit: usize,
}

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Got {
    /// The status code.
    pub status: StatusCode,
    /// Headers of the answer.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Fetches something, and follows the server if it is elsewhere.
pub async fn get(connect: &Arc<dyn Connect>, get: Get<'_>) -> Result<Got, String> {
    let mut uri: Uri = get
        .url
        .parse()
        .map_err(|error| format!("{}: {error}", get.url))?;
    let mut headers = get.headers;
    for _ in 0..MAX_REDIRECTS {
        let (is_secure, name, port) =
            server(&uri).ok_or_else(|| format!("{uri} is not an address of HTTP"))?;
        let mut host = Host::new(connect, get.certificates, is_secure, &name, port);
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::get(target)
            .header(header::HOST, host.authority())
            .header(header::USER_AGENT, "bellwether");
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::default())
            .map_err(|error| format!("{uri}: {error}"))?;
        let answer = host
            .send(request)
            .await
            .map_err(|error| format!("{uri}: {error}"))?;
        if answer.status().is_redirection() {
            let next = redirected(&uri, answer.headers())?;
            if server(&next).is_none_or(|(_, next, _)| next != name) {
                headers.retain(|(name, _)| *name != header::AUTHORIZATION);
            }
            uri = next;
            continue;
        }
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = body(answer, get.limit)
            .await
            .map_err(|error| format!("{uri}: {error}"))?;
        let body = body.ok_or_else(|| format!("{uri} is larger than {} bytes", get.limit))?;
        return Ok(Got {
            status,
            headers,
            body,
        });
    }
    Err(format!("{} is redirected too often", get.url))
}

/// The server of an address: whether it is secure, its name and its port.
fn server(uri: &Uri) -> Option<(bool, String, u16)> {
    let is_secure = match uri.scheme_str()? {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    Some((is_secure, uri.host()?.to_owned(), port))
}

/// Where a server sends the client.
fn redirected(uri: &Uri, headers: &HeaderMap) -> Result<Uri, String> {
    let location = headers
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| format!("{uri} is redirected to nowhere"))?;
    let wrong = |error| format!("{uri} is redirected to {location:?}: {error}");
    let next: Uri = if location.starts_with('/') && !location.starts_with("//") {
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let scheme = uri.scheme_str().unwrap_or("https");
        format!("{scheme}://{authority}{location}")
            .parse()
            .map_err(wrong)?
    } else {
        location.parse().map_err(wrong)?
    };
    if uri.scheme_str() == Some("https") && next.scheme_str() != Some("https") {
        return Err(format!("{uri} is redirected from HTTPS to {next}"));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, location: &str, to: Option<&str>) {
        let headers = [(header::LOCATION, HeaderValue::from_str(location).unwrap())];
        let next = redirected(&from.parse().unwrap(), &headers.into_iter().collect());
        assert_eq!(next.ok().map(|uri| uri.to_string()).as_deref(), to);
    }

    #[test]
    fn redirects_never_lose_encryption() {
        check("https://a/x", "/y?z", Some("https://a/y?z"));
        check("http://a:8080/x", "/y", Some("http://a:8080/y"));
        check("http://a/x", "https://b/y", Some("https://b/y"));
        check("https://a/x", "http://a/y", None);
        check("https://a/x", "", None);
    }
}
