//! What a certificate signing request asks for. Nothing in it is believed but that its sender holds
//! the private key.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use super::client::{is_der, subject};

/// The largest request that is read.
const LARGEST: usize = 64 * 1024;

/// A request whose signature is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateRequest {
    /// The common name, if there is one and only one.
    pub user: Option<String>,
    /// The organizations.
    pub groups: Vec<String>,
    /// Whether it asks for alternative names of any kind.
    pub has_alternative_names: bool,
    /// The public key as a certificate holds it.
    pub(super) public_key: Vec<u8>,
}

impl CertificateRequest {
    /// Reads a request in PEM; the error says what is wrong with it.
    pub(crate) fn parse(pem: &[u8]) -> Result<Self, String> {
        if pem.len() > LARGEST {
            return Err("the request is too large".into());
        }
        let (_, block) =
            parse_x509_pem(pem).map_err(|_| "PEM block type must be CERTIFICATE REQUEST")?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err("PEM block type must be CERTIFICATE REQUEST".into());
        }
        let (rest, request) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|error| format!("the request cannot be read: {error}"))?;
        if !rest.is_empty() {
            return Err("the request is followed by something else".into());
        }
        request
            .verify_signature()
            .map_err(|_| "the signature of the request is wrong")?;
        let info = &request.certification_request_info;
        let (user, groups) = subject(&info.subject)?;
        let has_alternative_names = request
            .requested_extensions()
            .into_iter()
            .flatten()
            .any(|extension| matches!(extension, ParsedExtension::SubjectAlternativeName(_)));
        let public_key = info.subject_pki.raw.to_vec();
        if !is_der(&public_key) {
            return Err("the public key cannot be read".into());
        }
        Ok(Self {
            user,
            groups,
            has_alternative_names,
            public_key,
        })
    }
}
