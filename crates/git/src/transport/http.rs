//! Repositories at HTTP servers.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::smart::{MAX_REFERENCES, Service};
use super::{Connect, Credentials};
use crate::protocol::Advertisement;
use crate::web::{self, Host, MAX_REDIRECTS};
use crate::{Address, Error, Result};

/// A repository at an HTTP server.
pub(crate) struct HttpWire {
    host: Host,
    path: String,
    authorization: Option<HeaderValue>,
}

impl std::fmt::Debug for HttpWire {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpWire").finish_non_exhaustive()
    }
}

impl HttpWire {
    pub(crate) fn new(
        address: &Address,
        credentials: &Credentials,
        connect: &Arc<dyn Connect>,
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
        })
    }

    /// Asks what the server can do, and follows it if the repository is elsewhere.
    pub(super) async fn advertisement(&mut self, service: Service) -> Result<Advertisement> {
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

    /// Sends a request, and returns the answer, if it is not larger than the limit.
    pub(super) async fn post(
        &mut self,
        service: Service,
        body: Vec<u8>,
        limit: usize,
    ) -> Result<Bytes> {
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
