//! Events on works: what happened, for people.

use std::sync::Arc;

use bellwether_runtime::{Clock, EventDraft, EventLimit, Recorder};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;

use super::hub::{HubClients, HubWork};

/// A thousand works that are applied at once do not need a thousand events.
const LIMIT: EventLimit = EventLimit {
    burst: 20.0,
    per_second: 1.0,
};

/// Records events about works, with the client of each cluster.
pub(super) struct Events(Recorder);

impl Events {
    pub(super) fn new(clients: Arc<HubClients>, clock: &Clock) -> Self {
        let client_of = move |cluster: &str| clients.of(cluster);
        Self(Recorder::with_clients(
            client_of,
            clock,
            "work-agent",
            LIMIT,
        ))
    }

    /// Records that something went as it should.
    pub(super) fn normal(&self, work: &HubWork, reason: &'static str, message: &str) {
        let draft = EventDraft::normal(reason, message);
        self.0.record_about(reference(work), draft);
    }

    /// Records that something went wrong.
    pub(super) fn warning(&self, work: &HubWork, reason: &'static str, message: &str) {
        let draft = EventDraft::warning(reason, message);
        self.0.record_about(reference(work), draft);
    }
}

/// The work as people know it.
fn reference(work: &HubWork) -> ObjectReference {
    match &work.as_work {
        Some(work) => work.object_ref(&()),
        None => work.work.object_ref(&()),
    }
}
