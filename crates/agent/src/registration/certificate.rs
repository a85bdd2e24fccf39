//! Keys and certificates as an agent sees them.

use bellwether_api::cluster::agent_identity;
use bellwether_api::cluster::names::registration::CLUSTERS_GROUP;
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::AgentError;
use super::keyring::Credentials;

/// What is left of a certificate's life when it is renewed; up to a quarter more for some.
const REMAINING: f64 = 0.2;

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) user: String,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Certificate {
    /// Reads a certificate in PEM.
    pub(super) fn read(pem: &str) -> Result<Self, AgentError> {
        let wrong = || AgentError::Certificate("the certificate cannot be read".to_owned());
        let (_, block) = parse_x509_pem(pem.as_bytes()).map_err(|_| wrong())?;
        let (_, certificate) = X509Certificate::from_der(&block.contents).map_err(|_| wrong())?;
        let user = certificate.subject().iter_common_name().next();
        let user = user.and_then(|it| it.as_str().ok()).ok_or_else(wrong)?;
        let validity = certificate.validity();
        let time = |seconds| Timestamp::from_second(seconds).map_err(|_| wrong());
        Ok(Self {
            user: user.to_owned(),
            not_before: time(validity.not_before.timestamp())?,
            not_after: time(validity.not_after.timestamp())?,
        })
    }

    /// Whether it is for an agent of that cluster.
    pub(super) fn is_of(&self, cluster: &str) -> bool {
        let prefix = agent_identity::user(cluster, "");
        let agent = self.user.strip_prefix(&prefix);
        agent.is_some_and(|agent| !agent.is_empty() && !agent.contains(':'))
    }

    /// When to ask for the next one.
    pub(super) fn renew_at(&self, jitter: f64) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before).as_secs_f64();
        let rest = SignedDuration::try_from_secs_f64(life * REMAINING * (1.0 + jitter));
        let rest = rest.unwrap_or(SignedDuration::ZERO);
        self.not_after.checked_sub(rest).unwrap_or(self.not_after)
    }
}

/// Until when a certificate in PEM is valid; `None` if it cannot be read.
pub fn certificate_expiry(pem: &str) -> Option<Timestamp> {
    Certificate::read(pem).ok().map(|it| it.not_after)
}

/// A key, and a request for a certificate for it.
pub(super) struct KeyRequest {
    key: KeyPair,
    /// The request in PEM.
    pub(super) request: String,
}

impl KeyRequest {
    /// A new key for an agent of a cluster.
    pub(super) fn generate(cluster: &str, user: &str) -> Result<Self, AgentError> {
        let wrong = |error: rcgen::Error| AgentError::Certificate(format!("no key: {error}"));
        let key = KeyPair::generate().map_err(wrong)?;
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, agent_identity::group(cluster));
        // The library holds one value a type; by its number it is another type to it.
        name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), CLUSTERS_GROUP);
        name.push(DnType::CommonName, user);
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        let request = params.serialize_request(&key).map_err(wrong)?;
        let request = request.pem().map_err(wrong)?;
        Ok(Self { key, request })
    }

    /// The private key in PEM.
    pub(super) fn private_key(&self) -> String {
        self.key.serialize_pem()
    }

    /// What the certificate that came back is good for.
    pub(super) fn with_certificate(&self, certificate: String) -> Credentials {
        Credentials {
            certificate,
            key: self.private_key(),
        }
    }
}
