//! What the hub keeps of leases and requests for certificates: the little that it asks for. It has
//! one of each for every cluster.

use bellwether_api::meta::ObjectMeta;
use bellwether_runtime::{Kept, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Deserialize;

use super::request::is_pending;

/// When a cluster was heard of last.
#[derive(Debug)]
pub(super) struct Beat {
    state: State,
    /// When it renewed its lease.
    pub(super) renewed: Option<Timestamp>,
}

/// A request for a certificate.
#[derive(Debug)]
pub(super) struct Request {
    state: State,
    /// What is asked for, while that is undecided.
    pub(super) pending: Option<Box<CertificateSigningRequest>>,
}

/// Which state of which object something is.
#[derive(Debug, PartialEq, Eq)]
struct State {
    namespace: Box<str>,
    name: Box<str>,
    version: Box<str>,
}

impl State {
    fn of(metadata: &ObjectMeta) -> Self {
        let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            version: text(&metadata.resource_version),
        }
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

#[derive(Deserialize)]
struct Lease {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    #[serde(default)]
    renew_time: Option<MicroTime>,
}

impl Kept for Beat {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let Lease { metadata, spec } = serde_json::from_str(text)?;
        Ok(Self {
            state: State::of(&metadata),
            renewed: spec.renew_time.map(|time| time.0),
        })
    }

    fn key(&self) -> ObjectKey {
        self.state.key()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl Kept for Request {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let request: Box<CertificateSigningRequest> = serde_json::from_str(text)?;
        Ok(Self {
            state: State::of(&request.metadata),
            pending: Some(request).filter(|request| is_pending(request)),
        })
    }

    fn key(&self) -> ObjectKey {
        self.state.key()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.state == other.state
    }
}
