//! What the hub keeps of leases and requests for certificates: the little that it asks for. It has
//! one of each for every cluster.

use std::time::Duration;

use bellwether_runtime::{CacheEntry, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Deserialize;

use super::request::is_pending;

/// When a cluster was heard of last.
#[derive(Debug)]
pub(super) struct Heartbeat {
    state: State,
    /// When it renewed its lease.
    pub(super) renewed: Option<Timestamp>,
    /// How often its agent renews the lease, where agents say so.
    pub(super) duration: Option<Duration>,
}

/// A request for a certificate.
#[derive(Debug)]
pub(super) struct Request {
    state: State,
    /// What is asked for, while that is undecided.
    pub(super) pending: Option<Box<CertificateSigningRequest>>,
}

/// Which state of which object something is: all that is read of its metadata.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    namespace: Box<str>,
    name: Box<str>,
    resource_version: Box<str>,
}

impl State {
    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

#[derive(Deserialize)]
struct Lease {
    metadata: State,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    #[serde(default)]
    renew_time: Option<MicroTime>,
    #[serde(default)]
    lease_duration_seconds: Option<i32>,
}

fn duration(seconds: i32) -> Option<Duration> {
    let seconds = u64::try_from(seconds).ok().filter(|it| *it > 0)?;
    Some(Duration::from_secs(seconds))
}

impl CacheEntry for Heartbeat {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let Lease { metadata, spec } = serde_json::from_str(text)?;
        Ok(Self {
            state: metadata,
            renewed: spec.renew_time.map(|time| time.0),
            duration: spec.lease_duration_seconds.and_then(duration),
        })
    }

    fn key(&self) -> ObjectKey {
        self.state.key()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl CacheEntry for Request {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let request: Box<CertificateSigningRequest> = serde_json::from_str(text)?;
        let metadata = &request.metadata;
        let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
        let state = State {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            resource_version: text(&metadata.resource_version),
        };
        Ok(Self {
            state,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_lease_stays_when_it_was_renewed() {
        let mut lease = json!({
            "metadata": {"name": "managed-cluster-lease", "namespace": "c1", "uid": "u",
                "resourceVersion": "7", "managedFields": [{"manager": "m"}]},
            "spec": {"holderIdentity": "c1", "renewTime": "2026-01-01T00:00:00.000001Z",
                "leaseDurationSeconds": 10},
        });
        let beat = Heartbeat::read(&lease.to_string()).unwrap();
        assert_eq!(beat.key(), ObjectKey::new("c1", "managed-cluster-lease"));
        let renewed = "2026-01-01T00:00:00.000001Z".parse().unwrap();
        assert_eq!(beat.renewed, Some(renewed));
        assert_eq!(beat.duration, Some(Duration::from_secs(10)));
        lease["spec"] = json!({"leaseDurationSeconds": -1});
        let bare = Heartbeat::read(&lease.to_string()).unwrap();
        assert_eq!(bare.duration, None);
        assert!(bare.renewed.is_none() && bare.is_same(&beat));
    }

    #[test]
    fn a_request_stays_while_it_is_undecided() {
        let mut request = json!({
            "metadata": {"name": "c1-abc", "resourceVersion": "7"},
            "spec": {"request": "", "signerName": "s"},
        });
        assert!(
            Request::read(&request.to_string())
                .unwrap()
                .pending
                .is_some()
        );
        request["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
        let answered = Request::read(&request.to_string()).unwrap();
        assert!(answered.pending.is_none());
        assert_eq!(answered.key(), ObjectKey::cluster_scoped("c1-abc"));
    }
}
