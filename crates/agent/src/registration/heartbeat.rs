//! Showing that one is alive: the lease that the hub made is renewed.

use std::time::Duration;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::cluster::names::{condition, object, reason};
use bellwether_api::meta::{UNKNOWN, condition as find};
use bellwether_runtime::{Clock, ClusterHandle, created_by};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;

use super::{AgentError, jitter};

/// How soon to look for a lease that is not there yet.
const LEASE_RETRY: Duration = Duration::from_secs(1);
/// How soon to renew again when the hub says that it hears nothing.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

/// The lease of a cluster, and when it was renewed. Times are readings of the monotonic clock: a member
/// whose time of day is set back goes on renewing.
#[derive(Default)]
pub(super) struct Heartbeat {
    /// The lease as it was last seen, in JSON: parsed it takes five times as much room.
    last: Option<Box<str>>,
    /// When it was renewed, or last looked for in vain.
    tried: Option<(Duration, bool)>,
}

impl Heartbeat {
    /// When the next renewal is due. A lease duration that has changed counts at once.
    pub(super) fn due(&self, cluster: &ManagedCluster, name: &str) -> Duration {
        let Some((tried, is_renewed)) = self.tried else {
            return Duration::ZERO;
        };
        let wait = match (is_renewed, is_unheard(cluster)) {
            (false, _) => LEASE_RETRY,
            (true, true) => RENEW_AGAIN,
            (true, false) => cluster.lease_duration().mul_f64(1.0 + jitter(name)),
        };
        tried.saturating_add(wait)
    }

    /// Renews the lease, and says in it how often that happens. True if there is one.
    pub(super) async fn renew(
        &mut self,
        hub: &ClusterHandle,
        clock: &Clock,
        name: &str,
        duration: Duration,
    ) -> Result<bool, AgentError> {
        let now = clock.monotonic();
        let is_renewed = self.beat(hub, clock, name, duration).await?;
        self.tried = Some((now, is_renewed));
        Ok(is_renewed)
    }

    /// Agents may update leases, but not patch them.
    async fn beat(
        &mut self,
        hub: &ClusterHandle,
        clock: &Clock,
        cluster: &str,
        duration: Duration,
    ) -> Result<bool, AgentError> {
        let leases: Api<Lease> = Api::namespaced(hub.client(), cluster);
        let last = self.last.take();
        let lease = match last.and_then(|text| serde_json::from_str(&text).ok()) {
            Some(lease) => Some(lease),
            None => match leases.get_opt(object::LEASE).await {
                Ok(lease) => lease,
                // The hub gives the right to look together with the lease.
                Err(kube::Error::Api(status)) if status.code == 403 => None,
                Err(error) => return Err(AgentError::kube("read the lease")(error)),
            },
        };
        let Some(mut lease) = lease else {
            return Ok(false);
        };
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(MicroTime(clock.now()));
        spec.lease_duration_seconds = i32::try_from(duration.as_secs()).ok();
        match leases.replace(object::LEASE, &created_by(), &lease).await {
            Ok(mut renewed) => {
                // The server knows them, and keeps them where they are left out.
                renewed.metadata.managed_fields = None;
                self.last = serde_json::to_string(&renewed).ok().map(Into::into);
                Ok(true)
            }
            // Somebody else wrote or removed it: it is read again.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(false),
            Err(error) => Err(AgentError::kube("renew the lease")(error)),
        }
    }
}

/// True if the hub says that the agent stopped renewing its lease.
fn is_unheard(cluster: &ManagedCluster) -> bool {
    let status = cluster.status.as_ref();
    let available = status.and_then(|status| find(&status.conditions, condition::AVAILABLE));
    available.is_some_and(|it| it.status == UNKNOWN && it.reason == reason::LEASE_UPDATE_STOPPED)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duration_that_has_changed_counts_at_once() {
        let cluster = |seconds: u32, status: &str| -> ManagedCluster {
            let available = json!({"type": condition::AVAILABLE, "status": status,
                "reason": reason::LEASE_UPDATE_STOPPED, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let object = json!({"metadata": {"name": "c1"},
                "spec": {"leaseDurationSeconds": seconds}, "status": {"conditions": [available]}});
            serde_json::from_value(object).unwrap()
        };
        let check = |tried, cluster: &ManagedCluster, expected: Duration| {
            let heartbeat = Heartbeat { last: None, tried };
            assert_eq!(heartbeat.due(cluster, "c1"), expected);
        };
        let at = Duration::from_secs(1000);
        let factor = 1.0 + jitter("c1");
        let after = |seconds: u64| at + Duration::from_secs(seconds).mul_f64(factor);
        check(None, &cluster(60, "True"), Duration::ZERO);
        check(Some((at, true)), &cluster(3600, "True"), after(3600));
        check(Some((at, true)), &cluster(10, "True"), after(10));
        check(Some((at, true)), &cluster(0, "True"), after(60));
        check(
            Some((at, true)),
            &cluster(3600, "Unknown"),
            at + RENEW_AGAIN,
        );
        check(Some((at, false)), &cluster(3600, "True"), at + LEASE_RETRY);
    }
}
