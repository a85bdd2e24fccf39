//! Showing that one is alive: the lease that the hub made is renewed.

use bellwether_api::cluster::names::object;
use bellwether_runtime::Reach;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;

use super::AgentError;
use crate::hub::created_by;

/// The lease of a cluster as it was last seen, in JSON: parsed it takes five times as much room.
#[derive(Default)]
pub(super) struct Heartbeat {
    last: Option<Box<str>>,
}

impl Heartbeat {
    /// Renews the lease; tells whether there is one. Agents may update leases, but not patch them.
    pub(super) async fn beat(
        &mut self,
        hub: &Reach,
        cluster: &str,
        now: Timestamp,
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
        spec.renew_time = Some(MicroTime(now));
        match leases.replace(object::LEASE, &created_by(), &lease).await {
            Ok(mut renewed) => {
                // The server knows them, and keeps them where they are left out.
                renewed.metadata.managed_fields = None;
                self.last = serde_json::to_string(&renewed).ok().map(Into::into);
                Ok(true)
            }
            // Somebody else wrote or removed it: it is read anew.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(false),
            Err(error) => Err(AgentError::kube("renew the lease")(error)),
        }
    }
}
