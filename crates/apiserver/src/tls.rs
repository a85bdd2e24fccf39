//! The TLS side of the server: its certificate, which is renewed in time, and whose client
//! certificates it believes.

use std::net::IpAddr;
use std::sync::Arc;

use bellwether_runtime::Clock;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::pki::Authority;

/// How old a certificate gets. It is good for a year; clients whose clocks are wrong, and servers
/// that run for years, should not notice.
const RENEWAL: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up TLS: {0}")]
pub struct TlsError(String);

impl TlsError {
    fn new(error: &dyn std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// How to serve under these names and addresses, with certificates of the authority.
pub fn tls_config(
    authority: Arc<Authority>,
    names: &[&str],
    addresses: &[IpAddr],
    clock: Clock,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let root = CertificateDer::from_pem_slice(authority.credentials().certificate.as_bytes())
        .map_err(|error| TlsError::new(&error))?;
    let mut roots = RootCertStore::empty();
    roots
        .add(root.clone())
        .map_err(|error| TlsError::new(&error))?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(|error| TlsError::new(&error))?;
    let issuer = CertificateIssuer {
        authority,
        root,
        provider: provider.clone(),
        names: names.iter().map(ToString::to_string).collect(),
        addresses: addresses.to_vec(),
    };
    let serving = Serving {
        current: Mutex::new(issuer.issue(clock.now())?),
        issuer,
        clock,
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::new(&error))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(serving));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Makes certificates for the server.
struct CertificateIssuer {
    authority: Arc<Authority>,
    root: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
    names: Vec<String>,
    addresses: Vec<IpAddr>,
}

/// A certificate, and when it was made.
#[derive(Clone)]
struct Current {
    key: Arc<CertifiedKey>,
    made: Timestamp,
}

impl CertificateIssuer {
    fn issue(&self, now: Timestamp) -> Result<Current, TlsError> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let made = self
            .authority
            .issue_server(&names, &self.addresses, now)
            .map_err(|error| TlsError::new(&error))?;
        let certificate = CertificateDer::from_pem_slice(made.certificate.as_bytes())
            .map_err(|error| TlsError::new(&error))?;
        let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes())
            .map_err(|error| TlsError::new(&error))?;
        let chain = vec![certificate, self.root.clone()];
        let key = CertifiedKey::from_der(chain, key, &self.provider)
            .map_err(|error| TlsError::new(&error))?;
        Ok(Current {
            key: Arc::new(key),
            made: now,
        })
    }
}

/// The certificate of the moment.
struct Serving {
    issuer: CertificateIssuer,
    current: Mutex<Current>,
    clock: Clock,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving")
            .field("names", &self.issuer.names)
            .finish_non_exhaustive()
    }
}

impl Serving {
    fn certificate(&self) -> Arc<CertifiedKey> {
        let now = self.clock.now();
        let mut current = self.current.lock();
        if now.duration_since(current.made) >= RENEWAL {
            match self.issuer.issue(now) {
                Ok(fresh) => *current = fresh,
                // The old one is good for months to come.
                Err(error) => tracing::error!(%error, "cannot renew the server's certificate"),
            }
        }
        current.key.clone()
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.certificate())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn the_certificate_of_the_server_is_renewed_in_time() {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let days = Arc::new(AtomicI64::new(0));
        let shown = days.clone();
        let clock = Clock::new(move || {
            start + SignedDuration::from_hours(24 * shown.load(Ordering::Relaxed))
        });
        let authority = Arc::new(Authority::generate(start).unwrap());
        let root =
            CertificateDer::from_pem_slice(authority.credentials().certificate.as_bytes()).unwrap();
        let issuer = CertificateIssuer {
            authority,
            root,
            provider: Arc::new(ring::default_provider()),
            names: vec!["localhost".into()],
            addresses: Vec::new(),
        };
        let serving = Serving {
            current: Mutex::new(issuer.issue(start).unwrap()),
            issuer,
            clock,
        };
        let first = serving.certificate().cert.clone();
        days.store(29, Ordering::Relaxed);
        assert_eq!(serving.certificate().cert, first);
        days.store(30, Ordering::Relaxed);
        let second = serving.certificate().cert.clone();
        assert_ne!(second, first);
        assert_eq!(second[1], first[1], "the authority stays");
        assert_eq!(serving.certificate().cert, second);
    }
}
