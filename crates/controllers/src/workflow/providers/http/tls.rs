//! Certificates of connections, from the Secret that an action names.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Keys of the Secret.
const AUTHORITIES: &str = "ca.crt";
const CERTIFICATE: &str = "client.crt";
const KEY: &str = "client.key";

/// The certificates that this machine trusts.
pub(super) fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // A certificate that cannot be read is one that is not trusted.
        let _ = roots.add(certificate);
    }
    roots
}

/// How a connection is encrypted: servers are trusted that `ca.crt` vouches for, and the client shows `client.crt`.
pub(in super::super) fn from_secret(
    data: &BTreeMap<String, Vec<u8>>,
) -> Result<ClientConfig, String> {
    let entry = |name: &str| data.get(name).map(|value| decoded(value));
    let (authorities, certificate, key) = (entry(AUTHORITIES), entry(CERTIFICATE), entry(KEY));
    if authorities.is_none() && certificate.is_none() {
        return Err(format!("it has neither {AUTHORITIES} nor {CERTIFICATE}"));
    }
    let roots = match authorities {
        None => native_roots(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(AUTHORITIES, &pem)? {
                let added = roots.add(certificate);
                added.map_err(|error| format!("{AUTHORITIES} cannot be read: {error}"))?;
            }
            roots
        }
    };
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let Some(certificate) = certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let key = key.ok_or_else(|| format!("it has {CERTIFICATE}, but no {KEY}"))?;
    let key = PrivateKeyDer::from_pem_slice(&key);
    let key = key.map_err(|error| format!("{KEY} cannot be read: {error}"))?;
    let built = builder.with_client_auth_cert(certificates(CERTIFICATE, &certificate)?, key);
    built.map_err(|error| format!("{CERTIFICATE} and {KEY} cannot be used: {error}"))
}

fn certificates(name: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("{name} cannot be read: {error}"))?;
    if found.is_empty() {
        return Err(format!("{name} has no certificate"));
    }
    Ok(found)
}

/// A value of a Secret as it is, or decoded once more: some templates need it encoded twice.
fn decoded(value: &[u8]) -> Vec<u8> {
    let is_pem = value.windows(10).any(|part| part == b"-----BEGIN");
    let text: Vec<u8> = value
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    match STANDARD.decode(text) {
        Ok(decoded) if !is_pem => decoded,
        _ => value.to_vec(),
    }
}
