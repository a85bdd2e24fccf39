//! The authority of a webhook server: kept in a Secret that all processes of a hub share, and replaced in
//! time.
//!
//! A new authority is published beside the one before it, so that any caller trusts both while the
//! processes change over.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bellwether_apiserver::{Authority, Credentials, PkiError};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::RwLock;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

/// How old an authority gets before it is replaced. It is good for years beyond that.
pub const AUTHORITY_AGE: SignedDuration = SignedDuration::from_hours(365 * 24);

/// How old the certificate of the server gets before it is replaced. It is good for a year.
pub const CERTIFICATE_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// When the authority in a Secret was made.
const MADE_AT: &str = "webhook.bellwether.dev/made-at";

const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";
const PREVIOUS: &str = "ca-previous.crt";

/// The authorities of a hub.
#[derive(Debug, Clone)]
pub struct Authorities {
    /// The one that signs.
    pub current: Credentials,
    /// The certificate of the one before it.
    pub previous: Option<String>,
    /// When the current one was made.
    pub made: Timestamp,
}

impl Authorities {
    /// Makes the first authority, or one that replaces another.
    pub fn generate(before: Option<&Self>, now: Timestamp) -> Result<Self, PkiError> {
        Ok(Self {
            current: Authority::generate(now)?.credentials().clone(),
            previous: before.map(|before| before.current.certificate.clone()),
            made: now,
        })
    }

    /// Reads a Secret; none if it has no authority that can be used.
    pub fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        let annotations = secret.metadata.annotations.as_ref()?;
        let found = Self {
            current: Credentials {
                certificate: text(CERTIFICATE)?,
                key: text(KEY)?,
            },
            previous: text(PREVIOUS).filter(|text| !text.is_empty()),
            made: annotations.get(MADE_AT)?.parse().ok()?,
        };
        Authority::load(found.current.clone()).ok()?;
        Some(found)
    }

    /// Puts the authorities into a Secret; what else it has stays.
    pub fn write(&self, secret: &mut Secret) {
        let data = secret.data.get_or_insert_default();
        let mut put = |key: &str, text: &str| {
            data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        };
        put(CERTIFICATE, &self.current.certificate);
        put(KEY, &self.current.key);
        put(PREVIOUS, self.previous.as_deref().unwrap_or_default());
        let annotations: &mut BTreeMap<String, String> =
            secret.metadata.annotations.get_or_insert_default();
        annotations.insert(MADE_AT.to_owned(), self.made.to_string());
    }

    /// True if it is time for another authority.
    pub fn is_due(&self, now: Timestamp) -> bool {
        now.duration_since(self.made) >= AUTHORITY_AGE
    }

    /// The certificates that the server is trusted by, in PEM.
    pub fn bundle(&self) -> String {
        let mut bundle = self.current.certificate.trim_end().to_owned();
        bundle.push('\n');
        if let Some(previous) = &self.previous {
            bundle.push_str(previous.trim_end());
            bundle.push('\n');
        }
        bundle
    }
}

/// The certificate of the server at this moment; none until there is an authority.
#[derive(Debug, Default)]
pub struct Serving(RwLock<Option<Current>>);

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    /// The certificate of the authority that signed it.
    authority: String,
    made: Timestamp,
}

impl Serving {
    /// Makes a certificate, unless there is one of this authority that is young enough.
    pub fn renew(
        &self,
        authorities: &Authorities,
        names: &[String],
        addresses: &[IpAddr],
        now: Timestamp,
    ) -> Result<(), String> {
        let is_good = |current: &Current| {
            current.authority == authorities.current.certificate
                && now.duration_since(current.made) < CERTIFICATE_AGE
        };
        if self.0.read().as_ref().is_some_and(is_good) {
            return Ok(());
        }
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let authority = Authority::load(authorities.current.clone()).map_err(|it| text(&it))?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let made = authority
            .issue_server(&names, addresses, now)
            .map_err(|it| text(&it))?;
        let certificate =
            CertificateDer::from_pem_slice(made.certificate.as_bytes()).map_err(|it| text(&it))?;
        let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).map_err(|it| text(&it))?;
        let key = CertifiedKey::from_der(vec![certificate], key, &ring::default_provider())
            .map_err(|it| text(&it))?;
        *self.0.write() = Some(Current {
            key: Arc::new(key),
            authority: authorities.current.certificate.clone(),
            made: now,
        });
        tracing::info!("the webhook server has a new certificate");
        Ok(())
    }

    /// True if there is a certificate.
    pub fn is_ready(&self) -> bool {
        self.0.read().is_some()
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().as_ref().map(|current| current.key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn a_secret_keeps_authorities() {
        let first = Authorities::generate(None, start()).unwrap();
        let mut secret = Secret::default();
        assert!(Authorities::read(&secret).is_none());
        first.write(&mut secret);
        let found = Authorities::read(&secret).unwrap();
        assert_eq!(found.bundle(), first.bundle());
        assert_eq!(found.made, first.made);
        let later = start() + AUTHORITY_AGE;
        assert!(!first.is_due(later - SignedDuration::from_secs(1)));
        assert!(first.is_due(later));
        let second = Authorities::generate(Some(&first), later).unwrap();
        second.write(&mut secret);
        let found = Authorities::read(&secret).unwrap();
        assert_eq!(found.current.key, second.current.key);
        // Both are trusted while processes change over.
        assert!(found.bundle().contains(first.current.certificate.trim()));
        assert!(found.bundle().contains(second.current.certificate.trim()));
    }

    #[test]
    fn a_broken_secret_is_replaced() {
        let mut secret = Secret::default();
        Authorities::generate(None, start())
            .unwrap()
            .write(&mut secret);
        let data = secret.data.as_mut().unwrap();
        data.insert(KEY.to_owned(), ByteString(b"x".to_vec()));
        assert!(Authorities::read(&secret).is_none());
    }

    #[test]
    fn a_certificate_is_renewed_by_age_and_by_authority() {
        let serving = Serving::default();
        let first = Authorities::generate(None, start()).unwrap();
        let names = ["hub.fleet.svc".to_owned()];
        let current = |authorities: &Authorities, now: Timestamp| {
            serving.renew(authorities, &names, &[], now).unwrap();
            serving.0.read().as_ref().unwrap().key.cert.clone()
        };
        let made = current(&first, start());
        assert_eq!(
            current(&first, start() + SignedDuration::from_hours(1)),
            made
        );
        let aged = current(&first, start() + CERTIFICATE_AGE);
        assert_ne!(aged, made);
        let second = Authorities::generate(Some(&first), start()).unwrap();
        assert_ne!(current(&second, start() + CERTIFICATE_AGE), aged);
    }
}
