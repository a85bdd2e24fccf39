//! Requests as bytes over TLS: what no client library would send.

use std::sync::Arc;

use bellwether_apiserver::{Clock, Credentials, Identity};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::TestServer;

/// What a client shows.
#[derive(Clone, Default)]
pub struct Proof {
    pub certificate: Option<Credentials>,
    pub token: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl Proof {
    pub fn nothing() -> Self {
        Self::default()
    }

    pub fn token(token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into()),
            ..Self::default()
        }
    }

    pub fn certificate(credentials: Credentials) -> Self {
        Self {
            certificate: Some(credentials),
            ..Self::default()
        }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub head: String,
    pub body: Value,
}

impl Answer {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    #[track_caller]
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }
}

impl TestServer {
    /// A certificate for a user of a cluster.
    pub fn certify(&self, user: &str, groups: &[&str], cluster: &str) -> Proof {
        let groups = groups.iter().map(ToString::to_string);
        let identity = Identity::authenticated(user, groups);
        let issued = self
            .authority
            .issue_client(&identity, cluster, Clock::system().now());
        Proof::certificate(issued.unwrap())
    }

    /// An administrator of a cluster.
    pub fn admin(&self, cluster: &str) -> Proof {
        self.certify("root", &["system:masters"], cluster)
    }

    /// A connection, after the handshake.
    pub async fn connect(
        &self,
        certificate: Option<&Credentials>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let root = &self.authority.credentials().certificate;
        roots
            .add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap())
            .unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            Some(own) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
                )
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        let address = self.address.strip_prefix("https://").unwrap();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// Sends a request, the path as it is written here.
    pub async fn send(&self, proof: &Proof, method: &str, path: &str, body: Value) -> Answer {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.send_text(proof, method, path, &body).await
    }

    /// Sends a body that need not be JSON.
    pub async fn send_text(&self, proof: &Proof, method: &str, path: &str, body: &str) -> Answer {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut head = vec![format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nuser-agent: test/1\r\ncontent-length: {}\r\n",
            body.len()
        )];
        let has_kind = proof.headers.iter().any(|(name, _)| name == "content-type");
        if !has_kind {
            head.push(format!("content-type: {kind}\r\n"));
        }
        if let Some(token) = &proof.token {
            head.push(format!("authorization: Bearer {token}\r\n"));
        }
        for (name, value) in &proof.headers {
            head.push(format!("{name}: {value}\r\n"));
        }
        head.push("\r\n".to_owned());
        let mut stream = self.connect(proof.certificate.as_ref()).await.unwrap();
        let _ = stream.write_all(head.concat().as_bytes()).await;
        // The server may have answered and closed before all is sent.
        let _ = stream.write_all(body.as_bytes()).await;
        read_answer(&mut stream).await
    }
}

/// Reads to the end of the connection.
pub async fn read_answer(stream: &mut TlsStream<TcpStream>) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let code = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    Answer {
        code,
        head: head.to_owned(),
        body: serde_json::from_str(body).unwrap_or_else(|_| body.into()),
    }
}
