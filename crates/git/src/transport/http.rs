//! Repositories at HTTP servers: git's smart protocol.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::{Connect, Credentials};
use crate::object::Oid;
use crate::pack::Limits;
use crate::protocol::{self, Advertisement, Update, Want};
use crate::web::{self, Host, MAX_REDIRECTS};
use crate::{Address, Error, Result};

/// The largest list of references that is read.
const MAX_REFERENCES: usize = 32 * 1024 * 1024;
/// What an answer has besides the pack: lengths of packets, and messages.
const OVERHEAD: usize = 1024 * 1024;

/// What is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    Read,
    Write,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "git-upload-pack",
            Self::Write => "git-receive-pack",
        }
    }
}

/// A repository at an HTTP server.
pub(crate) struct HttpRemote {
    host: Host,
    path: String,
    authorization: Option<HeaderValue>,
    limits: Limits,
    /// What the server can do for readers, once it has been asked.
    reading: Option<Advertisement>,
}

impl std::fmt::Debug for HttpRemote {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpRemote").finish_non_exhaustive()
    }
}

impl HttpRemote {
    pub(crate) fn new(
        address: &Address,
        credentials: &Credentials,
        connect: &Arc<dyn Connect>,
        limits: Limits,
    ) -> Result<Self> {
        let Address::Http {
            is_secure,
            host,
            port,
            path,
        } = address
        else {
            return Err(Error::Address(format!(
                "{address} is not an address of HTTP"
            )));
        };
        Ok(Self {
            host: Host::new(
                connect,
                credentials.certificates.as_deref(),
                *is_secure,
                host,
                *port,
            ),
            path: path.trim_end_matches('/').to_owned(),
            authorization: authorization(credentials)?,
            limits,
            reading: None,
        })
    }

    pub(crate) fn has_filter(&self) -> bool {
        // Contents can be asked for by name in version 2 only.
        let reading = self.reading.as_ref();
        reading.is_some_and(|known| known.is_version_2 && known.has_filter())
    }

    pub(crate) async fn references(&mut self, names: &[String]) -> Result<Vec<(String, Oid)>> {
        // References move: version 0 says them at the beginning only.
        let is_known = self
            .reading
            .as_ref()
            .is_some_and(|known| known.is_version_2);
        if !is_known {
            self.reading = Some(self.advertisement(Service::Read).await?);
        }
        match &self.reading {
            Some(advertisement) if !advertisement.is_version_2 => {
                // A tag is followed to its commit by the name with ^{}.
                let find = |name: &String| {
                    let peeled = advertisement.reference(&format!("{name}^{{}}"));
                    let oid = peeled.or_else(|| advertisement.reference(name))?;
                    Some((name.clone(), oid))
                };
                Ok(names.iter().filter_map(find).collect())
            }
            _ => {
                let prefixes: Vec<&str> = names.iter().map(String::as_str).collect();
                let request = protocol::list_references(&prefixes);
                let answer = self.post(Service::Read, request, MAX_REFERENCES).await?;
                protocol::read_references(&answer)
            }
        }
    }

    pub(crate) async fn fetch(&mut self, want: &Want) -> Result<Vec<u8>> {
        if self.reading.is_none() {
            self.reading = Some(self.advertisement(Service::Read).await?);
        }
        let is_version_2 = self
            .reading
            .as_ref()
            .is_some_and(|known| known.is_version_2);
        let request = if is_version_2 {
            protocol::fetch(want)
        } else {
            protocol::fetch_version_0(want)
        };
        let answer = self
            .post(Service::Read, request, self.limits.packed + OVERHEAD)
            .await?;
        protocol::read_pack(&answer)
    }

    pub(crate) async fn push(
        &mut self,
        update: Update<'_>,
        pack: &[u8],
    ) -> Result<std::result::Result<(), String>> {
        let advertisement = self.advertisement(Service::Write).await?;
        let present = advertisement
            .reference(update.reference)
            .unwrap_or(Oid::ZERO);
        if present != update.old {
            return Ok(Err("the branch has moved".to_owned()));
        }
        let request = protocol::push(update, pack);
        let answer = self.post(Service::Write, request, OVERHEAD).await?;
        protocol::read_report(&answer)
    }

    /// Asks what the server can do, and follows it if the repository is elsewhere.
    async fn advertisement(&mut self, service: Service) -> Result<Advertisement> {
        for _ in 0..MAX_REDIRECTS {
            let target = format!("{}/info/refs?service={}", self.path, service.name());
            let request = self.request(Method::GET, &target, service, Bytes::new())?;
            let answer = self.send(request).await?;
            if answer.status().is_redirection() {
                self.follow(&answer, service)?;
                continue;
            }
            let content_type = answer.headers().get(header::CONTENT_TYPE);
            let is_smart = content_type.is_some_and(|value| {
                value
                    .as_bytes()
                    .ends_with(format!("{}-advertisement", service.name()).as_bytes())
            });
            let body = self.body(answer, MAX_REFERENCES).await?;
            if !is_smart {
                let message = format!(
                    "{} is not a repository: it does not speak git's smart HTTP protocol",
                    self.shown()
                );
                return Err(Error::NotFound(message));
            }
            return Advertisement::read(&body);
        }
        Err(self.unreachable("it is redirected too often"))
    }

    /// Goes where the server sends the client. Credentials are for the host that they were given for.
    fn follow(&mut self, answer: &Response<Incoming>, service: Service) -> Result<()> {
        let location = answer.headers().get(header::LOCATION);
        let location = location
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let base = location.strip_suffix(&format!("/info/refs?service={}", service.name()));
        let base = base.ok_or_else(|| {
            self.unreachable("it is redirected to something else than a repository")
        })?;
        if base.starts_with('/') {
            base.clone_into(&mut self.path);
        } else {
            let address: Address = base.parse()?;
            let Address::Http {
                is_secure,
                host,
                port,
                path,
            } = address
            else {
                return Err(self.unreachable("it is redirected to another protocol"));
            };
            if self.host.is_secure && !is_secure {
                return Err(self.unreachable("it is redirected from HTTPS to HTTP"));
            }
            if host != self.host.name {
                self.authorization = None;
            }
            self.host.move_to(is_secure, &host, port);
            self.path = path;
        }
        Ok(())
    }

    async fn post(&mut self, service: Service, body: Vec<u8>, limit: usize) -> Result<Bytes> {
        let target = format!("{}/{}", self.path, service.name());
        let request = self.request(Method::POST, &target, service, body.into())?;
        let answer = self.send(request).await?;
        self.body(answer, limit).await
    }

    fn request(
        &self,
        method: Method,
        target: &str,
        service: Service,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>> {
        let name = service.name();
        let mut builder = Request::builder()
            .uri(target)
            .header(header::HOST, self.host.authority())
            .header(header::USER_AGENT, "git/2.0 (bellwether)");
        if method == Method::POST {
            builder = builder
                .header(
                    header::CONTENT_TYPE,
                    format!("application/x-{name}-request"),
                )
                .header(header::ACCEPT, format!("application/x-{name}-result"));
        }
        if service == Service::Read {
            builder = builder.header("Git-Protocol", "version=2");
        }
        if let Some(authorization) = &self.authorization {
            builder = builder.header(header::AUTHORIZATION, authorization.clone());
        }
        builder
            .method(method)
            .body(Full::new(body))
            .map_err(|error| Error::Address(format!("{}: {error}", self.shown())))
    }

    /// Sends a request; what is no success is an error.
    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        let answer = self.host.send(request).await;
        let answer = answer.map_err(|problem| self.unreachable(&problem))?;
        match answer.status() {
            status if status.is_success() || status.is_redirection() => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Denied {
                address: self.shown(),
                problem: answer.status().to_string(),
            }),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound(format!(
                "there is no repository at {}",
                self.shown()
            ))),
            status => Err(self.unreachable(&format!("it answered {status}"))),
        }
    }

    async fn body(&self, answer: Response<Incoming>, limit: usize) -> Result<Bytes> {
        match web::body(answer, limit).await {
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(Error::TooLarge(format!(
                "{} sends more than {limit} bytes, which is more than what is read of one",
                self.shown()
            ))),
            Err(problem) => Err(self.unreachable(&problem)),
        }
    }

    fn shown(&self) -> String {
        let address = Address::Http {
            is_secure: self.host.is_secure,
            host: self.host.name.clone(),
            port: self.host.port,
            path: self.path.clone(),
        };
        address.to_string()
    }

    fn unreachable(&self, problem: &str) -> Error {
        Error::Unreachable {
            address: self.shown(),
            problem: problem.to_owned(),
        }
    }
}

fn authorization(credentials: &Credentials) -> Result<Option<HeaderValue>> {
    let text = if let Some(token) = &credentials.bearer {
        format!("Bearer {token}")
    } else if let Some(password) = &credentials.password {
        let user = credentials.username.as_deref().unwrap_or("git");
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    } else {
        return Ok(None);
    };
    let value = HeaderValue::from_str(&text);
    let mut value =
        value.map_err(|_| Error::Key("the token has characters that no token has".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}
