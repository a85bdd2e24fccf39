//! Certificates: one authority for all clusters of a server, and what it has signed.
//!
//! A client certificate names the cluster that it is for in a URI that only the authority sets, so
//! that an identity of one cluster proves nothing in another.

use std::net::IpAddr;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::access::Identity;

/// How long certificates are valid. The authority's own has to outlive everything it signs.
const AUTHORITY_DAYS: i64 = 3_650;
const CERTIFICATE_DAYS: i64 = 365;

const CLUSTER_URI: &str = "bellwether:cluster:";
/// Groups stand in URIs, because the subjects that we can write hold one organization only.
const GROUP_URI: &str = "bellwether:group:";

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}: {reason}")]
pub struct PkiError {
    attempt: &'static str,
    reason: String,
}

impl PkiError {
    fn new(attempt: &'static str, reason: &dyn std::fmt::Display) -> Self {
        Self {
            attempt,
            reason: reason.to_string(),
        }
    }
}

/// A certificate and its private key.
#[derive(Clone)]
pub struct Credentials {
    /// Certificate in PEM.
    pub certificate: String,
    /// Private key in PEM.
    pub key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// The authority that signs for all clusters of a server.
#[derive(Debug)]
pub struct Authority {
    credentials: Credentials,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority, valid from `now`.
    pub fn generate(now: jiff::Timestamp) -> Result<Self, PkiError> {
        const ATTEMPT: &str = "create a certificate authority";
        let wrong = |error: rcgen::Error| PkiError::new(ATTEMPT, &error);
        let mut params = parameters("bellwether-ca", now, AUTHORITY_DAYS);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.self_signed(&key).map_err(wrong)?.pem();
        Self::load(Credentials {
            certificate,
            key: key.serialize_pem(),
        })
    }

    /// The authority that was generated before.
    pub fn load(credentials: Credentials) -> Result<Self, PkiError> {
        const ATTEMPT: &str = "read the certificate authority";
        let wrong = |error: rcgen::Error| PkiError::new(ATTEMPT, &error);
        let key = KeyPair::from_pem(&credentials.key).map_err(wrong)?;
        let issuer = Issuer::from_ca_cert_pem(&credentials.certificate, key).map_err(wrong)?;
        Ok(Self {
            credentials,
            issuer,
        })
    }

    /// Certificate and key, to be kept where only the owner reads them.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A certificate for a server that is reached under these names and addresses.
    pub fn issue_server(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
        now: jiff::Timestamp,
    ) -> Result<Credentials, PkiError> {
        let mut params = parameters("bellwether", now, CERTIFICATE_DAYS);
        for name in names {
            params.subject_alt_names.push(SanType::DnsName(ia5(name)?));
        }
        params
            .subject_alt_names
            .extend(addresses.iter().copied().map(SanType::IpAddress));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    /// A certificate that proves an identity to one cluster.
    pub fn issue_client(
        &self,
        identity: &Identity,
        cluster: &str,
        now: jiff::Timestamp,
    ) -> Result<Credentials, PkiError> {
        let mut params = parameters(&identity.user, now, CERTIFICATE_DAYS);
        params.subject_alt_names = vec![SanType::URI(ia5(&format!("{CLUSTER_URI}{cluster}"))?)];
        for group in identity
            .groups
            .iter()
            .filter(|group| *group != "system:authenticated")
        {
            params
                .subject_alt_names
                .push(SanType::URI(ia5(&format!("{GROUP_URI}{group}"))?));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Credentials, PkiError> {
        const ATTEMPT: &str = "sign a certificate";
        let wrong = |error: rcgen::Error| PkiError::new(ATTEMPT, &error);
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?.pem();
        Ok(Credentials {
            certificate,
            key: key.serialize_pem(),
        })
    }
}

fn ia5(text: &str) -> Result<Ia5String, PkiError> {
    Ia5String::try_from(text.to_owned())
        .map_err(|error| PkiError::new("name a certificate", &error))
}

fn parameters(common_name: &str, now: jiff::Timestamp, days: i64) -> CertificateParams {
    // Clocks of client and server differ by a little; a certificate from the future is refused.
    const SLACK_SECONDS: i64 = 300;
    let at = |seconds: i64| {
        time::OffsetDateTime::from_unix_timestamp(seconds)
            .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.not_before = at(now.as_second() - SLACK_SECONDS);
    params.not_after = at(now.as_second() + days * 86_400);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params
}

/// Whom a verified client certificate names, and for which cluster.
pub(crate) fn identify(certificate: &[u8]) -> Option<(Identity, String)> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let user = certificate
        .subject()
        .iter_common_name()
        .next()?
        .as_str()
        .ok()?
        .to_owned();
    let names = certificate.subject_alternative_name().ok()??;
    let uris = || {
        names
            .value
            .general_names
            .iter()
            .filter_map(|name| match name {
                GeneralName::URI(uri) => Some(*uri),
                _ => None,
            })
    };
    let cluster = uris().find_map(|uri| uri.strip_prefix(CLUSTER_URI))?;
    let groups = uris()
        .filter_map(|uri| uri.strip_prefix(GROUP_URI))
        .map(str::to_owned);
    Some((Identity::authenticated(user, groups), cluster.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_names_user_groups_and_cluster() {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let authority = Authority::generate(now).unwrap();
        let authority = Authority::load(authority.credentials().clone()).unwrap();
        let ann = Identity::authenticated("ann", ["a".to_owned(), "b".to_owned()]);
        let issued = authority.issue_client(&ann, "cluster1", now).unwrap();
        let pem = x509_parser::pem::parse_x509_pem(issued.certificate.as_bytes())
            .unwrap()
            .1;
        let (identity, cluster) = identify(&pem.contents).unwrap();
        assert_eq!((identity, cluster.as_str()), (ann, "cluster1"));
    }

    #[test]
    fn a_server_certificate_identifies_nobody() {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let authority = Authority::generate(now).unwrap();
        let issued = authority.issue_server(&["localhost"], &[], now).unwrap();
        let pem = x509_parser::pem::parse_x509_pem(issued.certificate.as_bytes())
            .unwrap()
            .1;
        assert!(identify(&pem.contents).is_none());
    }
}
