//! Events on works: what happened, for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_runtime::Clock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use parking_lot::Mutex;

use super::WorkApi;
use super::hub::{HubClients, HubWork};

/// How many events may be written at once; after that, one a second. Events are for people: a
/// thousand works that are applied at once do not need a thousand of them.
const BURST: f64 = 20.0;

/// Writes events to the hub.
pub(super) struct Events {
    speakers: Arc<HubClients>,
    clock: Clock,
    /// How many may be written, and when this was counted; for each cluster.
    tokens: Mutex<BTreeMap<String, (f64, Timestamp)>>,
}

impl Events {
    pub(super) fn new(speakers: Arc<HubClients>, clock: Clock) -> Self {
        Self {
            speakers,
            clock,
            tokens: Mutex::default(),
        }
    }

    /// Tells that something went as it should.
    pub(super) fn normal(&self, work: &HubWork, reason: &str, message: &str) {
        self.tell(work, "Normal", reason, message);
    }

    /// Tells that something went wrong.
    pub(super) fn warning(&self, work: &HubWork, reason: &str, message: &str) {
        self.tell(work, "Warning", reason, message);
    }

    /// Nobody waits for an event, and one that is lost is no harm.
    fn tell(&self, work: &HubWork, kind: &str, reason: &str, message: &str) {
        if !self.take_token(work.namespace()) {
            return;
        }
        let event = self.event(work, kind, reason, message);
        let client = self.speakers.of(work.namespace());
        let api: Api<Event> = Api::namespaced(client, work.namespace());
        tokio::spawn(async move {
            if let Err(error) = api.create(&PostParams::default(), &event).await {
                tracing::debug!(%error, "event lost");
            }
        });
    }

    fn take_token(&self, cluster: &str) -> bool {
        let now = self.clock.now();
        let mut tokens = self.tokens.lock();
        let (left, counted) = tokens.entry(cluster.to_owned()).or_insert((BURST, now));
        let passed = now.duration_since(*counted).as_secs_f64().max(0.0);
        *left = (*left + passed).min(BURST);
        *counted = now;
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        true
    }

    fn event(&self, work: &HubWork, kind: &str, reason: &str, message: &str) -> Event {
        let now = Time(self.clock.now());
        let metadata = work.metadata();
        let (api_version, object_kind) = match work.work_api() {
            WorkApi::ManifestWork => ("work.open-cluster-management.io/v1", "ManifestWork"),
            WorkApi::Work => ("multicluster.x-k8s.io/v1alpha1", "Work"),
        };
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}-", work.name())),
                namespace: metadata.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(api_version.to_owned()),
                kind: Some(object_kind.to_owned()),
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
                ..ObjectReference::default()
            },
            type_: Some(kind.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.chars().take(1000).collect()),
            source: Some(EventSource {
                component: Some("work-agent".to_owned()),
                ..EventSource::default()
            }),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            ..Event::default()
        }
    }
}
