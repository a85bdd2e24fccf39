//! Certificates: one authority for all clusters of a server, and what it has signed.
//!
//! A client certificate names the cluster that it is for in a URI that only the authority sets, so
//! that an identity of one cluster proves nothing in another.

mod client;
mod request;

use std::net::IpAddr;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SanType, SigningKey as _,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::access::{AUTHENTICATED, Identity};
pub(crate) use client::{Certified, identify};
use client::{ClientCertificate, assemble};
pub(crate) use request::CertificateRequest;

/// How long certificates are valid. The authority's own has to outlive everything it signs.
const AUTHORITY_DAYS: i64 = 3_650;
const CERTIFICATE_DAYS: i64 = 365;
/// Clocks of client and server differ by a little; a certificate from the future is refused.
const SLACK_SECONDS: i64 = 300;

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}: {reason}")]
pub struct PkiError {
    attempt: &'static str,
    reason: String,
}

impl PkiError {
    pub(crate) fn new(attempt: &'static str, reason: &dyn std::fmt::Display) -> Self {
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
pub struct Authority {
    credentials: Credentials,
    issuer: Issuer<'static, KeyPair>,
    own: OwnCertificate,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority(…)")
    }
}

/// What is needed of the authority's own certificate to sign others.
struct OwnCertificate {
    /// Its subject, as it stands there.
    name: Vec<u8>,
    key_id: Vec<u8>,
    not_after: i64,
}

impl OwnCertificate {
    fn read(pem: &str) -> Option<Self> {
        let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
        let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
        let mut extensions = certificate.iter_extensions();
        let key_id = extensions.find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        Some(Self {
            name: certificate.subject().as_raw().to_vec(),
            key_id: key_id?,
            not_after: certificate.validity().not_after.timestamp(),
        })
    }
}

/// Who is to be certified, for what, and for how long.
#[derive(Debug, Clone, Copy)]
struct Grant<'a> {
    user: &'a str,
    groups: &'a [String],
    cluster: &'a str,
    seconds: i64,
    public_key: &'a [u8],
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
        if !key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err(PkiError::new(ATTEMPT, &"its key is not of the curve P-256"));
        }
        let issuer = Issuer::from_ca_cert_pem(&credentials.certificate, key).map_err(wrong)?;
        let own = OwnCertificate::read(&credentials.certificate)
            .ok_or_else(|| PkiError::new(ATTEMPT, &"its certificate is not one of ours"))?;
        Ok(Self {
            credentials,
            issuer,
            own,
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
        const ATTEMPT: &str = "sign a certificate";
        let key = KeyPair::generate().map_err(|error| PkiError::new(ATTEMPT, &error))?;
        let certificate = self.certify(
            &Grant {
                user: &identity.user,
                groups: &identity.groups,
                cluster,
                seconds: CERTIFICATE_DAYS * 86_400,
                public_key: &key.subject_public_key_info(),
            },
            now,
        )?;
        Ok(Credentials {
            certificate,
            key: key.serialize_pem(),
        })
    }

    /// Whom a client certificate names, if this authority has signed it and the key is its own.
    pub(crate) fn verify(&self, credentials: &Credentials) -> Result<Certified, PkiError> {
        const ATTEMPT: &str = "check a certificate";
        let wrong = |reason: &str| PkiError::new(ATTEMPT, &reason);
        let (_, block) = parse_x509_pem(credentials.certificate.as_bytes())
            .map_err(|_| wrong("it is not in PEM"))?;
        let (_, certificate) =
            X509Certificate::from_der(&block.contents).map_err(|_| wrong("it cannot be read"))?;
        let (_, own) = parse_x509_pem(self.credentials.certificate.as_bytes())
            .map_err(|_| wrong("the authority cannot be read"))?;
        let (_, own) = X509Certificate::from_der(&own.contents)
            .map_err(|_| wrong("the authority cannot be read"))?;
        certificate
            .verify_signature(Some(own.public_key()))
            .map_err(|_| wrong("it is signed by another authority"))?;
        let key = KeyPair::from_pem(&credentials.key).map_err(|_| wrong("the key is none"))?;
        if key.subject_public_key_info() != certificate.public_key().raw {
            return Err(wrong("the key belongs to another certificate"));
        }
        identify(&block.contents).ok_or_else(|| wrong("it names no user"))
    }

    /// The certificate that a request asks for, in PEM: its user and its groups, in one cluster.
    /// Whatever else the request asks for is not in it.
    pub(crate) fn sign_request(
        &self,
        request: &CertificateRequest,
        cluster: &str,
        seconds: i64,
        now: jiff::Timestamp,
    ) -> Result<String, PkiError> {
        let grant = Grant {
            user: request.user.as_deref().unwrap_or_default(),
            groups: &request.groups,
            cluster,
            seconds,
            public_key: &request.public_key,
        };
        self.certify(&grant, now)
    }

    fn certify(&self, grant: &Grant<'_>, now: jiff::Timestamp) -> Result<String, PkiError> {
        const ATTEMPT: &str = "sign a certificate";
        let mut serial = [0_u8; 16];
        SystemRandom::new()
            .fill(&mut serial)
            .map_err(|error| PkiError::new(ATTEMPT, &error))?;
        let now = now.as_second();
        let groups = grant.groups.iter().map(String::as_str);
        let to_be_signed = ClientCertificate {
            serial,
            user: grant.user,
            // Everybody is a member of this one; it need not be said.
            groups: groups.filter(|group| *group != AUTHENTICATED).collect(),
            cluster: grant.cluster,
            not_before: now - SLACK_SECONDS,
            not_after: now.saturating_add(grant.seconds).min(self.own.not_after),
            public_key: grant.public_key,
            issuer: &self.own.name,
            issuer_key: &self.own.key_id,
        }
        .to_be_signed();
        let signature = self
            .issuer
            .key()
            .sign(&to_be_signed)
            .map_err(|error| PkiError::new(ATTEMPT, &error))?;
        Ok(to_pem(&assemble(&to_be_signed, &signature)))
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

fn to_pem(certificate: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

fn ia5(text: &str) -> Result<Ia5String, PkiError> {
    Ia5String::try_from(text.to_owned())
        .map_err(|error| PkiError::new("name a certificate", &error))
}

fn parameters(common_name: &str, now: jiff::Timestamp, days: i64) -> CertificateParams {
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

#[cfg(test)]
mod tests;
